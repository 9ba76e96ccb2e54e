# SPDX-License-Identifier: BSD-3-Clause
# from: snapshot
# boot: --hca link=ib
# The drivers go and come back, ten times or as often as the argument says, and everything still works.
wait_active mlx5_0
mark_kernel_log
for ((round = 1; round <= ${test_argument:-10}; round++)); do
  modprobe -r ib_umad 2>/dev/null
  modprobe -r mlx5_ib mlx5_core || fail "round $round: modprobe -r mlx5_ib mlx5_core"
  [[ ! -e /sys/class/infiniband/mlx5_0 ]] || fail "round $round: mlx5_0 is still there"
  hca_drivers || fail "round $round: modprobe"
  wait_active mlx5_0
  note "round $round"
done
pingpong -c -s 4096
pingpong -e -n 100
no_complaints "modprobe -r and back"
