# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,vfs=4
# watch: 400
# Virtual functions of an Ethernet card, its E-Switch in legacy mode: 0 -> 4 -> 0, $test_argument times (3), with traffic between the
# functions, each with its interface in a network namespace of its own: TCP and RoCE. Nothing of them stays in the card.
rounds=${test_argument:-3}
[[ $(<"$pf/sriov_totalvfs") == 4 ]] || fail "sriov_totalvfs is $(<"$pf/sriov_totalvfs")"
port=$(net_of "$pf")
ip link set "$port" up && ip address add 10.9.1.100/24 dev "$port" || fail "$port"
wait_active mlx5_0
within 30 has_v2_gid mlx5_0
pair 18515 60 ibv_rc_pingpong -d mlx5_0 -g "$(v2_gid_of mlx5_0)" -c -n 100 || fail "the physical function" # which makes what drivers make once
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
  ip neigh flush all # their addresses are new ones
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
  for device in "${rdma[@]}"; do within 30 has_v2_gid "$device"; done
  roce "${rdma[0]}" "${rdma[1]}" ibv_rc_pingpong -c -n 200
  roce "${rdma[2]}" "${rdma[3]}" ibv_rc_pingpong -c -s 65536 -n 50
  roce "${rdma[4]}" "${rdma[0]}" ibv_ud_pingpong -c -s 1024 -n 100
  roce "${rdma[1]}" "${rdma[4]}" ibv_uc_pingpong -c -n 100
  roce "${rdma[3]}" "${rdma[3]}" ibv_rc_pingpong -c -n 100
  if ((round == 1)); then
    # How many interrupts it has is the physical function's to say, while no driver has it.
    bdf=$(basename "$(vf_of 1)")
    echo "$bdf" >/sys/bus/pci/drivers/mlx5_core/unbind || fail "unbind $bdf"
    echo 6 >"$(vf_of 1)/sriov_vf_msix_count" || fail "6 vectors for a virtual function: $(dmesg | tail -n 3)"
    echo "$bdf" >/sys/bus/pci/drivers/mlx5_core/bind || fail "bind $bdf"
    within 60 test -d "$pf/virtfn1/infiniband"
    net=$(net_of "$(vf_of 1)")
    ip link set "$net" netns vf1 && ip -n vf1 link set "$net" up && ip -n vf1 address add 10.9.1.2/24 dev "$net" || fail "$net"
    note "with a table of 6 its driver uses $(find "$(vf_of 1)/msi_irqs" -type f | wc -l) interrupts"
    (($(find "$(vf_of 1)/msi_irqs" -type f | wc -l) <= 6)) || fail "these are more than it has"
    within 30 in_vf 1 ping -q -c 1 -W 1 10.9.1.100
    tcp_between "in_vf 0" "in_vf 1" 10.9.1.1
  fi
  for vf in 0 1 2 3; do ip netns del "vf$vf" || fail "name space"; done
  vfs 0
  no_complaints "virtual functions, round $round"
done
echo "watch: after"
sleep 2
