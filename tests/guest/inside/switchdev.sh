# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,vfs=2,id=left,cable=right --hca link=eth,id=right
# An Ethernet card's switch in switchdev mode: representors of its virtual functions and of its port, in a bridge of the guest's, and what
# reaches whom: the virtual functions, each in a name space vfN, and another card at the far end of the cable, in the name space "far".
# $test_argument times (1) to and fro.
rounds=${test_argument:-1}
mark_kernel_log
port=$(net_of "$pf")
far=$(net_of "/sys/bus/pci/devices/$(hca_addresses | tail -n 1)")
ip netns add far && ip link set "$far" netns far || fail "name space"
in_far() { ip netns exec far "$@"; }
in_far ip link set lo up && in_far ip link set "$far" up && in_far ip address add 10.9.1.200/24 dev "$far" || fail "$far"
ip link set "$port" up || fail "$port"
mode() { devlink dev eswitch set "pci/${pf##*/}" mode "$1" || fail "mode $1: $(dmesg | tail -n 30)"; }
# representor N: the interface of virtual function N's.
representor() {
  local net
  for net in /sys/class/net/*; do
    if [[ $(cat "$net/phys_port_name" 2>/dev/null) == "pf0vf$1" ]]; then basename "$net"; fi
  done
}
carrier() { in_vf "$1" grep -qs "$3" "/sys/class/net/$2/carrier"; }
reaches() { $1 ping -q -c 3 -i 0.2 -W 5 "$2" >/tmp/ping || fail "no way: $1 to $2: $(cat /tmp/ping; ip -s link; dmesg | tail)"; }
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
for ((i = 1; i <= rounds; i++)); do round $i; done
echo 0 >"$pf/sriov_numvfs" || fail "sriov_numvfs"
ip address add 10.9.1.100/24 dev "$port" && ip link set "$port" up || fail "$port"
reaches in_far 10.9.1.100
# In switchdev mode the driver says what of VLANs it leaves to the switch; 6.1 also, what of TC is not offered.
complaints=$(kernel_complaints | grep -v -e 'Dropping C-tag vlan stripping offload' -e 'Disabling HW_VLAN CTAG FILTERING' \
  -e "Tc chains and priorities offload aren't supported" -e 'mlx5e_tc_post_act_init.*firmware level support is missing')
[[ -z $complaints ]] || fail "the kernel complained: $complaints"
