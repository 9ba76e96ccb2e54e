# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth --mem 3G
# program: scale
# watch: 256
# Many objects and many queues. From outside, watch-device looks at the device's objects and at QEMU's memory: without mlx5_ib,
# which keeps keys in a cache, there must be as many objects after as before.
mark_kernel_log
mark() {
  echo "watch: $1"
  sleep 6 # watch-device takes its samples from outside, one a second
}
read -r processes qps rounds <<<"${test_argument:-24 64 8}"
modprobe -r mlx5_ib || fail "mlx5_ib does not go"
mark before
modprobe mlx5_ib && modprobe ib_uverbs || fail "mlx5_ib"
ends_up 1500
sleep 10 # its cache fills
mark idle
timeout 600 scale "$device" traffic "${gid:--}" "$processes" "$qps" "$rounds" || fail "traffic: status $?"
mark traffic
timeout 900 scale "$device" objects 10000 10000 100000 || fail "objects: status $?"
mark objects
modprobe -r mlx5_ib || fail "mlx5_ib does not go"
mark after
no_complaints "many objects"
