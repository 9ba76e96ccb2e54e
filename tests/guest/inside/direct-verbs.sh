# SPDX-License-Identifier: BSD-3-Clause
# boot: --debian 13 --hca link=eth,bf=on,id=e --hca link=ib,bf=on,id=i
# ask: -
# breaks: rkey-unknown cap-not-offered object-reference
# program: dv_cq
# program: dv_wr
# program: dv_queues
# program: dv_devx
# program: dv_steer
# What applications do with libmlx5 and its direct verbs, on both links: completions in each of its modes, work requests by the extended
# interface, queues in memory of every kind, objects by DevX with their events; steering, counters and rates on the Ethernet port, whose
# cable leads back to it. The programs name their tests. The argument, if any, is one of them: PROGRAM or PROGRAM:TEST.
for device in mlx5_0 mlx5_1; do
  if [[ $(<"/sys/class/infiniband/$device/ports/1/link_layer") == Ethernet ]]; then eth=$device; else ib=$device; fi
done
# Frames for any address come in.
port_up() {
  netdev=$(ls "/sys/class/infiniband/$eth/device/net")
  ip link set "$netdev" up promisc on || fail "$netdev"
  wait_active "$eth"
}
port_up
wait_active "$ib"
echo 64 >/proc/sys/vm/nr_hugepages
mark_kernel_log

# dv PROGRAM DEVICE
dv() {
  local program=$1 device=$2 test=
  if [[ -n $test_argument ]]; then
    [[ ${test_argument%%:*} == "$program" ]] || return 0
    [[ $test_argument != *:* ]] || test=${test_argument#*:}
  fi
  ran=$((ran + 1))
  note "$program on $device"
  # shellcheck disable=SC2086 # none, or one
  timeout 400 "$program" --device "$device" $test || failed+=("$program on $device: status $?")
}
failed=() ran=0
for device in "$eth" "$ib"; do
  dv dv_cq "$device"
  dv dv_wr "$device"
  dv dv_queues "$device"
done
TOGGLE_PORT="ip link set $netdev down && ip link set $netdev up" dv dv_devx "$eth"
TOGGLE_PORT="$(declare -f fail guest_port ask); ask inject-into i link=down && ask inject-into i link=up" dv dv_devx "$ib"
within 30 grep -q ACTIVE "/sys/class/infiniband/$eth/ports/1/state"
dv dv_steer "$eth"
# Without RoCE the kernel lets programs write bursts to the card, and there are thread domains.
pci=$(basename "$(readlink -f "/sys/class/infiniband/$eth/device")")
devlink dev param set "pci/$pci" name enable_roce value false cmode driverinit && devlink dev reload "pci/$pci" || fail "RoCE is not off"
within 60 test -e "/sys/bus/pci/devices/$pci/infiniband" -a -e "/sys/bus/pci/devices/$pci/net"
eth=$(rdma_of "/sys/bus/pci/devices/$pci")
port_up
for work in "dv_queues raw_domains" "dv_wr frames" "dv_steer tags"; do
  [[ -z $test_argument ]] || break
  note "$work without RoCE"
  # shellcheck disable=SC2086 # program and test
  timeout 200 ${work/ / --device $eth } || failed+=("$work without RoCE: status $?")
done
((ran > 0)) || fail "no such program: $test_argument"
((${#failed[@]} == 0)) || fail "$(printf '%s; ' "${failed[@]}")"
no_complaints "direct verbs"
