# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Connections that a card in switchdev mode tracks (lib-tc.sh), on a kernel whose driver has MLX5_TC_CT.

tracking_ready() {
  mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug || fail "debugfs"
  ct=/sys/kernel/debug/mlx5/${pf##*/}/ct
  [[ -e $ct/offloaded ]] || fail "the driver takes no connections: $(ls "$ct" 2>&1)"
}
# tracking_ends [DROPPED]: no more packets than that (0) have come from the card with a connection that the driver does not know.
tracking_ends() {
  local dropped
  dropped=$(<"$ct/rx_dropped")
  ((dropped <= ${1:-0})) || fail "the driver has dropped $dropped packets whose connection it did not know"
  kill "${listeners[@]}"
}
# tracked PATTERN: how many connections that it fits the card has, as the kernel knows.
tracked() { grep -E "$1" /proc/net/nf_conntrack | grep -c 'HW_OFFLOAD'; }
are_tracked() { (($(tracked "$1") == $2)); }
# in_card N: so many directions of connections.
in_card() { [[ $(<"$ct/offloaded") == "$1" ]]; }
no_connections() { in_card 0 && are_tracked . 0; }
# what_is_tracked: connections and rules, for messages.
what_is_tracked() {
  local dev
  cat "$ct/offloaded" /proc/net/nf_conntrack
  for dev in "$port" "${rep[@]}"; do echo "rules of $dev:"; tc -s filter show dev "$dev" ingress; done
}

# listen "PREFIX": the end of connections that answers, an echo.
listeners=()
listen() {
  $1 socat TCP-LISTEN:7000,fork,reuseaddr PIPE & listeners+=($!)
  $1 socat TCP6-LISTEN:7001,fork,reuseaddr PIPE & listeners+=($!)
  $1 socat UDP-LISTEN:7000,fork,reuseaddr PIPE & listeners+=($!)
}
# The end that has opened it, of virtual function 0: call ADDRESS, exchange N (messages to and fro), hang_up.
call() {
  trap '' PIPE # an end that is gone is found by what it does not answer
  coproc talk { exec ip netns exec vf0 socat - "$1"; } 2>/dev/null
  talker=$talk_PID to=${talk[1]} from=${talk[0]}
}
exchange() {
  local i said heard
  for ((i = 0; i < $1; i++)); do
    printf -v said '%0100d' "$i"
    printf '%s' "$said" >&"$to"
    IFS= read -r -N 100 -t 10 heard <&"$from" || fail "no answer to message $i: $(what_is_tracked)"
    [[ $heard == "$said" ]] || fail "message $i comes back as '$heard'"
  done
}
hang_up() {
  eval "exec $to>&- $from<&-"
  kill "$talker" 2>/dev/null
  wait "$talker" 2>/dev/null
}
# by_card TEXT INSIDE OUTSIDE PATTERN: the connection just called, which PATTERN fits, is the card's.
by_card() {
  local before_in before_out
  within 20 are_tracked "$4" 1
  within 20 in_card 2
  before_in=$(hits "$2") before_out=$(hits "$3")
  untouched "$1" exchange 200
  counts "$2" $((before_in + 200))
  counts "$3" $((before_out + 200))
  note "$1: $(grep -E "$4" /proc/net/nf_conntrack | sed 's/  */ /g')"
}
