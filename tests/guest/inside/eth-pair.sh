# SPDX-License-Identifier: BSD-3-Clause
# pair: --link eth --modprobe mlx5_core,mlx5_ib,ib_uverbs --smp 2
# capture: --min icmp=100 --min icmp6=10 --min tcp=1000 --min udp=100 --min vlan=20 --min fragment=50
# The network interface: ping in all sizes, IPv4 and IPv6, TCP and UDP both ways with offloads on and off, VLANs, MTU, rings
# and channels changed, link down and up. The capture must hold right checksums whoever computed them.
mark_kernel_log
ends_up 1500
hca=no
if [[ $(ethtool -i "$interface" | sed -n 's/^driver: //p') == mlx5_core ]]; then hca=yes; fi

# in_turn NAME COMMAND...: in both guests, one after the other.
in_turn() {
  local who name=$1
  shift
  for who in a b; do
    [[ $who != "$side" ]] || "$@"
    barrier "$name $who"
  done
}
pings() {
  ping -q -i 0.1 -W 5 "$@" >/tmp/ping 2>&1 || { cat /tmp/ping && fail "ping $*"; }
  note "ok: ping $*: $(grep -o '[0-9]* received' /tmp/ping)"
}
iperf() { ends 60 tcp:5201 iperf3 -s -1 -- iperf3 -c "$theirs" -i 0 "$@" && { is_server || awk '/receiver|sender/ {print "    " $0}' /tmp/client; }; }
offloads() {
  local feature
  for feature in rx tx sg tso gso gro lro rxvlan txvlan; do ethtool -K "$interface" $feature "$1" >/dev/null 2>&1; done
  note "offloads $1: $(ethtool -k "$interface" | awk -F '[: ]+' '$2 == "on" && /^(rx-check|tx-check|scatter|tcp-seg|generic|large|rx-vlan-o|tx-vlan-o)/ {printf "%s ", $1}')"
}
# 4 MiB that nobody can guess, by TCP, compared.
file_across() {
  local seed=$1
  head -c 4194304 /dev/urandom >/tmp/file
  ends 60 tcp:5300 socat -u TCP-LISTEN:5300,reuseaddr CREATE:/tmp/got -- socat -u FILE:/tmp/file "TCP:$theirs:5300"
  if is_client; then tell "sum $seed $(sha256sum </tmp/file)"; else
    hear "sum $seed "
    [[ $heard == "$(sha256sum </tmp/got)" ]] || fail "4 MiB by TCP arrived as something else"
    rm -f /tmp/got
  fi
}
traffic() { # NAME
  local port
  for client in a b; do
    iperf -n 8M
    iperf -t 1 -u -b 20M -l 1400
    file_across "$1 $client"
  done
  client=a
  iperf -n 8M -R
  iperf -t 1 -u -b 20M -l 16000 -R # in fragments
}

in_turn ping pings -c 5 "$theirs"
in_turn ping0 pings -c 2 -s 0 "$theirs"
in_turn ping18 pings -c 2 -s 19 "$theirs"
in_turn ping1472 pings -c 3 -M 'do' -s 1472 "$theirs"
in_turn ping6 pings -c 3 "$theirs6"
in_turn fragments pings -c 2 -s 20000 "$theirs"
in_turn flood pings -f -c 200 "$theirs"
traffic on
offloads off
barrier off
in_turn ping-off pings -c 3 "$theirs"
traffic off
offloads on
ip link set "$interface" mtu 9000 || fail "mtu 9000"
barrier jumbo
in_turn ping8972 pings -c 3 -M 'do' -s 8972 "$theirs"
in_turn ping6-8952 pings -c 3 -M 'do' -s 8952 "$theirs6"
iperf -n 8M
file_across jumbo

# Compressed CQEs, with receive queues of frames and of strides. Frames from another process mostly come one by one, too far apart to
# share a CQE: how many did is told, not asked for (the device's own tests do).
if [[ $hca == yes ]]; then
  # Without strides the driver has no LRO, and refuses to lose them while it is on.
  ethtool -K "$interface" lro off || fail "lro off"
  for striding in off on; do
    ethtool --set-priv-flags "$interface" rx_striding_rq $striding rx_cqe_compress on || fail "rx_cqe_compress, striding $striding"
    compressed() { ethtool -S "$interface" | awk '$1 == "rx_cqe_compress_pkts:" {print $2}'; }
    before=$(compressed)
    barrier "compress $striding"
    for client in a b; do
      iperf -n 4M
      file_across "compress $striding $client"
    done
    client=a
    note "ok: $(($(compressed) - before)) packets in compressed CQEs, striding $striding"
    ethtool --set-priv-flags "$interface" rx_cqe_compress off || fail "rx_cqe_compress off"
  done
  ethtool -K "$interface" lro on || fail "lro on"
fi

for tag in on off; do
  ethtool -K "$interface" rxvlan $tag txvlan $tag >/dev/null 2>&1
  ip link add link "$interface" name vlan5 type vlan id 5 && ip link set vlan5 up mtu 1500 || fail "VLAN 5"
  ip address add "${mine/10.9.0./10.9.5.}/24" dev vlan5
  barrier "vlan $tag"
  in_turn "vlan ping $tag" pings -c 3 "${theirs/10.9.0./10.9.5.}"
  theirs=${theirs/10.9.0./10.9.5.} iperf -n 8M
  barrier "vlan end $tag"
  ip link del vlan5
done

if [[ $hca == yes ]]; then
  # Not -d: mlx5_core has no register dump.
  for option in -i -k -l -g -c -S -T -a -m; do ethtool $option "$interface" >/tmp/ethtool || fail "ethtool $option: status $?"; done
  ethtool "$interface" | grep -E 'Speed|Link detected' || fail "ethtool"
  ethtool "$interface" | grep -q 'Link detected: yes' || fail "no link"
  packets() { ethtool -S "$interface" | awk '$1 == "rx_packets:" {print $2}'; }
  before=$(packets)
  ethtool -G "$interface" rx 256 tx 256 || fail "ethtool -G"
  ethtool -L "$interface" combined 1 || fail "ethtool -L"
  ethtool -C "$interface" adaptive-rx off rx-usecs 16 rx-frames 32 || fail "ethtool -C"
  barrier changed
  in_turn ping-changed pings -c 3 "$theirs"
  (($(packets) > before)) || fail "rx_packets does not count"
  ip link set "$interface" promisc on allmulticast on || fail "promiscuous"
  in_turn ping-promiscuous pings -c 3 "$theirs"
  ip link set "$interface" promisc off allmulticast off
fi

for round in 1 2; do
  if [[ $side == a ]]; then
    ip link set "$interface" down
    ip link set "$interface" up
    ip -6 address replace "$mine6/64" dev "$interface" nodad
  fi
  barrier "again $round"
  in_turn "ping-again $round" pings -c 5 -W 10 "$theirs"
done
no_complaints "the network interface"
