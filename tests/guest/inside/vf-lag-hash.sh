# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,ports=2,vfs=1,id=near,cable=far,options=port_select=hash --hca link=eth,ports=2,id=far
# ask: -
# VF LAG in hash mode: both ports of a card in switchdev mode, their uplinks in an 802.3ad bond (LACP) with the two ports of another card. The
# bond and the representors of both ports' functions are in one bridge. Queues of functions leave by the ports of their affinity, which come
# before the tables; a pulled cable moves them all to the other port.
mark_kernel_log
mapfile -t addresses < <(hca_addresses)
folders=("/sys/bus/pci/devices/${addresses[0]}" "/sys/bus/pci/devices/${addresses[1]}")
p0=$(net_of "${folders[0]}")
p1=$(net_of "${folders[1]}")
far=("$(net_of "/sys/bus/pci/devices/${addresses[2]}")" "$(net_of "/sys/bus/pci/devices/${addresses[3]}")")
modprobe bonding max_bonds=0
ip netns add far || fail "name space"
for port in "${far[@]}"; do ip link set "$port" netns far || fail "$port"; done
in_far ip link set lo up && in_far ip link add bond1 type bond mode 802.3ad lacp_rate fast miimon 50 xmit_hash_policy layer3+4 || fail "bond1"
for port in "${far[@]}"; do in_far ip link set "$port" down && in_far ip link set "$port" master bond1 || fail "$port"; done
in_far ip link set bond1 up && in_far ip address add 10.9.1.200/24 dev bond1 || fail "bond1"
ports_to_switchdev
mark_again "both switches" "$switchdev_words"
bond 802.3ad lacp_rate fast xmit_hash_policy layer3+4
said 30 'shared_fdb:1 mode:hash'
said 30 'Operation mode is single FDB'
has_ports() { grep -q "Number of ports: $1\$" /proc/net/bonding/bond0 && in_far grep -q "Number of ports: $1\$" /proc/net/bonding/bond1; }
within 60 has_ports 2
ip link add name br0 type bridge && ip link set br0 up || fail "bridge"
ip address flush dev bond0 && ip link set bond0 master br0 || fail "bond0 into the bridge"
rep=() net=()
for port in 0 1; do
  rep[port]=$(representor_of $port)
  [[ -n ${rep[port]} ]] || fail "no representor: $(devlink port show)"
  ip link set "${rep[port]}" master br0 && ip link set "${rep[port]}" up || fail "${rep[port]}"
  function_up $port "$(readlink -f "${folders[port]}/virtfn0")"
done
all_reach() {
  reaches "in_vf 0" 10.9.1.200
  reaches "in_vf 1" 10.9.1.200
  reaches "in_vf 0" 10.9.1.2
}
all_reach
# streams: TCP of both functions, from both processors and so from two queues of each.
streams() {
  local vf cpu client=() n=0
  for n in 0 1 2 3; do in_far iperf3 -s -1 -p $((5201 + n)) >/tmp/server.$n 2>&1 & done
  for n in 0 1 2 3; do within 30 listens $((5201 + n)) in_far; done
  for n in 0 1 2 3; do
    vf=$((n / 2)) cpu=$((n % 2))
    on_cpu $cpu ip netns exec vf$vf timeout 60 iperf3 -c 10.9.1.200 -p $((5201 + n)) "$@" >/tmp/client.$n 2>&1 &
    client+=($!)
  done
  for n in 0 1 2 3; do wait "${client[n]}" || fail "iperf3 $n: $(cat /tmp/client.$n /tmp/server.$n)"; done
  wait
}
both() {
  local before=("$(physical "$p0")" "$(physical "$p1")") sent
  "${@:2}"
  sent=($(($(physical "$p0") - before[0])) $(($(physical "$p1") - before[1])))
  note "${sent[*]} frames by $p0 and $p1: ${*:2}"
  ((sent[0] >= $1 && sent[1] >= $1)) || fail "not by both"
}
both 100 streams -n 4M
mark_again "a bond of both switches" "$switchdev_words"
inject_into near-p0 link=down
said 30 'lag map active ports: 2'
within 60 has_ports 1
all_reach
leave_by "$p1" "$p0" 200 streams -n 4M
mark_again "a port that is out" "$switchdev_words"
inject_into near-p0 link=up
said 30 'lag map active ports: 1, 2'
within 60 has_ports 2
all_reach
both 100 streams -n 4M
no_complaints "VF LAG in hash mode" "$bond_words|$switchdev_words"
