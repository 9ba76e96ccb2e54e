# SPDX-License-Identifier: BSD-3-Clause
# boot: --lockstep --hca link=eth,vfs=2,id=left,cable=right --hca link=eth,id=right
# Bounds of what a virtual function sends (ip link set PORT vf N max_tx_rate, min_tx_rate), measured in exact time: within 3 %.
mark_kernel_log
port=$(net_of "$pf")
far=$(net_of "/sys/bus/pci/devices/$(hca_addresses | tail -n 1)")
theirs=$(rdma_of "/sys/bus/pci/devices/$(hca_addresses | tail -n 1)")
ip netns add far && ip link set "$far" netns far || fail "name space"
ip link set "$port" up || fail "$port"
in_far ip link set "$far" up && in_far ip address add 10.9.1.200/24 dev "$far" || fail "$far"
echo 2 >"$pf/sriov_numvfs" || fail "sriov_numvfs"
for vf in 0 1; do
  within 120 test -d "$pf/virtfn$vf/infiniband"
  net=$(net_of "$(vf_of $vf)")
  rdma[vf]=$(rdma_of "$(vf_of $vf)")
  ip netns add "vf$vf" && ip link set "$net" netns "vf$vf" || fail "name space"
  in_vf $vf ip link set "$net" up && in_vf $vf ip address add "10.9.1.$((vf + 1))/24" dev "$net" || fail "$net"
done
for device in "${rdma[@]}" "$theirs"; do within 60 has_v2_gid "$device"; done
# shown PATTERN: ip link says so of virtual function 0.
shown() { ip link show "$port" | grep 'vf 0' | grep -q -- "$1" || fail "'$1' is not shown: $(ip link show "$port")"; }

# gbits CLIENT WRITES: of RDMA writes to the far card, with their headers: of 4096 bytes in four packets, each with Ethernet's
# header, FCS, IPv4, UDP, BTH and ICRC, the first with RETH.
gbits() {
  perftest_between "$theirs" "$1" ib_write_bw --report_gbits -m 1024 -s 4096 -n "$2"
  awk '$1 == 4096 { print $5 * 8 / 1000 * (4096 + 4 * (14 + 4 + 20 + 8 + 12 + 4) + 16) }' /tmp/between.client
}
# keeps CLIENT WRITES GBITS
keeps() {
  local rate
  rate=$(gbits "$1" "$2")
  note "$1 sends $rate Gb/s of $3"
  awk -v r="$rate" -v most="$3" 'BEGIN { exit !(r > most * 0.97 && r < most * 1.03) }' || fail "$1 sends $rate Gb/s, not $3"
}
# unbound CLIENT: more than any bound here.
unbound() {
  local rate
  rate=$(gbits "$1" 2000)
  note "$1 sends $rate Gb/s"
  awk -v r="$rate" 'BEGIN { exit !(r > 5) }' || fail "$1 sends $rate Gb/s and has no bound"
}
unbound "${rdma[0]}"
for mbits in 100 1000 4000; do
  ip link set "$port" vf 0 max_tx_rate $mbits || fail "max_tx_rate"
  shown "max_tx_rate ${mbits}Mbps"
  keeps "${rdma[0]}" $((mbits * 3)) "$(awk "BEGIN { print $mbits / 1000 }")"
done
unbound "${rdma[1]}"
# A least rate is a share among functions that want to send: alone its largest rate is what it gets.
ip link set "$port" vf 0 min_tx_rate 200 max_tx_rate 500 && ip link set "$port" vf 1 min_tx_rate 4000 || fail "min_tx_rate"
shown 'min_tx_rate 200Mbps'
keeps "${rdma[0]}" 1500 0.5
ip link set "$port" vf 0 min_tx_rate 0 max_tx_rate 0 && ip link set "$port" vf 1 min_tx_rate 0 || fail "no rate"
unbound "${rdma[0]}"
for vf in 0 1; do ip netns del "vf$vf" || fail "name space"; done
vfs 0
no_complaints "rates of virtual functions"
