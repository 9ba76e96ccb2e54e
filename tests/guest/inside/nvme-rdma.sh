# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth --mem 2G
# NVMe over RDMA: a target with RAM disks behind it and a host that writes and verifies. In one guest the port is a cable to
# itself; nvme-rdma-pair runs the same in two guests, a as host and b as target.
mark_kernel_log
if [[ $(<"/sys/class/infiniband/mlx5_0/ports/1/link_layer") == Ethernet ]]; then
  ends_up 4200
else
  ends_up
  wait_active "$device"
  ipoib_up
fi
if is_server; then nvme_target "$mine" 2 65536; fi
barrier target
if is_client; then
  nvme_connect "$theirs" "hcasim" || fail "connect"
  nvme list
  disk=$(nvme_disk hcasim 1) second=$(nvme_disk hcasim 2)
  note "$disk and $second are there"
  for size in 4k 16k 64k 256k 1m; do nvme_verify "$disk" "$size"; done
  # Both disks at once, sizes mixed, queues deep; then reads of what has been written in another block size.
  nvme_verify "$disk:$second" 4k-1m --numjobs=1 --iodepth=32
  dd if=/dev/urandom of=/tmp/pattern bs=1M count=8 status=none
  dd if=/tmp/pattern of="$disk" bs=1M oflag=direct status=none || fail "dd"
  dd if="$disk" bs=4k count=2048 iflag=direct status=none | cmp - /tmp/pattern || fail "what is read is not what was written"
  mkfs.ext4 -q "$second" && mkdir -p /mnt/nvme && mount "$second" /mnt/nvme || fail "a file system on it"
  cp /tmp/pattern /mnt/nvme/ && sync && umount /mnt/nvme && mount "$second" /mnt/nvme && cmp /mnt/nvme/pattern /tmp/pattern || fail "a file"
  umount /mnt/nvme
  nvme disconnect -n hcasim || fail "disconnect"
  # Once more: nothing was left behind by the first.
  nvme_connect "$theirs" "hcasim" && nvme_verify "$(nvme_disk hcasim 1)" 64k && nvme disconnect -n hcasim || fail "a second time"
fi
barrier done 700
if is_server; then nvme_target_down; fi
no_complaints "NVMe over RDMA"
