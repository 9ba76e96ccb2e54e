# SPDX-License-Identifier: BSD-3-Clause
# boot: --debian 13 --hca link=eth,vfs=2,generation=connectx6dx --mem 3G --append intel_iommu=on -device intel-iommu,intremap=on
# script: vf-migration
# program: dv_migrate
# modules: build-vfio-module
# breaks: cmd-reserved-bits page-address
