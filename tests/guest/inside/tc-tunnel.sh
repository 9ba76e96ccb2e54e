# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,vfs=2,id=left,cable=right --hca link=eth,id=right
# Tunnels that a card in switchdev mode makes and undoes by TC's rules, both ways: a virtual function's frames go to the far end of the
# cable in VXLAN (on IANA's UDP port and on one that the driver registers), Geneve and GRE, which has the tunnel in software.
mark_kernel_log
far_end
to_switchdev 2
functions_up 2
in_vf 1 ip link set "${net[1]}" promisc on || fail "promiscuous"
tc_ready "$port" "${rep[@]}"
ip address add 10.9.2.100/24 dev "$port" && in_far ip address add 10.9.2.200/24 dev "$far" || fail "address"
in_vf 0 ip address add 10.9.7.1/24 dev "${net[0]}" && in_vf 0 ip link set "${net[0]}" mtu 1400 || fail "address"

between_ends() {
  reaches "in_vf 0" 10.9.7.200
  tcp_between in_far "in_vf 0" 10.9.7.200
  tcp_between "in_vf 0" in_far 10.9.7.1
}
copies() { in_vf 1 cat "/sys/class/net/${net[1]}/statistics/rx_packets"; }
has_copies() { (($(copies) >= $1)); }
# A rule of a tunnel device cannot be the card alone: the kernel has it, too, and counts apart what each has taken.
# through KIND ID [PORT] -- OPTIONS OF THE TUNNEL HERE -- OPTIONS OF THE TUNNEL THERE
through() {
  local kind=$1 id=$2 udp=$3 here=$4 there=$5
  # shellcheck disable=SC2086 # several words
  ip link add tun0 type "$kind" external $here && ip link set tun0 up && tc qdisc add dev tun0 ingress || fail "$kind"
  # shellcheck disable=SC2086
  in_far ip link add tun1 address 02:00:00:00:07:c8 type "$kind" $there && in_far ip link set tun1 up && in_far ip address add 10.9.7.200/24 dev tun1 || fail "$kind"
  reaches "" 10.9.2.200
  # shellcheck disable=SC2086
  rule "${rep[0]}" protocol all prio 1 flower skip_sw action tunnel_key set src_ip 10.9.2.100 dst_ip 10.9.2.200 id "$id" ${udp:+dst_port $udp} nocsum \
    action mirred egress redirect dev tun0
  # shellcheck disable=SC2086
  rule tun0 protocol all prio 1 flower enc_src_ip 10.9.2.200 enc_dst_ip 10.9.2.100 enc_key_id "$id" ${udp:+enc_dst_port $udp} \
    action tunnel_key unset action mirred egress redirect dev "${rep[0]}"
  reaches "in_vf 0" 10.9.7.200
  untouched "$kind" between_ends
  counts "${rep[0]}" 1000 && counts tun0 1000
  note "$kind $udp: $(hits "${rep[0]}") packets into the tunnel, $(hits tun0) out of it"
  tc filter show dev tun0 ingress | grep -q in_hw || fail "$kind: not in hardware"
  # And a copy of what goes into the tunnel, without it, to the other function.
  tc filter del dev "${rep[0]}" ingress || fail "rule"
  # shellcheck disable=SC2086
  rule "${rep[0]}" protocol all prio 1 flower skip_sw action mirred egress mirror dev "${rep[1]}" \
    action tunnel_key set src_ip 10.9.2.100 dst_ip 10.9.2.200 id "$id" ${udp:+dst_port $udp} nocsum action mirred egress redirect dev tun0
  reaches "in_vf 0" 10.9.7.200
  copied=$(copies)
  in_vf 0 ping -q -c 5 -i 0.2 -W 5 10.9.7.200 >/tmp/ping || fail "with a copy: $(cat /tmp/ping)"
  within 20 has_copies $((copied + 5))
  tc filter del dev tun0 ingress && tc filter del dev "${rep[0]}" ingress || fail "rules"
  ip link del tun0 && in_far ip link del tun1 || fail "$kind"
}
through vxlan 100 4789 "dstport 4789" "id 100 local 10.9.2.200 remote 10.9.2.100 dstport 4789"
through vxlan 70000 8472 "dstport 8472" "id 70000 local 10.9.2.200 remote 10.9.2.100 dstport 8472"
through geneve 100 6081 "dstport 6081" "id 100 remote 10.9.2.100 dstport 6081"
through gretap 100 '' '' "key 100 local 10.9.2.200 remote 10.9.2.100"

functions_down 2
for dev in "$port" "${rep[@]}"; do tc qdisc del dev "$dev" ingress || fail "$dev"; done
to_legacy
complaints=$(switchdev_complaints)
[[ -z $complaints ]] || fail "the kernel complained: $complaints"
