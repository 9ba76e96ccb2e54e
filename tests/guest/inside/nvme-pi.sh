# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth --mem 2G
# program: pi_blocks
# NVMe over RDMA with protection information of each block (T10-DIF): the card makes it, checks it and takes it away. Behind the target is
# a SCSI disk of the kernel's own target, whose blocks and tuples are two files that nobody but the card checks.
ends_up 4200
if [[ -z $gid ]]; then
  mine=10.9.0.1 theirs=10.9.0.1
  ipoib_up
fi
pi_file disk 1
pi_scsi disk
mark_kernel_log # the kernel's target asks for modules that this guest lacks
nvme_disk_target "$mine" "$scsi" pi
# The target wants send queues for 27 WQEs of 640 bytes a command: with 128 commands they are larger than any card's (log_max_qp_sz).
# Their hundreds of keys take longer to make on a busy machine than a host is waited for otherwise.
nvme_more=(-Q 16 -k 60)
nvme_connect "$theirs" hcasim || fail "connect"
disk=$(nvme_disk hcasim 1)
block=/sys/block/${disk##*/}
nvme id-ns "$disk" | grep -E '^(dps|mc|lbaf)' || fail "id-ns"
[[ $(<"$block/integrity/format") == T10-DIF-TYPE1-CRC ]] || fail "the disk's format is '$(<"$block/integrity/format")'"

# The host's kernel makes and checks tuples too, and the card has them checked in its memory and on the wire.
for size in 4k 64k 1m; do nvme_verify "$disk" "$size"; done
# In pieces that no page holds: lists of small parts, of data and of tuples.
nvme_verify "$disk" 512-64k --iodepth=16
# The host's kernel knows nothing of tuples: the card puts them in and takes them away.
echo 0 >"$block/integrity/write_generate" && echo 0 >"$block/integrity/read_verify" || fail "$block/integrity"
for size in 4k 1m; do nvme_verify "$disk" "$size"; done
pi_blocks make /tmp/data /tmp/tuples 2000 1024 0 || fail "make"
dd if=/tmp/data of="$disk" bs=512 seek=2000 iflag=fullblock oflag=direct conv=notrunc status=none || fail "dd"
pi_blocks check "$pi_data" "$pi_tuples" 2000 1024 || fail "what the card has made of it"
dd if="$disk" bs=64k iflag=direct,skip_bytes skip=$((2000 * 512)) count=8 status=none | cmp - /tmp/data || fail "what is read"
no_complaints "protection information that is right"

# Tuples of a program's own, beside the data and within; with an application tag. For blocks with tuples within, the hosts of later kernels
# add tuples of their own.
verbs=(write)
[[ $(uname -r) != 6.1.* ]] || verbs+=(mixed)
pi_blocks make /tmp/data /tmp/tuples 5000 200 0x1234 || fail "make"
for verb in "${verbs[@]}"; do
  pi_blocks "$verb" "$disk" /tmp/data /tmp/tuples 5000 200 || fail "$verb"
  pi_blocks check "$pi_data" "$pi_tuples" 5000 200 || fail "$verb"
  cmp -n 1600 /tmp/tuples "$pi_tuples" 0 $((5000 * 8)) || fail "$verb: other tuples"
done
pi_blocks read "$disk" /tmp/data /tmp/tuples 5000 200 || fail "read"
no_complaints "tuples of a program's own"

# wrong WHAT OFFSET KIND SAYS: block 77 of the 200, harmed at that offset of the file WHAT. KIND: the kernel's number for it, SAYS: what
# comes behind it. A write is told of by the host's card, nothing of it is on the disk.
wrong() {
  local what=$1 offset=$2 kind=$3 status=$4 verb before
  note "wrong: $what"
  pi_blocks make /tmp/data /tmp/tuples 6000 200 0 || fail "make"
  harm "/tmp/$what" "$offset"
  for verb in "${verbs[@]}"; do
    before=$(dd if="$pi_data" bs=512 skip=6000 count=200 status=none | md5sum)
    mark_kernel_log
    if pi_blocks "$verb" "$disk" /tmp/data /tmp/tuples 6000 200 >/tmp/said; then fail "$verb: $what is wrong and nobody said so"; fi
    cat /tmp/said
    grep -q "NVMe status $status" /tmp/said || fail "$verb: not $status"
    said 10 "nvme_rdma: PI error found type $kind expected"
    [[ $before == $(dd if="$pi_data" bs=512 skip=6000 count=200 status=none | md5sum) ]] || fail "$verb: the disk has it"
  done
}
wrong data $((77 * 512 + 100)) 0 0x282
wrong tuples $((77 * 8 + 7)) 1 0x284

# What has changed on the disk, under the tuples or in them: the target's card finds it, no matter what the host's kernel knows of tuples.
for know in 0 1; do
  echo $know >"$block/integrity/write_generate" && echo $know >"$block/integrity/read_verify" || fail "$block/integrity"
  pi_blocks make /tmp/data /tmp/tuples 8192 256 0 || fail "make"
  for what in "$pi_data $((8200 * 512 + 17)) 0" "$pi_tuples $((8250 * 8 + 4)) 1"; do
    read -r file offset kind <<<"$what"
    dd if=/tmp/data of="$disk" bs=64k oflag=direct,seek_bytes seek=$((8192 * 512)) conv=notrunc status=none || fail "dd"
    harm "$file" "$offset"
    mark_kernel_log
    if dd if="$disk" of=/tmp/read bs=128k iflag=direct,skip_bytes skip=$((8192 * 512)) count=1 status=none; then fail "$what: nobody said so"; fi
    said 10 "nvmet_rdma: PI error found type $kind expected"
    said 10 "Got SIGERR on key"
  done
  # A tuple with the application tag 0xffff is not looked at (T10).
  dd if=/tmp/data of="$disk" bs=64k oflag=direct,seek_bytes seek=$((8192 * 512)) conv=notrunc status=none || fail "dd"
  harm "$pi_data" $((8200 * 512 + 17))
  printf '\xff\xff' | dd of="$pi_tuples" bs=1 seek=$((8200 * 8 + 2)) conv=notrunc status=none || fail "dd"
  mark_kernel_log
  dd if="$disk" of=/tmp/read bs=128k iflag=direct,skip_bytes skip=$((8192 * 512)) count=1 status=none || fail "a tuple that is no tuple"
  no_complaints "a tuple that is no tuple"
done
nvme disconnect -n hcasim || fail "disconnect"
nvme_target_down
pi_scsi_down
pi_file_down disk
no_complaints "the end"
