# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,vfs=2,id=left,cable=right --hca link=eth,vfs=2,id=right --mem 3G
# What runs between functions: perftest between the physical and the virtual ones of a card, and with those of another at the far end of
# its cable; NVMe over RDMA with the target on one virtual function and the host on the other. Functions are L0 (physical), L1, L2 on the
# left card, R0, R1, R2 on the right one. $test_argument: perftest_all or nvme_between alone.
right=/sys/bus/pci/devices/$(hca_addresses | tail -n 1)
mark_kernel_log
for card in "$pf" "$right"; do echo 2 >"$card/sriov_numvfs" || fail "virtual functions of $card"; done
declare -A folder=([L0]=$pf [L1]=$(readlink -f "$pf/virtfn0") [L2]=$(readlink -f "$pf/virtfn1")
  [R0]=$right [R1]=$(readlink -f "$right/virtfn0") [R2]=$(readlink -f "$right/virtfn1"))
declare -A address=([L0]=10.9.1.10 [L1]=10.9.1.11 [L2]=10.9.1.12 [R0]=10.9.1.20 [R1]=10.9.1.21 [R2]=10.9.1.22) net rdma
for f in "${!folder[@]}"; do
  within 60 test -d "${folder[$f]}/infiniband"
  net[$f]=$(net_of "${folder[$f]}") rdma[$f]=$(rdma_of "${folder[$f]}")
done
in_space() { ip netns exec "$@"; }
# spaces FUNCTION...: the interface of each in a name space of its name.
spaces() {
  local f
  for f in "$@"; do
    ip netns add "$f" && ip link set "${net[$f]}" netns "$f" && ip -n "$f" link set lo up && ip -n "$f" link set "${net[$f]}" up &&
      ip -n "$f" address add "${address[$f]}/24" dev "${net[$f]}" || fail "$f in a name space"
  done
}
no_spaces() {
  local f
  for f in "$@"; do
    ip netns del "$f" && within 20 test -e "/sys/class/net/${net[$f]}" || fail "name space $f"
  done
}

perftest_all() {
  spaces L0 L1 L2 R0 R1 R2
  for f in "${!rdma[@]}"; do within 60 has_v2_gid "${rdma[$f]}"; done
  # SERVER CLIENT
  for way in "L0 L1" "L1 L0" "L1 L2" "R0 L1" "L2 R0" "R1 L2"; do
    read -r server client <<<"$way"
    in_space "$client" ping -q -c 2 -i 0.2 -W 5 "${address[$server]}" >/tmp/ping || fail "ping from $client to $server: $(cat /tmp/ping)"
    for tool in "ib_write_lat -s 2 -n 100" "ib_send_bw -s 65536 -n 100" "ib_read_bw -s 65536 -n 50" "ib_atomic_lat -n 50" \
      "ib_send_lat -c UD -s 1024 -n 50"; do
      # shellcheck disable=SC2086 # words
      perftest_between "${rdma[$server]}" "${rdma[$client]}" $tool
    done
    note "perftest from $client to $server"
  done
  no_spaces L0 L1 L2 R0 R1 R2
  no_complaints "perftest between functions"
}

# Target and host are the kernel's, and in one name space: routes by source lead from the one function out to the other.
nvme_between() {
  for f in L1 L2; do
    ip link set "${net[$f]}" up && ip address add "${address[$f]}/24" dev "${net[$f]}" || fail "$f"
    echo 0 >"/proc/sys/net/ipv4/conf/${net[$f]}/rp_filter" && echo 1 >"/proc/sys/net/ipv4/conf/${net[$f]}/accept_local" || fail "addresses of this guest on the wire"
  done
  echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
  ip rule add pref 100 lookup local && ip rule del pref 0 || fail "rules"
  # way FROM TO TABLE
  way() {
    ip route add "${address[$2]}" dev "${net[$1]}" src "${address[$1]}" table "$3" &&
      ip rule add pref 10 from "${address[$1]}" to "${address[$2]}" lookup "$3" &&
      ip neigh replace "${address[$2]}" lladdr "$(<"/sys/class/net/${net[$2]}/address")" dev "${net[$1]}" nud permanent || fail "way from $1 to $2"
  }
  way L1 L2 101
  way L2 L1 102
  for f in L1 L2; do within 60 has_v2_gid "${rdma[$f]}"; done
  nvme_target "${address[L1]}" 2 32768
  nvme_host=${address[L2]} nvme_connect "${address[L1]}" hcasim || fail "connect: $(dmesg | tail -n 20)"
  # connected FUNCTION: QPs that RDMA CM has connected.
  connected() { rdma resource show qp | grep -F "link ${rdma[$1]}/1 " | grep -c 'type RC state RTS .*rdma_cm'; }
  for f in L1 L2; do (($(connected $f) >= 3)) || fail "$f has no part in it: $(rdma resource show qp)"; done
  for f in L0 R0 R1 R2; do (($(connected $f) == 0)) || fail "$f has a part in it: $(rdma resource show qp)"; done
  disk=$(nvme_disk hcasim 1) second=$(nvme_disk hcasim 2)
  for size in 4k 64k 1m; do nvme_verify "$disk" $size; done
  nvme_verify "$disk:$second" 4k-1m --numjobs=1 --iodepth=32
  nvme disconnect -n hcasim || fail "disconnect"
  nvme_target_down
  no_complaints "NVMe over RDMA between virtual functions"
}

case ${test_argument:-all} in
  all) perftest_all && nvme_between ;;
  perftest_all | nvme_between) "$test_argument" ;;
  *) fail "neither perftest_all nor nvme_between: $test_argument" ;;
esac
for card in "$pf" "$right"; do echo 0 >"$card/sriov_numvfs" || fail "no virtual functions of $card"; done
no_complaints "traffic between functions"
