# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,vfs=2,id=left,cable=right --hca link=eth,id=right
# An Ethernet card's switch in switchdev mode: representors of its virtual functions and of its port, in a bridge of the guest's, and what
# reaches whom: the virtual functions, each in a name space vfN, and another card at the far end of the cable, in the name space "far".
# $test_argument times (1) to and fro; "smfs": once, the driver writing the switch's tables itself.
rounds=${test_argument:-1}
by=dmfs
[[ $rounds != smfs ]] || rounds=1 by=smfs
mark_kernel_log
port=$(net_of "$pf")
far=$(net_of "/sys/bus/pci/devices/$(hca_addresses | tail -n 1)")
ip netns add far && ip link set "$far" netns far || fail "name space"
in_far ip link set lo up && in_far ip link set "$far" up && in_far ip address add 10.9.1.200/24 dev "$far" || fail "$far"
ip link set "$port" up || fail "$port"
received() { cat "/sys/class/net/$1/statistics/rx_packets"; }

round() {
  local vf rep net=()
  mode switchdev
  devlink dev eswitch show "pci/${pf##*/}" | grep -q 'mode switchdev' || fail "the mode is $(devlink dev eswitch show "pci/${pf##*/}")"
  ip link add name br0 type bridge && ip link set "$port" master br0 && ip link set br0 up || fail "bridge"
  for vf in 0 1; do
    rep[vf]=$(representor $vf)
    [[ -n ${rep[vf]} ]] || fail "virtual function $vf has no representor: $(devlink port show)"
    ip link set "${rep[vf]}" master br0 && ip link set "${rep[vf]}" up || fail "${rep[vf]}"
    basename "$(vf_of $vf)" >/sys/bus/pci/drivers/mlx5_core/bind || fail "bind of $vf"
    within 60 test -d "$pf/virtfn$vf/net"
    net[vf]=$(net_of "$(vf_of $vf)")
    ip netns add "vf$vf" && ip link set "${net[vf]}" netns "vf$vf" || fail "name space"
    in_vf $vf ip link set lo up && in_vf $vf ip link set "${net[vf]}" up && in_vf $vf ip address add "10.9.1.$((vf + 1))/24" dev "${net[vf]}" || fail "${net[vf]}"
    within 30 carrier $vf "${net[vf]}" 1
  done
  reaches "in_vf 0" 10.9.1.2
  reaches "in_vf 1" 10.9.1.200
  reaches in_far 10.9.1.1
  for vf in 0 1; do
    received "${rep[vf]}" >/dev/null # the driver asks for the next figures
    sleep 0.5
    (($(received "${rep[vf]}") > 0)) || fail "representor ${rep[vf]} has received nothing: $(ip -s link show "${rep[vf]}")"
  done
  tcp_between "in_vf 1" "in_vf 0" 10.9.1.2
  tcp_between in_far "in_vf 1" 10.9.1.200
  # A representor that is down takes the carrier from its function.
  ip link set "${rep[0]}" down || fail "down"
  within 20 carrier 0 "${net[0]}" 0
  ip link set "${rep[0]}" up || fail "up"
  within 20 carrier 0 "${net[0]}" 1
  reaches "in_vf 0" 10.9.1.200
  for vf in 0 1; do
    ip netns del "vf$vf" || fail "name space"
    basename "$(vf_of $vf)" >/sys/bus/pci/drivers/mlx5_core/unbind || fail "unbind"
  done
  ip link del br0 || fail "bridge"
  mode legacy
  note "round $1: ${rep[*]}"
}

echo 0 >"$pf/sriov_drivers_autoprobe"
echo 2 >"$pf/sriov_numvfs" || fail "two virtual functions"
echo 1 >"$pf/sriov_drivers_autoprobe"
steering $by
for ((i = 1; i <= rounds; i++)); do round $i; done
echo 0 >"$pf/sriov_numvfs" || fail "sriov_numvfs"
ip address add 10.9.1.100/24 dev "$port" && ip link set "$port" up || fail "$port"
reaches in_far 10.9.1.100
# In switchdev mode the driver says what of VLANs it leaves to the switch.
complaints=$(kernel_complaints | grep -v -e 'Dropping C-tag vlan stripping offload' -e 'Disabling HW_VLAN CTAG FILTERING')
[[ -z $complaints ]] || fail "the kernel complained: $complaints"
