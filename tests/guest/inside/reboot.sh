# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib --reboots --scratch
# The guest reboots with the driver loaded; the card must come up again. /dev/vdc remembers across the reboot.
wait_active mlx5_0
pingpong -c -n 100
boots=$(head -c 1 /dev/vdc)
note "boots before this one: ${boots:-?}"
case $boots in
  0 | 1)
    printf '%s' $((boots + 1)) | dd of=/dev/vdc bs=512 conv=sync,fsync status=none || fail "cannot write /dev/vdc"
    note "rebooting"
    if [[ $boots == 0 ]]; then /usr/lib/hcasim/busybox reboot -f; else echo b >/proc/sysrq-trigger; fi
    sleep 60
    fail "the guest did not reboot"
    ;;
  2) note "third boot of the same machine" ;;
  *) fail "the scratch disk holds '$boots'" ;;
esac
no_complaints_early=$(dmesg -l emerg,alert,crit,err | grep -i mlx5)
[[ -z $no_complaints_early ]] || fail "the driver complained after the reboot: $no_complaints_early"
