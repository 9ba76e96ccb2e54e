# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,vfs=2 --hca link=ib --reboots --scratch=1G
# Suspend and resume of the drivers: by the kernel's own test of all devices, which leaves them their power, with virtual functions; to
# disk (S4), where another kernel starts, whose drivers have used the cards, and gives them over to the one that it loads; and to memory
# (S3), for which they lose their power.
if [[ $(blkid -o value -s TYPE /dev/vdc) == swsuspend ]]; then
  note "a kernel is on the disk"
  cat /sys/class/block/vdc/dev >/sys/power/resume
  fail "it could not be brought back"
fi
mark_kernel_log
functions_work
echo 2 >"$pf/sriov_numvfs" || fail "sriov_numvfs"
within 60 test -d "$pf/virtfn1/infiniband"
functions_work
# Linux from 6.16 on suspends functions of a card side by side, and the physical one switches off those that still send commands; here one
# after the other, the last one first.
for function in "$pf"/power/async "$pf"/virtfn*/power/async; do echo disabled >"$function" || fail "$function"; done
echo platform >/sys/power/pm_test || fail "no pm_test"
for round in 1 2; do
  note "suspended for 5 s"
  echo mem >/sys/power/state || fail "suspend"
  functions_work
done
echo none >/sys/power/pm_test
echo 0 >"$pf/sriov_numvfs" || fail "sriov_numvfs"

for round in 1 2; do
  mkswap /dev/vdc >/dev/null && swapon /dev/vdc || fail "swapon"
  echo reboot >/sys/power/disk
  note "to disk"
  echo disk >/sys/power/state || fail "hibernation"
  note "back"
  swapoff /dev/vdc || fail "swapoff"
  functions_work
done
for round in 1 2; do
  note "to memory"
  rtcwake -m mem -s 15 >/dev/null || fail "rtcwake"
  note "awake"
  # What SeaBIOS does not set up again: where the chipset's power management and the extended configuration space are.
  setpci -s 00:1f.0 40.l=601 44.b=80 && setpci -s 00:00.0 60.l=b0000001 || fail "setpci"
  functions_work
done

no_complaints "sleep" 'RTC interrupts|RealTimeClock events'
