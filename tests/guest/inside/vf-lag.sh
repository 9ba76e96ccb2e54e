# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,ports=2,vfs=1,id=near,options=switch=s --hca link=eth,id=far,options=switch=s
# ask: -
# Both ports of a card in switchdev mode, each with a virtual function, their uplinks in an active-backup bond (VF LAG). With a kernel whose
# driver has TC rules the two switches have one FDB: a bridge joins the bond to the representors, and rules make the card forward by itself.
# Without them (Debian's 6.12) the drivers of the two ports do not pair, so each switch has its own, the driver keeps the bond out of bridges,
# and the functions are routed. Traffic of both leaves and comes in by the port whose cable is in; it is pulled under load.
mark_kernel_log
mapfile -t addresses < <(hca_addresses)
folders=("/sys/bus/pci/devices/${addresses[0]}" "/sys/bus/pci/devices/${addresses[1]}")
p0=$(net_of "${folders[0]}")
p1=$(net_of "${folders[1]}")
far=$(net_of "/sys/bus/pci/devices/${addresses[2]}")
ip netns add far && ip link set "$far" netns far || fail "name space"
in_far ip link set lo up && in_far ip link set "$far" up && in_far ip address add 10.9.1.200/24 dev "$far" || fail "$far"
rep=() net=() mac=()
ports_to_switchdev
mark_again "both switches" "$switchdev_words"
bond active-backup
shared=0
[[ $(uname -r) != 6.1.* ]] || shared=1
said 30 "shared_fdb:$shared mode:queue_affinity"
# The first one that had a link is active.
up() { [[ $(<"/sys/class/net/$p0/carrier")$(<"/sys/class/net/$p1/carrier") == 11 ]]; }
within 20 up
ip link set bond0 type bond active_slave "$p0" || fail "active_slave"
ip link add name br0 type bridge && ip link set br0 up || fail "bridge"
if ((shared)); then
  said 30 'Operation mode is single FDB'
  ip address flush dev bond0 && ip link set bond0 master br0 || fail "bond0 into the bridge"
  address=(10.9.1.1 10.9.1.2)
else
  ! ip link set bond0 master br0 || fail "bond0 is in the bridge"
  address=(10.9.2.1 10.9.3.1)
  sysctl -qw net.ipv4.ip_forward=1 && in_far ip route add 10.9.2.0/23 via 10.9.1.100 || fail "routes"
fi
for port in 0 1; do
  rep[port]=$(representor_of $port)
  [[ -n ${rep[port]} ]] || fail "no representor: $(devlink port show)"
  if ((shared)); then
    ip link set "${rep[port]}" master br0 || fail "${rep[port]}"
  else
    ip address add "${address[port]%.1}.254/24" dev "${rep[port]}" || fail "${rep[port]}"
  fi
  ip link set "${rep[port]}" up || fail "${rep[port]}"
  vf=$(readlink -f "${folders[port]}/virtfn0")
  basename "$vf" >/sys/bus/pci/drivers/mlx5_core/bind || fail "bind"
  within 60 test -d "$vf/net"
  net[port]=$(net_of "$vf")
  mac[port]=$(<"/sys/class/net/${net[port]}/address")
  ip netns add "vf$port" && ip link set "${net[port]}" netns "vf$port" || fail "name space"
  # Nothing is sent that no test sends: routers are solicited for minutes, by frames that no rule below takes.
  in_vf $port sysctl -qw net.ipv6.conf.all.disable_ipv6=1 || fail "sysctl"
  in_vf $port ip link set lo up && in_vf $port ip link set "${net[port]}" up && in_vf $port ip address add "${address[port]}/24" dev "${net[port]}" || fail "${net[port]}"
  ((shared)) || in_vf $port ip route add default via "${address[port]%.1}.254" || fail "route"
  within 30 carrier $port "${net[port]}" 1
