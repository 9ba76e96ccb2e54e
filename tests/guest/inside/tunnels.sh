# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,id=left,cable=right --hca link=eth,id=right
# Tunnels of the kernel over the interface: the card makes inner checksums and segments, checks them, and spreads what comes in by inner
# headers.
mark_kernel_log
near=$(net_of "$pf")
far=$(net_of "/sys/bus/pci/devices/$(hca_addresses | tail -n 1)")
ip netns add far && ip link set "$far" netns far || fail "name space"
ip link set "$near" up && ip address add 10.9.1.1/24 dev "$near" && ip address add fd09:1::1/64 dev "$near" nodad || fail "$near"
in_far ip link set lo up && in_far ip link set "$far" up && in_far ip address add 10.9.1.200/24 dev "$far" && in_far ip address add fd09:1::200/64 dev "$far" nodad || fail "$far"
within 30 ping -q -c 1 -W 2 10.9.1.200
within 30 ping -q -c 1 -W 2 fd09:1::200
in_far ethtool --set-priv-flags "$far" rx_no_csum_complete on || fail "rx_no_csum_complete"
for feature in tx-gre-segmentation tx-gre-csum-segmentation tx-ipxip4-segmentation tx-ipxip6-segmentation tx-udp_tnl-segmentation; do
  ethtool -k "$near" | grep -q "$feature: on" || fail "$feature is off: $(ethtool -k "$near")"
done

# of PREFIX INTERFACE NAME: a counter of ethtool's.
of() { $1 ethtool -S "$2" | awk -v name="$3:" '$1 == name { print $2 }'; }
# rings PREFIX INTERFACE: how many receive queues had more than 20 packets since ring_counts.
ring_counts() { in_far ethtool -S "$far" | awk '$1 ~ /^rx[0-9]+_packets:$/ { print $1, $2 }'; }
# through NAME OPTIONS...: a tunnel of that type, with these options at this end; "far" stands for what is the other way around there.
through() {
  local what=$1 here=$2 there=$3 segments sums checked used
  # shellcheck disable=SC2086 # several words
  ip link add tun0 $here && ip link set tun0 up mtu 1400 && ip address add 10.9.7.1/24 dev tun0 || fail "$what here"
  # shellcheck disable=SC2086
  in_far ip link add tun0 $there && in_far ip link set tun0 up mtu 1400 && in_far ip address add 10.9.7.200/24 dev tun0 || fail "$what there"
  ip address add fd09:7::1/64 dev tun0 nodad && in_far ip address add fd09:7::200/64 dev tun0 nodad || fail "$what, IPv6"
  # Of what has no checksum inside, such as ping, the kernel wants GRE's own made by the card, which the driver does not ask for.
  [[ $here == *csum* ]] || reaches "" 10.9.7.200
  segments=$(of "" "$near" tx_tso_inner_packets) sums=$(of "" "$near" tx_csum_partial_inner) checked=$(of in_far "$far" rx_csum_unnecessary_inner)
  ring_counts >/tmp/before
  # So many streams that chance does not give all of them to one queue.
  tcp_between in_far "" 10.9.7.200 -P 16 -n 6M
  used=$(ring_counts | paste -d ' ' /tmp/before - | awk '$4 - $2 > 20 { n++ } END { print n + 0 }')
  segments=$(($(of "" "$near" tx_tso_inner_packets) - segments)) sums=$(($(of "" "$near" tx_csum_partial_inner) - sums))
  checked=$(($(of in_far "$far" rx_csum_unnecessary_inner) - checked))
  note "$what: $segments large sends, $sums inner checksums made, $checked checked, $used queues; $(grep 'SUM.*receiver' /tmp/client)"
  ((segments > 50)) || fail "$what: large sends are not the card's"
  ((sums > 50)) || fail "$what: inner checksums are not the card's"
  ((checked > 500)) || fail "$what: inner checksums are not checked by the card"
  ((used > 1)) || fail "$what: all was received by one queue"
  if [[ $what != ipip ]]; then # which carries no IPv6
    tcp_between in_far "" fd09:7::200 -6 -n 2M
  fi
  ip link del tun0 && in_far ip link del tun0 || fail "$what"
}
v4_here="local 10.9.1.1 remote 10.9.1.200" v4_there="local 10.9.1.200 remote 10.9.1.1"
v6_here="local fd09:1::1 remote fd09:1::200" v6_there="local fd09:1::200 remote fd09:1::1"
through gre "type gre $v4_here" "type gre $v4_there"
through "gre with sums and keys" "type gre $v4_here csum key 5" "type gre $v4_there csum key 5"
through gretap "type gretap $v4_here" "type gretap $v4_there"
through ip6gre "type ip6gre $v6_here" "type ip6gre $v6_there"
through ipip "type ipip $v4_here" "type ipip $v4_there"
through ip6tnl "type ip6tnl mode any $v6_here" "type ip6tnl mode any $v6_there"
through vxlan "type vxlan id 9 dstport 4789 $v4_here" "type vxlan id 9 dstport 4789 $v4_there"
# Debian's driver of 6.1 knows Geneve's headers; the card is told where they are.
through geneve "type geneve id 9 remote 10.9.1.200" "type geneve id 9 remote 10.9.1.1"
no_complaints "tunnels"
