# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# For tests of what a card encrypts: two cards with a cable between them, "left" the one that does, each in a name space of its own, side0
# and side1; traffic between them, and what of it is on the wire.

# two_sides: sets interface, card (that of side 0); addresses 10.9.0.1 and 2, fd09::1 and 2.
two_sides() {
  local side
  for side in 0 1; do
    interface[side]=$(ls "/sys/class/infiniband/mlx5_$side/device/net")
    ip netns add "side$side" && ip link set "${interface[side]}" netns "side$side" || fail "name space"
    ip -n "side$side" link set lo up
    ip -n "side$side" address add "10.9.0.$((side + 1))/24" dev "${interface[side]}" && ip -n "side$side" link set "${interface[side]}" up || fail "address"
    ip -n "side$side" address add "fd09::$((side + 1))/64" dev "${interface[side]}" nodad || fail "address"
  done
  card=${interface[0]} address=(10.9.0.1 10.9.0.2)
  within 60 sides_reach
}
in_side() { ip netns exec "side$1" "${@:2}"; }
sides_reach() { in_side 0 ping -c 1 -W 1 10.9.0.2 >/dev/null 2>&1 && in_side 0 ping -6 -c 1 -W 1 fd09::2 >/dev/null 2>&1; }
counter() { in_side 0 ethtool -S "$card" | awk -v name="$1:" '$1 == name { print $2 }'; }

# Keys and associations are general objects of the card, which has none without.
general_objects() { ask objects left | tr ' ' '\n' | sed -n 's/^general_objects=//p'; }
none_left() { [[ $(general_objects) == "$objects_before" ]]; }
card_counter() { ask counter "$1" left; }

# What a test has to say when traffic fails.
say_state() { :; }

# talk SERVER WHAT...: iperf3 with the server at that side, at address[SERVER]. Without intervals (-i 0) the client of Debian 13 does not see
# that it has sent its bytes.
port=5300
talk() {
  local server=$1 out status=0
  shift
  port=$((port + 1)) out=/tmp/talk.$port
  in_side "$server" timeout 300 iperf3 -s -1 -p "$port" >"$out.server" 2>&1 &
  local serving=$!
  within 60 listens "$port" in_side "$server"
  in_side $((1 - server)) timeout 300 iperf3 -c "${address[server]}" -p "$port" -i 1 "$@" >"$out.client" 2>&1 || status=$?
  wait "$serving" || status=$?
  ((status == 0)) || fail "iperf3 $*: $(cat "$out.client" "$out.server"; say_state)"
}

# text SERVER PROTOCOL BYTES: a text that is easily found on the wire, checked where it arrives.
line="this is what nobody on the wire may read"
text() {
  local server=$1 protocol=$2 bytes=$3 listen receiving
  port=$((port + 1))
  head -c "$bytes" < <(yes "$line") >/tmp/text || fail "a text of $bytes bytes"
  listen="$protocol-LISTEN:$port,pf=ip4" to="$protocol:${address[server]}:$port"
  if [[ ${address[0]} == *:* ]]; then listen="$protocol-LISTEN:$port,pf=ip6" to="$protocol:[${address[server]}]:$port"; fi
  if [[ $protocol == UDP ]]; then listen=${listen/LISTEN/RECV}; fi
  rm -f /tmp/text.got
  in_side "$server" timeout 60 socat -u "$listen" "OPEN:/tmp/text.got,creat" &
  receiving=$!
  opened() { in_side "$server" ss -Htuln "sport = :$port" | grep -q .; }
  within 30 opened
  in_side $((1 - server)) timeout 60 socat -u -b "$bytes" OPEN:/tmp/text "$to" || fail "socat"
  same() { cmp -s /tmp/text /tmp/text.got; }
  within 30 same
  if [[ $protocol == UDP ]]; then kill $receiving; fi
  # socat that is ended by a signal has its status.
  wait $receiving || [[ $protocol == UDP ]] || fail "the receiver"
}

# watched WHAT COMMAND...: while it runs, the wire carries that (esp, macsec) and no such text.
watched() {
  local what=$1 seen
  shift
  [[ $(ask capture left) == ok ]] || fail "capture"
  "$@"
  seen=$(ask wire left "$line")
  note "   on the wire: $seen"
  [[ $seen == *" text=0" ]] || fail "it can be read on the wire: $seen"
  [[ $seen =~ $what=([0-9]+) ]] && ((BASH_REMATCH[1] > 0)) || fail "no $what on the wire: $seen"
}

# The same text, not encrypted, is there to be read: the watch works.
watch_works() {
  [[ $(ask capture left) == ok ]] || fail "capture"
  text 1 TCP 2000
  [[ $(ask wire left "$line") != *" text=0" ]] || fail "the watch does not see what is plain on the wire"
}
