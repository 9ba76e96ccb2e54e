# SPDX-License-Identifier: BSD-3-Clause
# boot: --lockstep
# The HCA on QEMU's instruction-counting clock: simulated time is the guest's time, and everything works in it.
wait_active mlx5_0 120
mark_kernel_log
pingpong -c -s 4096 -n 50
pingpong -e -n 50
no_complaints "ibv_rc_pingpong in lockstep"
