# SPDX-License-Identifier: BSD-3-Clause
# pair: --link ib
# replay: -
# program: rdma_pair
# Two guests on InfiniBand, joined by the HCA's own wire: what a network back end cannot carry.
mark_kernel_log
ends_up
wait_active "$device" 60
note "LID $(cat "/sys/class/infiniband/$device/ports/1/lid")"
for client in a b; do
  pingpong_ends ibv_rc_pingpong -c -n 200
  pingpong_ends ibv_ud_pingpong -c -s 2048 -n 200
  pingpong_ends ibv_uc_pingpong -c -n 200
  for tool in ib_send ib_write ib_read; do
    perftest_ends ${tool}_lat -s 2 -n 50
    perftest_ends ${tool}_bw -s 65536 -n 100
  done
done
client=a
pingpong_ends ibv_rc_pingpong -c -e -s 65536 -n 50
pingpong_ends ibv_rc_pingpong -c -s 1048576 -n 20
pingpong_ends ibv_srq_pingpong -c -n 100
for mtu in 256 4096; do pingpong_ends ibv_rc_pingpong -m $mtu -c -s 16384 -n 20; done
ends 60 tcp:18600 rdma_pair "$device" - --ops 1500 -- rdma_pair "$device" - --ops 1500 "$theirs"
perftest_ends ib_atomic_lat -n 50
perftest_ends ib_send_bw -c UD -s 1024 -n 100
perftest_ends ib_write_bw -s 4096 -q 16 -n 20
no_complaints "InfiniBand between two guests"
