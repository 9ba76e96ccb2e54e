# SPDX-License-Identifier: BSD-3-Clause
# modules: build-mlx5-modules
# boot: --hca id=left,generation=connectx6dx,options=crypto=on,cable=right --hca id=right --mem 2G --debian 13
# ask: -
# IPsec packet offload: at one end of the cable ("offload packet") the card makes ESP of packets and packets of ESP, numbers them, and knows
# which have come; at the other end the kernel does. The driver has it from Linux 6.2 on, iproute2 from 6.2.
mark_kernel_log
two_sides
watch_works
objects_before=$(general_objects)

key=0x000102030405060708090a0b0c0d0e0fa1b2c3d4
longer=0x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fa1b2c3d4
wrong=0x0001020304050607ff090a0b0c0d0e0fa1b2c3d4
# of_direction {in,out} OPTIONS...: those that a state of that direction may have: what is received has a window, what is sent numbers.
of_direction() {
  local direction=$1
  shift
  while (($# > 0)); do
    case $1 in
      limit) echo "$1 $2 $3" && shift ;;
      replay-oseq*) [[ $direction == in ]] || echo "$1 $2" ;;
      replay-*) [[ $direction == out ]] || echo "$1 $2" ;;
      *) echo "$1 $2" ;;
    esac
    shift 2
  done
}
# state SIDE FROM MODE KEY [OPTIONS...]: at that side, the state for what side FROM sends.
state() {
  local side=$1 from=$2 mode=$3 with=$4 offload=() said direction=in options
  shift 4
  options="$*"
  if ((side == 0)); then
    if ((from == 0)); then direction=out; fi
    offload=(offload packet dev "$card" dir "$direction")
    options=$(of_direction "$direction" "$@")
  fi
  # shellcheck disable=SC2086 # several options
  said=$(ip -n "side$side" xfrm state add src "${address[from]}" dst "${address[1 - from]}" proto esp spi "0x10$from" reqid 1 mode "$mode" \
    aead 'rfc4106(gcm(aes))' "$with" 128 $options "${offload[@]}" 2>&1) || fail "ip xfrm state add, side $side, from $from, $mode $options: $said"
}
policy() {
  local side=$1 from=$2 dir=$3 mode=$4 offload=() said
  if ((side == 0)); then offload=(offload packet dev "$card"); fi
  said=$(ip -n "side$side" xfrm policy add src "${address[from]}" dst "${address[1 - from]}" dir "$dir" "${offload[@]}" \
    tmpl src "${address[from]}" dst "${address[1 - from]}" proto esp reqid 1 mode "$mode" 2>&1) || fail "ip xfrm policy add, side $side, $dir: $said"
}
# secure MODE FAMILY KEY [OPTIONS...]
secure() {
  local mode=$1 family=$2 with=$3 side from
  shift 3
  if ((family == 6)); then address=(fd09::1 fd09::2); else address=(10.9.0.1 10.9.0.2); fi
  for side in 0 1; do for from in 0 1; do state "$side" "$from" "$mode" "$with" "$@"; done; done
  for side in 0 1; do policy "$side" "$side" out "$mode" && policy "$side" $((1 - side)) in "$mode"; done
}
insecure() {
  for side in 0 1; do ip -n "side$side" xfrm policy flush && ip -n "side$side" xfrm state flush || fail "flush"; done
  within 30 none_left
}
done_by_card() { card_counter "ipsec_$1"; }
say_state() {
  ip -n side0 -s xfrm state
  ip -n side1 -s xfrm state
  in_side 0 ethtool -S "$card" | grep ipsec
  in_side 1 cat /proc/net/xfrm_stat | grep -v ' 0$'
}
# What the driver says that the states of side 0 have refused: "failed" (authentication), "replay".
refused() { ip -n side0 -s xfrm state | awk -v what="$1" '/replay-window .* failed/ { for (i = 1; i < NF; i++) if ($i == what) n += $(i + 1) } END { print n + 0 }'; }
# The driver reads counters once in a second.
five_failed() { (($(refused failed) == 5)); }
five_replayed() { (($(refused replay) == 5)); }
drops() { in_side 0 ethtool -S "$card" | awk '$1 ~ /^ipsec_rx_drop/ { n += $2 } END { print n + 0 }'; }

