# SPDX-License-Identifier: BSD-3-Clause
# from: snapshot
# boot: --hca link=ib
# ibv_rc_pingpong in the sizes and modes it has, data validated.
wait_active mlx5_0
mark_kernel_log
pingpong
for size in 1 4096 1048576; do
  pingpong -s "$size"
  pingpong -s "$size" -c -n 100
done
pingpong -n 1000
pingpong -e
pingpong -e -c -s 65536 -n 200
for mtu in 256 1024 4096; do pingpong -m "$mtu" -c -s 16384 -n 50; done
no_complaints "ibv_rc_pingpong"