done
note "functions ${net[*]} (${mac[*]}), representors ${rep[*]}"
# Frames are not seen twice, though the switch floods them to both ports.
once() {
  $1 ping -q -c 20 -i 0.02 -W 5 "$2" >/tmp/ping || fail "no way: $1 to $2: $(cat /tmp/ping)"
  ! grep -q duplicates /tmp/ping || fail "$1 to $2: $(cat /tmp/ping)"
}
all_reach() {
  reaches "in_vf 0" 10.9.1.200
  reaches "in_vf 1" 10.9.1.200
  reaches "in_vf 0" "${address[1]}"
}
all_reach
[[ $(active) == "$p0" ]] || fail "active is $(active)"
leave_by "$p0" "$p1" 20 once "in_vf 0" 10.9.1.200
leave_by "$p0" "$p1" 20 once "in_vf 1" 10.9.1.200

ports=("$p0" "$p1")
# pull PORT MAP: its cable is pulled while both functions send; they go on by the other port.
pull() {
  local vf client=()
  mark_again "a bond of both switches" "$switchdev_words"
  for vf in 0 1; do
    in_far iperf3 -s -1 -p $((5201 + vf)) >/tmp/server.$vf 2>&1 &
  done
  for vf in 0 1; do within 30 listens $((5201 + vf)) in_far; done
  for vf in 0 1; do
    in_vf $vf timeout 60 iperf3 -c 10.9.1.200 -p $((5201 + vf)) -b 40M -t 15 >/tmp/client.$vf 2>&1 &
    client+=($!)
  done
  sends "${ports[$1]}"
  inject_into "near-p$1" link=down
  said 30 "lag map: $2"
  sends "${ports[1 - $1]}"
  for vf in 0 1; do wait "${client[vf]}" || fail "iperf3 of $vf: $(cat /tmp/client.$vf /tmp/server.$vf)"; done
  wait
  note "$(grep -h receiver /tmp/client.0 /tmp/client.1)"
  all_reach
}
pull 0 'port 1:2 port 2:2'
leave_by "$p1" "$p0" 20 once "in_vf 0" 10.9.1.200
leave_by "$p1" "$p0" 20 once "in_vf 1" 10.9.1.200
inject_into near-p0 link=up
within 20 grep -q 1 "/sys/class/net/$p0/carrier"
pull 1 'port 1:1 port 2:1'
leave_by "$p0" "$p1" 20 once "in_vf 1" 10.9.1.200
inject_into near-p1 link=up
within 20 grep -q 1 "/sys/class/net/$p1/carrier"

# by_software DEVICE: frames that a representor's own queues have received.
by_software() { ethtool -S "$1" | awk '$1 == "rx_packets:" { print $2 }'; }
if ((shared)); then
  far_mac=$(in_far cat "/sys/class/net/$far/address")
  for dev in "$p0" "$p1" "${rep[@]}"; do
    ethtool -K "$dev" hw-tc-offload on && tc qdisc add dev "$dev" ingress || fail "hw-tc-offload on $dev"
  done
  # Out by the bond; in by either port, for a function of either.
  for vf in 0 1; do
    tc filter add dev "${rep[vf]}" ingress protocol all prio 1 flower skip_sw dst_mac "$far_mac" action mirred egress redirect dev bond0 || fail "rule: $(dmesg | tail)"
    for dev in "$p0" "$p1"; do
      tc filter add dev "$dev" ingress protocol all prio $((vf + 1)) flower skip_sw dst_mac "${mac[vf]}" action mirred egress redirect dev "${rep[vf]}" || fail "rule: $(dmesg | tail)"
    done
  done
  for live in 0 1; do
    before=("$(by_software "${rep[0]}")" "$(by_software "${rep[1]}")")
    out=$p0 other=$p1
    ((live == 0)) || { out=$p1 && other=$p0; }
    for vf in 0 1; do leave_by "$out" "$other" 20 once "in_vf $vf" 10.9.1.200; done
    after=("$(by_software "${rep[0]}")" "$(by_software "${rep[1]}")")
    [[ ${before[*]} == "${after[*]}" ]] || fail "representors have received frames that their rules take: ${before[*]}, then ${after[*]}"
    if ((live == 0)); then
      mark_again "ports that are out by turns" "$switchdev_words"
      inject_into near-p0 link=down
      said 20 'lag map: port 1:2 port 2:2'
      # The far end's switch learns where they are now.
      for vf in 0 1; do in_vf $vf ping -q -c 3 -i 0.2 10.9.1.200 >/dev/null; done
    fi
  done
  note "the card forwards by itself, by either port"
fi
no_complaints "VF LAG" "$bond_words|$switchdev_words"
