# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Runs inside the guest, behind lib-ends.sh: NVMe over RDMA, target and host.

nvmet=/sys/kernel/config/nvmet
nvme_more=()

# nvme_target ADDRESS DISKS KIB: the subsystem "hcasim" on this address, with so many RAM disks of so many KiB.
nvme_target() {
  local address=$1 disks=$2 kib=$3 i part
  modprobe brd rd_nr="$disks" rd_size="$kib" || fail "brd"
  modprobe nvmet-rdma || fail "nvmet-rdma"
  mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config || fail "configfs"
  part=$nvmet/subsystems/hcasim
  mkdir "$part" && echo 1 >"$part/attr_allow_any_host" || fail "a subsystem"
  for ((i = 1; i <= disks; i++)); do
    mkdir "$part/namespaces/$i" && echo "/dev/ram$((i - 1))" >"$part/namespaces/$i/device_path" &&
      echo 1 >"$part/namespaces/$i/enable" || fail "namespace $i"
  done
  part=$nvmet/ports/1
  mkdir "$part" && echo rdma >"$part/addr_trtype" && echo ipv4 >"$part/addr_adrfam" && echo "$address" >"$part/addr_traddr" &&
    echo 4420 >"$part/addr_trsvcid" && ln -s "$nvmet/subsystems/hcasim" "$part/subsystems/hcasim" || fail "port 1 on $address"
  note "target on $address:4420"
}

