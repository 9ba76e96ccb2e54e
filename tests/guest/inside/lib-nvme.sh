# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Runs inside the guest, behind lib-ends.sh: NVMe over RDMA, target and host.

nvmet=/sys/kernel/config/nvmet

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

# nvme_connect ADDRESS SUBSYSTEM: its disks are there when it returns. From the address $nvme_host, if there is one.
nvme_connect() {
  local end=$((SECONDS + 30))
  modprobe nvme-rdma || fail "nvme-rdma"
  nvme connect -t rdma -a "$1" ${nvme_host:+-w "$nvme_host"} -s 4420 -n "$2" -i 2 -q "nqn.2014-08.org.nvmexpress:hcasim-$side" -I "5f1d3a52-0000-4000-8000-00000000000${side:-0}" || return 1
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
