# SPDX-License-Identifier: BSD-3-Clause
# boot: --debian 13 --mem 3G --hca id=left,link=eth --hca id=right,link=eth,cable=left
# disk: package-disk dpdk dpdk-dev
# breaks: modify-mask
# DPDK's testpmd of Debian 13 (24.11), and with dpdk:12 of Debian 12 (22.11). With two HCAs that a cable joins it forwards in its
# modes, and what left the one card is compared with what came to the other. Then with one: the kernel's interface of the other HCA is
# its peer, sends frames by scapy, and looks at what comes back: checksums, TSO, VLAN, frames in pieces, RSS, rte_flow.
mark_kernel_log
package_roots
declare -A address=([left]=0000:01:00.0 [right]=0000:02:00.0) netdev=() seen=()
for side in left right; do
  netdev[$side]=$(ls "/sys/bus/pci/devices/${address[$side]}/net")
  echo 1 >"/proc/sys/net/ipv6/conf/${netdev[$side]}/disable_ipv6"
done
counter() { ethtool -S "${netdev[$1]}" | awk -v name="$2:" '$1 == name {print $2}'; }

# pmd PORTS OPTIONS...: starts testpmd on these HCAs (left, right or both); ask talks to it, its output is in /tmp/pmd.
pmd() {
  local port
  # shellcheck disable=SC2054 # commas are testpmd's
  local -a run=(env RUNTIME_DIRECTORY=/tmp timeout -k 5 1200 chroot "$root" /usr/bin/dpdk-testpmd --no-huge --no-shconf -m 512 -l 0,1 --iova-mode va)
  for port in $1; do run+=(-a "${address[$port]}"); done
  shift
  run+=(-- -i --nb-cores 1 --disable-device-start "$@")
  # With a terminal it prints what it has to say at once.
  printf '%q ' "${run[@]}" >/tmp/pmd.sh
  : >/tmp/pmd
  coproc pmd_socat { exec socat -t 30 STDIO EXEC:"bash /tmp/pmd.sh",pty,ctty,rawer,stderr >/tmp/pmd 2>&1; }
  pmd_pid=${pmd_socat_PID:?}
  exec 6>&"${pmd_socat[1]}"
  answered 0
}
# answered OFFSET: testpmd has printed its prompt on a line behind that many bytes; what it has printed is in $answer.
answered() {
  local end=$((SECONDS + 60))
  until answer=$(tail -c "+$(($1 + 1))" /tmp/pmd) && [[ $answer == *$'\n''testpmd> '* ]]; do
    kill -0 "$pmd_pid" 2>/dev/null || fail "testpmd has ended"$'\n'"$(tail -n 60 /tmp/pmd)"
    ((SECONDS < end)) || fail "testpmd does not answer"$'\n'"$(tail -n 60 /tmp/pmd)"
    sleep 0.1
  done
}
# ask COMMAND...: each, and waits for its answer.
ask() {
  local command offset
  for command in "$@"; do
    offset=$(stat -c %s /tmp/pmd)
    printf '%s\n' "$command" >&6
    answered "$offset"
    if grep -qE 'Bad arguments|Command not found|Ambiguous|caught PMD error|[Ff]ailed' <<<"$answer"; then fail "testpmd: $answer"; fi
  done
}
pmd_ends() {
  local status=0
  printf 'quit\n' >&6
  exec 6>&-
  wait "$pmd_pid" || status=$?
  if ((status != 0)) || ! grep -q '^Bye' /tmp/pmd; then fail "testpmd ended with status $status"$'\n'"$(tail -n 60 /tmp/pmd)"; fi
}
# count PORT WHAT: of the last answer, which has the statistics of all ports.
count() {
  awk -v port="$1" -v what="$2:" '
    /NIC statistics for port/ {here = $6 == port}
    here {for (i = 1; i < NF; i++) if ($i == what) value = $(i + 1)}
    END {print value + 0}' <<<"$answer"
}
look() { for what in "left tx_packets_phy" "right rx_packets_phy"; do seen[$what]=$(counter $what); done; }
grew() { echo $(($(counter "$1" "$2") - seen["$1 $2"])); }
has_grown() { (($(grew "$1" "$2") >= $3)); }
# What left the one card came to the other, by the cards' own counters; the kernel sends some too, also between these looks.
alike() { (($(grew left tx_packets_phy) - $(grew right rx_packets_phy) <= 16 && $(grew right rx_packets_phy) - $(grew left tx_packets_phy) <= 16)); }

