# SPDX-License-Identifier: BSD-3-Clause
# pair: --link eth
# program: rdma_pair
# Packets are lost, repeated, reordered and damaged on the wire (options of the HCA, given by whoever registers this test): RC
# traffic stays right byte for byte, and the counters tell of it. Then the link goes down under load for good: the request ends in
# "retry exceeded", the QP is reset, connected and used again.
ends_up 4200
mark_kernel_log
counters() { cat "/sys/class/infiniband/$device/ports/1/hw_counters/$1" 2>/dev/null || echo 0; }
recovery_counters='out_of_sequence packet_seq_err local_ack_timeout_err implied_nak_seq_err duplicate_request'
sum() {
  local name total=0
  for name in $recovery_counters; do total=$((total + $(counters $name))); done
  echo $total
}
before=$(sum) icrc_before=$(counters rx_icrc_encapsulated)
for client in a b; do
  for seed in 1 2; do
    ends 150 tcp:18600 rdma_pair "$device" "$gid" --ops 1500 --seed $seed$test_argument -- \
      rdma_pair "$device" "$gid" --ops 1500 --seed $seed$test_argument "$theirs"
    cat /tmp/client
  done
  # Tools whose ends part only when both have all they wait for. (ibv_rc_pingpong's client leaves with its last receive: is the
  # acknowledge of that one lost, then its server rightly ends in "retry exceeded".)
  perftest_ends ib_send_lat -s 65536 -n 50
  perftest_ends ib_read_bw -s 65536 -n 50
  perftest_ends ib_write_bw -s 65536 -n 50 -q 4
done
for name in $recovery_counters rx_icrc_encapsulated; do printf '%s=%s ' "$name" "$(counters $name)"; done
echo
(($(sum) > before)) || fail "packets are lost on the wire and no counter says so"
(($(counters rx_icrc_encapsulated) > icrc_before)) || fail "packets are damaged on the wire and rx_icrc_encapsulated does not say so"

# A cut that retries outlive, and one that they do not.
client=a
cut_while() { # PATTERN SECONDS|until PATTERN
  until grep -q "$1" /tmp/client; do sleep 0.1; done
  sleep 0.3
  ip link set "$interface" down
  note "$interface is down"
  if [[ $2 == until ]]; then until grep -q "$3" /tmp/client; do sleep 0.1; done; else sleep "$2"; fi
  ip link set "$interface" up
  note "$interface is up"
}
: >/tmp/client
if is_client; then cut_while 'cut the link' until 'mend the link' & fi
ends 150 tcp:18600 rdma_pair "$device" "$gid" --ops 800 --break -- \
  rdma_pair "$device" "$gid" --ops 800 --break "$theirs"
cat /tmp/client
no_complaints "losses on the wire"
