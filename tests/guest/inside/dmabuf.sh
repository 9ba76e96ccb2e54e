# SPDX-License-Identifier: BSD-3-Clause
# boot: --debian 13 --hca link=eth --hca link=ib,ats=on --append intel_iommu=on -device intel-iommu,device-iotlb=on
# breaks: rkey-bounds rkey-rights
# program: dv_dmabuf
# Memory regions of DMA buffers (ibv_reg_dmabuf_mr), on both links: of the kernel's heap and of memory files.
[[ -e /dev/udmabuf && -e /dev/dma_heap/system ]] || fail "this kernel has no DMA buffers for programs"
for device in mlx5_0 mlx5_1; do
  if [[ $(<"/sys/class/infiniband/$device/ports/1/link_layer") == Ethernet ]]; then
    interface=$(ls "/sys/class/infiniband/$device/device/net")
    ip link set "$interface" up || fail "$interface"
    wait_active "$device"
    settled
  else
    wait_active "$device"
  fi
done
mark_kernel_log
for device in mlx5_0 mlx5_1; do timeout 300 dv_dmabuf --device "$device" || fail "dv_dmabuf on $device"; done
no_complaints "DMA buffers"
