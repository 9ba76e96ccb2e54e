# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,mac=00:02:c9:12:34:56 --no-modprobe
# The network interface and the RoCE device come up, follow the carrier, go and come back; the kernel has nothing to
# complain about.
netdev() { for d in /sys/class/net/*; do [[ $(cat "$d/address") == 00:02:c9:12:34:56 ]] && echo "${d##*/}"; done; }
# carrier DEVICE 0|1
carrier() {
  local end=$((SECONDS + 30))
  until [[ $(cat "/sys/class/net/$1/carrier" 2>/dev/null) == "$2" ]]; do
    ((SECONDS < end)) || fail "the carrier of $1 is not $2"
    sleep 0.1
  done
}

mark_kernel_log
modprobe mlx5_ib || fail "modprobe mlx5_ib"
hca_drivers || fail "modprobe"
dmesg | grep -i mlx5
dev=$(netdev)
[[ -n $dev ]] || fail "no network interface has the MAC address of mac="
[[ $(ethtool -i "$dev" | sed -n 's/^driver: //p') == mlx5_core ]] || fail "$dev is not mlx5_core's"
ip link set "$dev" up || fail "ip link set up"
carrier "$dev" 1
wait_active mlx5_0
ip addr add 10.0.0.1/24 dev "$dev"
has_gids() {
  local want
  ibv_devinfo -v >/tmp/devinfo || fail "ibv_devinfo -v: status $?"
  for want in 'link_layer:.*Ethernet' 'GID\[.*RoCE v1' 'GID\[.*fe80::.*RoCE v2' 'GID\[.*::ffff:10.0.0.1, RoCE v2'; do
    grep -q "$want" /tmp/devinfo || return 1
  done
}
within 20 has_gids # the addresses of the interface become entries of its table in the kernel's own time
note "RoCE device with its GIDs"
[[ $(<"/sys/class/infiniband/mlx5_0/ports/1/hw_counters/rx_icrc_encapsulated") == 0 ]] || fail "rx_icrc_encapsulated"
for round in {1..20}; do
  ip link set "$dev" down || fail "round $round: down"
  ip link set "$dev" up || fail "round $round: up"
done
carrier "$dev" 1
note "down and up, 20 times"
ip link set "$dev" mtu 9000 || fail "mtu 9000"
[[ $(<"/sys/class/net/$dev/mtu") == 9000 ]] || fail "the MTU is $(<"/sys/class/net/$dev/mtu")"
carrier "$dev" 1
no_complaints "bringing the interface up"
for round in 1 2 3; do
  modprobe -r ib_umad 2>/dev/null
  modprobe -r mlx5_ib mlx5_core || fail "round $round: modprobe -r"
  [[ -z $(netdev) ]] || fail "round $round: the interface is still there"
  hca_drivers || fail "round $round: modprobe"
  dev=$(netdev)
  ip link set "$dev" up || fail "round $round: ip link set up"
  carrier "$dev" 1
  note "reload $round"
done
wait_active mlx5_0
no_complaints "modprobe -r and back"
