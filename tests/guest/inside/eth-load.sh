# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,id=left,cable=right --hca link=eth,id=right --smp 2 --mem 3G
# program: xdp_frames
# What an administrator changes of an interface while frames come and go: rings, channels, coalescing, queue modes, offloads, hashes, MTU,
# the link itself. TCP flows both ways all the while, between two cards (one in the name space "far"), and goes on after each change. Then
# flows follow their program to its processor (accelerated RFS), and XDP programs get frames that are larger than a page.
mark_kernel_log
near=$(net_of "/sys/bus/pci/devices/$(hca_addresses | head -n 1)")
far=$(net_of "/sys/bus/pci/devices/$(hca_addresses | tail -n 1)")
ip netns add far && ip link set "$far" netns far || fail "name space"
in_far() { ip netns exec far "$@"; }
ip link set "$near" up && ip address add 10.9.1.1/24 dev "$near" || fail "$near"
in_far ip link set lo up && in_far ip link set "$far" up && in_far ip address add 10.9.1.2/24 dev "$far" || fail "$far"
carrier() { $1 grep -qs 1 "/sys/class/net/$2/carrier"; }
within 30 carrier "" "$near"
within 30 carrier in_far "$far"
counter() { in_far ethtool -S "$far" | awk -v name="$1:" '$1 == name { print $2 }'; }
octets() { in_far cat "/sys/class/net/$far/statistics/$1_bytes"; }

# flows ARGUMENTS-OF-CLIENT...: iperf3 from the near end; until stopped.
flows() {
  in_far timeout 900 iperf3 -s -1 >/tmp/server 2>&1 &
  server=$!
  within 30 listens 5201 in_far
  timeout 900 iperf3 -c 10.9.1.2 -t 2000 "$@" >/tmp/client 2>&1 &
  client=$!
}
stopped() {
  alive "$client" "$server" || fail "iperf3 has ended: $(tail -n 5 /tmp/client /tmp/server)"
  kill "$client" "$server"
  wait "$client" "$server"
}
moved() { (($(octets rx) > got_rx + 2000000 && $(octets tx) > got_tx + 2000000)); }
# changes COMMAND...: done while bytes move, and they move on after it.
changes() {
  local text start=$SECONDS
  text=$("$@" 2>&1) || fail "$*: $text"
  got_rx=$(octets rx) got_tx=$(octets tx)
  within 60 moved
  alive "$client" "$server" || fail "iperf3 has ended after $*: $(tail -n 5 /tmp/client /tmp/server)"
  note "ok, $((SECONDS - start)) s: $*"
}
flows --bidir
changes true
for side in "" in_far; do
  if [[ -z $side ]]; then dev=$near; else dev=$far; fi
  changes $side ethtool -G "$dev" rx 256 tx 256
  changes $side ethtool -G "$dev" rx 4096 tx 4096
  changes $side ethtool -L "$dev" combined 1
  changes $side ethtool -L "$dev" combined 2
  changes $side ethtool -C "$dev" adaptive-rx off adaptive-tx off rx-usecs 100 rx-frames 64 tx-usecs 100 tx-frames 64
  changes $side ethtool -C "$dev" adaptive-rx on adaptive-tx on
  for flag in rx_striding_rq rx_cqe_compress rx_no_csum_complete; do changes $side ethtool --set-priv-flags "$dev" $flag on; done
  for flag in skb_tx_mpwqe rx_cqe_compress rx_no_csum_complete rx_striding_rq; do changes $side ethtool --set-priv-flags "$dev" $flag off; done
  for feature in tso gro rx tx sg rxhash rxvlan; do
    changes $side ethtool -K "$dev" $feature off
    changes $side ethtool -K "$dev" $feature on
  done
  changes $side ethtool -X "$dev" equal 1
  changes $side ethtool -X "$dev" hfunc xor
  changes $side ethtool -X "$dev" hfunc toeplitz equal 2
  changes $side ethtool -A "$dev" rx off tx off
  changes $side ip link set "$dev" mtu 9000
  changes $side ip link set "$dev" mtu 1500
  changes $side ip link set "$dev" allmulticast on
  changes $side ip link set "$dev" allmulticast off