nvme_target_down() {
  local part
  rm "$nvmet/ports/1/subsystems/hcasim" && rmdir "$nvmet/ports/1" || fail "the target's port stays"
  for part in "$nvmet"/subsystems/hcasim/namespaces/*; do echo 0 >"$part/enable" && rmdir "$part" || fail "$part stays"; done
  rmdir "$nvmet/subsystems/hcasim" && modprobe -r nvmet-rdma || fail "the target stays"
}

# nvme_connect ADDRESS SUBSYSTEM: its disks are there when it returns. From the address $nvme_host, if there is one; nvme_more: further
# options.
nvme_connect() {
  local end=$((SECONDS + 30))
  modprobe nvme-rdma || fail "nvme-rdma"
  nvme connect -t rdma -a "$1" ${nvme_host:+-w "$nvme_host"} "${nvme_more[@]}" -s 4420 -n "$2" -i 2 -q "nqn.2014-08.org.nvmexpress:hcasim-$side" -I "5f1d3a52-0000-4000-8000-00000000000${side:-0}" || return 1
  until nvme_disk "$2" 1 >/dev/null; do
    ((SECONDS < end)) || return 1
    sleep 0.2
  done
}

# nvme_disk SUBSYSTEM NAMESPACE: its block device.
nvme_disk() {
  local dir name
  for dir in /sys/class/nvme-subsystem/*/; do
    [[ $(<"$dir/subsysnqn") == "$1" ]] || continue
    for name in "$dir"nvme*n"$2"; do
      name=/dev/${name##*/}
      [[ -b $name ]] && echo "$name" && return 0
    done
  done
  return 1
}

# nvme_verify FILES SIZE FIO_OPTIONS...: random writes of a region of each disk, all read back and checked.
nvme_verify() {
  local files=$1 size=$2 start=$SECONDS
  local -a blocks=(--bs="$size")
  shift 2
  [[ $size != *-* ]] || blocks=(--bsrange="$size")
  timeout 200 fio --name=verify --filename="$files" --rw=randwrite --direct=1 --ioengine=libaio --iodepth=8 "${blocks[@]}" \
    --size=8m --verify=crc32c --verify_fatal=1 --do_verify=1 --verify_backlog=256 --group_reporting --output=/tmp/fio "$@" ||
    { cat /tmp/fio && fail "fio on $files, blocks of $size"; }
  if grep -qiE 'verify: bad|error' /tmp/fio && ! grep -q 'err= 0' /tmp/fio; then cat /tmp/fio && fail "fio found errors"; fi
  note "ok, $((SECONDS - start)) s: $files, $size: $(grep -oE '(READ|WRITE): bw=[^ ]+' /tmp/fio | tr '\n' ' ')"
}

# --- Protection information (T10-DIF)

lio=/sys/kernel/config/target

# pi_file NAME TYPE: 16 MiB of the kernel's own target with tuples of that type, in two files, $pi_data and $pi_tuples, and which it does
# not check itself. $pi_object is its place.
pi_file() {
  mkdir -p /etc/target # the target wants its folder
  modprobe target_core_file || fail "target_core_file"
  mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config || fail "configfs"
  pi_object=$lio/core/fileio_0/$1 pi_data=/tmp/$1.blocks pi_tuples=/tmp/$1.blocks.protection
  mkdir -p "$pi_object" && echo "fd_dev_name=$pi_data,fd_dev_size=$((16 << 20)),fd_buffered_io=1" >"$pi_object/control" &&
    echo 1 >"$pi_object/enable" && echo "$2" >"$pi_object/attrib/pi_prot_type" && echo 1 >"$pi_object/attrib/pi_prot_format" &&
    echo 0 >"$pi_object/attrib/pi_prot_verify" || fail "a file with protection information"
}
pi_file_down() { rmdir "$lio/core/fileio_0/$1" && rm -f "/tmp/$1.blocks"*; }

# harm FILE OFFSET: another byte there.
harm() {
  local byte
  byte=$(od -An -tu1 -j "$2" -N 1 "$1")
  printf '%b' "\\x$(printf '%02x' $((byte ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none || fail "harm"
}

# The first SCSI disk, in sysfs: $disk.
pi_disk_is_there() { disk=$(ls -d /sys/block/sd* 2>/dev/null) && [[ -b /dev/${disk##*/} && -e $disk/integrity/format ]]; }

# pi_scsi NAME: that as a SCSI disk of this kernel: $scsi.
pi_scsi() {
  local part=$lio/loopback/naa.6001405a5a5a0001/tpgt_1 disk
  modprobe sd_mod && modprobe tcm_loop || fail "tcm_loop"
  mkdir -p "$part" && echo naa.6001405a5a5a0002 >"$part/nexus" && mkdir "$part/lun/lun_0" &&
    ln -s "$lio/core/fileio_0/$1" "$part/lun/lun_0/disk" || fail "a SCSI disk of it"
  within 30 pi_disk_is_there
  scsi=/dev/${disk##*/}
  note "$scsi: $(<"$disk/integrity/format")"
}
pi_scsi_down() {
  local part=$lio/loopback/naa.6001405a5a5a0001/tpgt_1
  rm "$part/lun/lun_0/disk" && rmdir "$part/lun/lun_0" && echo NULL >"$part/nexus" && rmdir "$part" "${part%/*}"
}

# nvme_disk_target ADDRESS DISK pi|p2p: the subsystem "hcasim" with this disk, and its protection information, or memory of its own for data.
nvme_disk_target() {
  local part=$nvmet/subsystems/hcasim
  modprobe nvmet-rdma || fail "nvmet-rdma"
  mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config || fail "configfs"
  mkdir "$part" && echo 1 >"$part/attr_allow_any_host" && mkdir "$part/namespaces/1" && echo "$2" >"$part/namespaces/1/device_path" ||
    fail "a subsystem"
  if [[ $3 == pi ]]; then echo 1 >"$part/attr_pi_enable" || fail "no protection information"; fi
  if [[ $3 == p2p ]]; then echo 1 >"$part/namespaces/1/p2pmem" || fail "no peer-to-peer memory"; fi
  echo 1 >"$part/namespaces/1/enable" || fail "namespace 1"
  part=$nvmet/ports/1
  mkdir "$part" && echo rdma >"$part/addr_trtype" && echo ipv4 >"$part/addr_adrfam" && echo "$1" >"$part/addr_traddr" &&
    echo 4420 >"$part/addr_trsvcid" || fail "port 1"
  if [[ $3 == pi ]]; then echo 1 >"$part/param_pi_enable" || fail "no protection information on the port"; fi
  ln -s "$nvmet/subsystems/hcasim" "$part/subsystems/hcasim" || fail "port 1 on $1"
  note "target on $1:4420, $3"
}
