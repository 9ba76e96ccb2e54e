# SPDX-License-Identifier: BSD-3-Clause
# boot: --debian 13 --hca link=ib,vfs=2,generation=connectx7 --mem 3G --append intel_iommu=on -device intel-iommu,intremap=on
# program: dv_migrate
# modules: build-vfio-module
# breaks: cmd-reserved-bits page-address
# Virtual functions that mlx5_vfio_pci has, behind the guest's IOMMU: one of them, driven from user space by libmlx5's mlx5 VFIO driver,
# is migrated into the other one in the midst of its traffic, and back.
is_eth=no
if [[ -d $pf/net ]]; then is_eth=yes && ip link set "$(net_of "$pf")" up || fail "the port"; fi
wait_active mlx5_0
modprobe -a vfio-pci vfio_iommu_type1 mlx5-vfio-pci || fail "modules"
mark_kernel_log
if [[ $is_eth == yes ]]; then
  echo 2 >"$pf/sriov_numvfs" || fail "two virtual functions"
  for n in 0 1; do within 60 test -d "$(vf_of $n)/infiniband"; done
else
  vfs 2
fi
give_to_migration() {
  local device=/sys/bus/pci/devices/$1
  [[ $(<"$device/device") == 0x101e ]] || fail "$1 is a $(<"$device/device")"
  echo "$1" >"$device/driver/unbind" || fail "unbind of $1"
  echo mlx5_vfio_pci >"$device/driver_override" && echo "$1" >/sys/bus/pci/drivers_probe || fail "mlx5_vfio_pci for $1"
  [[ $(basename "$(readlink "$device/driver")") == mlx5_vfio_pci ]] || fail "$1 is not mlx5_vfio_pci's"
}
mapfile -t functions < <(for n in 0 1; do basename "$(vf_of $n)"; done)
for function in "${functions[@]}"; do give_to_migration "$function"; done
timeout 200 dv_migrate "${functions[@]}" >/tmp/migrate || fail "dv_migrate: status $?: $(cat /tmp/migrate; dmesg | tail -n 20)"
cat /tmp/migrate
[[ $(uname -r) != 6.1.* ]] || grep -q 'pages written by a message' /tmp/migrate || fail "no report of pages"
# The kernel's driver has them back.
for function in "${functions[@]}"; do
  echo "$function" >/sys/bus/pci/drivers/mlx5_vfio_pci/unbind && echo >"/sys/bus/pci/devices/$function/driver_override" &&
    echo "$function" >/sys/bus/pci/drivers_probe || fail "mlx5_core for $function"
done
if [[ $is_eth == yes ]]; then
  for n in 0 1; do within 60 test -d "$(vf_of $n)/infiniband"; done
else
  for n in 0 1; do within 60 grep -qs ACTIVE "$(vf_of $n)"/infiniband/*/ports/1/state; done
  between "$(rdma_of "$(vf_of 0)")" "$(rdma_of "$(vf_of 1)")" ibv_rc_pingpong -c -n 100
fi
dmesg | grep -i 'DMAR.*fault' && fail "the IOMMU refused an access"
no_complaints "functions that were migrated"
