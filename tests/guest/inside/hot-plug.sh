# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib -global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off -device pcie-root-port,id=late,bus=pcie.0,chassis=9,slot=9,addr=9,pref64-reserve=256M
# ask: -
# Cards that QEMU plugs into a slot of a machine that runs (device_add, pciehp): first with a cable to itself, then to the card that was
# there from the start, then with virtual functions. Each is pulled by device_del, which the kernel does in order.
first=$(hca_addresses)
wait_active mlx5_0

# plug KEY=VALUE...: until the kernel's drivers have it: its address in $late, its RDMA device in $other.
plug() {
  local answer
  mark_kernel_log
  answer=$(ask plug driver=mlx5-hca id=new bus=late "$@") || fail "$answer"
  [[ $answer == ok ]] || fail "device_add: $answer"
  said 20 'pciehp: Slot(.*): Card present\|pciehp: Slot(.*): Link Up'
  late=''
  within 60 new_rdma_device
  note "plugged in: $late, $other"
}
new_rdma_device() {
  local address
  for address in $(hca_addresses); do
    [[ $address != "$first" && -d /sys/bus/pci/devices/$address/infiniband ]] || continue
    late=$address
    other=$(basename "/sys/bus/pci/devices/$address/infiniband/"*)
    return 0
  done
  return 1
}
# The slot's button: the kernel gives the operator five seconds to think better of it, and then takes its drivers off the card.
pull() {
  mark_kernel_log
  [[ $(ask unplug new) == ok ]] || fail "device_del"
  within 60 test ! -e "/sys/bus/pci/devices/$late"
  within 20 asked_gone
  no_complaints "pulled"
}
asked_gone() { [[ $(ask present new) == no ]]; }

for round in 1 2; do
  note "with a cable to itself, $round"
  plug link=ib
  wait_active "$other"
  (pingpong_port=18515 pingpong -d mlx5_0 -c -s 4096 -n 300) &
  pid=$!
  pingpong_port=18516 pingpong -d "$other" -c -s 4096 -n 300
  wait "$pid" || fail "traffic on mlx5_0"
  pull
done
note "with a cable to the first"
plug link=ib cable=hca0
wait_active "$other"
wait_active mlx5_0
[[ $(<"/sys/class/infiniband/$other/ports/1/lid") != $(</sys/class/infiniband/mlx5_0/ports/1/lid) ]] || fail "both have one LID"
between mlx5_0 "$other" ibv_rc_pingpong -c -n 300
between "$other" mlx5_0 ibv_ud_pingpong -n 300
pull
within 20 grep -q DOWN /sys/class/infiniband/mlx5_0/ports/1/state
note "with virtual functions"
plug link=ib vfs=2
pf=/sys/bus/pci/devices/$late
vfs 2
wait_active "$other"
mapfile -t rdma < <(devices 2)
between "${rdma[1]}" "${rdma[2]}" ibv_rc_pingpong -c -n 300
pull