forwarding() {
  local mode least
  pmd 'left right' --total-num-mbufs 8192
  for mode in io mac txonly flowgen; do
    least=5000
    # More packets than a 16-bit counter of completions has numbers for.
    [[ $mode != txonly ]] || least=2200000
    look
    ask "set fwd $mode" 'port start all' 'show txq info 0 0'
    grep -q 'Burst mode: .*Enhanced MPW' <<<"$answer" || fail "several frames in a WQE: $answer"
    ask 'clear port stats all' "start $([[ $mode == [im]* ]] && echo 'tx_first 4')"
    within 60 has_grown left tx_packets_phy $least
    ask stop
    within 20 alike
    ask 'show port stats all'
    note "$mode: $(grew left tx_packets_phy) packets over the cable; testpmd has $(count 0 TX-packets) sent, $(count 1 RX-packets) received, $(count 1 RX-missed) missed"
    if [[ $mode != txonly ]]; then
      (($(count 1 RX-packets) + $(count 1 RX-missed) + 256 >= $(count 0 TX-packets) && $(count 1 RX-packets) > 1000)) || fail "$mode: $answer"
    fi
    ask 'port stop all'
  done
  pmd_ends
}

cat >/tmp/peer.py <<'PYTHON'
"""The other end: sends frames by the kernel's interface, and judges what comes back. peer.py INTERFACE MAC WHAT [NUMBER]"""
import socket, struct, sys, time
from scapy.all import Dot1Q, Ether, IP, IPv6, Raw, TCP, UDP

interface, mac, what = sys.argv[1:4]
number = int(sys.argv[4]) if len(sys.argv) > 4 else 0
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
SOL_PACKET, PACKET_AUXDATA, TP_STATUS_VLAN_VALID = 263, 8, 1 << 4  # linux/if_packet.h
wire.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
wire.bind((interface, 0))
ether = Ether(dst=mac, src=open(f"/sys/class/net/{interface}/address").read().strip())
ip4, ip6 = IP(src="10.8.0.1", dst="10.8.0.2", id=77), IPv6(src="fd00::1", dst="fd00::2")


def payload(size):
    return bytes((i * 7 + (i >> 8)) & 0xFF for i in range(size))


def received(n, seconds=20):
    """The first n IP frames that come in, of ours or of testpmd's own."""
    frames, end = [], time.monotonic() + seconds
    while len(frames) < n and time.monotonic() < end:
        wire.settimeout(max(0.01, end - time.monotonic()))
        try:
            data, extra, _, source = wire.recvmsg(65536, 64)
        except socket.timeout:
            break
        for _, _, auxdata in extra:  # struct tpacket_auxdata: the kernel has taken a tag off, too
            status, tci, tpid = struct.unpack_from("I12xHH", auxdata)
            if status & TP_STATUS_VLAN_VALID:
                data = data[:12] + struct.pack("!HH", tpid, tci) + data[12:]
        if source[2] != socket.PACKET_OUTGOING and data[12:14] in (b"\x08\x00", b"\x86\xdd", b"\x81\x00"):
            frames.append(data)
    assert len(frames) == n, f"{len(frames)} frames of {n}"
    return frames


def checksums_right(data):
    """As scapy would make them."""
    again = Ether(data)
    for layer in (IP, UDP, TCP):
        if layer in again:
            del again[layer].chksum
    return bytes(again) == data


def echoed(frame):
    wire.send(bytes(frame))
    return received(1)[0]


if what == "checksums":
    for l3, name in ((ip4, "IPv4"), (ip6, "IPv6")):
        for l4 in (UDP(sport=9, dport=7000, chksum=0xDEAD), TCP(sport=9, dport=7000, flags="PA", chksum=0xDEAD)):
            for size in (1, 18, 333):
                ip4.chksum = 0xBEEF
                back = echoed(ether / l3 / l4 / payload(size))
                assert bytes(Ether(back)[l4.__class__].payload)[:size] == payload(size), (name, l4.name, size, "payload")
                assert checksums_right(back), (name, l4.name, size, Ether(back).show(dump=True))
    print("checksums: 12 frames with wrong ones came back with right ones")
elif what == "verdicts":
    wire.send(bytes(ether / ip4 / UDP(sport=9, dport=7000) / payload(100)))
    wire.send(bytes(ether / ip4 / UDP(sport=9, dport=7000, chksum=0xDEAD) / payload(100)))
    ip4.chksum = 0xBEEF
    wire.send(bytes(ether / ip4 / UDP(sport=9, dport=7000) / payload(100)))
