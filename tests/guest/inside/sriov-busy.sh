# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib,vfs=4 --smp 4
# breaks: sq-doorbell-no-queue sq-doorbell-reset
# While a virtual function and the physical one talk, their siblings come and go: the driver of one leaves and comes back, its function is
# reset in between, $test_argument times (5); and all end with traffic on them.
rounds=${test_argument:-5}
wait_active mlx5_0
mark_kernel_log
vfs 4
mapfile -t rdma < <(devices 4)
# talk PORT SERVER CLIENT: until /tmp/going is gone.
talk() {
  local between_port=$1 count=0
  while [[ -e /tmp/going ]]; do
    between "$2" "$3" ibv_rc_pingpong -c -n 1000
    count=$((count + 1))
  done
  note "$3 and $2 have talked $count times"
  ((count > rounds)) || fail "that is too little"
}
: >/tmp/going
talk 18600 "${rdma[1]}" "${rdma[0]}" &
first=$!
talk 18601 "${rdma[2]}" "${rdma[1]}" &
second=$!
for ((round = 1; round <= rounds; round++)); do
  for vf in 2 3; do
    bdf=$(basename "$(vf_of $vf)")
    echo "$bdf" >/sys/bus/pci/drivers/mlx5_core/unbind || fail "unbind of $bdf"
    if ((vf == 3)); then echo 1 >"/sys/bus/pci/devices/$bdf/reset" || fail "reset of $bdf"; fi
    echo "$bdf" >/sys/bus/pci/drivers/mlx5_core/bind || fail "bind of $bdf"
    within 60 grep -qs ACTIVE "$(vf_of $vf)"/infiniband/*/ports/1/state
  done
  between "$(rdma_of "$(vf_of 2)")" "$(rdma_of "$(vf_of 3)")" ibv_rc_pingpong -c -n 100
  kill -0 $first && kill -0 $second || fail "siblings have stopped in round $round"
done
rm /tmp/going
wait $first && wait $second || fail "siblings"
no_complaints "siblings that come and go"

# All of them end while they talk: so do their programs, with an error and not for ever. The kernel takes queues away before it takes the
# doorbells that programs have mapped.
timeout 60 ibv_rc_pingpong -d "${rdma[1]}" -g 0 -n 1000000 >/tmp/last.server 2>&1 &
server=$!
until_listens 18515 $server || fail "server: $(cat /tmp/last.server)"
timeout 60 ibv_rc_pingpong -d "${rdma[0]}" -g 0 -n 1000000 localhost >/tmp/last.client 2>&1 &
client=$!
sent() { cat "/sys/class/infiniband/${rdma[0]}/ports/1/counters/port_xmit_packets"; }
has_sent() { (($(sent) >= $1)); }
within 20 has_sent $(($(sent) + 500))
kill -0 $client || fail "client: $(cat /tmp/last.client)"
vfs 0
wait $client && fail "its peer is gone, and the client ends as if nothing was"
wait $server && fail "its device is gone, and the server ends as if nothing was"
pair 18515 60 ibv_rc_pingpong -d mlx5_0 -c -n 100 || fail "the physical function afterwards"
no_complaints "an end under load"
