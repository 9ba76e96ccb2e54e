# SPDX-License-Identifier: BSD-3-Clause
# from: snapshot
# boot: --hca link=eth,vfs=2,id=left,cable=right --hca link=eth,id=right
# What an administrator settles of an Ethernet card's virtual functions (ip link set PORT vf N) in legacy mode, and what becomes of their
# frames: to one another, to the physical function, and to another card at the far end of the cable, which is in the name space "far".
mark_kernel_log
port=$(net_of "$pf")
far=$(net_of "/sys/bus/pci/devices/$(hca_addresses | tail -n 1)")
ip netns add far && ip link set "$far" netns far || fail "name space"
in_far() { ip netns exec far "$@"; }
ip link set "$port" up && ip address add 10.9.1.100/24 dev "$port" || fail "$port"
in_far ip link set lo up && in_far ip link set "$far" up && in_far ip address add 10.9.1.200/24 dev "$far" || fail "$far"
carrier() { in_vf "$1" grep -qs "$3" "/sys/class/net/$2/carrier"; }
# reaches "PREFIX" ADDRESS, and the contrary.
reaches() { $1 ping -q -c 2 -i 0.2 -W 5 "$2" >/tmp/ping || fail "no way: $1 to $2: $(cat /tmp/ping)"; }
is_parted() { if $1 ping -q -c 2 -i 0.2 -W 1 "$2" >/tmp/ping; then fail "$1 reaches $2, and should not"; fi; }
# shown PATTERN: ip link says so of virtual function 0.
shown() { ip link show "$port" | grep 'vf 0' | grep -q -- "$1" || fail "'$1' is not shown: $(ip link show "$port")"; }

# MAC addresses, given before their drivers start.
echo 0 >"$pf/sriov_drivers_autoprobe"
echo 2 >"$pf/sriov_numvfs" || fail "two virtual functions"
echo 1 >"$pf/sriov_drivers_autoprobe" # without it not even those are taken that somebody binds
for vf in 0 1; do
  ip link set "$port" vf $vf mac "02:00:00:00:00:0$((vf + 1))" || fail "mac"
  basename "$(vf_of "$vf")" >/sys/bus/pci/drivers/mlx5_core/bind || fail "bind of $vf"
  within 60 test -d "$pf/virtfn$vf/infiniband"
  net[vf]=$(net_of "$(vf_of $vf)")
  rdma[vf]=$(rdma_of "$(vf_of $vf)")
  [[ $(<"/sys/class/net/${net[vf]}/address") == 02:00:00:00:00:0$((vf + 1)) ]] || fail "virtual function $vf has $(<"/sys/class/net/${net[vf]}/address")"
  ip netns add "vf$vf" && ip link set "${net[vf]}" netns "vf$vf" || fail "name space"
  in_vf $vf ip link set lo up && in_vf $vf ip link set "${net[vf]}" up && in_vf $vf ip address add "10.9.1.$((vf + 1))/24" dev "${net[vf]}" || fail "${net[vf]}"
done
shown 02:00:00:00:00:01
for vf in 0 1; do within 30 carrier $vf "${net[vf]}" 1; done
for from in "" "in_vf 0" "in_vf 1" in_far; do
  for to in 1 2 100 200; do reaches "$from" 10.9.1.$to; done
done
tcp_between in_far "in_vf 0" 10.9.1.200
tcp_between "in_vf 1" in_far 10.9.1.2
theirs=$(rdma_of "/sys/bus/pci/devices/$(hca_addresses | tail -n 1)")
for device in "${rdma[@]}" "$theirs"; do within 30 has_v2_gid "$device"; done
roce "$theirs" "${rdma[0]}" ibv_rc_pingpong -c -s 65536 -n 50
roce "${rdma[1]}" "$theirs" ibv_ud_pingpong -c -s 1024 -n 100

# VLAN switch tagging: the function's frames are untagged, and tagged on the wire.
ip link set "$port" vf 0 vlan 5 qos 3 || fail "vlan"
shown 'vlan 5, qos 3'
in_far ip link add link "$far" name tagged type vlan id 5 && in_far ip link set tagged up && in_far ip address add 10.9.5.200/24 dev tagged || fail "VLAN at the far end"
in_vf 0 ip address add 10.9.5.1/24 dev "${net[0]}" || fail "address"
reaches "in_vf 0" 10.9.5.200
reaches in_far 10.9.5.1
is_parted "in_vf 1" 10.9.1.1
is_parted "" 10.9.1.1
ip link set "$port" vf 1 vlan 5 || fail "vlan"
reaches "in_vf 1" 10.9.1.1
roce "${rdma[0]}" "${rdma[1]}" ibv_rc_pingpong -c -s 4096 -n 50
ip link set "$port" vf 0 vlan 0 && ip link set "$port" vf 1 vlan 0 || fail "vlan 0"
reaches "in_vf 1" 10.9.1.1
reaches in_far 10.9.1.1

