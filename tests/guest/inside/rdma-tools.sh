# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib
# What an administrator reads and sets of an RDMA device: counters of single QPs (rdma statistic), page faults of memory regions, the
# node's description, pages, the cache of memory keys.
wait_active mlx5_0
mark_kernel_log
device=/sys/class/infiniband/mlx5_0
link=mlx5_0/1
echo "a card of hcasim" >$device/node_desc && [[ $(<$device/node_desc) == "a card of hcasim" ]] || fail "node_desc: $(cat $device/node_desc)"
smpquery -D nodedesc 0 2>/dev/null | grep -q "a card of hcasim" || fail "the subnet sees $(smpquery -D nodedesc 0 2>&1)"
(($(<$device/fw_pages) > 100)) || fail "fw_pages: $(<$device/fw_pages)"

# start PORT COMMAND...: QPs that are there meanwhile, of a server and its client, which go on until they are stopped.
start() {
  local port=$1
  shift
  "$@" -p "$port" >/tmp/talk.server 2>&1 &
  server=$!
  until_listens "$port" $server || fail "server: $(cat /tmp/talk.server)"
  "$@" -p "$port" localhost >/tmp/talk.client 2>&1 &
  client=$!
}
stop() {
  local pid status
  alive $client $server || fail "has ended by itself: $(tail -n 5 /tmp/talk.server /tmp/talk.client)"
  kill $client $server
  for pid in $client $server; do
    status=0
    wait "$pid" 2>/dev/null || status=$?
    ((status == 128 + 15)) || fail "status $status: $(tail -n 5 /tmp/talk.server /tmp/talk.client)"
  done
}
# Both ends write: of a QP that stays in RTR the kernel takes the counter away while the card has it still, and is refused.
start_writes() { start 18600 ib_write_bw -d mlx5_0 -F -b -s 2 -D 120; }
# requests: of all QPs with a counter, sends and writes that have come.
requests() { rdma statistic qp show link $link | tr ' ' '\n' | awk 'last == "rx_write_requests" || last == "out_of_buffer" { n += $1 } { last = $1 } END { print n + 0 }'; }

# Counters by themselves: a QP of a user's gets that of its type.
rdma statistic qp set link $link auto type on || fail "auto type"
rdma statistic qp mode link $link | grep -q 'auto type' || fail "mode: $(rdma statistic qp mode)"
start_writes
has_counter() { rdma statistic qp show link $link | grep -q 'cntn'; }
within 20 has_counter
counts_writes() { (($(requests) > 1000)); }
within 20 counts_writes
rdma statistic qp show link $link
(($(<$device/reg_pages) > 0)) || fail "reg_pages: $(<$device/reg_pages)"
stop
rdma statistic qp set link $link auto off || fail "auto off"

# One QP by hand.
start_writes
with_lqpn() { rdma resource show qp link $link | sed -nE 's/.* lqpn ([0-9]+) .*type RC state RTS .*comm ib_write_bw.*/\1/p' | head -n 1; }
has_qp() { [[ -n $(with_lqpn) ]]; }
within 20 has_qp
qpn=$(with_lqpn)
rdma statistic qp bind link $link lqpn "$qpn" || fail "bind of QP $qpn"
rdma statistic qp show link $link | grep -q "LQPN:.*$qpn" || fail "bound: $(rdma statistic qp show link $link)"
within 20 counts_writes
cntn=$(rdma statistic qp show link $link | sed -nE 's/.*cntn ([0-9]+).*/\1/p' | head -n 1)
rdma statistic qp unbind link $link cntn "$cntn" lqpn "$qpn" || fail "unbind of QP $qpn"
stop

# What of a region on demand is counted: an implicit one, as the pages of another are mapped when it is made.
start 18515 ibv_rc_pingpong -d mlx5_0 -n 10000000 -O
counts_faults() { rdma statistic show mr | tr '\n' ' ' | grep -q 'dev mlx5_0 mrn .*page_faults [1-9]'; } # newer ones in lines of their own
within 20 counts_faults
stop

mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
cache=$(find /sys/kernel/debug/mlx5 -type d -name mr_cache | head -n 1)
[[ -n $cache ]] || fail "no cache of memory keys in debugfs"
for order in 4 8; do
  limit=$(<"$cache/$order/limit")
  echo 6 >"$cache/$order/limit" && echo 12 >"$cache/$order/size" || fail "12 keys of order $order"
  [[ $(<"$cache/$order/size") == 12 ]] || fail "a cache of $(<"$cache/$order/size") keys, not 12"
  echo "$limit" >"$cache/$order/limit" || fail "$limit keys of order $order"
done
no_complaints "what administrators do"
