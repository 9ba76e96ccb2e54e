# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,id=left,cable=right --hca link=eth,id=right,options=generation=connectx7 --smp 2
# The card puts TCP segments together as they arrive: large receive offload (ethtool's lro), and, where the driver has it, headers apart
# from data (rx-gro-hw). A file that nobody can guess goes from one card to another, which is in the name space "far", by IPv4 and IPv6,
# with MTU 1500 and 9000, in order and not: it arrives as it was, the driver's counters say what the card has merged, and the stack sees
# fewer packets than there were segments.
mark_kernel_log
near=$(net_of "/sys/bus/pci/devices/$(hca_addresses | head -n 1)")
far=$(net_of "/sys/bus/pci/devices/$(hca_addresses | tail -n 1)")
ip netns add far && ip link set "$far" netns far || fail "name space"
in_far() { ip netns exec far "$@"; }
carrier() { $1 grep -qs 1 "/sys/class/net/$2/carrier"; }
ip link set "$near" up && ip address add 10.9.1.1/24 dev "$near" && ip address add fd00:9::1/64 dev "$near" nodad || fail "$near"
in_far ip link set lo up && in_far ip link set "$far" up && in_far ip address add 10.9.1.2/24 dev "$far" &&
  in_far ip address add fd00:9::2/64 dev "$far" nodad || fail "$far"
# The driver has these offloads for striding queues only. The kernel puts together what the card has left apart, if it may.
in_far ethtool --set-priv-flags "$far" rx_striding_rq on && in_far ethtool -K "$far" gro off || fail "rx_striding_rq, gro"
within 30 carrier "" "$near"
within 30 carrier in_far "$far"
head -c 12000000 /dev/urandom >/tmp/file
sum=$(sha256sum </tmp/file)
both=(10.9.1.2 '[fd00:9::2]')

counter() { in_far ethtool -S "$far" | awk -v name="$1:" '$1 == name { print $2 }'; }
# What IP has got: packets of whatever size.
received() { in_far awk '/^Ip: [0-9]/ {v4 = $4} $1 == "Ip6InReceives" {v6 = $2} END {print v4 + v6}' /proc/net/snmp /proc/net/snmp6; }
# across WHAT ADDRESS...: the file to each; says in $packets how many IP got of them, in $bytes how many bytes the card has merged.
across() {
  local what=$1 address server
  shift
  packets=$(received) bytes=$(counter "rx_${kind}_bytes")
  for address in "$@"; do
    rm -f /tmp/got
    in_far timeout 100 socat -u TCP6-LISTEN:5300,reuseaddr,ipv6only=0 CREATE:/tmp/got &
    server=$!
    within 30 listens 5300 in_far
    timeout 100 socat -u FILE:/tmp/file "TCP:$address:5300" || fail "socat to $address"
    wait $server || fail "the receiver of $address"
    [[ $(sha256sum </tmp/got) == "$sum" ]] || fail "$feature, $what: the file arrived at $address as something else"
  done
  packets=$(($(received) - packets)) bytes=$(($(counter "rx_${kind}_bytes") - bytes))
  note "$feature, $what: $packets packets, $bytes bytes merged"
}
has_merged() { (($(counter "rx_${kind}_packets") > $1)); }
has_received() { (($(received) > $1 + 50)); }
set_feature() { in_far ethtool -K "$far" "$feature" "$1" && [[ $(in_far ethtool -k "$far") == *"$shown: $1"* ]] || fail "$feature $1"; }

# merges FEATURE AS_ETHTOOL_SHOWS_IT KIND: ethtool's feature, and what the driver's counters of it are named by.
merges() {
  local client server before
  feature=$1 shown=$2 kind=$3
  across off "${both[@]}"
  ((bytes == 0)) || fail "$feature is off, and the card merges"
  ((packets > 15000)) || fail "only $packets packets: were they not of 1500 bytes?"
  set_feature on
  across on "${both[@]}"
  ((bytes > 20000000 && packets < 5000)) || fail "$feature: $packets packets, $bytes bytes merged"
  # Turned off and on while segments come.
  in_far timeout 300 iperf3 -s -1 >/tmp/server 2>&1 &
  server=$!
  within 30 listens 5201 in_far
  timeout 300 iperf3 -c 10.9.1.2 -t 1000 >/tmp/client 2>&1 &
  client=$!
  for _ in 1 2 3; do
    set_feature off
    packets=$(received)
    within 60 has_received "$packets"
    before=$(counter "rx_${kind}_packets")
    set_feature on
    within 60 has_merged "$before"
  done
  alive $client $server || fail "iperf3, with $feature off and on: $(cat /tmp/client /tmp/server)"
  kill $client $server
  wait $client $server
  note "$feature off and on under load"
  # Losses, and segments that overtake others.
  tc qdisc add dev "$near" root netem loss 0.5% delay 200us reorder 90% gap 5 || fail "netem"
  across "loss and reordering" 10.9.1.2
  tc qdisc del dev "$near" root || fail "tc"
  mtu 9000
  across "MTU 9000" "${both[@]}"
  # How many meet within the card's time depends on how fast this guest makes them.
  ((bytes > 100000)) || fail "MTU 9000: $packets packets, $bytes bytes merged"
  set_feature off
  across "MTU 9000, off again" 10.9.1.2
  ((bytes == 0)) || fail "$feature is off again, and the card merges"
  mtu 1500
}
mtu() {
  ip link set "$near" mtu "$1" && in_far ip link set "$far" mtu "$1" || fail "mtu $1"
  within 30 carrier "" "$near"
  within 30 carrier in_far "$far"
}

modprobe sch_netem || fail "netem"
# What TCP has seen of losses would make its next bursts short.
echo 1 >/proc/sys/net/ipv4/tcp_no_metrics_save
merges lro large-receive-offload lro
if [[ $(in_far ethtool -k "$far") == *'rx-gro-hw: off [fixed]'* ]]; then
  note "this driver does not offer rx-gro-hw"
else
  merges rx-gro-hw rx-gro-hw gro
fi
no_complaints "receive offloads"