done
down_and_up() { in_far ip link set "$far" down && in_far ip link set "$far" up; }
changes down_and_up
stopped

# Accelerated RFS: the driver has a rule for each flow, which leads it to the queue of the processor where its program reads.
in_far ethtool -K "$far" ntuple on || fail "ntuple"
echo 4096 >/proc/sys/net/core/rps_sock_flow_entries || fail "rps_sock_flow_entries"
in_far bash -c "for q in /sys/class/net/$far/queues/rx-*; do echo 2048 >\$q/rps_flow_cnt || exit; done" || fail "rps_flow_cnt"
# Most of what comes in goes through this queue, and little through the other.
follows() {
  local each
  local -a now=()
  for each in 0 1; do now[each]=$(counter "rx${each}_packets"); done
  ((now[$1] - before[$1] > 500)) || return 1
  ((now[1 - $1] - before[1 - $1] < (now[$1] - before[$1]) / 4)) && return 0
  before=("${now[@]}")
  return 1
}
for cpu in 0 1 0; do
  in_far timeout 300 taskset -c $cpu iperf3 -s -1 >/tmp/server 2>&1 &
  server=$!
  within 30 listens 5201 in_far
  timeout 300 taskset -c $cpu iperf3 -c 10.9.1.2 -t 1000 >/tmp/client 2>&1 &
  client=$!
  before=("$(counter rx0_packets)" "$(counter rx1_packets)")
  within 60 follows $cpu
  note "aRFS: a program on processor $cpu has its frames from queue $cpu"
  stopped
done
in_far ethtool -K "$far" ntuple off || fail "ntuple off"

# XDP with frames of several buffers.
ip link set "$near" mtu 9000 && in_far ip link set "$far" mtu 9000 || fail "mtu"
within 30 carrier "" "$near"
within 30 carrier in_far "$far"
reaches() { ping -q -c 5 -i 0.2 -W 5 -M do -s "$1" 10.9.1.2 >/tmp/ping 2>&1; }
within 30 reaches 8000
attached_or_gone() { grep -q attached /tmp/xdp || ! kill -0 $program 2>/dev/null; }
# with_xdp ACTION: on the far interface until done.
with_xdp() {
  mkfifo /tmp/until
  in_far xdp_frames "$far" "$1" </tmp/until >/tmp/xdp 2>&1 &
  program=$!
  exec 9>/tmp/until
  within 60 attached_or_gone
  grep -q attached /tmp/xdp || fail "xdp_frames: $(cat /tmp/xdp)"
  within 30 carrier in_far "$far"
}
without_xdp() {
  exec 9>&-
  wait $program || fail "xdp_frames: $(cat /tmp/xdp)"
  rm /tmp/until
  within 30 carrier in_far "$far"
}
with_xdp pass
within 30 reaches 8000
reaches 100 || fail "ping, small frames: $(cat /tmp/ping)"
without_xdp
grep -E 'frames of several buffers: [1-9]' /tmp/xdp || fail "no frame had several buffers: $(cat /tmp/xdp)"
drops() { (($(counter rx_xdp_drop) >= 5)); }
with_xdp drop
if reaches 8000; then fail "what XDP drops arrives"; fi
within 20 drops
without_xdp
within 30 reaches 8000
returns() { (($(counter rx_xdp_tx_xmit) >= 5 && $(ethtool -S "$near" | awk '$1 == "rx_bytes_phy:" { print $2 }') > sent + 5 * 8000)); }
sent=$(ethtool -S "$near" | awk '$1 == "rx_bytes_phy:" { print $2 }')
with_xdp tx
if reaches 8000; then fail "what XDP sends back is answered"; fi
within 20 returns
without_xdp
within 30 reaches 8000
no_complaints "changes under load, aRFS, XDP"
