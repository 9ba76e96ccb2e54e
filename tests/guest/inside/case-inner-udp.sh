# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,id=left,cable=right --hca link=eth,id=right --no-modprobe
# ask: -
# disk: build-mutants --bug inner-udp
# program: udp_segments
# breaks: wqe-headers
# says: rules wqe-headers
# docs/case-studies/inner-udp.md: datagrams in a VXLAN tunnel that the card is to cut out of one send. The driver tells it how long their
# headers are, and took UDP's for TCP's, whose length it read behind the end of what there was.
pf=/sys/bus/pci/devices/$(hca_addresses | head -n 1)
size=1000 count=5

both_ends() {
  near=$(net_of "$pf")
  far=$(net_of "/sys/bus/pci/devices/$(hca_addresses | tail -n 1)")
  ip netns add far && ip link set "$far" netns far || fail "name space"
  ip link set "$near" up && ip address add 10.9.1.1/24 dev "$near" || fail "$near"
  in_far ip link set lo up && in_far ip link set "$far" up && in_far ip address add 10.9.1.200/24 dev "$far" || fail "$far"
  within 30 ping -q -c 1 -W 2 10.9.1.200
  ip link add tun0 type vxlan id 9 dstport 4789 local 10.9.1.1 remote 10.9.1.200 && ip link set tun0 up mtu 1400 && ip address add 10.9.7.1/24 dev tun0 || fail "tun0"
  in_far ip link add tun0 type vxlan id 9 dstport 4789 local 10.9.1.200 remote 10.9.1.1 && in_far ip link set tun0 up mtu 1400 &&
    in_far ip address add 10.9.7.200/24 dev tun0 || fail "tun0"
  reaches "" 10.9.7.200
}
listens_udp() { in_far grep -qs ':1E61 ' /proc/net/udp; } # 7777
counter() { ethtool -S "$near" | awk -v name="$1:" '$1 == name { print $2 }'; }
has_ended() {
  udp_segments end 10.9.7.200 7777 && ! kill -0 "$receiver" 2>/dev/null
}
# datagrams BYTE: $count of them in one send, filled with that; the receiver's words in /tmp/came.
datagrams() {
  local large
  large=$(counter tx_tso_inner_packets)
  in_far udp_segments receive 7777 $size $count "$1" >/tmp/came &
  receiver=$!
  within 20 listens_udp
  udp_segments send 10.9.7.200 7777 $size $count "$1" || fail "send"
  if [[ -n ${2:-} ]]; then "$2"; fi
  within 20 has_ended
  wait "$receiver" || fail "receiver: $(cat /tmp/came)"
  note "datagrams of $1: $(</tmp/came); $(($(counter tx_tso_inner_packets) - large)) large sends"
  (($(counter tx_tso_inner_packets) > large)) || fail "the kernel has cut it itself"
}
recovered() { (($(counter tx_recover) > 0)); }
error_comes() {
  said 20 'Error cqe on cqn'
  within 20 recovered
}
ends_gone() {
  ip link del tun0 && ip netns del far || fail "ends"
  drivers_gone
}
bug_ready

drivers fixed
both_ends
datagrams 0x41
[[ $(</tmp/came) == "right $count of $count, wrong 0" ]] || fail "with the fix: $(</tmp/came)"
silent
ends_gone
silent

# The data are no part of what the driver has looked at: what lies behind the headers is memory that the kernel has cleared.
drivers broken
both_ends
datagrams 0x41 error_comes
[[ $(</tmp/came) == "right 0 of $count, wrong 0" ]] || fail "some of them came: $(</tmp/came)"
breaks wqe-headers
reaches "" 10.9.7.200
ends_gone
