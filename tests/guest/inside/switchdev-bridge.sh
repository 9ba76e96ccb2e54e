# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,vfs=2,id=left,cable=right --hca link=eth,id=right
# A bridge over representors that the card takes over in switchdev mode: what it has learned goes from function to function and to the
# wire without a representor; VLANs of a filtering bridge; RoCE of the virtual functions through it; MAC addresses given by devlink; the
# RDMA device of the representors. With argument smfs the driver writes the tables.
mark_kernel_log
far_end
to_switchdev 2
ids=()
for vf in 0 1; do
  ids[vf]=$(devlink port show | sed -n "s#^\(pci/${pf##*/}/[0-9]*\): .*netdev ${rep[vf]} .*#\1#p")
  devlink port function set "${ids[vf]}" hw_addr "02:00:00:00:00:0$((vf + 1))" || fail "hw_addr of ${ids[vf]}"
  devlink port show "${ids[vf]}" | grep -q "hw_addr 02:00:00:00:00:0$((vf + 1))" || fail "$(devlink port show "${ids[vf]}")"
done
functions_up 2
for vf in 0 1; do
  [[ $(in_vf $vf cat "/sys/class/net/${net[vf]}/address") == 02:00:00:00:00:0$((vf + 1)) ]] || fail "the address of $vf is not what devlink has given"
done

declare -A mac=([1]=02:00:00:00:00:01 [2]=02:00:00:00:00:02 [200]=$(in_far cat "/sys/class/net/$far/address"))
# Nothing but what the test sends: neighbours are known, and there is no IPv6.
know() {
  local end
  $1 sysctl -qw "net.ipv6.conf.$2.disable_ipv6=1" || fail "IPv6"
  for end in 1 2 200; do $1 ip neigh replace "10.9.1.$end" lladdr "${mac[$end]}" nud permanent dev "$2" || fail "neighbour"; done
}
know "in_vf 0" "${net[0]}" && know "in_vf 1" "${net[1]}" && know in_far "$far"
# bridge_over ARGS...: br0 over the port and the representors.
bridge_over() {
  local dev
  ip link add name br0 type bridge mcast_snooping 0 "$@" || fail "bridge"
  sysctl -qw net.ipv6.conf.br0.disable_ipv6=1
  for dev in "$port" "${rep[@]}"; do
    sysctl -qw "net.ipv6.conf.$dev.disable_ipv6=1" && ip link set "$dev" master br0 || fail "$dev into the bridge"
  done
  ip link set br0 up || fail "br0"
}
# The card has the addresses of all ends.
taken_over() {
  local end fdb
  fdb=$(bridge fdb show br br0)
  for end in "$@"; do grep "^${mac[$end]} .*extern_learn" <<<"$fdb" >/dev/null || return 1; done
}
forwarded() {
  reaches "in_vf 0" 10.9.1.2
  reaches "in_vf 1" 10.9.1.200
  reaches in_far 10.9.1.1
  within 20 taken_over 1 2 200 || fail "$(bridge fdb show br br0)"
  untouched "bridge" tcp_between "in_vf 1" "in_vf 0" 10.9.1.2
  untouched "bridge" tcp_between in_far "in_vf 1" 10.9.1.200
}
bridge_over
forwarded
note "$(bridge fdb show br br0 | grep -c offload) addresses taken over"

for vf in 0 1; do rdma[vf]=$(rdma_of "$(vf_of $vf)"); done
theirs=$(rdma_of "/sys/bus/pci/devices/$(hca_addresses | tail -n 1)")
for device in "${rdma[@]}" "$theirs"; do within 30 has_v2_gid "$device"; done
roces() {
  roce "${rdma[0]}" "${rdma[1]}" ibv_rc_pingpong -c -s 65536 -n 50
  roce "$theirs" "${rdma[0]}" ibv_rc_pingpong -c -s 4096 -n 100
  roce "${rdma[1]}" "$theirs" ibv_ud_pingpong -c -s 1024 -n 100
}
untouched RoCE roces

# The RDMA device of the representors: a port each, that of the wire last.
own=$(rdma_of "$pf")
ports=$(rdma link show | grep -c "^link $own/")
((ports >= 3)) || fail "$own has $ports ports: $(rdma link show)"
for dev in "$port" "${rep[@]}"; do rdma link show | grep "^link $own/" | grep -q "netdev $dev" || fail "$dev is no port's: $(rdma link show)"; done
note "$own: $ports ports"

# What is known elsewhere by now goes there.
ip link del br0 || fail "br0"
bridge_over vlan_filtering 1 vlan_default_pvid 0
# Functions in VLAN 5 without tags, the wire with them.
in_far ip link add link "$far" name tagged type vlan id 5 && in_far ip link set tagged up || fail "VLAN at the far end"
in_far ip address del 10.9.1.200/24 dev "$far" && in_far ip address add 10.9.1.200/24 dev tagged || fail "address"
know in_far tagged
for vf in 0 1; do bridge vlan add vid 5 pvid untagged dev "${rep[vf]}" || fail "VLAN"; done
bridge vlan add vid 5 dev "$port" || fail "VLAN"
forwarded
note "$(bridge -s vlan show dev "$port" | tail -n 2 | head -n 1)"
bridge vlan del vid 5 dev "${rep[1]}" && is_parted "in_vf 0" 10.9.1.2
reaches "in_vf 0" 10.9.1.200
ip link del br0 || fail "br0"

functions_down 2
to_legacy
# Addresses of a VLAN that is taken from a port the driver forgets before the bridge has it forget them.
complaints=$(switchdev_complaints | grep -v 'FDB entry with specified key not found')
[[ -z $complaints ]] || fail "the kernel complained: $complaints"
