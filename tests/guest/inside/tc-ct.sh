# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,vfs=2,id=left,cable=right --hca link=eth,id=right
# kernel: own
# Connections that TC tracks, in a card in switchdev mode: what virtual function 0 opens is answered, and nothing else comes to it. The
# kernel sees a connection's first packets (of states beside "established" the driver gives the card no rules); then the card has both
# directions of it, and no packet reaches a processor until it ends. TCP, UDP, IPv6; addresses translated; marks and labels; by the port.
# With argument smfs the driver writes the switch's tables itself.
mark_kernel_log
far_end
to_switchdev 2
functions_up 2
tc_ready "$port" "${rep[@]}"
neighbours_known
tracking_ready

# guard INSIDE OUTSIDE ZONE [PRIO PROTOCOL]: what INSIDE opens to OUTSIDE may be answered, OUTSIDE opens nothing.
guard() {
  local inside=$1 outside=$2 zone=$3 prio=${4:-2} protocol=${5:-ip}
  rule "$inside" protocol "$protocol" prio "$prio" chain 0 flower ct_state -trk action ct zone "$zone" pipe action goto chain 1
  rule "$inside" protocol "$protocol" prio $((prio + 10)) chain 1 flower ct_state +trk+new action ct commit zone "$zone" pipe action mirred egress redirect dev "$outside"
  rule "$inside" protocol "$protocol" prio $((prio + 20)) chain 1 flower ct_state +trk+est action mirred egress redirect dev "$outside"
  rule "$outside" protocol "$protocol" prio "$prio" chain 0 flower ct_state -trk action ct zone "$zone" pipe action goto chain 1
  rule "$outside" protocol "$protocol" prio $((prio + 20)) chain 1 flower ct_state +trk+est action mirred egress redirect dev "$inside"
}
# rules_gone: of both chains.
rules_gone() {
  local dev
  for dev in "$port" "${rep[@]}"; do tc filter del dev "$dev" ingress chain 1 2>/dev/null; done # not each of them has such a chain
  flush
}
# is_in_hw DEVICE ARGS...: each of these rules is; not_in_hw: none is.
is_in_hw() { ! tc filter show dev "$1" ingress "${@:2}" | grep -q not_in_hw && tc filter show dev "$1" ingress "${@:2}" | grep -qw in_hw; }
not_in_hw() { ! tc filter show dev "$1" ingress "${@:2}" | grep -qw in_hw; }
# software DEVICE ARGS...: packets that actions of these rules have taken in the kernel.
software() { tc -s filter show dev "$1" ingress "${@:2}" | awk '/Sent hardware/ { n -= $5; next } /Sent [0-9]/ { n += $4 } END { print n + 0 }'; }
listen "in_vf 1"
guard "${rep[0]}" "${rep[1]}" 1

# TCP
call TCP:10.9.1.2:7000
exchange 20
by_card TCP "${rep[0]}" "${rep[1]}" 'tcp .*dport=7000 .*zone=1 '
for dev in "${rep[@]}"; do is_in_hw "$dev" chain 0 && is_in_hw "$dev" chain 1 prio 22 || fail "not in hardware: $(tc filter show dev "$dev" ingress)"; done
not_in_hw "${rep[0]}" chain 1 prio 12 || fail "a rule of new connections in hardware: $(tc filter show dev "${rep[0]}" ingress)"
(($(software "${rep[0]}" chain 1 prio 12) == 2)) || fail "a connection has one first packet, which two actions take: $(what_is_tracked)"

