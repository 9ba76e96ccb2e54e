# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth --mem 2G
# program: pi_blocks
# iSCSI over RDMA (iSER) with protection information of each block: the kernel's target and open-iscsi over one card. In the initiator's
# memory guards are IP checksums, on the wire CRCs, so that the card also makes one of the other. The target's blocks and tuples are files
# that nobody but the cards checks.
ends_up 4200
if [[ -z $gid ]]; then
  mine=10.9.0.1 theirs=10.9.0.1
  ipoib_up
fi
pi_file disk 1
iqn=iqn.2024-01.example.hcasim:disk
tpg=$lio/iscsi/$iqn/tpgt_1
modprobe iscsi_target_mod && modprobe ib_isert && modprobe sd_mod && modprobe ib_iser pi_enable=1 || fail "modules"
mkdir -p "$tpg/np/$mine:3260" "$tpg/lun/lun_0" && ln -s "$pi_object" "$tpg/lun/lun_0/disk" || fail "a target"
for pair in authentication=0 generate_node_acls=1 cache_dynamic_acls=1 demo_mode_write_protect=0 t10_pi=1; do
  echo "${pair#*=}" >"$tpg/attrib/${pair%=*}" || fail "$pair"
done
echo 1 >"$tpg/np/$mine:3260/iser" && echo 1 >"$tpg/enable" || fail "the target over RDMA"
mkdir -p /etc/iscsi /run/lock && echo "InitiatorName=iqn.2024-01.example.hcasim:host" >/etc/iscsi/initiatorname.iscsi
# In a session of its own: it ends its process group with itself.
setsid iscsid -f >/tmp/iscsid 2>&1 &
iscsid=$!
within 20 iscsiadm -m iface
iscsiadm -m node -o new -T "$iqn" -p "$theirs:3260" -I iser >/dev/null && iscsiadm -m node -T "$iqn" -p "$theirs:3260" --login ||
  { cat /tmp/iscsid && fail "login"; }
within 60 pi_disk_is_there
block=$disk disk=/dev/${disk##*/}
note "$disk: $(<"$block/integrity/format")"
mark_kernel_log # a new disk is asked for what the kernel's target does not know
[[ $(<"$block/integrity/format") == T10-DIF-TYPE1-IP ]] || fail "not by the card: its guards in memory are IP checksums"
iscsiadm -m session -P 1 | grep -E 'Iface Transport|Persistent Portal'

for size in 4k 64k 1m; do nvme_verify "$disk" "$size"; done
nvme_verify "$disk" 512-64k --iodepth=16
pi_blocks make /tmp/data /tmp/tuples 1000 1024 0 || fail "make"
dd if=/tmp/data of="$disk" bs=512 seek=1000 iflag=fullblock oflag=direct conv=notrunc status=none || fail "dd"
pi_blocks check "$pi_data" "$pi_tuples" 1000 1024 || fail "guards that were IP checksums"
echo 0 >"$block/integrity/write_generate" && echo 0 >"$block/integrity/read_verify" || fail "$block/integrity"
for size in 4k 1m; do nvme_verify "$disk" "$size"; done
dd if=/tmp/data of="$disk" bs=512 seek=3000 iflag=fullblock oflag=direct conv=notrunc status=none || fail "dd"
pi_blocks check "$pi_data" "$pi_tuples" 3000 1024 || fail "tuples that the card put in"
dd if="$disk" bs=64k iflag=direct,skip_bytes skip=$((3000 * 512)) count=8 status=none | cmp - /tmp/data || fail "what is read"
no_complaints "protection information that is right"

# What has changed on the disk: the target's card finds it, and the initiator hears of which block and why.
for know in 0 1; do
  echo $know >"$block/integrity/write_generate" && echo $know >"$block/integrity/read_verify" || fail "$block/integrity"
  for what in "$pi_data $((8200 * 512 + 17)) 0 8200 guard" "$pi_tuples $((8250 * 8 + 4)) 1 8250 reference.tag"; do
    read -r file offset kind sector name <<<"$what"
    dd if=/tmp/data of="$disk" bs=64k oflag=direct,seek_bytes seek=$((8192 * 512)) conv=notrunc status=none || fail "dd"
    harm "$file" "$offset"
    mark_kernel_log
    if dd if="$disk" of=/tmp/read bs=128k iflag=direct,skip_bytes skip=$((8192 * 512)) count=1 status=none; then fail "$what: nobody said so"; fi
    said 10 "isert: .*PI error found type $kind at sector 0x$(printf %x "$sector") "
    said 10 "Add. Sense: Logical block $name check failed"
    said 10 "protection error, dev ${disk#/dev/}, sector"
  done
done
iscsiadm -m node -T "$iqn" -p "$theirs:3260" --logout || fail "logout"
iscsiadm -k 0 && wait "$iscsid" || fail "iscsid ended with status $?"
within 30 test ! -b "$disk"
echo 0 >"$tpg/enable" && rm "$tpg/lun/lun_0/disk" && rmdir "$tpg/lun/lun_0" "$tpg/np/$mine:3260" "$tpg" "${tpg%/*}" || fail "the target stays"
pi_file_down disk
