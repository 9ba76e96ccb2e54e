# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib,options=snapshot_every=500ms
# replay: -
# The recording of a guest's run, in eager time: hcasim replay makes the same of it, to the last byte of the trace.
wait_active mlx5_0 120
mark_kernel_log
pingpong -s 4096 -n 100
pair 18515 60 ib_send_lat -F -s 1024 -n 500 || fail ib_send_lat
pair 18515 60 ib_atomic_lat -F -n 50 || fail ib_atomic_lat
pair 18515 60 ib_write_bw -F -n 200 -s 65536 || fail ib_write_bw
pair 18515 60 ib_read_bw -F -n 50 -s 4096 -q 16 || fail ib_read_bw
no_complaints "a recorded run"