# What misses in chain 1 is with the kernel again, in chain 1, and its connection is known: no rule of chain 0 sees it.
before=$(software "${rep[0]}" chain 0)
tc filter del dev "${rep[0]}" ingress chain 1 prio 22 || fail "rule"
rule "${rep[0]}" protocol ip prio 22 chain 1 flower skip_hw ct_state +trk+est action mirred egress redirect dev "${rep[1]}"
exchange 50
(($(software "${rep[0]}" chain 1 prio 22) >= 50)) || fail "the kernel has not seen what the card has no rule for: $(what_is_tracked)"
after=$(software "${rep[0]}" chain 0)
((after == before)) || fail "$((after - before)) packets have begun in chain 0 again: $(what_is_tracked)"
in_card 2 || fail "the card has $(<"$ct/offloaded") directions, not 2"
tc filter del dev "${rep[0]}" ingress chain 1 prio 22 || fail "rule"
rule "${rep[0]}" protocol ip prio 22 chain 1 flower ct_state +trk+est action mirred egress redirect dev "${rep[1]}"
untouched "TCP, again by the card" exchange 50

# It ends, and the card has it no longer.
hang_up
within 30 no_connections
note "ended: $(grep -E 'dport=7000' /proc/net/nf_conntrack | sed 's/  */ /g')"

# Many packets; ICMP, which the kernel tracks alone; and nothing the other way.
before=$(by_software "${rep[0]}") hits=$(hits "${rep[0]}" chain 1)
tcp_between "in_vf 1" "in_vf 0" 10.9.1.2
after=$(by_software "${rep[0]}")
counts "${rep[0]}" $((hits + 1000)) chain 1
note "iperf3: $(($(hits "${rep[0]}" chain 1) - hits)) packets by the card, $((after - before)) by software"
((5 * (after - before) < $(hits "${rep[0]}" chain 1) - hits)) || fail "too many by software: $((after - before))"
reaches "in_vf 0" 10.9.1.2
is_parted "in_vf 1" 10.9.1.1
within 30 no_connections

# UDP is a connection once it has been there for two seconds. What the card sees of it keeps it alive; then it ends by itself.
sysctl -qw net.netfilter.nf_flowtable_udp_timeout=5 || fail "time-out"
call UDP:10.9.1.2:7000
exchange 5
sleep 2.5
exchange 5
by_card UDP "${rep[0]}" "${rep[1]}" 'udp .*dport=7000 .*zone=1 '
for ((i = 0; i < 12; i++)); do
  sleep 1
  untouched "UDP" exchange 1
done
in_card 2 || fail "the card has lost a connection that is in use: $(what_is_tracked)"
within 30 no_connections
exchange 1 # and comes back
within 20 in_card 2
hang_up
within 30 no_connections
rules_gone

# IPv6
in_vf 0 sysctl -qw "net.ipv6.conf.${net[0]}.addr_gen_mode=1" "net.ipv6.conf.${net[0]}.disable_ipv6=0" || fail "IPv6"
in_vf 1 sysctl -qw "net.ipv6.conf.${net[1]}.addr_gen_mode=1" "net.ipv6.conf.${net[1]}.disable_ipv6=0" || fail "IPv6"
in_vf 0 ip address add fd00::1/64 dev "${net[0]}" nodad && in_vf 1 ip address add fd00::2/64 dev "${net[1]}" nodad || fail "IPv6"
in_vf 0 ip neigh replace fd00::2 lladdr "${mac[2]}" nud permanent dev "${net[0]}" && in_vf 1 ip neigh replace fd00::1 lladdr "${mac[1]}" nud permanent dev "${net[1]}" || fail "IPv6"
guard "${rep[0]}" "${rep[1]}" 2 3 ipv6
call 'TCP6:[fd00::2]:7001'
exchange 20
by_card IPv6 "${rep[0]}" "${rep[1]}" 'ipv6 .*tcp .*dport=7001 .*zone=2 '
hang_up
within 30 no_connections
rules_gone

