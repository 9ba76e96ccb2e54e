# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib --hca link=ib
# Two HCAs in one guest, each with traffic of its own, at the same time.
wait_active mlx5_0
wait_active mlx5_1
mark_kernel_log
ibv_devinfo
[[ $(cat /sys/class/infiniband/mlx5_0/node_guid) != $(cat /sys/class/infiniband/mlx5_1/node_guid) ]] || fail "both have one GUID"
counter() { cat "/sys/class/infiniband/$1/ports/1/counters/port_xmit_packets" 2>/dev/null || echo 0; }
(pingpong_port=18515 pingpong -d mlx5_0 -c -s 4096 -n 500) &
first=$!
(pingpong_port=18516 pingpong -d mlx5_1 -c -s 4096 -n 500) &
second=$!
wait "$first" || fail "traffic on mlx5_0"
wait "$second" || fail "traffic on mlx5_1"
note "packets sent: mlx5_0 $(counter mlx5_0), mlx5_1 $(counter mlx5_1)"
no_complaints "two HCAs"
