# SPDX-License-Identifier: BSD-3-Clause
# modules: build-mlx5-modules
# boot: --hca id=left,generation=connectx6dx,options=crypto=on,cable=right --hca id=right --mem 2G
# ask: -
# IPsec (ESP) whose encryption the card does: at one end of the cable "offload dev", at the other one the kernel itself, which so checks
# what the card makes, and makes what the card has to understand. The drivers of Debian's kernels are built without it.
mark_kernel_log
two_sides
for feature in esp-hw-offload tx-esp-segmentation esp-tx-csum-hw-offload; do
  in_side 0 ethtool -k "$card" | grep -q "^$feature: on" || fail "$feature: $(in_side 0 ethtool -k "$card" | grep esp)"
  in_side 1 ethtool -k "${interface[1]}" | grep -q "^$feature: off" || fail "the other card has $feature"
done

key=0x000102030405060708090a0b0c0d0e0fa1b2c3d4
longer=0x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fa1b2c3d4
wrong=0x0001020304050607ff090a0b0c0d0e0fa1b2c3d4
address=(10.9.0.1 10.9.0.2)
# state SIDE FROM MODE KEY [OPTIONS...]: at that side, the state for what side FROM sends.
state() {
  local side=$1 from=$2 mode=$3 with=$4 offload=()
  shift 4
  if ((side == 0)); then offload=(offload dev "$card" dir "$( ((from == 0)) && echo out || echo in)"); fi
  ip -n "side$side" xfrm state add src "${address[from]}" dst "${address[1 - from]}" proto esp spi "0x10$from" reqid 1 mode "$mode" \
    aead 'rfc4106(gcm(aes))' "$with" 128 "$@" "${offload[@]}" || fail "ip xfrm state add, side $side, from $from, $mode $*"
}
policies() {
  local side mode=$1 to
  for side in 0 1; do
    to=$((1 - side))
    ip -n "side$side" xfrm policy add src "${address[side]}" dst "${address[to]}" dir out tmpl src "${address[side]}" dst "${address[to]}" proto esp reqid 1 mode "$mode" &&
      ip -n "side$side" xfrm policy add src "${address[to]}" dst "${address[side]}" dir in tmpl src "${address[to]}" dst "${address[side]}" proto esp reqid 1 mode "$mode" || fail "ip xfrm policy add"
  done
}
# secure MODE FAMILY KEY [OPTIONS...]
secure() {
  local mode=$1 family=$2 with=$3 side from
  shift 3
  if ((family == 6)); then address=(fd09::1 fd09::2); else address=(10.9.0.1 10.9.0.2); fi
  for side in 0 1; do for from in 0 1; do state "$side" "$from" "$mode" "$with" "$@"; done; done
  policies "$mode"
}
objects_before=$(general_objects)
insecure() {
  for side in 0 1; do ip -n "side$side" xfrm policy flush && ip -n "side$side" xfrm state flush || fail "flush"; done
  within 30 none_left
}
done_by_card() { card_counter "ipsec_$1"; }
statistics() { in_side "$1" ip -s xfrm state; }
# How many packets the states of side 0 did not accept.
failed() { statistics 0 | awk '/replay-window .* failed/ { n += $NF } END { print n + 0 }'; }

say_state() { statistics 0; statistics 1; }
watch_works

# everything WHAT: with the states that there are. All that side 0 sends and receives by them passes the card's engine.
everything() {
  local encrypted decrypted large frames may_fail=${2:-0}
  (($(general_objects) == objects_before + 4)) || fail "$1: $(ask objects left)"
  encrypted=$(done_by_card encrypted) decrypted=$(done_by_card decrypted)
  large=$(($(counter tx_tso_packets) + $(counter tx_tso_inner_packets))) frames=$(counter tx_packets_phy)
  in_side 0 ping -c 3 -s 1000 -i 0.2 -W 5 "${address[1]}" >/tmp/ping 2>&1 || fail "ping: $(cat /tmp/ping; statistics 0)"
  watched esp text 1 TCP 5000
  watched esp text 0 UDP 1000
  talk 1 -n 4M
  talk 0 -n 2M
  talk 1 -u -b 4M -n 300K -l 1200
  large=$(($(counter tx_tso_packets) + $(counter tx_tso_inner_packets) - large))
  encrypted=$(($(done_by_card encrypted) - encrypted)) decrypted=$(($(done_by_card decrypted) - decrypted))
  frames=$(($(counter tx_packets_phy) - frames))
  note "$1: $frames frames, encrypted $encrypted, decrypted $decrypted packets, $large large sends"
  # iperf3 ends when it has written its bytes, not when they have arrived. Some frames are no IP.
  ((encrypted > 1500 && encrypted >= frames - 30 && decrypted > 800)) || fail "$1: the card has not done it"
  ((large > 30)) || fail "$1: no large sends"
  (($(failed) <= may_fail)) || fail "$1: $(statistics 0)"
  statistics 0 | grep -q "crypto offload parameters: dev $card dir out" || fail "$1: not offloaded: $(statistics 0)"
  in_side 0 ethtool -S "$card" | awk '$1 ~ /^ipsec_.*drop/ && $2 != 0 { print; bad = 1 } END { exit bad }' || fail "$1: the driver has dropped packets"
}

for mode in transport tunnel; do
  for family in 4 6; do
    secure "$mode" "$family" "$key" replay-window 32
    everything "$mode, IPv$family"
    # Datagrams that are cut into fragments before or after.
    text 1 UDP 4000
    text 0 UDP 4000
    insecure
  done
done
secure tunnel 4 "$longer" replay-window 32
everything "key of 256 bits"
insecure

# Extended sequence numbers, shortly before their low half wraps.
secure transport 4 "$key" flag esn replay-window 64 replay-oseq 0xffffff00 replay-seq 0xffffff00 replay-oseq-hi 2 replay-seq-hi 2
# The driver moves the card's window when the first packet from behind the wrap has come; one from before it that is late then fails.
everything "extended sequence numbers" 2
statistics 0 | grep -qE "seq-hi 0x3|oseq-hi 0x3" || fail "they have not wrapped: $(statistics 0)"
insecure

# What is not of the key.
none_received() { ! in_side 1 ping -c 5 -i 0.2 -W 1 "${address[0]}" >/dev/null 2>&1; }
secure transport 4 "$key" replay-window 32
before=$(done_by_card auth_failed)
ip -n side1 xfrm state delete src 10.9.0.2 dst 10.9.0.1 proto esp spi 0x101 || fail "delete"
state 1 1 transport "$wrong" replay-window 32
none_received || fail "a packet of another key was accepted"
(($(done_by_card auth_failed) - before == 5)) || fail "of another key: the card has found $(($(done_by_card auth_failed) - before)) of 5"
(($(failed) == 5)) || fail "of another key: $(statistics 0)"
ip -n side1 xfrm state delete src 10.9.0.2 dst 10.9.0.1 proto esp spi 0x101 || fail "delete"
state 1 1 transport "$key" replay-window 32 replay-oseq 100
in_side 1 ping -c 2 -i 0.2 -W 5 10.9.0.1 >/dev/null || fail "the right key, again"

# The kernel takes the states off an interface that goes down.
in_side 0 ip link set "$card" down && in_side 0 ip link set "$card" up || fail "down and up"
within 30 none_left
insecure
ping_again() { in_side 0 ping -c 1 -W 1 10.9.0.2 >/dev/null 2>&1; }
within 60 ping_again
secure transport 4 "$key" replay-window 32
within 60 ping_again
(($(general_objects) == objects_before + 4)) || fail "$(ask objects left)"
insecure
no_complaints "IPsec"
