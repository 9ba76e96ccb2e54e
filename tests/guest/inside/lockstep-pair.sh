# SPDX-License-Identifier: BSD-3-Clause
# pair: --lockstep --hca options=wire_latency_ns=50000
# same: --latency 50000
# replay: -
# Two guests in one time: they do what they do at the same simulated times in each run, and see the cable's latency.
ends_up
mark_kernel_log
pingpong_ends ibv_rc_pingpong -n 50 -s 1024
perftest_ends ib_write_lat -n 100 -s 8
if is_client; then cat /tmp/client; fi
no_complaints "two guests in lockstep"
