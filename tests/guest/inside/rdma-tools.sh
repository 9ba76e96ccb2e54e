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
(($(<$device/reg_pages) >= 0)) || fail "reg_pages"

# QPs that are there meanwhile: those of a ping-pong that goes on until it is ended.
start() {
  ibv_rc_pingpong -d mlx5_0 -n 10000000 "$@" >/tmp/talk.server 2>&1 &
  server=$!
  until_listens 18515 $server || fail "server: $(cat /tmp/talk.server)"
  ibv_rc_pingpong -d mlx5_0 -n 10000000 "$@" localhost >/tmp/talk.client 2>&1 &
  client=$!
}
stop() {
  kill $client $server
  wait $client $server 2>/dev/null
}
# requests: of all QPs with a counter, sends and writes that have come.
requests() { rdma statistic qp show link $link | tr ' ' '\n' | awk 'last == "rx_write_requests" || last == "out_of_buffer" { n += $1 } { last = $1 } END { print n + 0 }'; }

# Counters by themselves: a QP of a user's gets that of its type. Both ends write: of a QP that stays in RTR the kernel takes the counter away
# while the card has it still, and is refused.
rdma statistic qp set link $link auto type on || fail "auto type"
rdma statistic qp mode link $link | grep -q 'auto type' || fail "mode: $(rdma statistic qp mode)"
ib_write_bw -d mlx5_0 -F -b -s 2 -D 30 -p 18600 >/tmp/writes.server 2>&1 &
server=$!
until_listens 18600 $server || fail "server: $(cat /tmp/writes.server)"
ib_write_bw -d mlx5_0 -F -b -s 2 -D 30 -p 18600 localhost >/tmp/writes.client 2>&1 &
client=$!
has_counter() { rdma statistic qp show link $link | grep -q 'cntn'; }
within 20 has_counter
counts_writes() { (($(requests) > 1000)); }
within 20 counts_writes
rdma statistic qp show link $link
stop
rdma statistic qp set link $link auto off || fail "auto off"

# One QP by hand.
start
with_lqpn() { rdma resource show qp link $link | sed -nE 's/.* lqpn ([0-9]+) .*type RC .*comm ibv_rc_pingpong.*/\1/p' | head -n 1; }
has_qp() { [[ -n $(with_lqpn) ]]; }
within 20 has_qp
qpn=$(with_lqpn)
rdma statistic qp bind link $link lqpn "$qpn" || fail "bind of QP $qpn"
rdma statistic qp show link $link | grep -q "LQPN:.*$qpn" || fail "bound: $(rdma statistic qp show link $link)"
cntn=$(rdma statistic qp show link $link | sed -nE 's/.*cntn ([0-9]+).*/\1/p' | head -n 1)
rdma statistic qp unbind link $link cntn "$cntn" lqpn "$qpn" || fail "unbind of QP $qpn"
stop

# What of a region on demand is counted.
start -o
has_region() { rdma statistic show mr | tr '\n' ' ' | grep -q 'dev mlx5_0 mrn .*page_faults [0-9]'; } # newer ones in lines of their own
within 20 has_region
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
