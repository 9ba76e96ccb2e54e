# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib
# One boot: the port becomes ACTIVE, and carries traffic. The test "boots" repeats it; so does many-boots, by the hundred.
mark_kernel_log
wait_active mlx5_0
pingpong -c -n 100
no_complaints