everything() {
  local encrypted decrypted sent received
  (($(general_objects) == objects_before + 4)) || fail "$1: $(ask objects left)"
  encrypted=$(done_by_card encrypted) decrypted=$(done_by_card decrypted)
  sent=$(counter ipsec_tx_pkts) received=$(counter ipsec_rx_pkts)
  in_side 0 ping -c 3 -s 1000 -i 0.2 -W 5 "${address[1]}" >/tmp/ping 2>&1 || fail "$1: ping: $(cat /tmp/ping; say_state)"
  watched esp text 1 TCP 5000
  watched esp text 0 UDP 1000
  talk 1 -n 4M
  talk 0 -n 2M
  talk 1 -u -b 4M -n 300K -l 1200
  encrypted=$(($(done_by_card encrypted) - encrypted)) decrypted=$(($(done_by_card decrypted) - decrypted))
  sent=$(($(counter ipsec_tx_pkts) - sent)) received=$(($(counter ipsec_rx_pkts) - received))
  note "$1: encrypted $encrypted, decrypted $decrypted packets; the driver counts $sent, $received"
  ((encrypted > 1500 && decrypted > 800)) || fail "$1: the card has not done it: $(say_state)"
  ((sent >= encrypted - 50 && received >= decrypted - 50)) || fail "$1: ipsec_tx_pkts $sent, ipsec_rx_pkts $received"
  ip -n side0 xfrm state | grep -q "crypto offload parameters: dev $card dir out mode packet" || fail "$1: not offloaded: $(ip -n side0 xfrm state)"
  (($(drops) == 0)) || fail "$1: $(say_state)"
}

for mode in transport tunnel; do
  for family in 4 6; do
    secure "$mode" "$family" "$key"
    everything "$mode, IPv$family"
    insecure
  done
done
secure transport 4 "$longer"
everything "key of 256 bits"
insecure

# Extended sequence numbers, over the wrap of their low half.
secure transport 4 "$key" flag esn replay-window 64 replay-oseq 0xffffff00 replay-seq 0xffffff00 replay-oseq-hi 2 replay-seq-hi 2
everything "extended sequence numbers"
insecure

# What is of another key, and what has come before.
none_received() { ! in_side 1 ping -c 5 -i 0.2 -W 1 "${address[0]}" >/dev/null 2>&1; }
again() { ip -n side1 xfrm state delete src 10.9.0.2 dst 10.9.0.1 proto esp spi 0x101 && state 1 1 transport "$@" || fail "again $*"; }
secure transport 4 "$key" flag esn replay-window 32
in_side 1 ping -c 3 -i 0.2 -W 5 10.9.0.1 >/dev/null || fail "before: $(say_state)"
before=$(done_by_card auth_failed)
again "$wrong" flag esn replay-window 32 replay-oseq 100
none_received || fail "a packet of another key was accepted"
(($(done_by_card auth_failed) - before == 5)) || fail "of another key: $(say_state)"
within 30 five_failed
again "$key" flag esn replay-window 32 replay-oseq 200
in_side 1 ping -c 3 -i 0.2 -W 5 10.9.0.1 >/dev/null || fail "the right key, again: $(say_state)"
before=$(done_by_card replayed)
again "$key" flag esn replay-window 32 replay-oseq 10
none_received || fail "packets were accepted that have come before"
(($(done_by_card replayed) - before == 5)) || fail "replayed: $(say_state)"
within 30 five_replayed
insecure

# A lifetime: the card tells that it is over, and the kernel ends the state.
secure transport 4 "$key" limit packet-soft 10 limit packet-hard 20
if in_side 0 ping -c 30 -i 0.2 -W 1 10.9.0.2 >/tmp/ping 2>&1; then note "ping: some were answered"; fi
expired() { ! ip -n side0 xfrm state list dir out 2>/dev/null | grep -q "spi 0x00000100" || ! ip -n side0 xfrm state | grep -q "spi 0x00000100"; }
within 30 expired
note "of 30 packets: $(grep received /tmp/ping)"
answered=$(sed -nE 's/.* ([0-9]+) received.*/\1/p' /tmp/ping)
((answered >= 10 && answered <= 20)) || fail "$answered packets got through, with a limit of 20: $(say_state)"
insecure
within 60 sides_reach
no_complaints "IPsec packet offload"
