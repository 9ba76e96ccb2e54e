# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib --reboots --scratch
# A function-level reset through sysfs. Without the driver: it then finds a card as after power-on. Under the driver: the
# kernel does not tell it, so its commands go unanswered and it can only wait for their time limits; the machine is
# rebooted instead, and the card must serve again.
wait_active mlx5_0
pingpong -c -n 100
boots=$(head -c 1 /dev/vdc)
case $boots in
  0) ;;
  1)
    note "the card serves after a reset under the driver and a reboot"
    exit 0
    ;;
  *) fail "the scratch disk holds '$boots'" ;;
esac
address=$(hca_addresses | head -n 1)
reset=/sys/bus/pci/devices/$address/reset
[[ -w $reset ]] || fail "$address has no reset"
grep -q flr "/sys/bus/pci/devices/$address/reset_method" || fail "FLR is not among the reset methods: $(cat "/sys/bus/pci/devices/$address/reset_method")"
mark_kernel_log
for round in 1 2 3; do
  modprobe -r ib_umad
  modprobe -r mlx5_ib mlx5_core || fail "modprobe -r"
  echo 1 >"$reset" || fail "reset $round"
  hca_drivers || fail "modprobe after reset $round"
  wait_active mlx5_0
  pingpong -c -n 100
done
no_complaints "reset without a driver"

printf 1 | dd of=/dev/vdc bs=512 conv=sync,fsync status=none || fail "cannot write /dev/vdc"
note "reset under the driver: its health poll finds out, and it recovers by itself"
echo 1 >"$reset" || fail "reset under the driver"
end=$((SECONDS + 60))
until dmesg | grep -q 'health recovery succeeded'; do
  ((SECONDS < end)) || fail "the driver has not recovered after 60 s"
  sleep 0.5
done
wait_active mlx5_0 60
pingpong -c -n 100

note "reset under the driver, then reboot"
echo 1 >"$reset" || fail "reset under the driver"
sleep 3 # the driver has found out, and its commands wait for an answer
echo b >/proc/sysrq-trigger
sleep 60 # the reboot ends this shell
fail "the guest did not reboot"
