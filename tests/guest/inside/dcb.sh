# SPDX-License-Identifier: BSD-3-Clause
# boot: --lockstep --hca link=eth,id=left,cable=right,options=port.rate_gbps=10 --hca link=eth,id=right,options=port.rate_gbps=10
# Data center bridging by iproute2's dcb: what is set is shown, and acts: shares of traffic classes that have the port full, strict ones,
# their largest rates, in exact time; priority pause, receive buffers, trust in DSCP.
mark_kernel_log
near=$(net_of "$pf")
far=$(net_of "/sys/bus/pci/devices/$(hca_addresses | tail -n 1)")
ours=$(rdma_of "$pf")
theirs=$(rdma_of "/sys/bus/pci/devices/$(hca_addresses | tail -n 1)")
ip netns add far && ip link set "$far" netns far || fail "name space"
ip link set "$near" up && ip address add 10.9.1.1/24 dev "$near" || fail "$near"
in_far ip link set "$far" up && in_far ip address add 10.9.1.200/24 dev "$far" || fail "$far"
for device in "$ours" "$theirs"; do within 60 has_v2_gid "$device"; done

# does COMMAND...; shows PATTERN COMMAND...
does() {
  local text
  text=$("$@" 2>&1) || fail "$*: status $?: $text: $(dmesg | tail -n 5)"
}
shows() {
  local want=$1 text
  shift
  text=$("$@" 2>&1) || fail "$*: status $?: $text"
  grep -Eq -- "$want" <<<"$text" || fail "$* does not show '$want':"$'\n'"$text"
  note "ok: $*"
}

shows 'ets-cap 8' dcb ets show dev "$near"
shows 'host.*ieee' dcb dcbx show dev "$near"
does dcb dcbx set dev "$near" host ieee

# Priority pause: the driver takes the link down and up again.
does dcb pfc set dev "$near" prio-pfc all:off 3:on
shows '2:off 3:on 4:off' dcb pfc show dev "$near"
within 30 grep -q 1 "/sys/class/net/$near/carrier"

# Buffers, of which one does without loss.
shows 'buffer-size 0:128Kb' dcb buffer show dev "$near"
does dcb buffer set dev "$near" buffer-size all:0 0:98304 1:65536
does dcb buffer set dev "$near" prio-buffer all:0 3:1
shows '0:0 1:0 2:0 3:1 4:0' dcb buffer show dev "$near" prio-buffer
shows 'buffer-size 0:96Kb 1:64Kb' dcb buffer show dev "$near" buffer-size
# More than there is; dcb does not say by its status that the driver has refused.
dcb buffer set dev "$near" buffer-size 0:1048576
shows 'buffer-size 0:96Kb 1:64Kb' dcb buffer show dev "$near" buffer-size
does dcb pfc set dev "$near" prio-pfc all:off
within 30 grep -q 1 "/sys/class/net/$near/carrier"

# Trust: frames count for the priority of their DSCP.
in_priority() { ethtool -S "$near" | awk -v name="tx_prio$1_packets:" '$1 == name { print $2 }'; }
within 30 ping -q -c 1 -W 2 10.9.1.200
before=$(in_priority 5)
does dcb app add dev "$near" dscp-prio 46:5
shows 'dscp-prio.*(EF|46):5' dcb app show dev "$near" dscp-prio
does ping -q -c 7 -i 0.05 -W 2 -Q 0xb8 10.9.1.200
(($(in_priority 5) >= before + 7)) || fail "of priority 5 $before packets, then $(in_priority 5)"
does dcb app del dev "$near" dscp-prio 46:5
between=$(in_priority 5)
does ping -q -c 3 -i 0.05 -W 2 -Q 0xb8 10.9.1.200
(($(in_priority 5) == between)) || fail "packets count for their DSCP's priority without trust"

# A client's rate, Gb/s, with headers: RDMA writes of 64 KiB in packets of 1024 bytes.
# shellcheck disable=SC2016 # awk's
gbits_of_all='$1 == 65536 { print $4 * (65536 + 64 * 62 + 16) / 65536 }'
declare -a write=(ib_write_bw --report_gbits -m 1024 -s 65536 -F)
# server PORT ARGS...: waits for its client; sets $pid.
server() {
  local at=$1
  shift
  timeout -k 5 200 "${write[@]}" "$@" -d "$theirs" -x "$(path_gid_of "$theirs")" -p "$at" >"/tmp/server.$at" 2>&1 &
  pid=$!
  until_listens "$at" "$pid" || fail "server: $(cat "/tmp/server.$at")"
}
client() {
  local at=$1
  shift
  timeout -k 5 200 "${write[@]}" "$@" -d "$ours" -x "$(path_gid_of "$ours")" -p "$at" localhost >"/tmp/client.$at" 2>&1
}
# beside SL OTHER MESSAGES: what writes of service level SL get while those of OTHER want all.
beside() {
  local background servers
  server 18711 -n 400000 --sl "$2"
  servers=$pid
  client 18711 -n 400000 --sl "$2" &
  background=$!
  sleep 0.3
  kill -0 $background || fail "the other one does not run: $(cat /tmp/client.18711)"
  server 18712 -n "$3" --sl "$1"
  client 18712 -n "$3" --sl "$1" || fail "client: $(cat /tmp/client.18712 /tmp/server.18712)"
  wait "$pid"
  kill -0 $background || fail "the other one has not run all the time: $(cat /tmp/client.18711)"
  kill $background "$servers"
  wait $background "$servers"
  awk "$gbits_of_all" /tmp/client.18712
}
# is RATE GBITS WHAT: within 3 %
is() {
  note "$3: $1 Gb/s"
  awk -v r="$1" -v want="$2" 'BEGIN { exit !(r > want * 0.97 && r < want * 1.03) }' || fail "$3: $1 Gb/s, not $2"
}
# Of the port's 10 Gb/s each frame's preamble and gap are taken: 20 bytes of 1106.
whole=9.82

does dcb ets set dev "$near" prio-tc 0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7 tc-tsa all:strict 0:ets 3:ets tc-bw all:0 0:25 3:75
shows '0:ets 1:strict 2:strict 3:ets' dcb ets show dev "$near" tc-tsa
shows '0:25 1:0 2:0 3:75' dcb ets show dev "$near" tc-bw
is "$(beside 3 0 5000)" "$(awk "BEGIN { print $whole * 0.75 }")" "three quarters"
is "$(beside 0 3 1800)" "$(awk "BEGIN { print $whole * 0.25 }")" "one quarter"
is "$(beside 5 3 5000)" $whole "strict beside weighted"
# dcb gives bytes a second, and the driver takes them for kbit/s: 2 Gb/s.
does dcb maxrate set dev "$near" tc-maxrate 4:16Mbit
shows '4:16Mbit' dcb maxrate show dev "$near"
server 18712 -n 1500 --sl 4
client 18712 -n 1500 --sl 4 || fail "client: $(cat /tmp/client.18712 /tmp/server.18712)"
is "$(awk "$gbits_of_all" /tmp/client.18712)" 2 "a class of 2 Gb/s"
does dcb maxrate set dev "$near" tc-maxrate 4:0
no_complaints "data center bridging"