# Spoofed addresses.
ip link set "$port" vf 0 spoofchk on || fail "spoofchk"
shown 'spoof checking on'
reaches "in_vf 0" 10.9.1.200
# dropped TX|RX: frames of virtual function 0.
dropped() { ip -s link show "$port" | grep -A5 'vf 0' | awk -v way="$1:" '$1 == way { for (i = 1; i <= NF; i++) if ($i == "dropped") at = i; getline; print $(at - 1); exit }'; }
before=$(dropped TX)
in_vf 0 ip link set "${net[0]}" address 02:00:00:00:00:99 || fail "another address"
is_parted "in_vf 0" 10.9.1.200
note "dropped: ${before:-none}, then $(dropped TX)"
(($(dropped TX) > ${before:-0})) || fail "nothing is counted as dropped: $(ip -s link show "$port")"
in_vf 0 ip link set "${net[0]}" address 02:00:00:00:00:01 && ip link set "$port" vf 0 spoofchk off || fail "its own address"
reaches "in_vf 0" 10.9.1.200

# The state of its link.
ip link set "$port" vf 0 state disable || fail "disable"
within 20 carrier 0 "${net[0]}" 0
before=$(dropped RX)
in_vf 1 ip neigh replace 10.9.1.1 lladdr 02:00:00:00:00:01 dev "${net[1]}" nud permanent
is_parted "in_vf 1" 10.9.1.1
in_vf 1 ip neigh del 10.9.1.1 dev "${net[1]}"
note "dropped before the link that is down: ${before:-none}, then $(dropped RX)"
(($(dropped RX) >= ${before:-0} + 2)) || fail "nothing is counted as dropped: $(ip -s link show "$port")"
reaches "in_vf 1" 10.9.1.200
ip link set "$port" vf 0 state enable || fail "enable"
within 20 carrier 0 "${net[0]}" 1
reaches "in_vf 1" 10.9.1.1
ip link set "$port" vf 0 state auto || fail "auto"
reaches "in_vf 0" 10.9.1.200

# Promiscuous: what comes from the wire for nobody, if its manager trusts it. tcpdump makes the function promiscuous.
no_complaints "what their manager settles"
in_far ip neigh replace 10.9.1.77 lladdr 02:00:00:00:00:77 dev "$far" || fail "neighbour"
ip netns exec vf1 timeout 120 tcpdump -Z root --immediate-mode -n -l -i "${net[1]}" \
  'ether dst 02:00:00:00:00:77 or (icmp[icmptype] == icmp-echo and dst host 10.9.1.2)' >/tmp/seen 2>/tmp/seen.said &
sniffer=$!
within 20 grep -qs "^listening" /tmp/seen.said
said 20 'S-tagged traffic will be dropped' # its driver has come to that it is promiscuous, and goes on to say so to the card
# seen ADDRESS: how many requests to it tcpdump has shown. Frames keep their order: what was sent before one to the function itself has
# come, or never will, when that one is seen.
seen() { grep -c "> $1: ICMP echo request" /tmp/seen; }
strays() {
  local own
  own=$(seen 10.9.1.2)
  in_far ping -q -c "$1" -i 0.2 -W 1 10.9.1.77 >/dev/null
  reaches in_far 10.9.1.2
  own_seen() { (($(seen 10.9.1.2) > own)); }
  within 20 own_seen
}
sees_strays() {
  strays 1
  (($(seen 10.9.1.77) > 0))
}
strays 5
(($(seen 10.9.1.77) == 0)) || fail "a function that is not trusted has seen frames for others: $(cat /tmp/seen)"
ip link set "$port" vf 1 trust on || fail "trust"
within 30 sees_strays
before=$(seen 10.9.1.77)
strays 5
(($(seen 10.9.1.77) == before + 5)) || fail "a function that is trusted has seen $(($(seen 10.9.1.77) - before)) of 5 frames"
kill "$sniffer" && wait "$sniffer"
ip link set "$port" vf 1 trust off || fail "trust"
# The driver warns of tags that it strips.
complaints=$(kernel_complaints | grep -v 'S-tagged traffic will be dropped')
[[ -z $complaints ]] || fail "promiscuous functions: $complaints"
mark_kernel_log

# What each has sent and received, as its manager is told.
ip -s link show "$port" | grep -A8 'vf 0'
for vf in 0 1; do ip netns del "vf$vf" || fail "name space"; done
vfs 0
reaches in_far 10.9.1.100
no_complaints "virtual functions and what their manager settles"
