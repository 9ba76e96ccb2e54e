# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,sfs=4,id=left,cable=right --hca link=eth,id=right
# modules: build-mlx5-modules
# ask: -
# Sub-functions of an Ethernet card in switchdev mode, with the kernel's own drivers built with MLX5_SF: two of them, made, configured and
# ended by devlink, $test_argument times (2). Their interfaces, each in a name space sfN, reach one another and another card at the far end
# of the cable (name space "far") by way of their representors and a bridge; RoCE between all of these; and nothing is left of them.
rounds=${test_argument:-2}
mark_kernel_log
within 60 test -d "$pf/net"
port=$(net_of "$pf")
other=/sys/bus/pci/devices/$(hca_addresses | tail -n 1)
within 60 test -d "$other/infiniband"
far=$(net_of "$other") theirs=$(rdma_of "$other")
ip netns add far && ip link set "$far" netns far || fail "name space"
in_far ip link set lo up && in_far ip link set "$far" up && in_far ip address add 10.9.1.200/24 dev "$far" || fail "$far"
ip link set "$port" up || fail "$port"
in_sf() { ip netns exec "sf$1" "${@:2}"; }
# Where sub-function N is in sysfs.
sf_of() {
  local device
  for device in /sys/bus/auxiliary/devices/mlx5_core.sf.*; do
    if [[ $(cat "$device/sfnum" 2>/dev/null) == "$1" ]]; then echo "$device"; fi
  done
}
is_there() { [[ -n $(sf_of "$1") ]]; }
is_gone() { [[ -z $(sf_of "$1") ]]; }
has_both() { [[ -d $(sf_of "$1")/net && -d $(sf_of "$1")/infiniband ]]; }
sf_state() { devlink port show "$1" | grep -q "$2"; }
has_carrier() { in_sf "$1" grep -qs 1 "/sys/class/net/$2/carrier"; }

# switch_on N: the interfaces of sub-function N. 6.1 brings them up by itself, 6.12 when they are asked for.
switch_on() {
  local device what asked=
  device=auxiliary/$(basename "$(sf_of "$1")")
  for what in enable_eth enable_roce enable_rdma; do
    devlink dev param show "$device" name "$what" | grep -q 'value false' || continue
    devlink dev param set "$device" name "$what" value true cmode driverinit || fail "$device: $what"
    asked+=" $what"
  done
  [[ -z $asked ]] || devlink dev reload "$device" || fail "$device: reload"
}

# make N: sub-function N, in the bridge and with an address.
declare -a index net rdma rep # by number
make() {
  local n=$1
  devlink port add "pci/${pf##*/}" flavour pcisf pfnum 0 sfnum "$n" >/tmp/added || fail "port add: $(cat /tmp/added)"
  rep[$n]=$(port_named "pf0sf$n")
  [[ -n ${rep[$n]} ]] || fail "sub-function $n has no representor: $(devlink port show)"
  index[$n]=$(devlink port show | sed -n "s/^\\(pci[^:]*:[^:]*:[^:]*\\): .*sfnum $n .*/\\1/p")
  sf_state "${index[$n]}" 'state inactive opstate detached' || fail "$(devlink port show "${index[$n]}")"
  ip link set "${rep[$n]}" master br0 && ip link set "${rep[$n]}" up || fail "${rep[$n]}"
  is_gone "$n" || fail "sub-function $n is there before it is active"
  devlink port function set "${index[$n]}" hw_addr "02:00:00:00:00:$n" state active || fail "port function set"
  within 60 is_there "$n"
  switch_on "$n"
  within 60 has_both "$n"
  within 10 sf_state "${index[$n]}" 'state active opstate attached'
  net[$n]=$(net_of "$(sf_of "$n")") rdma[$n]=$(rdma_of "$(sf_of "$n")")
  [[ $(<"/sys/class/net/${net[$n]}/address") == "02:00:00:00:00:$n" ]] || fail "sub-function $n has $(<"/sys/class/net/${net[$n]}/address")"
  ip netns add "sf$n" && ip link set "${net[$n]}" netns "sf$n" || fail "name space"
  in_sf "$n" ip link set lo up && in_sf "$n" ip link set "${net[$n]}" up && in_sf "$n" ip address add "10.9.1.$n/24" dev "${net[$n]}" || fail "${net[$n]}"
  within 30 has_carrier "$n" "${net[$n]}"
  within 30 has_v2_gid "${rdma[$n]}"
  note "${index[$n]}: ${rep[$n]} ${net[$n]} ${rdma[$n]}"
}
end() {
  local n=$1
  ip netns del "sf$n" || fail "name space"
  devlink port function set "${index[$n]}" state inactive || fail "inactive"
  within 30 is_gone "$n"
  within 30 sf_state "${index[$n]}" 'state inactive opstate detached'
  devlink port del "${index[$n]}" || fail "port del"
  [[ -z $(port_named "pf0sf$n") ]] || fail "its representor is still there"
}

mode switchdev
ip link add name br0 type bridge && ip link set "$port" master br0 && ip link set br0 up || fail "bridge"
for ((i = 1; i <= rounds; i++)); do
  make 88
  reaches "in_sf 88" 10.9.1.200
  if ((i == 1)); then
    make 89
    reaches "in_sf 89" 10.9.1.88
    reaches in_far 10.9.1.89
    tcp_between "in_sf 89" "in_sf 88" 10.9.1.89
    tcp_between in_far "in_sf 88" 10.9.1.200
    roce "${rdma[88]}" "${rdma[89]}" ibv_rc_pingpong -c -s 65536 -n 50
    roce "$theirs" "${rdma[89]}" ibv_rc_pingpong -c -s 4096 -n 50
    roce "${rdma[88]}" "$theirs" ibv_ud_pingpong -c -s 1024 -n 50
    # One that is deleted while it is in use goes as well.
    ip netns del sf89 || fail "name space"
    devlink port del "${index[89]}" || fail "port del"
    within 30 is_gone 89
  else
    roce "$theirs" "${rdma[88]}" ibv_rc_pingpong -c -s 65536 -n 10
  fi
  end 88
  objects=$(ask objects)
  note "round $i"
  [[ $i == 1 || $objects == "$before" ]] || fail "before there were $before"
  before=$objects
done
note "$objects"
ip link del br0 || fail "bridge"
mode legacy
rmmod mlx5_ib && rmmod mlx5_core || fail "rmmod"
# In switchdev mode the driver says what of VLANs it leaves to the switch.
complaints=$(kernel_complaints | grep -v -e 'Dropping C-tag vlan stripping offload' -e 'Disabling HW_VLAN CTAG FILTERING')
[[ -z $complaints ]] || fail "the kernel complained: $complaints"
