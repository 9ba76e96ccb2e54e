# SPDX-License-Identifier: BSD-3-Clause
# modules: build-mlx5-modules
# boot: --hca id=left,generation=connectx6dx,options=crypto=on,cable=right --hca id=right --mem 2G
# ask: -
# MACsec (IEEE 802.1AE) by the card: at one end of the cable "offload mac", at the other one the kernel itself, which so checks what the card
# makes, and makes what the card has to understand. The drivers of Debian's kernels are built without it.
mark_kernel_log
two_sides
in_side 0 ethtool -k "$card" | grep -q "^macsec-hw-offload: on" || fail "$(in_side 0 ethtool -k "$card" | grep macsec)"
in_side 1 ethtool -k "${interface[1]}" | grep -q "^macsec-hw-offload: off" || fail "the other card has macsec-hw-offload"
watch_works
objects_before=$(general_objects)

key=000102030405060708090a0b0c0d0e0f
longer=${key}101112131415161718191a1b1c1d1e1f
wrong=0f0102030405060708090a0b0c0d0e0f
salt=a0b1c2d3e4f506172839405b
mac=()
for side in 0 1; do mac[side]=$(in_side "$side" cat "/sys/class/net/${interface[side]}/address"); done

# The associations: of an and number $first for what each side sends, with key $with; $rx_pn is the lowest that is accepted.
association() {
  if [[ $cipher == *xpn* ]]; then
    echo "sa $1 xpn $2 salt $salt ssci $((3 + $3))"
  else
    echo "sa $1 pn $2"
  fi
}
# transmits SIDE AN PN KEY, receives SIDE AN PN KEY
transmits() {
  # shellcheck disable=SC2046 # several words
  in_side "$1" ip macsec add macsec0 tx $(association "$2" "$3" "$1") on key 0"$2" "$4" || fail "ip macsec add tx, side $1: $(dmesg | tail -n 3)"
}
receives() {
  # shellcheck disable=SC2046
  in_side "$1" ip macsec add macsec0 rx port 1 address "${mac[1 - $1]}" $(association "$2" "$3" $((1 - $1))) on key 0"$2" "$4" ||
    fail "ip macsec add rx, side $1: $(dmesg | tail -n 3)"
}
# secure CIPHER KEY [PN [OPTIONS...]]: interfaces macsec0 at both sides.
secure() {
  local with=$2 pn=${3:-1} side
  cipher=$1
  shift $(($# > 3 ? 3 : $#))
  for side in 0 1; do
    in_side "$side" ip link add link "${interface[side]}" macsec0 type macsec port 1 cipher "$cipher" encrypt on "$@" || fail "ip link add, side $side"
    if ((side == 0)); then in_side 0 ip macsec offload macsec0 mac || fail "ip macsec offload: $(dmesg | tail -n 3)"; fi
    transmits "$side" 0 "$pn" "$with"
    in_side "$side" ip macsec add macsec0 rx port 1 address "${mac[1 - side]}" || fail "ip macsec add rx"
    receives "$side" 0 "$pn" "$with"
    in_side "$side" ip address add "10.10.0.$((side + 1))/24" dev macsec0 && in_side "$side" ip address add "fd10::$((side + 1))/64" dev macsec0 nodad &&
      in_side "$side" ip link set macsec0 up || fail "macsec0, side $side"
  done
  address=(10.10.0.1 10.10.0.2)
  in_side 0 ip macsec show | grep -q "offload: mac" || fail "not offloaded: $(in_side 0 ip macsec show)"
}
insecure() {
  for side in 0 1; do in_side "$side" ip link del macsec0 || fail "ip link del"; done
  within 30 none_left
}
done_by_card() { card_counter "macsec_$1"; }
say_state() {
  in_side 0 ip -s macsec show
  in_side 1 ip -s macsec show
  in_side 0 ethtool -S "$card" | grep macsec
}
pings() { in_side "$1" ping -c "$2" -i 0.2 -W 1 "${address[1 - $1]}" >/tmp/ping 2>&1; }
pings_work() { in_side 0 ping -c 1 -W 1 "${address[1]}" >/dev/null 2>&1; }
# counted WHAT: the card's counter and the driver's of what it dropped, at one time: the kernel sends frames of its own now and then.
counted() {
  local first second drops
  for _ in 1 2 3 4 5; do
    first=$(done_by_card "$1") drops=$(counter macsec_rx_pkts_drop) second=$(done_by_card "$1")
    ((first != second)) || break
  done
  echo "$second $drops"
}
# lost WHAT: of five frames that side 1 sends none is accepted; the card's counter WHAT and the driver's count each.
lost() {
  local before drops now then
  read -r before drops <<<"$(counted "$1")"
  if pings 1 5; then fail "$1: frames were accepted"; fi
  read -r now then <<<"$(counted "$1")"
  now=$((now - before)) drops=$((then - drops))
  note "$1: the card has found $now, its driver counts $drops dropped"
  ((now >= 5 && drops == now)) || fail "$1: found $now, dropped $drops: $(say_state)"
}

# everything WHAT: with the associations that there are.
everything() {
  local encrypted decrypted sent received
  (($(general_objects) == objects_before + 4)) || fail "$1: $(ask objects left)"
  within 30 pings_work
  encrypted=$(done_by_card encrypted) decrypted=$(done_by_card decrypted)
  sent=$(counter macsec_tx_pkts) received=$(counter macsec_rx_pkts)
  pings 0 3 || fail "$1: ping: $(cat /tmp/ping; say_state)"
  in_side 0 ping -6 -c 3 -s 1200 -i 0.2 -W 5 fd10::2 >/tmp/ping 2>&1 || fail "$1: ping -6: $(cat /tmp/ping; say_state)"
  watched macsec text 1 TCP 5000
  watched macsec text 0 UDP 1000
  talk 1 -n 4M
  talk 0 -n 2M
  talk 1 -u -b 4M -n 300K -l 1200
  encrypted=$(($(done_by_card encrypted) - encrypted)) decrypted=$(($(done_by_card decrypted) - decrypted))
  sent=$(($(counter macsec_tx_pkts) - sent)) received=$(($(counter macsec_rx_pkts) - received))
  note "$1: encrypted $encrypted, decrypted $decrypted frames; the driver counts $sent, $received"
  ((encrypted > 1500 && decrypted > 800)) || fail "$1: the card has not done it: $(say_state)"
  ((sent >= encrypted - 50 && received >= decrypted - 50)) || fail "$1: macsec_tx_pkts $sent, macsec_rx_pkts $received"
  (($(done_by_card auth_failed) + $(done_by_card bad_tag) + $(done_by_card not_encrypted) == 0)) || fail "$1: $(say_state)"
}
cipher=gcm-aes-128

secure gcm-aes-128 "$key"
everything "SCI in the SecTAG"
insecure
secure gcm-aes-256 "$longer" 1 send_sci off end_station on
everything "end station, 256 bits"
insecure
secure gcm-aes-xpn-128 "$key" 1 replay on window 64
everything "extended packet numbers"
insecure

# Extended packet numbers, shortly before their low half wraps; both ways.
secure gcm-aes-xpn-256 "$longer" $(((3 << 32) - 300)) replay on window 64
everything "over the wrap of their low half"
insecure

# What is not of the key, and what has been there before.
secure gcm-aes-128 "$key" 1000 replay on window 32
everything "a window"
in_side 1 ip macsec set macsec0 tx sa 0 pn 10 || fail "pn 10"
lost replayed
in_side 1 ip macsec set macsec0 tx sa 0 pn 200000 || fail "pn 200000"
pings 1 3 || fail "after a replay: $(say_state)"
in_side 1 ip macsec set macsec0 tx sa 0 off && in_side 1 ip macsec del macsec0 tx sa 0 || fail "del"
transmits 1 0 300000 "$wrong"
lost auth_failed
in_side 1 ip macsec set macsec0 tx sa 0 off && in_side 1 ip macsec del macsec0 tx sa 0 || fail "del"
transmits 1 0 300000 "$key"
pings 1 3 || fail "the right key, again: $(say_state)"
insecure

# A card has no number to give twice.
secure gcm-aes-128 "$key" $(((1 << 32) - 20))
before=$(done_by_card not_encrypted) drops=$(counter macsec_tx_pkts_drop)
if pings 0 40; then note "ping: those with a number were answered"; fi
before=$(($(done_by_card not_encrypted) - before)) drops=$(($(counter macsec_tx_pkts_drop) - drops))
note "no number left: $before frames were not sent, the driver counts $drops"
((before >= 20 && drops == before)) || fail "no number left: $(say_state)"
insecure
within 60 sides_reach
no_complaints "MACsec"
