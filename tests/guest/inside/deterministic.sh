# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib --deterministic
# same: -
# Two runs of one command go the same way, to the last byte of the trace.
wait_active mlx5_0 120
mark_kernel_log
pingpong -s 4096 -n 50
pingpong -e -n 50
pair 18515 60 ib_send_lat -e -F -n 50 -s 8 || fail ib_send_lat
pair 18515 60 ib_write_bw -F -n 50 -s 4096 || fail ib_write_bw
no_complaints "two runs"
