# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca none
# program: verbs_check
# The guest itself, without an HCA: the tools of the other tests work over the kernel's software RDMA device.
modprobe -a rdma_rxe ib_uverbs dummy || fail "modprobe"
ip link show dummy0 >/dev/null 2>&1 || ip link add dummy0 type dummy
ip address add 10.0.0.1/24 dev dummy0
ip link set dummy0 up
rdma link add rxe0 type rxe netdev dummy0 || fail "no software RDMA device"
wait_active rxe0
gid=$(grep -l ::ffff:0a00:0001 /sys/class/infiniband/rxe0/ports/1/gids/* 2>/dev/null | head -n 1)
[[ -n $gid ]] || gid=$(grep -l 0a00:0001 /sys/class/infiniband/rxe0/ports/1/gids/* | head -n 1)
gid=${gid##*/}
pingpong -d rxe0 -g "$gid" -c -n 100
pair 18515 60 ib_send_lat -d rxe0 -x "$gid" -F -n 100 -s 64 || fail "ib_send_lat"
pair 18515 60 ib_write_bw -d rxe0 -x "$gid" -F -n 20 -s 4096 -q 4 || fail "ib_write_bw"
# Not "errors": the software device has its own view of a wrong lkey.
timeout 120 verbs_check --device rxe0 --quick send send_imm write write_imm read inline atomic batch rnr events || fail "verbs_check"
