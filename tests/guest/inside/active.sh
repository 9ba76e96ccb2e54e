# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib
# One boot: the port becomes ACTIVE. The test "boots" repeats it.
wait_active mlx5_0
