# SPDX-License-Identifier: BSD-3-Clause
# from: snapshot
# boot: --hca link=eth
# ask: -
# The card's processor dies under traffic (its health buffer says so, and asks for a reset): programs hear of it in
# IBV_EVENT_DEVICE_FATAL, the driver takes the HCA down and up, and it serves again.
ends_up 1500
ibv_asyncwatch -d "$device" >/tmp/watch 2>&1 &
watch=$!
ib_write_bw -d "$device" -x "$gid" -F -D 120 >/tmp/server 2>&1 &
server=$!
until_listens 18515 "$server" || fail "ib_write_bw does not listen: $(cat /tmp/server)"
ib_write_bw -d "$device" -x "$gid" -F -D 120 127.0.0.1 >/tmp/client 2>&1 &
client=$!
# within SECONDS COMMAND...: until it succeeds.
within() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || fail "not within its time: $*"$'\n'"$(tail -n 20 /tmp/watch /tmp/server /tmp/client; dmesg | tail -n 30)"
    sleep 0.3
  done
}
# The card's own, which the driver has no part in.
counter() {
  local n
  n=$(ask counter "$1")
  [[ $n =~ ^[0-9]+$ ]] || fail "$1: $n"
  echo "$n"
}
packets() { counter tx_packets; }
start=$(packets) || fail "$start"
moves() { (($(packets) > start + 1000)); }
within 60 moves
inject fw_fatal=1
within 60 grep -q IBV_EVENT_DEVICE_FATAL /tmp/watch
note "$(grep -m 1 IBV_EVENT_DEVICE_FATAL /tmp/watch)"
within 90 eval 'dmesg | grep -q "health recovery succeeded"'
note "$(dmesg | grep "health recovery succeeded")"
back() { [[ -e /sys/class/infiniband/$device/ports/1/state ]]; }
within 120 back
# What the reset has ended stays so, while the driver has 200 commands answered; the interface's own frames are few.
old=$(packets) commands=$(counter fw_commands) || fail "$old"
for ((i = 0; i < 200; i++)); do
  read -r _ <"/sys/class/infiniband/$device/ports/1/counters/port_xmit_data" || fail "$device's counters cannot be read"
done
new=$(packets) asked=$(counter fw_commands) || fail "$new"
((asked - commands >= 200)) || fail "not 200 commands meanwhile: $commands, then $asked"
((new - old < 100)) || fail "traffic goes on after the reset: $old packets, then $new"
# A program that polls its CQ and does not listen to events polls on for ever, here as on the card; its objects are the kernel's to
# take back.
alive "$client" "$server" || fail "ib_write_bw has ended by itself: $(tail -n 3 /tmp/client /tmp/server)"
kill -9 "$client" "$server"
for pid in "$client" "$server"; do
  status=0
  wait "$pid" || status=$?
  ((status == 128 + 9)) || fail "ib_write_bw ended with status $status"
done
kill $watch 2>/dev/null || true
note "$device is back: $(cat "/sys/class/infiniband/$device/ports/1/state"); $(ip -br link show "$interface")"
ends_up 1500
pingpong_ends ibv_rc_pingpong -c -n 100
if dmesg | grep 'Call Trace\|WARNING:\|BUG:'; then fail "the kernel complained"; fi
