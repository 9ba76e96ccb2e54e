# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Virtual functions of the first HCA.

pf=/sys/bus/pci/devices/$(hca_addresses | head -n 1)

# vf_of N: where virtual function N (from 0) is in sysfs.
vf_of() { readlink -f "$pf/virtfn$1"; }
# rdma_of FOLDER: the RDMA device of a PCI function; net_of: its interface.
rdma_of() { basename "$1"/infiniband/*; }
net_of() { basename "$1"/net/*; }

# functions_work: each HCA and virtual function comes up, its interface as well, and talks to itself.
functions_work() {
  local address device net
  local -a options
  for address in $(hca_addresses); do
    within 30 test -d "/sys/bus/pci/devices/$address/infiniband"
    device=$(rdma_of "/sys/bus/pci/devices/$address") options=()
    if [[ $(<"/sys/class/infiniband/$device/ports/1/link_layer") == Ethernet ]]; then
      within 30 test -d "/sys/bus/pci/devices/$address/net"
      net=$(net_of "/sys/bus/pci/devices/$address")
      ip link set "$net" up || fail "$net"
      options=(-g 0)
    fi
    wait_active "$device"
    pingpong -d "$device" "${options[@]}" -c -n 100
  done
}

# vfs N: as many virtual functions, each of them up if there are any.
vfs() {
  local count=$1 vf
  echo "$count" >"$pf/sriov_numvfs" || fail "sriov_numvfs $count"
  [[ $(<"$pf/sriov_numvfs") == "$count" ]] || fail "sriov_numvfs is $(<"$pf/sriov_numvfs"), not $count"
  for ((vf = 0; vf < count; vf++)); do
    within 60 test -d "$pf/virtfn$vf/infiniband"
    within 60 grep -q ACTIVE "$pf/virtfn$vf/infiniband/$(rdma_of "$pf/virtfn$vf")/ports/1/state"
  done
  [[ ! -e $pf/virtfn$count ]] || fail "there is a virtual function $count"
}

# devices COUNT: RDMA devices of the physical function and of so many virtual ones, in this order.
devices() {
  local vf
  rdma_of "$pf"
  for ((vf = 0; vf < $1; vf++)); do rdma_of "$pf/virtfn$vf"; done
}

# between SERVER CLIENT TOOL ARGS...: TOOL of rdma-core (ibv_...) between two RDMA devices of this guest. A packet to a virtual function
# has to name it by its GID.
between() {
  local server=$1 client=$2 port=${between_port:-18515} pid status=0
  shift 2
  on_cpu 0 timeout -k 5 60 "$@" -d "$server" -g 0 -p "$port" >/tmp/between.server 2>&1 &
  pid=$!
  until_listens "$port" "$pid" || fail "server: $* on $server: $(cat /tmp/between.server)"
  on_cpu 1 timeout -k 5 60 "$@" -d "$client" -g 0 -p "$port" localhost >/tmp/between.client 2>&1 || status=$?
  wait "$pid" || status=$?
  ((status == 0)) || fail "$* from $client to $server: status $status: $(cat /tmp/between.client /tmp/between.server)"
}
# path_gid_of DEVICE: index of the GID that paths start from: on Ethernet RoCE v2's over IPv4.
path_gid_of() {
  local v2
  v2=$(v2_gid_of "$1")
  echo "${v2:-0}"
}
# perftest_between SERVER CLIENT TOOL ARGS...: the same for perftest's.
perftest_between() {
  local server=$1 client=$2 pid status=0
  shift 2
  on_cpu 0 timeout -k 5 100 "$@" -F -d "$server" -x "$(path_gid_of "$server")" -p 18700 >/tmp/between.server 2>&1 &
  pid=$!
  until_listens 18700 "$pid" || fail "server: $* on $server: $(cat /tmp/between.server)"
  on_cpu 1 timeout -k 5 100 "$@" -F -d "$client" -x "$(path_gid_of "$client")" -p 18700 localhost >/tmp/between.client 2>&1 || status=$?
  wait "$pid" || status=$?
  ((status == 0)) || fail "$* from $client to $server: status $status: $(cat /tmp/between.client /tmp/between.server)"
}

# On Ethernet: interfaces of virtual functions are in name spaces vfN of their own.
# in_vf N COMMAND...
in_vf() { ip netns exec "vf$1" "${@:2}"; }
# v2_gid_of DEVICE: index of its RoCE v2 GID over IPv4.
v2_gid_of() {
  local index gid type at=/sys/class/infiniband/$1/ports/1
  for ((index = 0; index < 32; index++)); do
    gid=$(<"$at/gids/$index") && [[ $gid == 0000:0000:0000:0000:0000:ffff:* ]] || continue
    type=$(<"$at/gid_attrs/types/$index") && [[ $type == 'RoCE v2' ]] && echo "$index" && return
  done
}
# roce SERVER CLIENT ARGS...
roce() {
  local server=$1 client=$2 pid status=0
  shift 2
  on_cpu 0 timeout -k 5 60 "$@" -d "$server" -g "$(v2_gid_of "$server")" -p 18516 >/tmp/between.server 2>&1 &
  pid=$!
  until_listens 18516 "$pid" || fail "server: $* on $server: $(cat /tmp/between.server)"
  on_cpu 1 timeout -k 5 60 "$@" -d "$client" -g "$(v2_gid_of "$client")" -p 18516 localhost >/tmp/between.client 2>&1 || status=$?
  wait "$pid" || status=$?
  ((status == 0)) || fail "$* from $client to $server: status $status: $(cat /tmp/between.client /tmp/between.server)"
}
has_v2_gid() { [[ -n $(v2_gid_of "$1") ]]; }

# Switchdev mode, with another card in the name space "far".
in_far() { ip netns exec far "$@"; }
# steering dmfs|smfs: who writes the tables of the E-Switch in switchdev mode, the card's firmware or the driver itself.
steering() {
  devlink dev param set "pci/${pf##*/}" name flow_steering_mode value "$1" cmode runtime || fail "flow_steering_mode $1"
  devlink dev param show "pci/${pf##*/}" name flow_steering_mode | grep -q "value $1" || fail "flow_steering_mode is not $1"
}
# mode legacy|switchdev
mode() { devlink dev eswitch set "pci/${pf##*/}" mode "$1" || fail "mode $1: $(dmesg | tail -n 30)"; }
# port_named NAME: the interface with that phys_port_name. representor N: of virtual function N.
port_named() {
  local net
  for net in /sys/class/net/*; do
    if [[ $(cat "$net/phys_port_name" 2>/dev/null) == "$1" ]]; then basename "$net"; fi
  done
}
representor() { port_named "pf0vf$1"; }
# carrier N INTERFACE 0|1: of virtual function N, which is in its name space.
carrier() { in_vf "$1" grep -qs "$3" "/sys/class/net/$2/carrier"; }
# reaches "PREFIX" ADDRESS
reaches() { $1 ping -q -c 3 -i 0.2 -W 5 "$2" >/tmp/ping || fail "no way: $1 to $2: $(cat /tmp/ping; what_is_known; dmesg | tail)"; }
# what_is_known: addresses, neighbours and counters in all name spaces, and what bridges have learned.
what_is_known() {
  local space
  ip -s link; ip -br address; ip -s neigh; bridge -s fdb show
  for space in $(ip netns list | cut -d" " -f1); do
    echo "name space $space:"; ip -n "$space" -s link; ip -n "$space" -br address; ip -n "$space" -s neigh
  done
}

# give_to_vfio FUNCTION: to vfio-pci; take_from_vfio FUNCTION: back to the kernel's driver.
give_to_vfio() {
  local device=/sys/bus/pci/devices/$1
  modprobe -a vfio-pci vfio_iommu_type1 || fail "modules"
  [[ ! -e $device/driver ]] || echo "$1" >"$device/driver/unbind" || fail "unbind of $1"
  echo vfio-pci >"$device/driver_override" && echo "$1" >/sys/bus/pci/drivers_probe || fail "vfio-pci for $1"
  [[ $(basename "$(readlink "$device/driver")") == vfio-pci ]] || fail "$1 is not vfio-pci's"
  [[ -c /dev/vfio/$(basename "$(readlink "$device/iommu_group")") ]] || fail "no group of $1 in /dev/vfio"
  [[ $(ls "$device/iommu_group/devices") == "$1" ]] || fail "$1 shares its group: $(ls "$device/iommu_group/devices")"
}
take_from_vfio() {
  echo "$1" >/sys/bus/pci/drivers/vfio-pci/unbind && echo >"/sys/bus/pci/devices/$1/driver_override" && echo "$1" >/sys/bus/pci/drivers_probe ||
    fail "mlx5_core for $1"
}
