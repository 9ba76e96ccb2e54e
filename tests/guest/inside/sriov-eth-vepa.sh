# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,vfs=2,id=left,cable=right --hca link=eth,id=right
# A virtual Ethernet port aggregator (bridge link set .. hwmode vepa) in legacy mode: what functions send goes to the wire, to one another
# too, and comes back if the bridge at the far end turns it round.
mark_kernel_log
far_end
echo 0 >"$pf/sriov_drivers_autoprobe"
echo 2 >"$pf/sriov_numvfs" || fail "two virtual functions"
echo 1 >"$pf/sriov_drivers_autoprobe"
functions_up 2
reaches "in_vf 0" 10.9.1.2
reaches "in_vf 0" 10.9.1.200
bridge link set dev "$port" hwmode vepa || fail "vepa"
bridge link show dev "$port" | grep -q VEPA || fail "the mode is $(bridge link show dev "$port")"
is_parted "in_vf 0" 10.9.1.2
reaches "in_vf 1" 10.9.1.200
reaches in_far 10.9.1.1
in_far ip link add name turns type bridge && in_far ip link set "$far" master turns && in_far ip link set turns up || fail "bridge"
in_far bridge link set dev "$far" hairpin on || fail "hairpin"
before=$(in_far cat "/sys/class/net/$far/statistics/rx_packets")
reaches "in_vf 0" 10.9.1.2
tcp_between "in_vf 1" "in_vf 0" 10.9.1.2
seen=$(($(in_far cat "/sys/class/net/$far/statistics/rx_packets") - before))
note "the far end has turned round $seen frames"
((seen > 1000)) || fail "the far end has seen $seen frames"
bridge link set dev "$port" hwmode veb || fail "veb"
before=$(in_far cat "/sys/class/net/$far/statistics/rx_packets")
tcp_between "in_vf 1" "in_vf 0" 10.9.1.2
seen=$(($(in_far cat "/sys/class/net/$far/statistics/rx_packets") - before))
((seen < 50)) || fail "the far end has seen $seen frames of what stays in the card"
functions_down 2
echo 0 >"$pf/sriov_numvfs" || fail "sriov_numvfs"
complaints=$(switchdev_complaints)
[[ -z $complaints ]] || fail "the kernel complained: $complaints"
