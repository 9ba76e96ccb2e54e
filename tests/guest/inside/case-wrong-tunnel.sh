# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,vfs=1,id=left,cable=right,options=trace_filter=path --hca link=eth,id=right --no-modprobe
# ask: -
# disk: build-mutants --bug wrong-tunnel
# says: path FDB table 0x[0-9a-f]+ level 1: entry 0: reformat, forward
# docs/case-studies/wrong-tunnel.md: a card in switchdev mode takes frames from the wire and sends them back to it in a tunnel, one for each
# address. What puts a tunnel's header on is a flow table of its own, and the driver took one for the other.
tunnels=64

# both_ends: the first card in switchdev mode, the second one at the far end of the cable, where all tunnels end.
both_ends() {
  far_end
  to_switchdev 0
  tc_ready "$port"
  ip address add 10.9.2.100/24 dev "$port" && in_far ip address add 10.9.2.200/24 dev "$far" || fail "address"
  ip link add tun0 type vxlan external dstport 4789 && ip link set tun0 up || fail "tun0"
  in_far ip link add tun1 type vxlan external dstport 4789 && in_far ip link set tun1 up && in_far tc qdisc add dev tun1 ingress || fail "tun1"
  reaches "" 10.9.2.200
}
# with_each PROGRAM: what it makes of its input, in which the lines stand for each tunnel, N in them for its number.
with_each() {
  local lines n
  lines=$(cat)
  for ((n = 1; n <= tunnels; n++)); do printf '%s\n' "${lines//N/$n}"; done >/tmp/batch
  "$@" /tmp/batch || fail "$*: $(dmesg | tail -n 20)"
}
# tunnels_made: what comes for 10.9.3.N leaves in a tunnel of its own, 1000N; the far end counts what comes in it, and what comes in another.
tunnels_made() {
  local to
  to=$(<"/sys/class/net/$port/address")
  with_each tc -batch <<END
filter add dev $port ingress protocol ip prio 1 flower skip_sw dst_ip 10.9.3.N action tunnel_key set src_ip 10.9.2.100 dst_ip 10.9.2.200 id 1000N dst_port 4789 nocsum action mirred egress redirect dev tun0
END
  with_each in_far tc -batch <<END
filter add dev tun1 ingress protocol ip prio 1 flower skip_hw enc_key_id 1000N dst_ip 10.9.3.N action drop
filter add dev tun1 ingress protocol ip prio 2 flower skip_hw dst_ip 10.9.3.N action drop
END
  in_far ip route add 10.9.3.0/24 dev "$far" || fail "route"
  with_each in_far ip -batch <<END
neigh replace 10.9.3.N lladdr $to nud permanent dev $far
END
}
# came PRIO: frames that the far end's filters have counted.
came() { in_far tc -s filter show dev tun1 ingress prio "$1" | awk '/Sent/ { n += $4 } END { print n + 0 }'; }
all_came() { (($(came 1) + $(came 2) == tunnels)); }
# astray: "ADDRESS" of each frame that came in another tunnel than its own.
astray() { in_far tc -s filter show dev tun1 ingress prio 2 | awk '$1 == "dst_ip" { to = $2 } /Sent/ && $4 > 0 { print to }'; }
# through: a frame for each address, from the far end.
through() {
  both_ends
  tunnels_made
  with_each in_far bash <<<'echo N >/dev/udp/10.9.3.N/9'
  within 60 all_came
  note "$(came 1) frames in their own tunnels, $(came 2) in others: $(astray | tr '\n' ' ')"
}
ends_gone() {
  tc qdisc del dev "$port" ingress && ip link del tun0 && in_far ip link del tun1 || fail "ends"
  mode legacy
  ip netns del far || fail "name space"
  drivers_gone
}
complaints=switchdev_complaints
bug_ready

drivers fixed
through
(($(came 2) == 0)) || fail "with the fix $(came 2) frames came in tunnels of others"
silent
ends_gone

drivers broken
through
(($(came 2) > 0)) || fail "each frame came in its own tunnel"
ends_gone
silent
