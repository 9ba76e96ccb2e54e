# SPDX-License-Identifier: BSD-3-Clause
# from: snapshot
# boot: --hca link=eth,vfs=2,id=left,cable=right --hca link=eth,id=right
# TC rules that a card in switchdev mode takes (skip_sw: the card alone): between virtual functions, to another card at the far end of
# the cable; dropped, tagged, rewritten, copied, in chains, in tunnels. What they take never reaches a representor's queues.
# With argument smfs the driver writes the switch's tables itself.
mark_kernel_log
far_end
to_switchdev 2
functions_up 2
tc_ready "$port" "${rep[@]}"

# One to another, both ways.
rule "${rep[0]}" protocol all prio 1 flower skip_sw action mirred egress redirect dev "${rep[1]}"
rule "${rep[1]}" protocol all prio 1 flower skip_sw action mirred egress redirect dev "${rep[0]}"
before=$(by_software "${rep[0]}")
reaches "in_vf 0" 10.9.1.2
tcp_between "in_vf 1" "in_vf 0" 10.9.1.2
after=$(by_software "${rep[0]}")
((after == before)) || fail "a representor has received $((after - before)) frames that its rule takes"
counts "${rep[0]}" 1000
tc filter show dev "${rep[0]}" ingress | grep -q in_hw || fail "not in hardware: $(tc filter show dev "${rep[0]}" ingress)"
note "redirected: $(hits "${rep[0]}") packets by the card, $((after - before)) by software"

# Dropped, and counted.
rule "${rep[0]}" protocol ip prio 2 chain 0 flower skip_sw ip_proto icmp src_ip 10.9.1.1 action drop
tc filter del dev "${rep[0]}" ingress prio 1 || fail "rule"
rule "${rep[0]}" protocol all prio 3 flower skip_sw action mirred egress redirect dev "${rep[1]}"
is_parted "in_vf 0" 10.9.1.2
tcp_between "in_vf 1" "in_vf 0" 10.9.1.2
counts "${rep[0]}" 2 prio 2
(($(hits "${rep[0]}" prio 2) == 2)) || fail "drops: $(tc -s filter show dev "${rep[0]}" ingress)"
flush

# A tag on the way out, none on the way in.
in_far ip link add link "$far" name tagged type vlan id 5 && in_far ip link set tagged up && in_far ip address add 10.9.5.200/24 dev tagged || fail "VLAN at the far end"
in_vf 0 ip address add 10.9.5.1/24 dev "${net[0]}" || fail "address"
rule "${rep[0]}" protocol all prio 1 flower skip_sw action vlan push id 5 action mirred egress redirect dev "$port"
rule "$port" protocol 802.1q prio 1 flower skip_sw vlan_id 5 action vlan pop action mirred egress redirect dev "${rep[0]}"
reaches "in_vf 0" 10.9.5.200
tcp_between in_far "in_vf 0" 10.9.5.200
counts "${rep[0]}" 1000 && counts "$port" 100 # back come acknowledgements
note "tagged: $(hits "${rep[0]}") out, $(hits "$port") in"
flush

# Another address: virtual function 1 is 10.9.1.77 for virtual function 0. The driver offers this of TCP and UDP alone.
mac=$(in_vf 1 cat "/sys/class/net/${net[1]}/address")
in_vf 0 ip neigh replace 10.9.1.77 lladdr "$mac" dev "${net[0]}"
in_vf 1 ip neigh replace 10.9.1.1 lladdr "$(in_vf 0 cat "/sys/class/net/${net[0]}/address")" dev "${net[1]}"
rule "${rep[0]}" protocol ip prio 1 flower skip_sw ip_proto tcp dst_ip 10.9.1.77 action pedit ex munge ip dst set 10.9.1.2 munge ip ttl set 9 pipe action csum ip4h tcp udp \
  action mirred egress redirect dev "${rep[1]}"
rule "${rep[1]}" protocol ip prio 1 flower skip_sw ip_proto tcp src_ip 10.9.1.2 action pedit ex munge ip src set 10.9.1.77 pipe action csum ip4h tcp udp \
  action mirred egress redirect dev "${rep[0]}"
