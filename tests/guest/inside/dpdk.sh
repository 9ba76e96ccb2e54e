# SPDX-License-Identifier: BSD-3-Clause
# boot: --mem 3G --hca id=left,link=eth --hca id=right,link=eth,cable=left
# disk: package-disk dpdk dpdk-dev
# DPDK's testpmd of Debian 13 (24.11), and with dpdk:12 of Debian 12 (22.11), on two HCAs that a cable joins: forwards in its modes, and what left the one card
# is compared with what came to the other.
mark_kernel_log
package_roots
declare -A address=([left]=0000:01:00.0 [right]=0000:02:00.0)
counter() {
  local -a netdev=("/sys/bus/pci/devices/${address[$1]}/net/"*)
  ethtool -S "${netdev[0]##*/}" | awk -v name="$2:" '$1 == name {print $2}'
}

# say NAME REGEX SECONDS TEXT...: commands for that testpmd, so long after it has printed a line of that kind: it takes seconds to begin.
say() {
  local end=$((SECONDS + 60))
  until grep -qsE -- "$2" "/tmp/$1"; do
    ((SECONDS < end)) || return 0
    sleep 0.2
  done
  sleep "$3"
  printf '%s\n' "${@:4}"
}
started='packet forwarding - ports='
# pmd NAME PORTS OPTIONS...: testpmd on these HCAs (left, right or both), its commands from standard input; output in /tmp/NAME.
pmd() {
  local name=$1 port
  # shellcheck disable=SC2054 # commas are testpmd's
  local -a run=(env RUNTIME_DIRECTORY=/tmp timeout -k 5 200 chroot "$root" /usr/bin/dpdk-testpmd --no-huge --no-shconf -m 512 -l 0,1 --iova-mode va --file-prefix "$name")
  for port in $2; do run+=(-a "${address[$port]}"); done
  shift 2
  run+=(-- -i --total-num-mbufs 8192 --nb-cores 1 --disable-device-start "$@")
  : >"/tmp/$name"
  # With a terminal it prints what it has to say at once.
  printf '%q ' "${run[@]}" >"/tmp/$name.sh"
  socat -t 30 STDIO EXEC:"bash /tmp/$name.sh",pty,ctty,rawer,stderr >"/tmp/$name" 2>&1 || fail "testpmd $name"$'\n'"$(tail -n 60 "/tmp/$name")"
  grep -q '^Bye' "/tmp/$name" || fail "testpmd $name did not end well"$'\n'"$(tail -n 60 "/tmp/$name")"
}
# count NAME PORT WHAT: of the last statistics that testpmd printed for the port.
count() {
  awk -v port="$2" -v what="$3:" '
    /NIC statistics for port/ {here = $6 == port}
    here {for (i = 1; i < NF; i++) if ($i == what) value = $(i + 1)}
    END {print value + 0}' "/tmp/$1"
}

# What left the one card came to the other, by the cards' own counters, and all of it was DPDK's or was missed for lack of buffers.
both_sides() {
  local name=$1 sent=$(($(counter left tx_packets_phy) - left_before)) came=$(($(counter right rx_packets_phy) - right_before)) least=$2
  ((sent >= least)) || fail "$name: $sent packets left, $least are wanted"$'\n'"$(tail -n 60 "/tmp/$name")"
  # The kernel sends some too, also between these looks.
  ((sent - came <= 16 && came - sent <= 16)) || fail "$name: $sent packets left, and $came came in"
  note "$name: $sent packets over the cable"
}
before() { left_before=$(counter left tx_packets_phy) right_before=$(counter right rx_packets_phy); }

forwarding() {
  local mode
  for mode in io mac; do
    before
    {
      say $mode . 0 "set fwd $mode" 'port start all' 'start tx_first 4'
      say $mode "$started" 3 stop 'show port stats all' quit
    } | pmd $mode 'left right' || exit 1
    both_sides $mode 5000
    (($(count $mode 1 RX-packets) + $(count $mode 1 RX-missed) + 256 >= $(count $mode 0 TX-packets))) || fail "$mode: $(tail -n 40 /tmp/$mode)"
    (($(count $mode 1 RX-packets) > 5000)) || fail "$mode: $(tail -n 40 /tmp/$mode)"
  done
  # More packets than a 16-bit counter of completions has numbers for.
  for mode in txonly flowgen; do
    before
    {
      say $mode . 0 "set fwd $mode" 'port start all' start
      say $mode "$started" "$([[ $mode == txonly ]] && echo 8 || echo 3)" stop 'show port stats all' quit
    } | pmd $mode 'left right' || exit 1
    both_sides $mode "$([[ $mode == txonly ]] && echo 2200000 || echo 5000)"
  done
}

for debian in ${test_argument:-13}; do
  root=/tmp/roots/$debian
  note "Debian $debian: $(chroot "$root" /usr/bin/dpdk-testpmd --version 2>&1 | tail -n 1)"
  forwarding
done
no_complaints "DPDK"
