# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib,vfs=127 --mem 4G --smp 4
# watch: 3000 1536
# When functions go QEMU makes its maps of all their address spaces anew, and keeps the old ones until its RCU thread has had its turn: 200
# MiB on an idle machine, 600 on a busy one (of 127: 2 GiB), for a moment. What matters is the same at the end, and what each function takes.
# $test_argument virtual functions at a time (64), each with a driver that runs.
count=${test_argument:-64}
wait_active mlx5_0
mark_kernel_log
pair 18515 60 ibv_rc_pingpong -d mlx5_0 -c -n 100 || fail "the physical function" # which makes what drivers make once
echo "watch: before"
sleep 2
start=$SECONDS
vfs "$count"
note "$count up after $((SECONDS - start)) s"
echo "watch: up of $count"
mapfile -t rdma < <(devices "$count")
[[ $(printf '%s\n' "${rdma[@]}" | sort -u | wc -l) == $((count + 1)) ]] || fail "devices: ${rdma[*]}"
between "${rdma[0]}" "${rdma[count]}" ibv_rc_pingpong -c -n 100
between "${rdma[1]}" "${rdma[count / 2]}" ibv_rc_pingpong -c -n 100
echo "watch: going"
start=$SECONDS
vfs 0
note "down after $((SECONDS - start)) s"
echo "watch: after"
sleep 2
no_complaints "$count virtual functions"