# Translated: 10.9.1.77 is virtual function 1, which sees 10.9.1.88 in place of virtual function 0.
in_vf 0 ip neigh replace 10.9.1.77 lladdr "${mac[2]}" nud permanent dev "${net[0]}" && in_vf 1 ip neigh replace 10.9.1.88 lladdr "${mac[1]}" nud permanent dev "${net[1]}" || fail "neighbour"
translated() {
  rule "${rep[0]}" protocol ip prio 2 chain 0 flower ct_state -trk action ct zone 3 nat pipe action goto chain 1
  rule "${rep[0]}" protocol ip prio 12 chain 1 flower ct_state +trk+new "$@" action mirred egress redirect dev "${rep[1]}"
  rule "${rep[0]}" protocol ip prio 22 chain 1 flower ct_state +trk+est action mirred egress redirect dev "${rep[1]}"
  rule "${rep[1]}" protocol ip prio 2 chain 0 flower ct_state -trk action ct zone 3 nat pipe action goto chain 1
  rule "${rep[1]}" protocol ip prio 22 chain 1 flower ct_state +trk+est action mirred egress redirect dev "${rep[0]}"
}
translated ip_proto tcp dst_ip 10.9.1.77 action ct commit zone 3 nat dst addr 10.9.1.2 pipe
call TCP:10.9.1.77:7000
exchange 20
by_card "destination translated" "${rep[0]}" "${rep[1]}" 'tcp .*src=10.9.1.1 dst=10.9.1.77 .*src=10.9.1.2 dst=10.9.1.1 .*zone=3 '
hang_up
within 30 no_connections
rules_gone
translated action ct commit zone 3 nat src addr 10.9.1.88 port 5000-5100 pipe
call TCP:10.9.1.2:7000
exchange 20
by_card "source translated" "${rep[0]}" "${rep[1]}" 'tcp .*src=10.9.1.1 dst=10.9.1.2 .*src=10.9.1.2 dst=10.9.1.88 sport=7000 dport=5[01][0-9][0-9] .*zone=3 '
hang_up
within 30 no_connections
rules_gone

# A mark and a label that a connection is given, and that rules look for.
label=00000000000000000000000000000015
rule "${rep[0]}" protocol ip prio 2 chain 0 flower ct_state -trk action ct zone 4 pipe action goto chain 1
rule "${rep[0]}" protocol ip prio 12 chain 1 flower ct_state +trk+new action ct commit zone 4 mark 0x7/0xff label $label pipe action mirred egress redirect dev "${rep[1]}"
rule "${rep[0]}" protocol ip prio 22 chain 1 flower ct_state +trk+est ct_mark 0x7/0xff ct_label $label action mirred egress redirect dev "${rep[1]}"
rule "${rep[0]}" protocol ip prio 23 chain 1 flower ct_state +trk+est ct_mark 0x8/0xff action drop
rule "${rep[1]}" protocol ip prio 2 chain 0 flower ct_state -trk action ct zone 4 pipe action goto chain 1
rule "${rep[1]}" protocol ip prio 22 chain 1 flower ct_state +trk+est ct_mark 0x7 action mirred egress redirect dev "${rep[0]}"
call TCP:10.9.1.2:7000
exchange 20
by_card "marked" "${rep[0]}" "${rep[1]}" 'tcp .*dport=7000 .*mark=7 .*zone=4 '
(($(hits "${rep[0]}" chain 1 prio 23) == 0)) || fail "the rule of another mark has hits: $(what_is_tracked)"
hang_up
within 30 no_connections
rules_gone

# To the other card, by the port.
listen in_far
guard "${rep[0]}" "$port" 5
call TCP:10.9.1.200:7000
exchange 20
by_card "by the port" "${rep[0]}" "$port" 'tcp .*dst=10.9.1.200 .*zone=5 '
hang_up
within 30 no_connections
rules_gone

tracking_ends
functions_down 2
for dev in "$port" "${rep[@]}"; do tc qdisc del dev "$dev" ingress || fail "$dev"; done
to_legacy
complaints=$(switchdev_complaints)
[[ -z $complaints ]] || fail "the kernel complained: $complaints"