tcp_between "in_vf 1" "in_vf 0" 10.9.1.77
counts "${rep[0]}" 1000 && counts "${rep[1]}" 100
note "rewritten: $(hits "${rep[0]}") there, $(hits "${rep[1]}") back"
flush

# Copied: the far end sees what one function sends to the other.
in_far ip link set "$far" promisc on || fail "promisc"
sleep 1
before=$(in_far cat "/sys/class/net/$far/statistics/rx_packets")
rule "${rep[0]}" protocol all prio 1 flower skip_sw action mirred egress mirror dev "$port" action mirred egress redirect dev "${rep[1]}"
rule "${rep[1]}" protocol all prio 1 flower skip_sw action mirred egress redirect dev "${rep[0]}"
in_vf 0 ip neigh replace 10.9.1.2 lladdr "$mac" dev "${net[0]}"
reaches "in_vf 0" 10.9.1.2
copies=$(($(in_far cat "/sys/class/net/$far/statistics/rx_packets") - before))
((copies >= 3)) || fail "the far end has seen $copies copies"
in_far ip link set "$far" promisc off || fail "promisc"
flush

# Chains: the first says which the second is.
rule "${rep[0]}" protocol all prio 1 chain 0 flower skip_sw action goto chain 7
rule "${rep[0]}" protocol ip prio 1 chain 7 flower skip_sw ip_proto icmp action mirred egress redirect dev "${rep[1]}"
rule "${rep[1]}" protocol all prio 1 flower skip_sw action mirred egress redirect dev "${rep[0]}"
reaches "in_vf 0" 10.9.1.2
counts "${rep[0]}" 3 chain 7
note "through chain 7: $(hits "${rep[0]}" chain 7)"
tc filter del dev "${rep[0]}" ingress chain 7 || fail "chain"
flush

# What misses in the second chain is with the kernel again, which is told how far it has come.
rule "${rep[0]}" protocol all prio 1 chain 0 flower action goto chain 7
rule "${rep[0]}" protocol ip prio 1 chain 7 flower skip_sw ip_proto tcp action drop
rule "${rep[0]}" protocol all prio 9 chain 7 flower skip_hw action mirred egress redirect dev "${rep[1]}"
rule "${rep[1]}" protocol all prio 1 flower skip_sw action mirred egress redirect dev "${rep[0]}"
reaches "in_vf 0" 10.9.1.2
tc filter del dev "${rep[0]}" ingress chain 7 || fail "chain"
flush

# GRE: a function's frames in a tunnel to the far end, which has it in software; back the kernel takes them out of it.
ip address add 10.9.2.100/24 dev "$port" && in_far ip address add 10.9.2.200/24 dev "$far" || fail "address"
ip link add tun0 type gretap external && ip link set tun0 up && tc qdisc add dev tun0 ingress || fail "gretap"
in_far ip link add tun1 type gretap key 100 local 10.9.2.200 remote 10.9.2.100 && in_far ip link set tun1 up && in_far ip address add 10.9.7.200/24 dev tun1 || fail "gretap"
in_vf 0 ip address add 10.9.7.1/24 dev "${net[0]}" && in_vf 0 ip link set "${net[0]}" mtu 1400 || fail "address"
reaches "" 10.9.2.200
rule "${rep[0]}" protocol all prio 1 flower skip_sw action tunnel_key set src_ip 10.9.2.100 dst_ip 10.9.2.200 id 100 nocsum \
  action mirred egress redirect dev tun0
tc filter add dev tun0 ingress protocol all prio 1 flower skip_hw enc_src_ip 10.9.2.200 enc_dst_ip 10.9.2.100 enc_key_id 100 \
  action tunnel_key unset action mirred egress redirect dev "${rep[0]}" || fail "tunnel's rule: $(dmesg | tail)"
reaches "in_vf 0" 10.9.7.200
tcp_between in_far "in_vf 0" 10.9.7.200
counts "${rep[0]}" 100
note "in the tunnel: $(hits "${rep[0]}")"
tc filter del dev tun0 ingress || fail "rule"
flush
ip link del tun0 || fail "tun0"

functions_down 2
for dev in "$port" "${rep[@]}"; do tc qdisc del dev "$dev" ingress || fail "$dev"; done
to_legacy
complaints=$(switchdev_complaints)
[[ -z $complaints ]] || fail "the kernel complained: $complaints"
