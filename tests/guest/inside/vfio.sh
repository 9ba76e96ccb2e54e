# SPDX-License-Identifier: BSD-3-Clause
# boot: --debian 13 --hca link=ib,vfs=2 --mem 3G --append intel_iommu=on -device intel-iommu,intremap=on
# suite: -
# file: test_vfio_vf.py
# ask: -
# breaks: cmd-reserved-bits page-address
# Functions given away: bound to vfio-pci behind the guest's IOMMU and driven from user space, by rdma-core's mlx5 VFIO driver, with its
# own tests; first a virtual function, beside whose sibling the kernel's driver sends on; then the physical one. VFIO resets a function
# when it is opened and when it is closed, and gives it back to the kernel's driver.
wait_active mlx5_0
mark_kernel_log
vfs 2
mapfile -t rdma < <(devices 2)
between "${rdma[1]}" "${rdma[2]}" ibv_rc_pingpong -c -n 100
mkdir -p /suite && tar -C /suite -xf /usr/local/bin/rdma-core-tests.tar && cp /usr/local/bin/test_vfio_vf.py /suite/tests/ || fail "the suite"

# suite FUNCTION TEST...: as many tests pass; none is skipped.
suite() {
  local function=$1
  shift
  python3 /usr/local/bin/suite.py /suite/tests --limit 100 --pci-device "$function" "$@" >/tmp/suite 2>&1 || fail "$* on $function: $(cat /tmp/suite)"
  grep -q "^SUITE $# of $#: $# pass" /tmp/suite || fail "not all of $* on $function: $(cat /tmp/suite)"
  note "passed on $function: $*"
}
event=test_vfio_vf.VfVfioTest.test_mlx5vfio_async_event
traffic=test_mlx5vfio_rc_qp_send_imm_traffic

# A virtual function: interrupts and DMA under its own name, while its sibling and the physical function talk.
vf=$(basename "$(vf_of 0)")
give_to_vfio "$vf"
: >/tmp/going
while [[ -e /tmp/going ]]; do between "${rdma[2]}" "${rdma[0]}" ibv_rc_pingpong -c -n 2000; done &
sibling=$!
suite "$vf" "test_vfio_vf.VfVfioTest.$traffic"
# Its manager takes its port down and up.
modprobe ib_ipoib && within 30 test -e /sys/class/net/ib0 || fail "no interface of the physical function"
TOGGLE_PORT="ip link set ib0 vf 0 state disable && ip link set ib0 vf 0 state enable" suite "$vf" "$event"
rm /tmp/going
wait $sibling || fail "the sibling"
ip link set ib0 vf 0 state auto || fail "auto"
take_from_vfio "$vf"
within 60 grep -qs ACTIVE "$(vf_of 0)"/infiniband/*/ports/1/state
between "$(rdma_of "$(vf_of 0)")" "${rdma[2]}" ibv_rc_pingpong -c -n 100
vfs 0

# The physical function.
physical=${pf##*/}
modprobe -r ib_ipoib
give_to_vfio "$physical"
suite "$physical" "test_mlx5_vfio.Mlx5VfioTrafficTest.$traffic"
TOGGLE_PORT="$(declare -f fail guest_port ask); ask inject link=down && ask inject link=up" suite "$physical" "$event"
take_from_vfio "$physical"
within 60 grep -qs ACTIVE "$pf"/infiniband/*/ports/1/state
pair 18515 60 ibv_rc_pingpong -d "$(rdma_of "$pf")" -c -n 100 || fail "the physical function afterwards"
dmesg | grep -i 'DMAR.*fault' && fail "the IOMMU refused an access"
no_complaints "functions given away"
