# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca none --mem 3G --smp 1
# disk: kvm-disk KERNEL lib-inner probe eth-probe
# The HCA under KVM: this guest is a host whose processor, emulated, has SVM, and starts a guest of its own with -accel kvm and the HCA.
# Both have one processor: with two, QEMU 7.2's emulated SVM loses an interrupt between processors for good in about one of 40 boots of
# the inner guest (soft lockup in smp_call_function), or resets the inner guest.
# By itself on RoCE the probe and a ping-pong; kvm:all: on both links perftest too, and the tests probe and eth-probe.
mkdir -p /tmp/host
mount -o ro /dev/vdc /tmp/host || fail "no disk with QEMU"
for dir in proc sys dev; do mount --rbind "/$dir" "/tmp/host/$dir" || fail "bind $dir"; done
mount -t tmpfs none /tmp/host/tmp || fail "tmpfs"
# svm of the guest's own processor: nothing of this machine's is used.
grep -qw svm /proc/cpuinfo || fail "this processor has no SVM"
for module in irqbypass ccp kvm kvm-amd; do insmod "/tmp/host/kvm/$module.ko" || fail "insmod $module"; done
[[ -c /dev/kvm ]] || fail "no /dev/kvm"
note "/dev/kvm is there"

# inner NAME ARGUMENT MODULES HCA: one of the disk's scripts in a guest under KVM. HCA: the properties of one of its own, or the PCI address of
# a function of this guest's, which is vfio-pci's.
inner() {
  local name=$1 argument=$2 modules=$3 hca=$4 status=0 start=$SECONDS report total
  local -a device=(-plugin /kvm/plugin.so -device "mlx5-hca,bus=hcasim-port0,$hca")
  [[ $hca == link=* ]] || device=(-device "vfio-pci,bus=hcasim-port0,host=$hca")
  note "inner guest: $name $argument, $hca"
  rm -f /tmp/host/tmp/{control,console,rules,out,resets}
  # shellcheck disable=SC2054 # commas are QEMU's
  local -a run=("$qemu" -L /kvm -nodefaults -no-user-config -display none -no-reboot
    -machine q35,vmport=off,usb=off -accel kvm -cpu host -smp 1 -m 1G -kernel /kvm/vmlinuz -initrd /kvm/initramfs.img
    -drive "if=none,id=root,format=raw,readonly=on,file=/dev/vda" -device virtio-blk-pci,drive=root
    -drive "if=none,id=modules,format=raw,readonly=on,file=/dev/vdb" -device virtio-blk-pci,drive=modules
    -append "console=ttyS0 panic=-1 quiet loglevel=4 no_timer_check mitigations=off random.trust_cpu=on${modules:+ hcasim.modprobe=$modules}"
    -d cpu_reset -D /tmp/resets -fw_cfg "name=opt/hcasim/script,file=/kvm/$name.sh" -fw_cfg "name=opt/hcasim/argument,string=$argument"
    -serial file:/tmp/console -device virtio-serial-pci
    -chardev file,id=out,path=/tmp/out -device "virtserialport,chardev=out,name=hcasim.out"
    -chardev file,id=control,path=/tmp/control -device "virtserialport,chardev=control,name=hcasim.control"
    -device pcie-root-port,id=hcasim-port0,chassis=1,slot=1 "${device[@]}")
  HCASIM_PROFILE_PATH=/kvm/profiles HCASIM_RULES_REPORT=/tmp/rules timeout -k 5 "$limit" chroot /tmp/host "${run[@]}" </dev/null || status=$?
  sed 's/^/   | /' /tmp/host/tmp/out
  report=$(sed -n 's/^exit \([0-9]*\)$/\1/p' /tmp/host/tmp/control | tail -n 1)
  if [[ $status != 0 || $report != 0 ]]; then
    tail -n 30 /tmp/host/tmp/console 2>/dev/null
    # A processor that has shut down (triple fault) is reset, and QEMU ends with status 0.
    tail -n 30 /tmp/host/tmp/resets 2>/dev/null
    fail "$name $argument, $hca: QEMU's status $status, the inner guest's ${report:-none}"
  fi
  # What the inner guest's drivers broke (run-guest-test looks at those of the outer one's HCA).
  if [[ $hca == link=* ]]; then
    [[ -s /tmp/host/tmp/rules ]] || fail "the HCA has not said what its driver broke"
    while read -r _ _ total report; do
      ((total == 0)) || fail "rules broken in the inner guest: $report"
    done </tmp/host/tmp/rules
  fi
  note "ok, $((SECONDS - start)) s: $name $argument, $hca"
}

qemu=/usr/bin/qemu-system-x86_64
limit=150
if [[ -n $(hca_addresses) ]]; then
  # kvm-vf: a virtual function of this guest's card goes to the inner one, and comes back.
  limit=300
  ip link set "$(net_of "$pf")" up || fail "$(net_of "$pf")" # the cable is the physical function's
  echo 2 >"$pf/sriov_numvfs" || fail "sriov_numvfs"
  function=$(vf_of 0) sibling=$(vf_of 1)
  for each in "$function" "$sibling"; do within 60 test -d "$each/infiniband"; done
  give_to_vfio "$(basename "$function")"
  inner lib-inner short '' "$(basename "$function")"
  take_from_vfio "$(basename "$function")"
  within 60 test -d "$function/infiniband"
  dmesg | grep -i 'DMAR.*fault' && fail "the IOMMU refused an access"
elif [[ $test_argument == all ]]; then
  limit=400
  for link in eth ib; do inner lib-inner long '' "link=$link"; done
  inner probe - '' link=ib
  inner eth-probe - '' link=eth,mac=00:02:c9:12:34:56
else
  inner lib-inner short '' link=eth
fi
# Left out: registers for counting performance, which the emulated processor does not have.
dmesg -l emerg,alert,crit,err >/tmp/errors || fail "dmesg"
if grep -i kvm /tmp/errors | grep -vE 'Unhandled (RD|WR)MSR'; then fail "KVM complained"; fi
