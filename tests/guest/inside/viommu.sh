# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib --append intel_iommu=on -device intel-iommu
# Every DMA of the HCA goes through the guest's IOMMU, and none goes where the driver has not mapped.
wait_active mlx5_0
mark_kernel_log
address=$(hca_addresses | head -n 1)
[[ -e /sys/bus/pci/devices/$address/iommu_group ]] || fail "$address is behind no IOMMU"
cat "/sys/bus/pci/devices/$address/iommu_group/type"
pingpong -c -s 65536 -n 100
pingpong -e -n 100
dmesg | grep -i 'DMAR.*fault' && fail "the IOMMU refused an access"
no_complaints "traffic behind an IOMMU"
