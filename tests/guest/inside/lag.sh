# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,ports=2,id=near,options=switch=s --hca link=eth,id=far,options=switch=s
# ask: -
# from: snapshot
# Both ports of a card in a bond: the drivers make one RDMA device of them (RoCE LAG). Active-backup, where a cable is pulled under
# ib_write_bw; then both ports at a time. The far end is another card on the same switch, in a name space.
mark_kernel_log
lag_cards

# Active-backup
bond active-backup
said 20 'mode:queue_affinity'
within 30 is_rdma mlx5_bond_0
! is_rdma mlx5_0 && ! is_rdma mlx5_1 || fail "the ports' own devices are there still"
rdma link show
wait_active mlx5_bond_0
within 30 has_v2_gid mlx5_bond_0
within 30 has_v2_gid "$far_rdma"
reaches "" 10.9.1.200
# It is the one whose link was up first, at times the second.
echo "$p0" >/sys/class/net/bond0/bonding/active_slave || fail "$p0 is not to be the active port"
[[ $(active) == "$p0" ]] || fail "active is $(active)"
leave_by "$p0" "$p1" 1000 roce "$far_rdma" mlx5_bond_0 ibv_rc_pingpong -c -n 1000
leave_by "$p0" "$p1" 500 roce mlx5_bond_0 "$far_rdma" ibv_ud_pingpong -c -s 1024 -n 500
roce mlx5_bond_0 mlx5_bond_0 ibv_rc_pingpong -c -n 100

mark_again "an active-backup bond"
start_writes mlx5_bond_0 -s 65536 -q 4 -D 8
sends "$p0"
inject_into near-p0 link=down
said 20 'lag map: port 1:2 port 2:2'
[[ $(active) == "$p1" ]] || fail "active is $(active)"
sends "$p1"
end_writes
leave_by "$p1" "$p0" 1000 roce "$far_rdma" mlx5_bond_0 ibv_rc_pingpong -c -n 1000
leave_by "$p1" "$p0" 20 ping -q -c 20 -i 0.01 10.9.1.200
roce mlx5_bond_0 "$far_rdma" ibv_uc_pingpong -c -n 100

mark_again "a port that is out"
inject_into near-p0 link=up
within 20 grep -q 1 "/sys/class/net/$p0/carrier"
start_writes mlx5_bond_0 -s 65536 -q 4 -D 6
sends "$p1"
inject_into near-p1 link=down
said 20 'lag map: port 1:1 port 2:1'
sends "$p0"
end_writes
inject_into near-p1 link=up
within 20 grep -q 1 "/sys/class/net/$p1/carrier"

mark_again "the other port out"
unbond
within 30 is_rdma mlx5_0
within 30 is_rdma mlx5_1
! is_rdma mlx5_bond_0 || fail "mlx5_bond_0 is there still"

# Both ports: a queue leaves by the one that it is given.
mark_again "no bond"
bond balance-xor
said 20 'lag map: port 1:1 port 2:2'
within 30 is_rdma mlx5_bond_0
wait_active mlx5_bond_0
within 30 has_v2_gid mlx5_bond_0
reaches "" 10.9.1.200
before=("$(physical "$p0")" "$(physical "$p1")")
writes mlx5_bond_0 -s 65536 -q 4 -n 500
for i in 0 1; do
  port=$p0
  ((i == 0)) || port=$p1
  sent=$(($(physical "$port") - before[i]))
  note "$sent frames by $port"
  ((sent > 4 * 500 * 64 / 4)) || fail "only $sent frames have left by $port"
done
roce mlx5_bond_0 "$far_rdma" ibv_rc_pingpong -c -n 200
unbond
within 30 is_rdma mlx5_0
no_complaints "a bond that ends" "$bond_words"
