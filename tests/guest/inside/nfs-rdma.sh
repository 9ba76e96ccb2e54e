# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth --mem 3G
# disk: package-disk nfs base-files nfs-kernel-server nfs-common rpcbind dash
# NFS over RDMA, as the kernel's server and client have it: versions 4.2 and 3, files in blocks of 4 KiB to 1 MiB, buffered and direct,
# small files, a link that goes away and comes back. In one guest the port is a cable to itself; nfs-rdma-pair has guest a as client of guest b.
mark_kernel_log
if [[ $(<"/sys/class/infiniband/mlx5_0/ports/1/link_layer") == Ethernet ]]; then
  ends_up 4200
else
  ends_up
  wait_active "$device"
  [[ -n $side ]] || mine=10.9.0.1 theirs=10.9.0.1
  ipoib_up
fi
package_roots
root=/tmp/roots/12
tools() { timeout 60 chroot $root "$@"; }
mount -t tmpfs none $root/var && mkdir -p $root/var/lib/nfs/{sm,sm.bak,v4recovery,rpc_pipefs} $root/tmp/{export,mnt} /var/lib/nfs/v4recovery && mount -t tmpfs none $root/run ||
  fail "places to write to"
touch $root/var/lib/nfs/{etab,rmtab,state}
# What the packages' scripts would have made.
printf 'root:x:0:0:root:/root:/bin/sh\n_rpc:x:106:65534::/run/rpcbind:/usr/sbin/nologin\n' >$root/etc/passwd
printf 'root:x:0:\nnogroup:x:65534:\n' >$root/etc/group

server_up() {
  modprobe brd rd_nr=1 rd_size=262144 && modprobe nfsd && modprobe rpcrdma || fail "modules"
  mkfs.ext4 -q /dev/ram0 && mount /dev/ram0 $root/tmp/export && chmod 777 $root/tmp/export || fail "a file system"
  mountpoint -q $root/proc/fs/nfsd || mount -t nfsd nfsd $root/proc/fs/nfsd || fail "nfsd's file system"
  ip link set lo up && tools rpcbind || fail "rpcbind: status $?"
  within 20 tools rpcinfo -p >/tmp/rpcinfo 2>&1
  tools exportfs -i -o rw,no_root_squash,insecure,no_subtree_check,fsid=0 "*:/tmp/export" || fail "exportfs"
  tools rpc.mountd -p 20048 && tools rpc.nfsd --rdma=20049 -G 10 -L 10 8 || fail "the server"
  grep -q '^rdma 20049' $root/proc/fs/nfsd/portlist || fail "no RDMA: $(<$root/proc/fs/nfsd/portlist)"
  note "server on $mine: $(tr '\n' ' ' <$root/proc/fs/nfsd/portlist)"
}

# client_mount VERSION
client_mount() {
  local from=$theirs:/ version=$1 more=
  if [[ $version == 3 ]]; then from=$theirs:/tmp/export more=,mountport=20048,mountproto=tcp,nolock; fi
  tools mount.nfs "$from" /tmp/mnt -o "vers=$version,proto=rdma,port=20049$more" || fail "mount.nfs, version $version: status $?"
  grep -q " $root/tmp/mnt nfs.*proto=rdma" /proc/mounts || fail "not over RDMA: $(grep nfs /proc/mounts)"
}

# file_verify NAME SIZE FIO-OPTIONS...
file_verify() {
  local size=$2 start=$SECONDS
  local -a blocks=(--bs="$size")
  [[ $size != *-* ]] || blocks=(--bsrange="$size")
  timeout 200 fio --name=verify --filename="$root/tmp/mnt/$1" --rw=randwrite --ioengine=libaio --iodepth=8 "${blocks[@]}" --size=8m \
    --verify=crc32c --verify_fatal=1 --do_verify=1 --verify_backlog=256 --group_reporting --output=/tmp/fio "${@:3}" ||
    { cat /tmp/fio && fail "fio, blocks of $size ${*:3}"; }
  note "ok, $((SECONDS - start)) s: $size ${*:3}: $(grep -oE '(READ|WRITE): bw=[^ ]+' /tmp/fio | tr '\n' ' ')"
}

# away: the link is gone for so long that both ends give their connection up, in the midst of a file that is written; then it comes back, and
# nothing of the file is missing.
away() {
  local before writer
  before=$(connects)
  dd if=/tmp/pattern of=$root/tmp/mnt/away bs=4k oflag=direct status=none &
  writer=$!
  within 20 test -s $root/tmp/mnt/away
  # Nothing that can be asked says when the client has given up: the server's QP, which sends nothing, stays as it was.
  ip link set "$interface" down && sleep 20 && ip link set "$interface" up || fail "$interface"
  wait "$writer" || fail "a file that is written while the link is away"
  echo 3 >/proc/sys/vm/drop_caches
  cmp /tmp/pattern $root/tmp/mnt/away && rm $root/tmp/mnt/away || fail "the file"
  (($(connects) > before)) || fail "the connection has not been made anew"
  note "ok: the link was away, $(connects) connections instead of $before"
}
connects() { awk '/xprt:/ && $2 == "rdma" { print $5 }' /proc/self/mountstats; }

if is_server; then
  server_up
  mark_kernel_log # where it keeps what clients have open, it calls a warning
fi
barrier served
if is_client; then
  modprobe rpcrdma && modprobe nfsv4 || fail "the client's modules"
  dd if=/dev/urandom of=/tmp/pattern bs=1M count=16 status=none
  for version in 4.2 3; do
    client_mount "$version"
    for size in 4k 64k 1m; do file_verify "direct-$version" "$size" --direct=1; done
    file_verify "direct-$version" 512-1m --direct=1 --iodepth=16
    file_verify "cached-$version" 4k-64k --end_fsync=1
    cp /tmp/pattern $root/tmp/mnt/pattern && sync && echo 3 >/proc/sys/vm/drop_caches && cmp /tmp/pattern $root/tmp/mnt/pattern || fail "a file"
    mkdir $root/tmp/mnt/tree || fail "mkdir"
    for i in {1..200}; do printf '%s\n' "file $i" >"$root/tmp/mnt/tree/$i"; done
    echo 3 >/proc/sys/vm/drop_caches
    for i in {1..200}; do [[ $(<"$root/tmp/mnt/tree/$i") == "file $i" ]] || fail "small file $i"; done
    (($(find $root/tmp/mnt/tree -type f | wc -l) == 200)) || fail "files are missing in the directory, or too many"
    rm -r $root/tmp/mnt/tree $root/tmp/mnt/pattern || fail "rm"
    if [[ $version == 4.2 && -z $side ]]; then away; fi
    awk '/xprt:/ && $2 == "rdma"' /proc/self/mountstats
    umount $root/tmp/mnt || fail "umount"
  done
fi
barrier done 600
# What it keeps of clients is a directory here, which it finds gone when the client is.
no_complaints "NFS over RDMA" 'NFSD: Failed to remove expired client state directory'
