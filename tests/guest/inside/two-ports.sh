# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,ports=2,vfs=2,id=near,cable=far --hca link=eth,ports=2,id=far
# A card of two ports: two functions of one PCI slot, each with a port, a cable and addresses of its own; both reach their far ends, the ports
# of another such card, which stand in name spaces. Then with virtual functions of both.
mark_kernel_log
mapfile -t addresses < <(hca_addresses)
((${#addresses[@]} == 4)) || fail "PCI functions: ${addresses[*]}"
for ((card = 0; card < 4; card += 2)); do
  [[ ${addresses[card]} == *.0 && ${addresses[card + 1]} == "${addresses[card]%.0}.1" ]] || fail "not functions of one slot: ${addresses[*]}"
done
of() { echo "/sys/bus/pci/devices/$1"; }
ports=()
for address in "${addresses[@]}"; do ports+=("$(net_of "$(of "$address")")"); done
rdma=()
for address in "${addresses[@]}"; do rdma+=("$(rdma_of "$(of "$address")")"); done
note "ports ${ports[*]}, RDMA devices ${rdma[*]}"
for port in 0 1; do
  number=$(<"/sys/class/net/${ports[port]}/phys_port_name")
  [[ $number == "p$port" ]] || fail "${ports[port]} is port $number, not p$port"
done
same() { [[ $(<"$1") == "$(<"$2")" ]]; }
# image GUID NODE GUID
class=/sys/class/infiniband
same "$class/${rdma[0]}/sys_image_guid" "$class/${rdma[1]}/sys_image_guid" || fail "the ports of one card have two system image GUIDs"
same "$class/${rdma[0]}/sys_image_guid" "$class/${rdma[2]}/sys_image_guid" && fail "two cards have one system image GUID"
same "$class/${rdma[0]}/node_guid" "$class/${rdma[1]}/node_guid" && fail "two functions have one node GUID"
same "/sys/class/net/${ports[0]}/address" "/sys/class/net/${ports[1]}/address" && fail "two ports have one MAC address"

for port in 0 1; do
  ip netns add "far$port" && ip link set "${ports[port + 2]}" netns "far$port" || fail "name space"
  ip -n "far$port" link set "${ports[port + 2]}" up && ip -n "far$port" address add "10.9.$port.2/24" dev "${ports[port + 2]}" || fail "far end $port"
  ip link set "${ports[port]}" up && ip address add "10.9.$port.1/24" dev "${ports[port]}" || fail "port $port"
done
sent() { ethtool -S "${ports[$1]}" | awk '$1 == "tx_packets_phy:" { print $2 }'; }
for port in 0 1; do
  before=("$(sent 0)" "$(sent 1)")
  reaches "" "10.9.$port.2"
  ping -q -c 20 -i 0.01 "10.9.$port.2" >/dev/null || fail "ping by port $port"
  (($(sent $port) - before[port] >= 20 && $(sent $((1 - port))) - before[1 - port] < 20)) ||
    fail "frames have not left by port $port alone: ${before[*]} before, $(sent 0) $(sent 1) then"
done
# RoCE of each device.
for port in 0 1; do
  within 30 has_v2_gid "${rdma[port]}"
  roce "${rdma[port]}" "${rdma[port]}" ibv_rc_pingpong -c -n 100
done
# A cable that is pulled is one port's.
ip link set "${ports[0]}" down
reaches "" 10.9.1.2
ip link set "${ports[0]}" up
within 20 grep -q 1 "/sys/class/net/${ports[0]}/carrier"
reaches "" 10.9.0.2

# Virtual functions of both: those of port 0 first.
for port in 0 1; do
  echo 2 >"$(of "${addresses[port]}")/sriov_numvfs" || fail "two virtual functions of port $port"
done
ids=()
for port in 0 1; do
  for vf in 0 1; do
    at=$(readlink -f "$(of "${addresses[port]}")/virtfn$vf")
    within 60 test -d "$at/infiniband"
    net=$(net_of "$at")
    ids+=("${at##*.}")
    ip netns add "vf$port$vf" && ip link set "$net" netns "vf$port$vf" || fail "name space"
    ip -n "vf$port$vf" link set "$net" up && ip -n "vf$port$vf" address add "10.9.$port.1$vf/24" dev "$net" || fail "$net"
  done
done
[[ ${ids[*]} == "2 3 4 5" ]] || fail "virtual functions are ${ids[*]}"
for port in 0 1; do
  for vf in 0 1; do
    reaches "ip netns exec vf$port$vf" "10.9.$port.2"
    reaches "ip netns exec vf$port$vf" "10.9.$port.1$((1 - vf))"
  done
done
for port in 0 1; do
  for vf in 0 1; do ip netns del "vf$port$vf"; done
  echo 0 >"$(of "${addresses[port]}")/sriov_numvfs" || fail "sriov_numvfs"
done
no_complaints "a card of two ports"
