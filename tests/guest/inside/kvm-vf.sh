# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,vfs=2 --mem 3G --smp 1 --append intel_iommu=on -device intel-iommu,intremap=on
# disk: kvm-disk KERNEL lib-inner
# script: kvm
# A virtual function given to a guest in the guest: vfio-pci behind the outer guest's IOMMU, the unmodified drivers in the inner one, under
# KVM; and back.
