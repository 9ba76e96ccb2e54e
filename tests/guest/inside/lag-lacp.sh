# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,ports=2,id=near,cable=far --hca link=eth,ports=2,id=far
# ask: -
# Two cards of two ports, a cable from port to port, and an 802.3ad bond at either end (LACP): each becomes one RDMA device. RDMA and TCP
# use both cables; one is pulled under ib_write_bw and put back.
mark_kernel_log
mapfile -t addresses < <(hca_addresses)
ports=()
for address in "${addresses[@]}"; do ports+=("$(net_of "/sys/bus/pci/devices/$address")"); done
p0=${ports[0]} p1=${ports[1]}
modprobe bonding max_bonds=0
for i in 0 1; do
  ip link add "bond$i" type bond mode 802.3ad lacp_rate fast miimon 50 xmit_hash_policy layer3+4 || fail "bond$i"
  for port in "${ports[2 * i]}" "${ports[2 * i + 1]}"; do
    ip link set "$port" down && ip link set "$port" master "bond$i" || fail "$port into the bond"
  done
  ip link set "bond$i" up && ip address add "10.9.1.$((100 + i))/24" dev "bond$i" || fail "bond$i"
done
# Both addresses are this machine's own, and a kernel answers no ARP of itself: it would learn the other end's address only if both asked at a
# time.
for i in 0 1; do
  ip neigh replace "10.9.1.$((101 - i))" lladdr "$(<"/sys/class/net/bond$((1 - i))/address")" dev "bond$i" nud permanent || fail "neighbour of bond$i"
done
# agree PORTS: both ends have so many ports in their aggregate, know each other, and both collect and distribute on each of these ports (all
# six bits of the states, of the port itself and of its partner).
has_ports() {
  local i
  for i in 0 1; do
    (($(grep -c "port state: 63\$" "/proc/net/bonding/bond$i") >= 2 * $1)) || return 1
    grep -q "Number of ports: $1\$" "/proc/net/bonding/bond$i" || return 1
    grep -qi "Partner Mac Address: $(<"/sys/class/net/bond$((1 - i))/address")" "/proc/net/bonding/bond$i" || return 1
  done
}
agree() {
  within 30 has_ports "$1"
  note "LACP: $1 ports"
}
agree 2
said 20 'lag map: port 1:1 port 2:2'
# Their names are by which bond came to be first.
bonded() { test -d "/sys/bus/pci/devices/${addresses[0]}/infiniband" && test -d "/sys/bus/pci/devices/${addresses[2]}/infiniband"; }
within 30 is_rdma mlx5_bond_0
within 30 is_rdma mlx5_bond_1
within 30 bonded
near_rdma=$(rdma_of "/sys/bus/pci/devices/${addresses[0]}")
far_rdma=$(rdma_of "/sys/bus/pci/devices/${addresses[2]}")
for device in "$near_rdma" "$far_rdma"; do
  wait_active "$device"
  within 30 has_v2_gid "$device"
done
rdma link show

# both COUNT COMMAND...: at least so many frames leave by either port meanwhile.
both() {
  local before=("$(physical "$p0")" "$(physical "$p1")") count=$1 sent=()
  "${@:2}"
  sent=($(($(physical "$p0") - before[0])) $(($(physical "$p1") - before[1])))
  ((sent[0] >= count && sent[1] >= count)) || fail "${sent[*]} frames: ${*:2}"
  note "${sent[*]} frames by $p0 and $p1: ${*:2}"
}
both 5000 writes "$near_rdma" -s 65536 -q 4 -n 500
roce "$near_rdma" "$far_rdma" ibv_rc_pingpong -c -n 200
roce "$far_rdma" "$near_rdma" ibv_ud_pingpong -c -s 1024 -n 200

# A host behind the far bond.
ip netns add far && ip link add link bond1 name mv1 type macvlan mode private && ip link set mv1 netns far || fail "macvlan"
in_far ip link set mv1 up && in_far ip address add 10.9.2.200/24 dev mv1 && ip address add 10.9.2.100/24 dev bond0 || fail "addresses"
reaches "" 10.9.2.200
streams() { tcp_between in_far "" 10.9.2.200 -P 16 -n 16M; }
both 500 streams

mark_again "LACP"
start_writes "$near_rdma" -s 65536 -q 4 -D 8
sends "$p0"
inject_into near-p0 link=down
said 20 'lag map: port 1:2 port 2:2'
sends "$p1"
end_writes
agree 1
leave_by "$p1" "$p0" 500 streams
mark_again "a port that is out"
inject_into near-p0 link=up
agree 2
said 20 'lag map: port 1:1 port 2:2'
both 5000 writes "$near_rdma" -s 65536 -q 4 -n 500
both 500 streams
for i in 0 1; do ip link del bond$i || fail "bond$i"; done
within 30 test -d /sys/class/infiniband/mlx5_0
! is_rdma "$near_rdma" || fail "$near_rdma is there still"
no_complaints "bonds that end" "$bond_words"
