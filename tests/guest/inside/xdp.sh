# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,id=left,cable=right --hca link=eth,id=right --mem 3G
# disk: package-disk programs libfabric-bin ibverbs-providers perftest iproute2 xdp-tools ibutils dash
# program: af_xdp
# XDP in native mode, by xdp-tools of Debian 13: xdp-trafficgen sends by way of one HCA's XDP queues, the other one drops, sends back
# (XDP_TX) or redirects each frame, and the driver's counters say how many. Then AF_XDP sockets in zero-copy mode at both ends.
mark_kernel_log
for side in 0 1; do
  interface[side]=$(ls "/sys/class/infiniband/mlx5_$side/device/net")
  ip link set "${interface[side]}" up || fail "ip link set up"
  echo 1 >"/proc/sys/net/ipv6/conf/${interface[side]}/disable_ipv6"
done
for side in 0 1; do wait_active mlx5_$side; done
mount -t bpf none /sys/fs/bpf 2>/dev/null || mountpoint -q /sys/fs/bpf || fail "no bpffs"
package_roots
counter() { ethtool -S "${interface[$1]}" | awk -v name="$2:" '$1 == name { print $2 }'; }
# bench NAME ARGUMENTS...: with its output in /tmp/bench.NAME.
bench() { timeout -s INT 120 chroot /tmp/roots/13 xdp-bench "${@:2}" -i 1 >"/tmp/bench.$1" 2>&1 </dev/null & benches+=("$!"); }
has_program() { ip -details link show dev "${interface[$1]}" | grep -q 'prog/xdp id'; }
is_attached() {
  alive "${benches[@]}" || fail "xdp-bench has ended by itself: $(tail -n 20 /tmp/bench.*)"
  has_program "$1"
}
chroot /tmp/roots/13 xdp-loader features "${interface[0]}" || fail "xdp-loader"
ip link set dev "${interface[0]}" mtu 1500 && ip link set dev "${interface[1]}" mtu 1500 || fail "mtu"
# Fewer than a receive queue has buffers (1024): they come at once.
frames=600
# What the counter number i of names has gone up by.
grown() { echo $(($(counter "${names[i]%%:*}" "${names[i]#*:}") - before[i])); }
has_grown() { (($(grown) >= frames)); }
# run WHAT ARGUMENTS -- SIDE:COUNTER...: the right one does WHAT; each of these of its counters goes up by all frames.
run() {
  local what=$1 name
  local -a arguments=() before=() names=()
  benches=()
  shift
  while [[ $1 != -- ]]; do arguments+=("$1") && shift; done
  shift
  names=("$@")
  bench left drop -m native "${interface[0]}"
  bench right "$what" "${arguments[@]}"
  for side in 0 1; do within 30 is_attached $side; done
  for side in 0 1; do within 30 grep -q 1 "/sys/class/net/${interface[side]}/carrier"; done
  for name in "${names[@]}"; do before+=("$(counter "${name%%:*}" "${name#*:}")"); done
  # Its status is not 0 when it is done: the counters say what it has sent.
  timeout 60 chroot /tmp/roots/13 xdp-trafficgen udp -n $frames -M "$(<"/sys/class/net/${interface[0]}/address")" \
    -m "$(<"/sys/class/net/${interface[1]}/address")" "${interface[0]}" >/tmp/generator 2>&1 </dev/null || note "xdp-trafficgen: status $?: $(tail -n 3 /tmp/generator)"
  for i in "${!names[@]}"; do within 20 has_grown; done
  alive "${benches[@]}" || fail "xdp-bench has ended by itself: $(tail -n 20 /tmp/bench.*)"
  kill -INT "${benches[@]}"
  for i in "${benches[@]}"; do wait "$i" || fail "xdp-bench: status $?: $(tail -n 20 /tmp/bench.*)"; done
  for i in "${!names[@]}"; do
    name=${names[i]}
    grew=$(grown)
    note "$what: ${interface[${name%%:*}]} ${name#*:} +$grew"
    ((grew <= frames + 8)) || fail "$what: ${name#*:} went up by $grew, not $frames: $(ethtool -S "${interface[1]}" | grep -E "out_of_buffer|xdp" | grep -v ": 0") $(tail -n 20 /tmp/bench.right /tmp/generator)"
  done
}
run drop -m native "${interface[1]}" -- 0:tx_xdp_xmit 1:rx_xdp_drop
run tx -p swap-macs -m native "${interface[1]}" -- 0:tx_xdp_xmit 1:rx_xdp_tx_xmit 0:rx_xdp_drop
run redirect -m native "${interface[1]}" "${interface[1]}" -- 0:tx_xdp_xmit 1:rx_xdp_redirect 1:tx_xdp_xmit 0:rx_xdp_drop
# Zero copy, both ways, with buffers of all sizes that the driver has a way of its own for.
zero_copy() {
  local from said
  for from in 0 1; do
    said=$(af_xdp "${interface[from]}" "${interface[1 - from]}" 3000 "$@" 2>&1) ||
      fail "AF_XDP, buffers of $*: $said; $(for side in 0 1; do ethtool -S "${interface[side]}" | grep xsk | grep -v ': 0'; done)"
    note "buffers of $*: $said"
  done
}
zero_copy 4096
zero_copy 2048
zero_copy 4096 unaligned
zero_copy 3072 unaligned
zero_copy 2048 unaligned
no_complaints "XDP"
zero_copy 2560 unaligned # of which the driver itself says that it is slow
