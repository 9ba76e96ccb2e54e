# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib
# SCSI over RDMA: the kernel's SRP target and initiator over one HCA, a RAM disk behind them.
mark_kernel_log
device=mlx5_0
ends_up
mkdir -p /etc/target # the target wants its folder
modprobe brd rd_nr=1 rd_size=65536 && modprobe ib_srpt && modprobe target_core_iblock && modprobe sd_mod || fail "modules of the target"
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config || fail "configfs"
guid=$(tr -d : <"/sys/class/infiniband/$device/node_guid")
target=/sys/kernel/config/target
mkdir -p $target/core/iblock_0/ram0 && echo udev_path=/dev/ram0 >$target/core/iblock_0/ram0/control &&
  echo 1 >$target/core/iblock_0/ram0/enable || fail "the disk behind the target"
port=$target/srpt/0xfe80000000000000$guid
mkdir -p "$port/$guid/lun/lun_0" && ln -s $target/core/iblock_0/ram0 "$port/$guid/lun/lun_0/disk" || fail "a LUN"
acl=$port/$guid/acls/0x0000000000000000$guid
mkdir "$acl" && mkdir "$acl/lun_0" && ln -s "$port/$guid/lun/lun_0" "$acl/lun_0/lun" && echo 1 >"$port/$guid/enable" || fail "rights"
modprobe ib_srp || fail "ib_srp"
login="id_ext=$guid,ioc_guid=$guid,dgid=fe80000000000000$guid,pkey=ffff,service_id=$guid"
timeout 60 sh -c "echo $login >/sys/class/infiniband_srp/srp-$device-1/add_target" || fail "login: $login"
end=$((SECONDS + 30))
until disk=$(ls -d /sys/block/sd* 2>/dev/null) && [[ -b /dev/${disk##*/} ]]; do
  ((SECONDS < end)) || fail "no disk"
  sleep 0.2
done
disk=/dev/${disk##*/}
note "$disk: $(cat "/sys/block/${disk##*/}/device/"{vendor,model} | tr -s ' \n' ' ')"
for size in 4k 64k 1m; do nvme_verify "$disk" "$size"; done
for rport in /sys/class/srp_remote_ports/*; do echo 1 >"$rport/delete"; done
within 30 test ! -b "$disk"
# Not of the device: modules that the target looks for in vain, what its disks do not know, and the QP that it tries larger
# than any card's first.
complaints=$(kernel_complaints | grep -vE 'Unable to load target_core_|MODE SENSE: unimplemented|Create QP type 2 failed|ib_srp: connection closed' || true)
[[ -z $complaints ]] || fail "the kernel complained: $complaints"
