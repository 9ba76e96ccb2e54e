# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib,vfs=2,options=ipoib_offloads=on
# IPoIB by mlx5's own queues between the physical function of a card and its virtual ones, whose packets stay within the card.
wait_active mlx5_0
mark_kernel_log
vfs 2
modprobe ib_ipoib || fail "ib_ipoib"
functions=("$pf" "$(vf_of 0)" "$(vf_of 1)") names=()
for n in 0 1 2; do
  within 20 test -d "${functions[n]}/net"
  names[n]=$(net_of "${functions[n]}")
  [[ $(ethtool -i "${names[n]}") == *"mlx5_core[ib_ipoib]"* ]] || fail "${names[n]} is not mlx5's"
  ip netns add "f$n" && ip link set "${names[n]}" netns "f$n" && ip -n "f$n" address add "10.9.1.$((n + 1))/24" dev "${names[n]}" &&
    ip -n "f$n" link set "${names[n]}" up || fail "${names[n]}"
done
in_side() { ip netns exec "f$1" "${@:2}"; }
carrier() { [[ $(in_side "$1" cat "/sys/class/net/${names[$1]}/carrier") == 1 ]]; }
for n in 0 1 2; do within 60 carrier $n; done
for from in 0 1 2; do
  for to in 0 1 2; do
    ((from != to)) || continue
    in_side $from ping -q -c 3 -i 0.2 -W 5 -s 3000 "10.9.1.$((to + 1))" || fail "ping from function $from to $to"
    tcp_between "in_side $to" "in_side $from" "10.9.1.$((to + 1))" -n 8M
  done
done
for n in 0 1 2; do
  (($(in_side $n ethtool -S "${names[n]}" | awk '$1 == "tx_tso_packets:" { print $2 }') > 50)) || fail "function $n has made segments itself"
done
# The driver of a virtual function that goes takes its interface with it; the others work on.
echo "$(basename "$(vf_of 0)")" >/sys/bus/pci/drivers/mlx5_core/unbind || fail "unbind"
in_side 0 ping -q -c 3 -i 0.2 -W 5 10.9.1.3 || fail "ping while a function is gone"
vfs 0
no_complaints "IPoIB of virtual functions"
