# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth --mem 3G
# disk: package-disk qemu-rdma qemu-system-x86 qemu-system-data seabios socat ibverbs-providers dash
# QEMU's live migration over RDMA ("migrate rdma:"), between two emulators in the guest: what Debian 12 and 13 have, with memory pinned
# as a whole and as it is needed. The memory that arrives is that which was sent.
mark_kernel_log
ends_up
package_roots
modprobe rdma_ucm || fail "rdma_ucm"
head -c 24M /dev/urandom >/tmp/random

monitor() { timeout 20 socat - "UNIX-CONNECT:$1" <<<"$2"; }
# The monitor of this machine says so.
says() {
  local said
  said=$(monitor "$1" "$2") || return 1
  ! grep -q 'status: failed' <<<"$said" || fail "$2: $said: $(cat /tmp/from /tmp/to)"
  grep -Eq -- "$3" <<<"$said"
}
port=4440
for debian in 12 13; do
  root=/tmp/roots/$debian
  machine=(chroot "$root" qemu-system-x86_64 -nodefaults -display none -machine pc -accel tcg -m 96 -S)
  for pin in off on; do
    port=$((port + 1))
    "${machine[@]}" -monitor unix:/tmp/to.sock,server=on,wait=off -incoming defer >/tmp/to 2>&1 &
    to=$!
    cp /tmp/random "$root/tmp/random"
    "${machine[@]}" -monitor unix:/tmp/from.sock,server=on,wait=off -device loader,file=/tmp/random,addr=0x2000000,force-raw=on >/tmp/from 2>&1 &
    from=$!
    within 60 test -S "$root/tmp/from.sock" -a -S "$root/tmp/to.sock"
    for end in from to; do monitor "$root/tmp/$end.sock" "migrate_set_capability rdma-pin-all $pin" | grep -i error && fail "rdma-pin-all"; done
    monitor "$root/tmp/to.sock" "migrate_incoming rdma:$mine:$port" >/dev/null
    within 30 bash -c 'rdma resource show cm_id | grep -q LISTEN'
    monitor "$root/tmp/from.sock" "migrate -d rdma:$theirs:$port" >/dev/null
    within 120 says "$root/tmp/from.sock" "info migrate" 'status: completed'
    within 120 says "$root/tmp/to.sock" "info status" 'paused'
    monitor "$root/tmp/from.sock" "info migrate" | grep -E 'transferred|throughput|total time'
    monitor "$root/tmp/to.sock" "pmemsave 0x2000000 $((24 << 20)) \"/tmp/arrived\"" >/dev/null
    within 60 cmp -s /tmp/random "$root/tmp/arrived"
    for end in from to; do monitor "$root/tmp/$end.sock" quit >/dev/null; done
    wait "$from" "$to" || fail "QEMU: status $?: $(cat /tmp/from /tmp/to)"
    rm -f "$root"/tmp/{arrived,random,from.sock,to.sock}
    note "Debian $debian, rdma-pin-all $pin: all of it has arrived"
  done
done
no_complaints "migration"
