# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,vfs=4
# watch: 400
# Virtual functions of an Ethernet card, its E-Switch in legacy mode: 0 -> 4 -> 0, $test_argument times (3), with traffic between the
# functions, each with its interface in a network namespace of its own: TCP and RoCE. Nothing of them stays in the card.
rounds=${test_argument:-3}
[[ $(<"$pf/sriov_totalvfs") == 4 ]] || fail "sriov_totalvfs is $(<"$pf/sriov_totalvfs")"
rdma system set netns shared
port=$(net_of "$pf")
ip link set "$port" up && ip address add 10.9.1.100/24 dev "$port" || fail "$port"
wait_active mlx5_0
# in_vf N COMMAND...
in_vf() { ip netns exec "vf$1" "${@:2}"; }
listens() { "$@" grep -qs ':1451 0*:0000 0A' /proc/net/tcp /proc/net/tcp6; }
# tcp_between "PREFIX OF SERVER" "PREFIX OF CLIENT" ADDRESS
tcp_between() {
  $1 timeout 60 iperf3 -s -1 >/tmp/server 2>&1 &
  within 30 listens $1
  $2 timeout 60 iperf3 -c "$3" -n 16M >/tmp/client 2>&1 || fail "iperf3 to $3: $(cat /tmp/client /tmp/server)"
  wait
  note "to $3: $(grep receiver /tmp/client)"
}
# gid_of DEVICE: index of its RoCE v2 GID over IPv4.
gid_of() {
  local index gid type at=/sys/class/infiniband/$1/ports/1
  for ((index = 0; index < 32; index++)); do
    gid=$(<"$at/gids/$index") && [[ $gid == 0000:0000:0000:0000:0000:ffff:* ]] || continue
    type=$(<"$at/gid_attrs/types/$index") && [[ $type == 'RoCE v2' ]] && echo "$index" && return
  done
}
# roce SERVER CLIENT ARGS...
roce() {
  local server=$1 client=$2 pid status=0
  shift 2
  on_cpu 0 timeout -k 5 60 "$@" -d "$server" -g "$(gid_of "$server")" -p 18516 >/tmp/between.server 2>&1 &
  pid=$!
  until_listens 18516 "$pid" || fail "server: $* on $server: $(cat /tmp/between.server)"
  on_cpu 1 timeout -k 5 60 "$@" -d "$client" -g "$(gid_of "$client")" -p 18516 localhost >/tmp/between.client 2>&1 || status=$?
  wait "$pid" || status=$?
  ((status == 0)) || fail "$* from $client to $server: status $status: $(cat /tmp/between.client /tmp/between.server)"
}
has_gid() { [[ -n $(gid_of "$1") ]]; }
within 30 has_gid mlx5_0
pair 18515 60 ibv_rc_pingpong -d mlx5_0 -g "$(gid_of mlx5_0)" -c -n 100 || fail "the physical function" # which makes what drivers make once
echo "watch: before"
sleep 2
for ((round = 1; round <= rounds; round++)); do
  mark_kernel_log
  echo 4 >"$pf/sriov_numvfs" || fail "four virtual functions"
  said 10 'E-Switch: Enable: mode(LEGACY), nvfs(4)'
  for vf in 0 1 2 3; do
    within 60 test -d "$pf/virtfn$vf/infiniband"
    net=$(net_of "$(vf_of $vf)")
    ip netns add "vf$vf" && ip link set "$net" netns "vf$vf" || fail "$net into a name space"
    ip -n "vf$vf" link set lo up && ip -n "vf$vf" link set "$net" up && ip -n "vf$vf" address add "10.9.1.$((vf + 1))/24" dev "$net" || fail "$net"
  done
  mapfile -t rdma < <(devices 4)
  note "round $round: ${rdma[*]}"
  for device in "${rdma[@]}"; do within 30 grep -q ACTIVE "/sys/class/infiniband/$device/ports/1/state"; done
  for vf in 0 1 2 3; do
    ping -q -c 3 -i 0.2 -W 5 "10.9.1.$((vf + 1))" || fail "ping to virtual function $vf"
    in_vf $vf ping -q -c 3 -i 0.2 -W 5 "10.9.1.$(((vf + 1) % 4 + 1))" || fail "ping from virtual function $vf"
  done
  in_vf 2 ping -q -c 3 -i 0.2 -W 5 10.9.1.100 || fail "ping to the physical function"
  tcp_between "" "in_vf 0" 10.9.1.100
  tcp_between "in_vf 1" "in_vf 3" 10.9.1.2
  for device in "${rdma[@]}"; do within 30 has_gid "$device"; done
  roce "${rdma[0]}" "${rdma[1]}" ibv_rc_pingpong -c -n 200
  roce "${rdma[2]}" "${rdma[3]}" ibv_rc_pingpong -c -s 65536 -n 50
  roce "${rdma[4]}" "${rdma[0]}" ibv_ud_pingpong -c -s 1024 -n 100
  roce "${rdma[1]}" "${rdma[4]}" ibv_uc_pingpong -c -n 100
  roce "${rdma[3]}" "${rdma[3]}" ibv_rc_pingpong -c -n 100
  for vf in 0 1 2 3; do ip netns del "vf$vf" || fail "name space"; done
  vfs 0
  no_complaints "virtual functions, round $round"
done
echo "watch: after"
sleep 2
