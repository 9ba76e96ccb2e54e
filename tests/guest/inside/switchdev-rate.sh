# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,vfs=2,id=left,cable=right --hca link=eth,id=right
# Rates of virtual functions in switchdev mode as devlink has them: of a function, of a group of functions, shares. What is sent is TCP to
# another card at the far end of the cable; rates are those that a slow machine keeps up with (tests/device EthVfRate has them to 3 %).
mark_kernel_log
card=pci/${pf##*/}
port=$(net_of "$pf")
far=$(net_of "/sys/bus/pci/devices/$(hca_addresses | tail -n 1)")
ip netns add far && ip link set "$far" netns far || fail "name space"
in_far ip link set lo up && in_far ip link set "$far" up && in_far ip address add 10.9.1.200/24 dev "$far" || fail "$far"
ip link set "$port" up || fail "$port"
echo 0 >"$pf/sriov_drivers_autoprobe"
echo 2 >"$pf/sriov_numvfs" || fail "two virtual functions"
echo 1 >"$pf/sriov_drivers_autoprobe"
mode switchdev
ip link add name br0 type bridge && ip link set "$port" master br0 && ip link set br0 up || fail "bridge"
for vf in 0 1; do
  rep=$(representor $vf)
  ip link set "$rep" master br0 && ip link set "$rep" up || fail "representor $vf"
  basename "$(vf_of $vf)" >/sys/bus/pci/drivers/mlx5_core/bind || fail "bind of $vf"
  within 60 test -d "$pf/virtfn$vf/net"
  net[vf]=$(net_of "$(vf_of $vf)")
  # The function's devlink port: "pci/ADDRESS/INDEX: ...".
  function[vf]=$(devlink port show | sed -nE "s,^($card/[0-9]+): .*flavour pcivf .*vfnum $vf( .*)?\$,\1,p")
  [[ -n ${function[vf]} ]] || fail "virtual function $vf has no port: $(devlink port show)"
  ip netns add "vf$vf" && ip link set "${net[vf]}" netns "vf$vf" || fail "name space"
  in_vf $vf ip link set lo up && in_vf $vf ip link set "${net[vf]}" up && in_vf $vf ip address add "10.9.1.$((vf + 1))/24" dev "${net[vf]}" || fail "${net[vf]}"
  within 30 carrier $vf "${net[vf]}" 1
  reaches "in_vf $vf" 10.9.1.200
done
rate() { devlink port function rate "$@" || fail "devlink port function rate $*: $(dmesg | tail -n 5)"; }
# mbits VF BYTES: what it sends; all of both with "0 1".
mbits() {
  local vf
  for vf in $1; do
    in_far timeout 100 iperf3 -s -1 -p "520$vf" >"/tmp/server.$vf" 2>&1 &
  done
  sleep 1
  for vf in $1; do in_vf "$vf" timeout 100 iperf3 -c 10.9.1.200 -p "520$vf" -n "$2" -f k >"/tmp/client.$vf" 2>&1 & done
  wait
  for vf in $1; do awk '/receiver/ { for (i = 2; i <= NF; i++) if ($i ~ /bits\/sec/) printf "%.1f ", $(i - 1) / 1000; found = 1 } END { exit !found }' "/tmp/client.$vf" || fail "iperf3: $(cat "/tmp/client.$vf" "/tmp/server.$vf")"; done
}
# keeps LEAST MOST MBITS...: each.
keeps() {
  local least=$1 most=$2 rate
  shift 2
  note "$* Mb/s"
  for rate; do awk -v r="$rate" -v l="$least" -v m="$most" 'BEGIN { exit !(r >= l && r <= m) }' || fail "$rate Mb/s, not $least to $most"; done
}
# shellcheck disable=SC2046 # a figure each
{
  keeps 15 100000 $(mbits 0 4M)
  # One function.
  rate set "${function[0]}" tx_max 10mbit
  devlink port function rate show "${function[0]}" | grep -q 'tx_max 10Mbit' || fail "shown: $(devlink port function rate show)"
  keeps 3 10 $(mbits 0 2M)
  keeps 15 100000 $(mbits 1 4M)
  rate set "${function[0]}" tx_max 0
  # A group, whose rate its functions have together.
  rate add "$card/group"
  rate set "$card/group" tx_max 12mbit
  for vf in 0 1; do rate set "${function[vf]}" parent group; done
  devlink port function rate show "${function[1]}" | grep -q 'parent group' || fail "shown: $(devlink port function rate show)"
  keeps 3 12 $(mbits 1 2M)
  read -r first second <<<"$(mbits "0 1" 1500K)"
  keeps 1 11 "$first" "$second"
  keeps 3 16 "$(awk -v a="$first" -v b="$second" 'BEGIN { print a + b }')"
  # A share of it: three of four parts are the first function's.
  rate set "${function[0]}" tx_share 9mbit
  rate set "${function[1]}" tx_share 3mbit
  read -r first second <<<"$(mbits "0 1" 1500K)"
  note "with shares of 3 to 1: $first and $second Mb/s"
  awk -v a="$first" -v b="$second" 'BEGIN { exit !(a > 1.2 * b) }' || fail "shares are not kept"
  for vf in 0 1; do rate set "${function[vf]}" tx_share 0 && rate set "${function[vf]}" noparent; done
  rate del "$card/group"
  keeps 15 100000 $(mbits 0 4M)
}
for vf in 0 1; do
  ip netns del "vf$vf" || fail "name space"
  basename "$(vf_of $vf)" >/sys/bus/pci/drivers/mlx5_core/unbind || fail "unbind"
done
ip link del br0 || fail "bridge"
mode legacy
echo 0 >"$pf/sriov_numvfs" || fail "sriov_numvfs"
# In switchdev mode the driver says what of VLANs it leaves to the switch.
complaints=$(kernel_complaints | grep -v -e 'Dropping C-tag vlan stripping offload' -e 'Disabling HW_VLAN CTAG FILTERING')
[[ -z $complaints ]] || fail "the kernel complained: $complaints"
