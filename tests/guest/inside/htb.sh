# SPDX-License-Identifier: BSD-3-Clause
# boot: --lockstep --hca link=eth,id=left,cable=right --hca link=eth,id=right
# Queues in trees of rates, made by the card: HTB with offload, and mqprio's priorities; TCP's rates in exact time, in which the guest's
# processor makes some 175 Mb/s.
mark_kernel_log
near=$(net_of "$pf")
far=$(net_of "/sys/bus/pci/devices/$(hca_addresses | tail -n 1)")
ip netns add far && ip link set "$far" netns far || fail "name space"
ip link set "$near" up && ip address add 10.9.1.1/24 dev "$near" || fail "$near"
in_far ip link set lo up && in_far ip link set "$far" up && in_far ip address add 10.9.1.200/24 dev "$far" || fail "$far"
within 30 ping -q -c 1 -W 2 10.9.1.200
does() {
  local text
  text=$("$@" 2>&1) || fail "$*: status $?: $text: $(dmesg | tail -n 5)"
  note "ok: $*"
}
# As limits count them: segments of 1448 bytes in frames of 1514 and their FCS.
per_payload=1.0483
# serve PORT; flow PORT BYTES: by TCP port; prints Mb/s of frames.
serve() {
  in_far timeout 100 iperf3 -s -1 -p "$1" >"/tmp/server.$1" 2>&1 &
  within 30 listens "$1" in_far
}
flow() {
  timeout 100 iperf3 -f k -c 10.9.1.200 -p "$1" -n "$2" >"/tmp/client.$1" 2>&1 || fail "iperf3: $(cat "/tmp/client.$1" "/tmp/server.$1")"
  awk -v k=$per_payload '/receiver/ { for (i = 2; i <= NF; i++) if ($i == "Kbits/sec") rate = $(i - 1) } END { print rate * k / 1000 }' "/tmp/client.$1"
}
# is MBITS WANTED WHAT
is() {
  note "$3: $1 Mb/s"
  awk -v r="$1" -v want="$2" 'BEGIN { exit !(r > want * 0.97 && r < want * 1.03) }' || fail "$3: $1 Mb/s, not $2"
}

does ethtool -K "$near" hw-tc-offload on
does tc qdisc replace dev "$near" root handle 1: htb offload
does tc class add dev "$near" parent 1: classid 1:1 htb rate 90mbit ceil 90mbit
does tc class add dev "$near" parent 1:1 classid 1:10 htb rate 30mbit ceil 30mbit
does tc class add dev "$near" parent 1:1 classid 1:20 htb rate 40mbit ceil 90mbit
does tc class add dev "$near" parent 1:1 classid 1:30 htb rate 20mbit ceil 90mbit
does tc qdisc add dev "$near" clsact
for class in 10 20 30; do
  does tc filter add dev "$near" egress protocol ip flower ip_proto tcp dst_port 52$class action skbedit priority 1:$class
done
tc qdisc show dev "$near" | grep -q 'htb.*offload' || fail "HTB is not offloaded: $(tc qdisc show dev "$near")"
serve 5210
is "$(flow 5210 4M)" 30 "a leaf of 30 Mb/s"
serve 5220
is "$(flow 5220 12M)" 90 "a leaf of 40 Mb/s that may have 90, alone"
does tc class change dev "$near" parent 1:1 classid 1:10 htb rate 15mbit ceil 15mbit
serve 5210
is "$(flow 5210 2M)" 15 "the leaf, changed to 15 Mb/s"
# A leaf that becomes a class of classes, and a leaf again.
does tc class add dev "$near" parent 1:20 classid 1:21 htb rate 10mbit ceil 20mbit
does tc filter add dev "$near" egress protocol ip flower ip_proto tcp dst_port 5221 action skbedit priority 1:21
serve 5221
is "$(flow 5221 3M)" 20 "a leaf below what was one"
does tc class del dev "$near" classid 1:21
serve 5220
is "$(flow 5220 12M)" 90 "which is one again"
# As many levels as HTB has.
below=30
for class in 31 32 33 34 35 36; do
  does tc class add dev "$near" parent 1:$below classid 1:$class htb rate 10mbit ceil 25mbit
  below=$class
done
does tc filter add dev "$near" egress protocol ip flower ip_proto tcp dst_port 5236 action skbedit priority 1:36
serve 5236
is "$(flow 5236 4M)" 25 "a leaf of the eighth level"
for class in 36 35 34 33 32 31; do does tc class del dev "$near" classid 1:$class; done
does tc class del dev "$near" classid 1:30
does tc qdisc del dev "$near" root
does tc qdisc del dev "$near" clsact
serve 5210
free=$(flow 5210 16M)
note "without HTB: $free Mb/s"
awk -v r="$free" 'BEGIN { exit !(r > 110) }' || fail "without HTB no more than $free Mb/s"

# Priorities: a queue for each, in a traffic class of its own, with its largest rate. Frames find their class by their VLAN tag.
does tc qdisc replace dev "$near" root handle 1: mqprio num_tc 8 map 0 1 2 3 4 5 6 7 hw 1
# dcb gives bytes a second, and the driver takes them for kbit/s: 100 Mb/s.
does dcb maxrate set dev "$near" tc-maxrate 3:800Kbit
does ip link add link "$near" name tagged type vlan id 5 egress-qos-map 0:3
does ip link set tagged up && does ip address add 10.9.5.1/24 dev tagged
in_far ip link add link "$far" name tagged type vlan id 5 && in_far ip link set tagged up && in_far ip address add 10.9.5.200/24 dev tagged || fail "VLAN"
within 30 ping -q -c 1 -W 2 10.9.5.200
serve 5210
timeout 100 iperf3 -f k -c 10.9.5.200 -p 5210 -n 12M >/tmp/client 2>&1 || fail "iperf3: $(cat /tmp/client)"
is "$(awk -v k=$per_payload '/receiver/ { print $7 * k * 1522 / 1518 / 1000 }' /tmp/client)" 100 "priority 3 in a class of 100 Mb/s"
ethtool -S "$near" | grep -E 'tx_prio3_packets: [1-9][0-9]{3}' || fail "nothing was sent of priority 3: $(ethtool -S "$near" | grep tx_prio)"
does dcb maxrate set dev "$near" tc-maxrate 3:0
does tc qdisc del dev "$near" root
# The kernel finds a quantum too big that it does not let anybody choose with offload.
text=$(kernel_complaints | grep -v 'HTB: quantum of class')
[[ -z $text ]] || fail "the kernel complained: $text"
