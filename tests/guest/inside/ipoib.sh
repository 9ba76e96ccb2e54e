# SPDX-License-Identifier: BSD-3-Clause
# from: snapshot
# boot: --hca link=ib,id=left,cable=right --hca link=ib,id=right
# IPoIB between two HCAs of one guest, each with its interface in a network namespace of its own.
mark_kernel_log
wait_active mlx5_0
wait_active mlx5_1
modprobe ib_ipoib || fail "ib_ipoib"
for side in 0 1; do
  ip netns add "side$side" || fail "namespaces"
  for dir in /sys/class/net/*; do
    [[ $(<"$dir/type") == 32 && -e $dir/device/infiniband/mlx5_$side ]] && interface=${dir##*/}
  done
  ip link set "$interface" netns "side$side" || fail "$interface into a namespace"
  [[ $interface == "ib$side" ]] || fail "mlx5_$side has $interface"
  ip -n "side$side" link set "$interface" up && ip -n "side$side" link set lo up &&
    ip -n "side$side" address add "10.9.1.$((side + 1))/24" dev "$interface" || fail "$interface"
done
in_side() { ip netns exec "side$1" "${@:2}"; }
for side in 0 1; do
  end=$((SECONDS + 60))
  until [[ $(in_side $side cat "/sys/class/net/ib$side/carrier") == 1 ]]; do
    ((SECONDS < end)) || fail "ib$side has no carrier"
    sleep 0.2
  done
done
# both_ways SIZE
both_ways() {
  local side other
  for side in 0 1; do
    other=$((1 - side))
    in_side $side ping -q -c 10 -i 0.2 -W 5 "10.9.1.$((other + 1))" || fail "ping from side $side"
    in_side $side ping -q -c 10 -i 0.2 -W 5 -M 'do' -s "$1" "10.9.1.$((other + 1))" || fail "ping of $1 bytes from side $side"
    tcp_between "in_side $other" "in_side $side" "10.9.1.$((other + 1))"
  done
}
both_ways 4000
no_complaints "IPoIB, datagrams"
for side in 0 1; do
  in_side "$side" sh -c "echo connected >/sys/class/net/ib$side/mode" && ip -n "side$side" link set "ib$side" mtu 65520 || fail "connected mode"
done
mark_kernel_log
both_ways 60000
no_complaints "IPoIB, connected"
