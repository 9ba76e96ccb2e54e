# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,vfs=2,id=left,cable=right --hca link=eth,id=right
# program: dr_fdb
# breaks: cmd-opcode
# A switch whose rules a program writes by itself (mlx5dv_dr's FDB domain): between virtual functions, to another card and back,
# dropped, tagged, rewritten. libmlx5 asks first whether an embedded processor manages the switch, which this card has no command for. The kernel's tables lead to the program's. With argument smfs those are the driver's too.
mark_kernel_log
far_end
to_switchdev 2
functions_up 2
in_far ip link add link "$far" name tagged type vlan id 5 && in_far ip link set tagged up && in_far ip address add 10.9.5.200/24 dev tagged || fail "VLAN at the far end"
in_vf 0 ip address add 10.9.5.1/24 dev "${net[0]}" && in_vf 1 ip address add 10.9.1.3/24 dev "${net[1]}" || fail "address"
# Broadcasts have no rule.
neighbours_known
in_vf 0 ip neigh replace 10.9.1.77 lladdr "${mac[2]}" nud permanent dev "${net[0]}" || fail "neighbour"
in_vf 0 ip neigh replace 10.9.5.200 lladdr "${mac[200]}" nud permanent dev "${net[0]}" || fail "neighbour"
in_far ip neigh replace 10.9.5.1 lladdr "${mac[1]}" nud permanent dev tagged || fail "neighbour"

is_parted "in_vf 0" 10.9.1.2
coproc fdb { exec dr_fdb "$(rdma_of "$pf")" "${mac[1]}" "${mac[2]}" "${mac[200]}" 2>&1; }
program=$fdb_PID
read -r -t 60 -u "${fdb[0]}" said || fail "dr_fdb says nothing"
[[ $said == ready ]] || fail "dr_fdb: $said"
reaches "in_vf 0" 10.9.1.2
reaches "in_vf 1" 10.9.1.200
reaches in_far 10.9.1.1
tcp_between "in_vf 1" "in_vf 0" 10.9.1.2
reaches "in_vf 0" 10.9.5.200
tcp_between in_far "in_vf 0" 10.9.5.200
reaches "in_vf 0" 10.9.1.77
tcp_between "in_vf 1" "in_vf 0" 10.9.1.77
for n in 1 2 3; do in_vf 0 bash -c 'echo . >/dev/udp/10.9.1.2/7777' || fail "UDP"; done
exec {results}<&"${fdb[0]}"
eval "exec ${fdb[1]}>&-" # the end of its input
timeout 60 cat <&"$results" >/tmp/fdb || fail "dr_fdb does not end"
wait "$program" || fail "dr_fdb: status $?: $(cat /tmp/fdb)"
counted() { sed -n "s/^$1: //p" /tmp/fdb; }
note "counted: $(tr '\n' ' ' </tmp/fdb)"
[[ $(counted dropped) == 3 ]] || fail "dropped: $(counted dropped), not 3"
for rule in "tag on" "there" "to 0" "to 1"; do (($(counted "$rule") > 100)) || fail "$rule: $(counted "$rule") packets"; done
for rule in "tag off" "back" "to the port"; do (($(counted "$rule") > 2)) || fail "$rule: $(counted "$rule") packets"; done
is_parted "in_vf 0" 10.9.1.2
functions_down 2
to_legacy
complaints=$(switchdev_complaints)
[[ -z $complaints ]] || fail "the kernel complained: $complaints"
