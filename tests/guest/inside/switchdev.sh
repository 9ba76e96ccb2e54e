# SPDX-License-Identifier: BSD-3-Clause
# from: snapshot
# boot: --hca link=eth,vfs=2,id=left,cable=right --hca link=eth,id=right
# An Ethernet card's switch in switchdev mode: representors of its virtual functions and of its port, in a bridge of the guest's, and what
# reaches whom: the virtual functions, each in a name space vfN, and another card at the far end of the cable, in the name space "far".
# $test_argument times (1) to and fro; "smfs": once, the driver writing the switch's tables itself.
rounds=${test_argument:-1}
[[ $rounds != smfs ]] || rounds=1
mark_kernel_log
far_end
has_received() { (($(<"/sys/class/net/$1/statistics/rx_packets") > 0)); }

round() {
  local vf
  mode switchdev
  devlink dev eswitch show "pci/${pf##*/}" | grep -q 'mode switchdev' || fail "the mode is $(devlink dev eswitch show "pci/${pf##*/}")"
  ip link add name br0 type bridge && ip link set "$port" master br0 && ip link set br0 up || fail "bridge"
  representors_up 2
  for vf in 0 1; do ip link set "${rep[vf]}" master br0 || fail "${rep[vf]}"; done
  functions_up 2
  in_far ip neigh flush all # their addresses are new ones; a neighbour just looked at again keeps the old one for a second
  reaches "in_vf 0" 10.9.1.2
  reaches "in_vf 1" 10.9.1.200
  reaches in_far 10.9.1.1
  for vf in 0 1; do within 10 has_received "${rep[vf]}"; done # the driver asks the card now and then
  tcp_between "in_vf 1" "in_vf 0" 10.9.1.2
  tcp_between in_far "in_vf 1" 10.9.1.200
  # A representor that is down takes the carrier from its function.
  ip link set "${rep[0]}" down || fail "down"
  within 20 carrier 0 "${net[0]}" 0
  ip link set "${rep[0]}" up || fail "up"
  within 20 carrier 0 "${net[0]}" 1
  reaches "in_vf 0" 10.9.1.200
  functions_down 2
  ip link del br0 || fail "bridge"
  mode legacy
  note "round $1: ${rep[*]}"
}

functions_there 2
steering "$(switch_written_by)"
for ((i = 1; i <= rounds; i++)); do round $i; done
echo 0 >"$pf/sriov_numvfs" || fail "sriov_numvfs"
ip address add 10.9.1.100/24 dev "$port" && ip link set "$port" up || fail "$port"
reaches in_far 10.9.1.100
complaints=$(switchdev_complaints)
[[ -z $complaints ]] || fail "the kernel complained: $complaints"
