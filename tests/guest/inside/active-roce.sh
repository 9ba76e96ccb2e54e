# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth
# The same as active, on Ethernet: for many-boots.
mark_kernel_log
ends_up 1500
pingpong_ends ibv_rc_pingpong -c -n 100
no_complaints
