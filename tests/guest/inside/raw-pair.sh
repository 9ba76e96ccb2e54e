# SPDX-License-Identifier: BSD-3-Clause
# pair: --link eth
# program: raw_check
# program: raw_sniff
# Raw packet QPs with steering rules from user space: raw_check compares every byte, in both directions; then perftest's
# own tools for them.
mark_kernel_log
ends_up
raw_check_ends() { ends 90 tcp:18700 raw_check "$device" "$interface" "$mine" "$theirs" receive "$@" -- raw_check "$device" "$interface" "$mine" "$theirs" send "$@"; }
for client in a b; do
  raw_check_ends --seed "$([[ $client == a ]] && echo 1 || echo 2)"
  cat /tmp/client /tmp/server
done
client=a

# The sniffer's rule shows what the kernel's interface never sees: RoCE, both ways. Each of 100 messages at
# least once, whoever it is from; a busy host has retries.
stdbuf -oL raw_sniff "$device" "$mine" "$theirs" >/tmp/sniff 2>&1 &
sniffer=$!
until grep -q sniffing /tmp/sniff; do
  kill -0 $sniffer 2>/dev/null || fail "raw_sniff: $(</tmp/sniff)"
  sleep 0.1
done
barrier sniffing
pingpong_ends ibv_rc_pingpong -c -n 100
kill $sniffer
wait $sniffer || fail "raw_sniff: $(</tmp/sniff)"
cat /tmp/sniff
awk '/^sniffed/ { seen = $(NF - 3) >= 100 && $(NF - 1) >= 100 } END { exit !seen }' /tmp/sniff || fail "raw_sniff did not see each message"

# perftest's take MAC addresses, and have no other connection: that the server is there is seen by the head of its table, which it
# prints line by line only if told to. Nothing stops the sender, so the receives are as many as the frames.
own_mac=$(<"/sys/class/net/$interface/address")
tell "mac $own_mac"
hear 'mac '
other_mac=$heard
raw_ends() {
  local -a what=("$1" -d "$device" -B "$own_mac" -E "$other_mac" "${@:2}")
  ends 60 text:'#bytes' stdbuf -oL "${what[@]}" --server -- "${what[@]}" --client
  is_client || return 0
  grep -A 1 '#bytes' /tmp/client | tee /tmp/result
  grep -q '^ *[0-9]' /tmp/result || fail "$1 measured nothing"
}
udp=(-J 10.9.0.2 -j 10.9.0.1 -K 2000 -k 2001)
raw_ends raw_ethernet_bw "${udp[@]}" -n 500 -r 512 -s 1024
# Frames of the peer's kernel come too: any fits.
raw_ends raw_ethernet_bw --promiscuous -n 500 -r 512 -s 1518
raw_ends raw_ethernet_lat "${udp[@]}" -n 200 -s 512
raw_ends raw_ethernet_lat "${udp[@]}" -n 200 -s 64
no_complaints "raw packet QPs"
