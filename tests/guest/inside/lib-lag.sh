# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Bonds of the two ports of the first card, p0 and p1.

# lag_cards: the first card's ports p0 and p1, and another card in the name space "far": far, far_rdma. Sets addresses, too.
lag_cards() {
  mapfile -t addresses < <(hca_addresses)
  p0=$(net_of "/sys/bus/pci/devices/${addresses[0]}")
  p1=$(net_of "/sys/bus/pci/devices/${addresses[1]}")
  far=$(net_of "/sys/bus/pci/devices/${addresses[2]}")
  # shellcheck disable=SC2034 # for the scripts
  far_rdma=$(rdma_of "/sys/bus/pci/devices/${addresses[2]}")
  ip netns add far && ip link set "$far" netns far || fail "name space"
  in_far ip link set lo up && in_far ip link set "$far" up && in_far ip address add 10.9.1.200/24 dev "$far" || fail "$far"
}
# ports_to_switchdev: the switches of both ports, whose functions addresses and folders are, each with a virtual function without a driver.
ports_to_switchdev() {
  local port
  for port in 0 1; do
    echo 0 >"${folders[port]}/sriov_drivers_autoprobe"
    echo 1 >"${folders[port]}/sriov_numvfs" || fail "a virtual function of port $port"
    echo 1 >"${folders[port]}/sriov_drivers_autoprobe"
    devlink dev eswitch set "pci/${addresses[port]}" mode switchdev || fail "switchdev: $(dmesg | tail)"
  done
}
# representor_of PORT: of its virtual function.
representor_of() { port_named "pf$1vf0"; }

# bond MODE OPTIONS...: both ports in bond0.
bond() {
  local port
  modprobe bonding max_bonds=0
  ip link add bond0 type bond mode "$1" miimon 50 "${@:2}" || fail "bond $*"
  for port in "$p0" "$p1"; do
    ip link set "$port" down && ip link set "$port" master bond0 || fail "$port into the bond"
  done
  ip link set bond0 up && ip address add 10.9.1.100/24 dev bond0 || fail "bond0"
}
unbond() {
  ip link del bond0 || fail "bond0"
  ip link set "$p0" up && ip link set "$p1" up || fail "ports"
}
# What bonds say in order: of LACP before the other end has answered, or when its ports leave one by one; of a port whose speed is not known
# at the moment that its link comes up.
bond_words='No 802.3ad response from the link partner|could not find a new aggregator for its ports|failed to get link speed/duplex|speed changed to 0 on port'
# mark_again WHAT [PATTERN]: no complaint until now, and the log is marked anew.
mark_again() {
  no_complaints "$1" "$bond_words${2:+|$2}"
  mark_kernel_log
}
# is_rdma DEVICE: there is one of that name.
is_rdma() { test -d "/sys/class/infiniband/$1"; }
# physical PORT: frames that have left it.
physical() { ethtool -S "$1" | awk '$1 == "tx_packets_phy:" { print $2 }'; }
# sends PORT: within some seconds 1000 frames more have left by it.
has_sent() { (($(physical "$1") >= $2)); }
sends() { within 20 has_sent "$1" $(($(physical "$1") + 1000)); }
active() { cat /sys/class/net/bond0/bonding/active_slave; }
# leave_by PORT OTHER COUNT COMMAND...: at least COUNT frames leave by PORT meanwhile, and few by OTHER.
leave_by() {
  local one other before=("$(physical "$1")" "$(physical "$2")")
  "${@:4}"
  one=$(($(physical "$1") - before[0])) other=$(($(physical "$2") - before[1]))
  ((one >= $3 && other < $3 / 4 + 20)) || fail "$one frames have left by $1, $other by $2: ${*:4}"
  note "$one frames by $1, $other by $2: ${*:4}"
}
# start_writes DEVICE ARGS...: ib_write_bw from it to the far card's. It waits longer for acknowledgements than by default, 0.5 s in all: the
# drivers of an emulated guest take as long to find another port.
start_writes() {
  local device=$1
  shift
  on_cpu 0 timeout -k 5 120 ib_write_bw -F -u 17 -d "$far_rdma" -x "$(v2_gid_of "$far_rdma")" -p 18800 "$@" >/tmp/writes.server 2>&1 &
  writes_server=$!
  until_listens 18800 "$writes_server" || fail "ib_write_bw: $(cat /tmp/writes.server)"
  on_cpu 1 timeout -k 5 120 ib_write_bw -F -u 17 -d "$device" -x "$(v2_gid_of "$device")" -p 18800 "$@" localhost >/tmp/writes.client 2>&1 &
  writes_client=$!
}
end_writes() {
  local status=0
  wait "$writes_client" || status=$?
  wait "$writes_server" || status=$?
  ((status == 0)) || fail "ib_write_bw: status $status: $(cat /tmp/writes.client /tmp/writes.server; dmesg | tail -n 20)"
  awk '/65536/ { print "   " $0 }' /tmp/writes.client
}
writes() { start_writes "$@" && end_writes; }
