# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,vfs=2 --hca link=ib --append crashkernel=512M
# disk: kexec-disk KERNEL
# breaks: enable-twice
# A kernel starts another without the machine's firmware and without a reset of the card: first in order (the drivers' shutdown), while
# programs have queues under way; then as it crashes, which tears nothing down: its queues, interrupts and commands are as they were, and
# what arrives for them goes to memory that the next kernel does not use (where ENABLE_HCA finds the function enabled). Virtual functions are
# there as well. Each time the next one's drivers must find the cards usable.
disk=/tmp/kexec-disk
mkdir -p "$disk"
mount -o ro /dev/vdc "$disk" || fail "no disk with a kernel"
kexec() { LD_LIBRARY_PATH=$disk "$disk/kexec" "$@"; }
started=$(sed -nE 's/.*hcasim\.started=([a-z]+).*/\1/p' /proc/cmdline)
note "kernel: ${started:-the first one}"
mark_kernel_log

functions_work
no_complaints "$(uname -r)"

# Their queues are full, and virtual functions have drivers, when the kernel ends.
busy() {
  echo 2 >"$pf/sriov_numvfs" || fail "sriov_numvfs"
  within 60 test -d "$pf/virtfn1/net"
  local device port sent
  local -a options
  for device in mlx5_0 mlx5_1; do
    port=1900${device: -1} options=(-d "$device" -F -D 100)
    [[ $(<"/sys/class/infiniband/$device/ports/1/link_layer") != Ethernet ]] || options+=(-x 0)
    ib_write_bw "${options[@]}" -p "$port" >/tmp/server 2>&1 &
    until_listens "$port" $! || fail "ib_write_bw: $(cat /tmp/server)"
    sent=$(sent_by "$device")
    ib_write_bw "${options[@]}" -p "$port" localhost >/tmp/client 2>&1 &
    within 30 has_sent "$device" $((sent + 1000))
  done
}
sent_by() { cat "/sys/class/infiniband/$1/ports/1/counters/port_xmit_packets"; }
has_sent() { (($(sent_by "$1") >= $2)); }
line=$(</proc/cmdline)
line=${line% hcasim.started=*}
load() { kexec "$1" "$disk/vmlinuz" --initrd="$disk/initramfs.img" --append="$2" || fail "kexec $1"; }
start() {
  kexec -e
  fail "the other kernel has not started"
}
case $started in
  '')
    load -l "$line hcasim.started=again"
    note "starting it with nothing under way"
    start
    ;;
  again)
    load -l "$line hcasim.started=busy"
    busy
    note "starting it with queues under way"
    start
    ;;
  busy)
    load -p "${line/crashkernel=512M/} nr_cpus=1 irqpoll reset_devices hcasim.started=crashed"
    busy
    note "crashing"
    echo c >/proc/sysrq-trigger
    ;;
esac