elif what == "tso":
    mss = number
    for l3, size in ((ip4, 4000), (ip6, 4000), (ip4, 2 * mss), (ip4, 2 * mss + 1)):
        wire.send(bytes(ether / l3 / TCP(sport=9, dport=7000, flags="PAF", seq=1000) / payload(size)))
        segments, got = [Ether(f) for f in received(-(-size // mss))], b""
        for i, s in enumerate(segments):
            last = i + 1 == len(segments)
            part = bytes(s[TCP].payload)[: mss if not last else size - len(got)]
            assert s[TCP].seq == 1000 + len(got), f"segment {i}: sequence number {s[TCP].seq}"
            assert ("F" in s[TCP].flags, "P" in s[TCP].flags) == (last, last), f"segment {i}: flags {s[TCP].flags}"
            assert IP not in s or s[IP].id == (77 + i) & 0xFFFF, f"segment {i}: IP identification {s[IP].id}"
            assert checksums_right(bytes(s)), s.show(dump=True)
            got += part
        assert got == payload(size), "payload"
    print(f"tso: cut into segments of {mss}")
elif what == "vlan":
    back = Ether(echoed(ether / Dot1Q(vlan=55, prio=3) / ip4 / UDP(sport=9, dport=7000) / payload(100)))
    assert Dot1Q in back and back[Dot1Q].vlan == number and Dot1Q not in back[Dot1Q].payload, back.show(dump=True)
    print(f"vlan: tag 55 was taken off, {number} put on")
elif what == "pieces":
    print("listens", flush=True)
    for data in received(200, 40):
        assert len(data) == number, f"{len(data)} bytes, not {number}"
        frame = Ether(data)
        assert frame[IP].len == number - 14 and frame[UDP].len == number - 34, frame.show(dump=True)
    print(f"pieces: 200 frames of {number} bytes")
elif what == "flows":
    # As many frames of each kind as their port says.
    kinds = [UDP(sport=9, dport=7001), UDP(sport=9, dport=7002), TCP(sport=9, dport=7003)]
    for l4 in kinds:
        for i in range(l4.dport % 1000 * 10):
            wire.send(bytes(ether / ip4 / l4 / payload(64)))
    for i in range(40):
        wire.send(bytes(ether / Dot1Q(vlan=100) / ip4 / UDP(sport=9, dport=7004) / payload(64)))
elif what == "paced":
    for i in range(number):
        wire.send(bytes(ether / ip4 / UDP(sport=9, dport=7000) / payload(64)))
        time.sleep(0.3)
elif what == "spread":
    for i in range(number):
        wire.send(bytes(ether / IP(src=f"10.8.1.{i % 250}", dst="10.8.0.2") / UDP(sport=i, dport=7000) / payload(64)))
else:
    sys.exit(f"what is {what}?")
PYTHON
peer() { timeout 120 python3 /tmp/peer.py "${netdev[right]}" "$(<"/sys/class/net/${netdev[left]}/address")" "$@" || fail "$*"$'\n'"$(tail -n 40 /tmp/pmd)"; }

# queue_packets N: what the four receive queues have had is N in all; sets queues.
queue_packets() {
  ask 'show port xstats 0'
  mapfile -t queues < <(sed -nE 's/^rx_q[0-3]_packets: ([0-9]+).*/\1/p' <<<"$answer")
  ((${#queues[@]} == 4 && queues[0] + queues[1] + queues[2] + queues[3] == $1))
}
# told N PATTERN: testpmd has printed so many such lines since $offset.
told() { (($(tail -c "+$offset" /tmp/pmd | grep -c "$2") == $1)); }
# hits RULE N: the rule has counted so many.
hits() { ask "flow query 0 $1 count" && grep -qE "hits: $2\b" <<<"$answer"; }

features() {
  local mss=500 queue offset
  ethtool -K "${netdev[right]}" gro off lro off rxvlan off txvlan off rx off || fail "ethtool -K"
  ip link set dev "${netdev[right]}" mtu 9000 promisc on up || fail "mtu"
  pmd left --rxq 4 --txq 4 --rxd 256 --txd 256 --rss-udp --port-topology loop --mbuf-size 9600 --total-num-mbufs 4096 --max-pkt-len 9000 --enable-rx-cksum
  ask 'csum set ip hw 0' 'csum set udp hw 0' 'csum set tcp hw 0' "tso set $mss 0" 'set fwd csum' 'port start 0' start
  within 30 grep -q 1 "/sys/class/net/${netdev[right]}/carrier"
  peer checksums
  peer tso $mss
  ask stop

  ask 'port stop 0' 'set fwd rxonly' 'port start 0' 'set verbose 1' start
  offset=$(stat -c %s /tmp/pmd)
  peer verdicts
  within 20 told 3 RTE_MBUF_F_RX_
  (($(tail -c "+$offset" /tmp/pmd | grep RX_L4_CKSUM_GOOD | grep -c RX_IP_CKSUM_GOOD) == 1)) && told 2 RX_IP_CKSUM_GOOD || fail "what the card says of checksums: $(tail -c "+$offset" /tmp/pmd)"
  note "checksums: one frame good, one of which IP's alone is, one of which that is not"
  ask 'set verbose 0' stop
  ask 'port stop 0' 'tso set 0 0' 'vlan set strip on 0' 'tx_vlan set 0 77' 'set fwd mac' 'port start 0' start
  # Without pieces: DPDK 22.11 and 24.11 have no function that sends such with checksums and VLAN, and call none at all (address 0).
  peer vlan 77
  ask stop 'port stop 0' 'vlan set strip off 0' 'tx_vlan reset 0' 'set fwd txonly' 'port config 0 tx_offload multi_segs on' 'set txpkts 64,500,800' \
    'set burst 4' 'port start 0'
  # What it sends without end leaves the peer no time to begin: only until the other card has had enough of it.
  peer pieces 1364 >/tmp/pieces &
  within 60 grep -q listens /tmp/pieces
  look
  ask start
  within 30 has_grown right rx_packets_phy 200
  ask stop
  wait $! || fail "$(</tmp/pieces)"
  grep pieces: /tmp/pieces

  ask 'port stop 0' 'set fwd rxonly' 'port start 0' 'clear port stats all' start
  peer spread 400
  within 20 queue_packets 400
  for queue in "${queues[@]}"; do ((queue > 40)) || fail "RSS: ${queues[*]}"; done
  note "RSS: 400 flows, by queue ${queues[*]}"
  ask 'port config 0 rss reta (0,2),(1,2),(2,3),(3,3)' 'clear port stats all'
  peer spread 400
  within 20 queue_packets 400
  ((queues[0] + queues[1] == 0 && queues[2] > 80 && queues[3] > 80)) || fail "RSS with a table of queues 2 and 3: ${queues[*]}"
  note "RSS by a table of two queues: ${queues[*]}"

  ask 'flow create 0 ingress pattern eth / ipv4 / udp dst is 7001 / end actions count / queue index 1 / end' \
    'flow create 0 ingress pattern eth / ipv4 / udp dst is 7002 / end actions count / drop / end' \
    'flow create 0 ingress pattern eth / ipv4 src is 10.8.0.1 / tcp dst is 7003 / end actions count / mark id 5 / queue index 3 / end' \
    'flow create 0 ingress pattern eth / vlan vid is 100 / ipv4 / end actions count / rss queues 0 end types ipv4 end / end' 'clear port stats all'
  peer flows
  within 20 hits 0 10
  within 20 hits 1 20
  within 20 hits 2 30
  within 20 hits 3 40
  within 20 queue_packets 80
  [[ ${queues[*]} == "40 10 0 30" ]] || fail "rte_flow: by queue ${queues[*]}"
  ask 'flow destroy 0 rule 1' 'clear port stats all'
  peer flows
  within 20 hits 0 20
  within 20 queue_packets 100
  note "rte_flow: count, queue, drop, mark, rss"
  ask 'flow flush 0'
  # A threshold of its free descriptors is what the card does not have; DPDK asks no capability for it.
  offset=$(stat -c %s /tmp/pmd)
  printf 'set port 0 rxq 0 avail_thresh 70\n' >&6
  answered "$offset"
  if grep -qE 'Bad arguments|Command not found|Ambiguous' <<<"$answer" || ! grep -qiE 'error|fail|not supported' <<<"$answer"; then
    fail "avail_thresh is not refused: $answer"
  fi
  ask stop
  pmd_ends
}

# aged RULE: the rule, and no other, has not been used for its time.
aged() { ask 'flow aged 0' && grep -q 'total aged flows: 1$' <<<"${answer//$'\r'/}" && grep -qE "^Flow[[:space:]]+$1[[:space:]]" <<<"$answer"; }
# What it does with the card's clock, with counters that are dumped into its memory (rules that say when they have not been used), and
# with samplers.
offloads() {
  local offset stamps sender
  ethtool -K "${netdev[right]}" rxvlan off || fail "ethtool -K"
  ip link set dev "${netdev[right]}" promisc on up || fail "promisc"
  pmd left --rxq 4 --txq 4 --rxd 256 --txd 256 --port-topology loop --total-num-mbufs 4096 --enable-rx-timestamp
  ask 'set fwd rxonly' 'set verbose 1' 'port start 0' start
  within 30 grep -q 1 "/sys/class/net/${netdev[right]}/carrier"
  offset=$(stat -c %s /tmp/pmd)
  peer paced 3
  within 20 told 3 'timestamp [0-9]'
  mapfile -t stamps < <(tail -c "+$offset" /tmp/pmd | sed -nE 's/.*timestamp ([0-9]+).*/\1/p')
  # The clock runs at 1 GHz.
  ((stamps[1] - stamps[0] > 290000000 && stamps[2] - stamps[1] > 290000000 && stamps[2] - stamps[0] < 20000000000)) ||
    fail "time stamps of frames 0.3 s apart: ${stamps[*]}"
  note "time stamps: ${stamps[*]}"
  ask 'set verbose 0'

  seen["right tx_packets_phy"]=$(counter right tx_packets_phy)
  peer paced 60 &
  sender=$!
  within 60 has_grown right tx_packets_phy 1
  ask 'flow create 0 ingress pattern eth / ipv4 / udp dst is 7000 / end actions age timeout 5 / queue index 1 / end' \
    'flow create 0 ingress pattern eth / ipv4 / udp dst is 7001 / end actions age timeout 5 / queue index 2 / end'
  within 40 aged 1
  kill -0 "$sender" || fail "the sender has ended before the rule that it does not use was old"
  wait "$sender" || fail "the sender"
  note "rule 1 is old, rule 0 is not"
  ask 'flow flush 0'

  ask 'set sample_actions 0 mark id 8 / queue index 3 / end' \
    'flow create 0 ingress group 0 pattern eth / end actions jump group 1 / end' \
    'flow create 0 ingress group 1 pattern eth / ipv4 / udp dst is 7001 / end actions sample ratio 1 index 0 / queue index 1 / end' \
    'flow create 0 ingress group 1 pattern eth / ipv4 / udp dst is 7002 / end actions sample ratio 4 index 0 / queue index 2 / end' \
    'clear port stats all'
  peer flows
  within 20 queue_packets 45
  [[ ${queues[*]} == "0 10 20 15" ]] || fail "sampled: by queue ${queues[*]}"
  note "samples: of 10 frames all, of 20 each fourth"
  ask 'flow flush 0' stop
  pmd_ends
}

# dpdk-test-flow-perf makes and takes away rules, thousands at a time.
flow_perf() {
  local status=0
  timeout -k 5 120 env RUNTIME_DIRECTORY=/tmp chroot "$root" /usr/bin/dpdk-test-flow-perf --no-huge --no-shconf -m 512 -l 0,1 --iova-mode va -a "${address[left]}" -- \
    --ingress --ether --ipv4 --udp --queue --rules-count=4000 --rules-batch=1000 --deletion-rate >/tmp/perf 2>&1 </dev/null || status=$?
  if ((status != 0)) || grep -qiE 'error|failed' /tmp/perf || ! grep -q 'time for deleting 4000 rules' /tmp/perf; then fail "flow-perf: status $status: $(tail -n 40 /tmp/perf)"; fi
  grep 'Core 0 :: Rules' /tmp/perf
}

# dpdk:DEBIAN,PART is one part of it.
debian=${test_argument:-13}
parts=(forwarding features offloads flow_perf)
if [[ $debian == *,* ]]; then parts=("${debian#*,}") debian=${debian%%,*}; fi
for part in "${parts[@]}"; do
  case $part in
    forwarding | features | offloads | flow_perf) ;;
    *) fail "no such part: $part" ;;
  esac
done
root=/tmp/roots/$debian
note "Debian $debian: $(basename "$root"/usr/lib/*/librte_net_mlx5.so.*.*)"
for part in "${parts[@]}"; do "$part"; done
no_complaints "DPDK"
