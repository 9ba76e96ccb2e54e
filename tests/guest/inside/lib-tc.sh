# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# A card in switchdev mode whose rules TC gives, with another card at the far end of the cable (lib-sriov.sh).

# far_end: the last card, in the name space "far", as 10.9.1.200. Sets $port, the interface of the first card, and $far.
far_end() {
  port=$(net_of "$pf")
  far=$(net_of "/sys/bus/pci/devices/$(hca_addresses | tail -n 1)")
  ip netns add far && ip link set "$far" netns far || fail "name space"
  in_far ip link set lo up && in_far ip link set "$far" up && in_far ip address add 10.9.1.200/24 dev "$far" || fail "$far"
  ip link set "$port" up || fail "$port"
}
# switch_written_by: "smfs", if the test's argument says so, else "dmfs".
switch_written_by() { if [[ $test_argument == smfs ]]; then echo smfs; else echo dmfs; fi; }
# functions_there N: so many virtual functions, whose drivers are bound by hand.
functions_there() {
  echo 0 >"$pf/sriov_drivers_autoprobe"
  echo "$1" >"$pf/sriov_numvfs" || fail "$1 virtual functions"
  echo 1 >"$pf/sriov_drivers_autoprobe" # without it not even those are taken that somebody binds
}
# representors_up N: sets rep[N], the representors of the virtual functions.
representors_up() {
  local vf
  declare -ga rep
  for ((vf = 0; vf < $1; vf++)); do
    rep[vf]=$(representor "$vf")
    [[ -n ${rep[vf]} ]] || fail "virtual function $vf has no representor: $(devlink port show)"
    ip link set "${rep[vf]}" up || fail "${rep[vf]}"
  done
}
# to_switchdev N: switchdev mode with N virtual functions, which have no drivers yet.
to_switchdev() {
  functions_there "$1"
  steering "$(switch_written_by)"
  mode switchdev
  ip link set "$port" up || fail "$port"
  representors_up "$1"
}
# functions_up N: their drivers; each in the name space vfN as 10.9.1.(N + 1). Sets net[N].
functions_up() {
  local vf
  for ((vf = 0; vf < $1; vf++)); do function_up $vf "$(vf_of $vf)"; done
}
# function_up N FOLDER: the same of one function, whose folder in sysfs that is.
function_up() {
  declare -ga net
  basename "$2" >/sys/bus/pci/drivers/mlx5_core/bind || fail "bind of $1"
  within 60 test -d "$2/net"
  net[$1]=$(net_of "$2")
  ip netns add "vf$1" && ip link set "${net[$1]}" netns "vf$1" || fail "name space"
  in_vf "$1" ip link set lo up && in_vf "$1" ip link set "${net[$1]}" up && in_vf "$1" ip address add "10.9.1.$(($1 + 1))/24" dev "${net[$1]}" || fail "${net[$1]}"
  within 30 carrier "$1" "${net[$1]}" 1
}
functions_down() {
  local vf
  for ((vf = 0; vf < $1; vf++)); do
    ip netns del "vf$vf" || fail "name space"
    basename "$(vf_of $vf)" >/sys/bus/pci/drivers/mlx5_core/unbind || fail "unbind"
  done
}
to_legacy() {
  mode legacy
  echo 0 >"$pf/sriov_numvfs" || fail "sriov_numvfs"
}
tc_ready() {
  local dev
  for dev in "$@"; do ethtool -K "$dev" hw-tc-offload on && tc qdisc add dev "$dev" ingress || fail "hw-tc-offload on $dev"; done
}
# rule DEVICE ARGS...
rule() { tc filter add dev "$1" ingress "${@:2}" || fail "rule on $*: $(dmesg | tail -n 20)"; }
flush() {
  local dev
  for dev in "$port" "${rep[@]}"; do tc filter del dev "$dev" ingress || fail "$dev"; done
}
# neighbours_known: the ends send nothing but what the test has them send: they know one another, and there is no IPv6. Sets
# mac[N], whose address is 10.9.1.N.
neighbours_known() {
  declare -gA mac
  mac[1]=$(in_vf 0 cat "/sys/class/net/${net[0]}/address") mac[2]=$(in_vf 1 cat "/sys/class/net/${net[1]}/address")
  mac[200]=$(in_far cat "/sys/class/net/$far/address")
  knows "in_vf 0" "${net[0]}" && knows "in_vf 1" "${net[1]}" && knows in_far "$far"
}
knows() {
  local end
  $1 sysctl -qw "net.ipv6.conf.$2.disable_ipv6=1" || fail "IPv6"
  for end in 1 2 200; do $1 ip neigh replace "10.9.1.$end" lladdr "${mac[$end]}" nud permanent dev "$2" || fail "neighbour"; done
}
# by_software DEVICE: frames that a representor's own queues have received.
by_software() { ethtool -S "$1" | awk '$1 == "rx_packets:" { print $2 }'; }
# untouched TEXT COMMAND...: while the command runs, no representor's queues receive anything but what the ends' kernels do by themselves
# (ARP, neighbour discovery), some frames.
untouched() {
  local dev text=$1
  local -A before=()
  shift
  for dev in "$port" "${rep[@]}"; do before[$dev]=$(by_software "$dev"); done
  "$@"
  for dev in "$port" "${rep[@]}"; do
    (($(by_software "$dev") - before[$dev] < 12)) || fail "$text: $dev has received $(($(by_software "$dev") - before[$dev])) frames that rules take"
  done
}
# hits DEVICE [ARGS...]: packets that its rules have taken in the card.
hits() { tc -s filter show dev "$1" ingress "${@:2}" | awk '/Sent hardware/ { n += $5 } END { print n + 0 }'; }
# counts DEVICE N [ARGS...]: its rules have taken N packets or more, as the driver finds when it asks the card next, once in a second.
hits_are() { (($(hits "$1" "${@:3}") >= $2)); }
counts() { within 20 hits_are "$@"; }
is_parted() { if $1 ping -q -c 2 -i 0.2 -W 1 "$2" >/tmp/ping; then fail "$1 reaches $2, and should not"; fi; }
# What the driver says of VLANs in switchdev mode, and newer ones (7.3) of which table is active, is no complaint. And mlx5_ib of Debian's 6.1
# has a mistake of its own: what its cache of memory keys shows of representors lies at debugfs' root, a folder for each order, and stays
# there for the next time.
switchdev_words="debugfs: Directory '[0-9]+' with parent '/' already present|Dropping C-tag vlan stripping offload|Disabling HW_VLAN CTAG FILTERING|S-tagged traffic will be dropped|MPFS/FDB (in)?active"
switchdev_complaints() { kernel_complaints | grep -v -E "$switchdev_words"; }
