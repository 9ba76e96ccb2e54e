# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,ports=2,id=near,options=switch=s:port_select=hash --hca link=eth,id=far,options=switch=s
# ask: -
# from: snapshot
# RoCE LAG where flow tables of the card select the port by a hash of each packet's headers: many QPs use both ports of the bond, each stays
# on one; a pulled cable moves them all, put back they spread again. What is hashed is the bond's policy, tunnels included.
mark_kernel_log
lag_cards
mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug || fail "debugfs"
lag_says() { cat "/sys/kernel/debug/mlx5/${addresses[0]}/lag/$1"; }
maps_to() { [[ $(lag_says mapping) == "$1" ]]; }

# active_ports PORTS: what the driver has told the card. ready: the bond's device is there.
active_ports() { said 20 "lag map active ports: $1\$"; }
ready() {
  said 20 'mode:hash'
  within 30 is_rdma mlx5_bond_0
  [[ $(lag_says port_sel_mode) == hash && $(lag_says type) == roce ]] || fail "LAG: $(lag_says type), $(lag_says port_sel_mode)"
  wait_active mlx5_bond_0
  within 30 has_v2_gid mlx5_bond_0
  reaches "" 10.9.1.200
}
# count COMMAND...: sent[0], sent[1] are the frames that leave by either port meanwhile.
count() {
  local before=("$(physical "$p0")" "$(physical "$p1")")
  "$@"
  sent=($(($(physical "$p0") - before[0])) $(($(physical "$p1") - before[1])))
  note "${sent[*]} frames by $p0 and $p1: $*"
}
# 16 QPs, of 32 messages of 16 packets and more; spread: each port has some of them.
flows() { writes mlx5_bond_0 -s 65536 -q 16 -n 32; }
spread() {
  count flows
  ((sent[0] >= 500 && sent[1] >= 500)) || fail "not spread: ${sent[*]}"
}
on_one() {
  count "$@"
  ((sent[0] < 50 || sent[1] < 50)) || fail "not on one port: ${sent[*]}"
}

bond balance-xor xmit_hash_policy layer3+4
active_ports '1, 2'
ready
spread
on_one writes mlx5_bond_0 -s 65536 -q 1 -n 200
roce "$far_rdma" mlx5_bond_0 ibv_rc_pingpong -c -n 200
roce mlx5_bond_0 "$far_rdma" ibv_ud_pingpong -c -s 1024 -n 200
# The bond's own policy for TCP, whose queues each port has by itself.
streams() { tcp_between in_far "" 10.9.1.200 -P 16 -n 16M; }
count streams
((sent[0] >= 200 && sent[1] >= 200)) || fail "TCP not spread: ${sent[*]}"

mark_again "a bond of both ports"
start_writes mlx5_bond_0 -s 65536 -q 16 -D 8
sends "$p0"
sends "$p1"
inject_into near-p0 link=down
active_ports 2
sends "$p1"
end_writes
leave_by "$p1" "$p0" 5000 flows
mark_again "a port that is out"
inject_into near-p0 link=up
active_ports '1, 2'
within 20 grep -q 1 "/sys/class/net/$p0/carrier"
spread
mark_again "both ports again"
unbond
within 30 is_rdma mlx5_0

# Addresses of the link layer alone: one pair of them, one port.
bond balance-xor xmit_hash_policy layer2
active_ports '1, 2'
ready
on_one flows
mark_again "one pair of addresses"
unbond
within 30 is_rdma mlx5_0

# Tunnels' inner headers; what is in none by its own.
bond balance-xor xmit_hash_policy encap3+4
active_ports '1, 2'
ready
spread
mark_again "tunnels"
unbond
within 30 is_rdma mlx5_0

# The first port with a link is active, until told otherwise.
bond active-backup
ready
up() { [[ $(<"/sys/class/net/$p0/carrier")$(<"/sys/class/net/$p1/carrier") == 11 ]]; }
within 20 up
for live in 1 0; do
  port=$p0 other=$p1
  ((live == 0)) || { port=$p1 && other=$p0; }
  ip link set bond0 type bond active_slave "$port" || fail "active_slave"
  within 20 maps_to $((live + 1))
  leave_by "$port" "$other" 5000 flows
done
unbond
within 30 is_rdma mlx5_0
no_complaints "an active-backup bond that ends" "$bond_words"
