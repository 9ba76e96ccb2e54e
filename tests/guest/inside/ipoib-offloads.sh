# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib,id=left,cable=right,options=sm=off;ipoib_offloads=on --hca link=ib,id=right,options=ipoib_offloads=on;sm=off
# IPoIB by mlx5's own queues (enhanced offloads) between two HCAs of one guest: checksums, large sends and several queues by the
# card; other partitions, for which the driver makes child interfaces with a QP each and the receive queues of their parent.
mark_kernel_log
mkdir -p /etc/opensm /var/cache/opensm
printf 'Default=0x7fff, ipoib, mtu=5 : ALL=full;\nChild=0x8001, ipoib, mtu=5 : ALL=full;\n' >/etc/opensm/partitions.conf
opensm --daemon --log_file /tmp/opensm.log --Pconfig /etc/opensm/partitions.conf >/tmp/opensm.out 2>&1 || { cat /tmp/opensm.out && fail "opensm"; }
wait_active mlx5_0 90
wait_active mlx5_1 90
modprobe ib_ipoib || fail "ib_ipoib"
for side in 0 1; do
  within 10 test -e "/sys/class/net/ib$side"
  [[ $(ethtool -i "ib$side") == *"mlx5_core[ib_ipoib]"* ]] || fail "ib$side is not mlx5's: $(ethtool -i "ib$side")"
  ip netns add "side$side" && ip link set "ib$side" netns "side$side" || fail "namespaces"
done
in_side() { ip netns exec "side$1" "${@:2}"; }
carrier() { [[ $(in_side "$2" cat "/sys/class/net/$1$2/carrier") == 1 ]]; }
for side in 0 1; do in_side $side ip link set lo up && in_side $side ip link set "ib$side" up || fail "ib$side up"; done
for side in 0 1; do within 60 carrier ib $side; done

# stat SIDE NAME: a counter of the driver.
stat() { in_side "$1" ethtool -S "ib$1" | awk -v name="$2:" '$1 == name { print $2 }'; }
# both_ways PREFIX NETWORK PING: with each side as the client.
both_ways() {
  local side other
  for side in 0 1; do
    in_side $side ip address replace "$2.$((side + 1))/24" dev "$1$side" || fail "address of $1$side"
  done
  for side in 0 1; do
    other=$((1 - side))
    in_side $side ping -q -c 5 -i 0.2 -W 5 "$2.$((other + 1))" || fail "ping from $1$side"
    in_side $side ping -q -c 5 -i 0.2 -W 5 -M 'do' -s "$3" "$2.$((other + 1))" || fail "ping of $3 bytes from $1$side"
    tcp_between "in_side $other" "in_side $side" "$2.$((other + 1))" -n 32M -P 2
  done
}
both_ways ib 10.9.1 4000
for side in 0 1; do
  (($(stat $side tx_tso_packets) > 100)) || fail "side $side has sent $(stat $side tx_tso_packets) large sends"
  (($(stat $side tx_csum_partial) > 0)) || fail "side $side has let the card make $(stat $side tx_csum_partial) checksums"
  (($(stat $side rx_csum_complete) > 1000)) || fail "side $side has $(stat $side rx_csum_complete) checksums from the card"
  [[ $(stat $side rx_csum_none) == 0 ]] || fail "side $side has $(stat $side rx_csum_none) packets without a checksum from the card"
done
# Bytes as they were, over IPv6 too, to whose link-local address multicast has led.
head -c 3000001 /dev/urandom >/tmp/data
theirs=$(in_side 1 ip -6 -o address show dev ib1 scope link | awk '{ sub("/.*", "", $4); print $4 }')
in_side 0 ping -6 -q -c 3 -i 0.2 -W 5 "$theirs%ib0" || fail "ping of $theirs"
in_side 1 timeout 60 socat -u TCP6-LISTEN:5201,reuseaddr OPEN:/tmp/got,creat,trunc &
within 30 listens 5201 in_side 1
in_side 0 timeout 60 socat -u OPEN:/tmp/data "TCP6:[$theirs%ib0]:5201" || fail "socat"
wait %% || fail "socat at the other side"
cmp /tmp/data /tmp/got || fail "what came is not what was sent"
in_side 0 ping -6 -c 3 -i 0.3 -W 5 ff02::1%ib0 | tee /tmp/ping || fail "ping of all nodes"
grep -q "from $theirs" /tmp/ping || fail "the other side does not answer to all nodes"
no_complaints "IPoIB with offloads"

# Queues spread by RSS, and changed while there is traffic.
mark_kernel_log
(($(in_side 1 ethtool -l ib1 | awk '/^Combined:/ { print $2 }' | tail -n 1) > 1)) || fail "one queue alone"
for queue in 0 1; do (($(stat 1 "rx${queue}_packets") > 0)) || fail "nothing came by queue $queue"; done
in_side 0 timeout 60 ping -q -i 0.05 -w 20 -W 5 10.9.1.2 >/tmp/meanwhile &
in_side 1 ethtool -L ib1 combined 1 || fail "one queue"
in_side 1 ethtool -G ib1 rx 512 tx 256 || fail "smaller rings"
in_side 1 ethtool -C ib1 rx-usecs 16 || fail "moderation"
in_side 1 ip link set ib1 mtu 2044 && in_side 0 ip link set ib0 mtu 2044 || fail "MTU"
in_side 1 ethtool -L ib1 combined 2 || fail "two queues"
wait %% || { cat /tmp/meanwhile && fail "ping meanwhile"; }
both_ways ib 10.9.1 1900
in_side 1 ip link set ib1 down && in_side 1 ip link set ib1 up || fail "down and up"
within 60 carrier ib 1
both_ways ib 10.9.1 1900
no_complaints "changes"

# A child interface in another partition. Its parent's receive buffers, which it has too, are of its parent's MTU.
mark_kernel_log
for side in 0 1; do in_side $side ip link set "ib$side" mtu 4092 || fail "MTU 4092"; done
for side in 0 1; do
  grep -qi 0x8001 /sys/class/infiniband/mlx5_$side/ports/1/pkeys/* || fail "mlx5_$side is not in the partition"
  in_side $side ip link add link "ib$side" name "child$side" type ipoib pkey 0x8001 || fail "child of ib$side"
  in_side $side ip link set "child$side" up || fail "child$side up"
done
for side in 0 1; do within 60 carrier child $side; done
both_ways child 10.9.2 1900
both_ways ib 10.9.1 1900
for side in 0 1; do in_side $side ip link delete "child$side" || fail "delete child$side"; done
both_ways ib 10.9.1 1900
no_complaints "child interfaces"

# Over again.
mark_kernel_log
modprobe -r ib_ipoib || fail "unloading ib_ipoib"
modprobe ib_ipoib || fail "loading ib_ipoib"
for side in 0 1; do
  within 10 test -e "/sys/class/net/ib$side"
  ip link set "ib$side" netns "side$side" && in_side $side ip link set "ib$side" up || fail "ib$side again"
done
for side in 0 1; do within 60 carrier ib $side; done
both_ways ib 10.9.1 1900
no_complaints "the second time"
