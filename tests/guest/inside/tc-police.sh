# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,vfs=2,id=left,cable=right --hca link=eth,id=right
# program: psample_count
# TC's police and sample in a card in switchdev mode (skip_sw: the card alone): flow meters let a rate pass, of bytes and of packets; a
# sampler gives the kernel one of so many packets.
mark_kernel_log
far_end
to_switchdev 2
functions_up 2
tc_ready "$port" "${rep[@]}"
rule "${rep[1]}" protocol all prio 1 flower skip_sw action mirred egress redirect dev "${rep[0]}"
rule "${rep[0]}" protocol arp prio 2 flower skip_sw action mirred egress redirect dev "${rep[1]}"
rule "${rep[0]}" protocol ip prio 3 flower skip_sw ip_proto tcp action mirred egress redirect dev "${rep[1]}"
# flood BYTES: UDP from 0 to 1 for some seconds. Sets $bytes, $packets and $us: what has arrived between two looks; and $sent in about that
# time: that of the card, which stands still while the guest has to wait for its host.
card_us() { phc_ctl /dev/ptp0 get | sed -n 's/.*clock time is \([0-9]*\)\.\([0-9]\{6\}\).*/\1\2/p'; }
look() {
  local at=/sys/class/net/$1/statistics from to bytes packets
  from=$(card_us) bytes=$(<"$at/$2_bytes") packets=$(<"$at/$2_packets")
  sleep 4 # what is measured: the time that it took is looked up
  to=$(card_us) bytes=$(($(<"$at/$2_bytes") - bytes)) packets=$(($(<"$at/$2_packets") - packets))
  echo $((to - from)) "$bytes" "$packets"
}
arrived() { in_vf 1 cat "/sys/class/net/${net[1]}/statistics/rx_packets"; }
has_arrived() { (($(arrived) >= $1)); }
flood() {
  in_vf 1 timeout 60 iperf3 -s -1 >/tmp/server 2>&1 &
  within 30 listens 5201 in_vf 1
  in_vf 0 timeout 60 iperf3 -c 10.9.1.2 -u -b 0 -l "$1" -t 9 >/tmp/client 2>&1 &
  within 30 has_arrived $(($(arrived) + 1000)) # and the burst is over
  in_vf 0 bash -c "$(declare -f card_us look); look ${net[0]} tx" >/tmp/sent &
  in_vf 1 bash -c "$(declare -f card_us look); look ${net[1]} rx" >/tmp/received
  wait
  read -r us bytes packets </tmp/received
  read -r _ _ sent </tmp/sent
}
# near GOT WANTED PER CENT
near() { (($1 * 100 >= $2 * (100 - $3) && $1 * 100 <= $2 * (100 + $3))); }

rule "${rep[0]}" protocol ip prio 4 flower skip_sw ip_proto udp action police rate 20mbit burst 500k conform-exceed drop/pipe \
  action mirred egress redirect dev "${rep[1]}"
flood 1400
# Frames have an Ethernet header of 14 bytes, which the meter does not count.
rate=$(((bytes - packets * 14) * 8 * 1000 / (us / 1000)))
note "police rate 20mbit: $rate bit/s passed, $packets packets of $sent; $bytes bytes in $us us"
((sent > packets * 5 / 4)) || fail "nothing was to be dropped: $sent packets sent, $packets passed"
near "$rate" 20000000 20 || fail "the rate is $rate"
counts "${rep[0]}" "$packets"
tc filter del dev "${rep[0]}" ingress prio 4 || fail "rule"

rule "${rep[0]}" protocol ip prio 4 flower skip_sw ip_proto udp action police pkts_rate 1000 pkts_burst 50 conform-exceed drop/pipe \
  action mirred egress redirect dev "${rep[1]}"
flood 100
rate=$((packets * 1000 / (us / 1000)))
note "police pkts_rate 1000: $rate packets/s passed of $((sent * 1000 / (us / 1000)))"
near "$rate" 1000 20 || fail "the rate is $rate"
flush

# One of ten to the kernel, all to the other function.
rule "${rep[1]}" protocol all prio 1 flower skip_sw action mirred egress redirect dev "${rep[0]}"
rule "${rep[0]}" protocol arp prio 2 flower skip_sw action mirred egress redirect dev "${rep[1]}"
rule "${rep[0]}" protocol ip prio 3 flower skip_sw action sample rate 10 group 7 trunc 60 action mirred egress redirect dev "${rep[1]}"
reaches "in_vf 0" 10.9.1.2
psample_count 7 60 >/tmp/samples 2>&1 &
sampling=$!
within 20 grep -q listening /tmp/samples
in_vf 0 ping -q -c 500 -i 0.01 -W 5 10.9.1.2 >/tmp/ping || fail "no way: $(cat /tmp/ping)"
has_samples() { (($(grep -c '^sample' /tmp/samples) >= 45)); }
within 20 has_samples
kill "$sampling"
wait "$sampling" || fail "samples: $(cat /tmp/samples)"
note "$(tail -n 1 /tmp/samples)"
samples=$(awk 'END { print $1 }' /tmp/samples)
near "$samples" 50 10 || fail "$samples samples of 500 packets, one of ten each"
flush

functions_down 2
for dev in "$port" "${rep[@]}"; do tc qdisc del dev "$dev" ingress || fail "$dev"; done
to_legacy
complaints=$(switchdev_complaints)
[[ -z $complaints ]] || fail "the kernel complained: $complaints"
