# SPDX-License-Identifier: BSD-3-Clause
# program: bar_find
# boot: --hca link=eth --mem 2G --append iomem=relaxed -cpu max,la57=off,family=25 -drive if=none,id=flash,format=raw,file.driver=null-co,file.size=64M,file.read-zeroes=on,snapshot=on -device nvme,serial=hcasim,drive=flash,cmb_size_mb=16
# From device to device: an NVMe disk with memory of its own (controller memory buffer) behind an NVMe over RDMA target that keeps its data
# there, so that the card writes what hosts send into the disk's BAR, and reads from it what they ask for; nothing of it is in the guest's
# memory. The processor is one whose root ports the kernel trusts with that. With a kernel that has PCI_P2PDMA (Debian's from 7.3 on).
ends_up 4200
modprobe nvme || fail "nvme"
flash_is_there() { flash=$(ls -d /sys/class/nvme/nvme*/nvme*n1 2>/dev/null) && [[ -b /dev/${flash##*/} ]]; }
within 30 flash_is_there
pci=$(readlink -f "${flash%/*}/device")
flash=/dev/${flash##*/}
[[ -e $pci/p2pmem/available ]] || fail "the disk's memory is not for other devices"
free=$(<"$pci/p2pmem/available") # the disk's own queues are there too
note "$flash at ${pci##*/}: $free of $(<"$pci/p2pmem/size") bytes for other devices"
mark_kernel_log
nvme_disk_target "$mine" "$flash" p2p
nvme_connect "$theirs" hcasim || fail "connect"
disk=$(nvme_disk hcasim 1)
said 10 "nvmet: using p2pmem on ${pci##*/} for nsid 1"
# How much of it is in use while data move.
lowest=$free
nvme_verify "$disk" 4k-256k --iodepth=16 &
job=$!
while kill -0 "$job" 2>/dev/null; do
  now=$(<"$pci/p2pmem/available")
  ((now >= lowest)) || lowest=$now
done
wait "$job" || exit 1
note "up to $((free - lowest)) bytes of the disk's memory were in use"
((lowest < free)) || fail "the disk's memory was not used"
dd if=/dev/urandom of=/tmp/pattern bs=1M count=8 status=none
bar=$pci/resource2 # of this disk
if bar_find "$bar" /tmp/pattern; then fail "these bytes are new, and in the disk's memory already"; fi
# More than hosts send within a command.
dd if=/tmp/pattern of="$disk" bs=64k count=1 oflag=direct status=none || fail "dd"
bar_find "$bar" /tmp/pattern || fail "what the card has received did not go into the disk's memory"
dd if=/tmp/pattern of="$disk" bs=1M oflag=direct status=none || fail "dd"
dd if="$disk" bs=64k count=128 iflag=direct status=none | cmp - /tmp/pattern || fail "what is read is not what was written"
# As the disk itself has it.
dd if="$flash" bs=1M count=8 iflag=direct status=none | cmp - /tmp/pattern || fail "what the disk has is not what was written"
nvme disconnect -n hcasim || fail "disconnect"
nvme_target_down
within 20 grep -qx "$free" "$pci/p2pmem/available" # all of it came back
no_complaints "peer-to-peer DMA"
