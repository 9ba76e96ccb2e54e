# SPDX-License-Identifier: BSD-3-Clause
# pair: --link ib
# IPoIB between two guests, datagram and connected mode, and RDMA CM by its addresses, under the built-in subnet manager.
mark_kernel_log
ends_up
ipoib_up

# ping_other SIZE COUNT: pings that come back whole.
ping_other() { ping -c "$2" -i 0.2 -W 5 -s "$1" -M 'do' "$theirs" >/tmp/ping 2>&1 && grep -q " 0% packet loss" /tmp/ping || { cat /tmp/ping && fail "ping of $1 bytes"; }; }
both_ways() {
  local client
  for client in a b; do
    if is_client; then ping_other 56 10 && ping_other "$1" 10; fi
    barrier "ping $1 $client"
    ends 60 tcp:5201 iperf3 -s -1 -B "$mine" -- iperf3 -c "$theirs" -B "$mine" -n 16M
    ends 60 tcp:5201 iperf3 -s -1 -B "$mine" -- iperf3 -c "$theirs" -B "$mine" -u -b 20M -n 4M -l 1400
    if is_client; then note "$(grep -E 'receiver|sender' /tmp/client | tail -n 1)"; fi
  done
}
both_ways 4000

# RDMA CM takes its paths from the built-in subnet manager as well.
for client in a b; do
  ends 60 cm rping -s -a 0.0.0.0 -v -V -C 50 -S 4000 -- rping -c -a "$theirs" -v -V -C 50 -S 4000
  ends 60 cm ucmatose -c 4 -C 10 -S 5000 -- ucmatose -s "$theirs" -c 4 -C 10 -S 5000
  ends 60 cm udaddy -c 2 -C 10 -S 500 -- udaddy -s "$theirs" -c 2 -C 10 -S 500
done
client=a
ends 60 "line:receiving data" stdbuf -oL mckey -m 239.1.9.1 -b "$mine" -C 10 -- mckey -m 239.1.9.1 -b "$mine" -C 10 -s

# Multicast: all nodes of the link answer, over the group that each joined.
if is_client; then
  ping -6 -c 5 -i 0.3 -W 5 "ff02::1%$ipoib" >/tmp/ping 2>&1 || { cat /tmp/ping && fail "ping of all nodes"; }
  grep -q "from fe80" /tmp/ping || { cat /tmp/ping && fail "nobody answered"; }
fi
barrier "all nodes"
# A group that an application joins, and that is sent to without a membership of the sender.
ip route add 239.0.0.0/8 dev "$ipoib" || fail "route"
if is_server; then
  timeout 60 socat -u "UDP4-RECV:7001,ip-add-membership=239.1.2.3:$mine" OPEN:/tmp/heard,creat &
  within 20 grep -q 030201EF /proc/net/igmp # 239.1.2.3
fi
barrier "group joined"
if is_client; then
  for i in 1 2 3 4 5 6 7 8; do echo "group call $i" | socat -u - "UDP4-DATAGRAM:239.1.2.3:7001,bind=$mine" || fail "send to the group"; sleep 0.5; done
fi
barrier "group sent"
if is_server; then
  kill %1 2>/dev/null
  grep -q 'group call' /tmp/heard || fail "nothing came over the multicast group"
  note "heard $(wc -l </tmp/heard) of 8 datagrams of the group"
fi

no_complaints "IPoIB, datagrams"
echo connected >"/sys/class/net/$ipoib/mode" || fail "connected mode"
ip link set "$ipoib" mtu 65520 || fail "MTU 65520"
mark_kernel_log # it has warned of what the mode does to multicast
barrier connected
both_ways 60000
[[ $(ip -s -o link show "$ipoib") == *65520* ]] || fail "MTU is not what it was set to"
echo datagram >"/sys/class/net/$ipoib/mode" || fail "datagram mode again"
barrier datagram
if is_client; then ping_other 1000 5; fi
barrier last
modprobe -r ib_ipoib || fail "ib_ipoib stays loaded"
no_complaints "IPoIB"
