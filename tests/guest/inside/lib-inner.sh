# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# What the inner guest of kvm.sh runs behind lib.sh and lib-ends.sh; $test_argument: short or long. Sizes are small, as each access
# to the HCA is an exit through two machines, 50 to 100 us.
grep -q kvm-clock /sys/devices/system/clocksource/clocksource0/available_clocksource || fail "this guest does not run under KVM"
mark_kernel_log
hca_drivers || fail "modprobe"
ends_up
dmesg | grep -i mlx5
ibv_devinfo -d mlx5_0 >/tmp/devinfo || fail "ibv_devinfo: status $?"
grep -q PORT_ACTIVE /tmp/devinfo || fail "ibv_devinfo shows no PORT_ACTIVE"
declare -a by=()
[[ -z $gid ]] || by=(-g "$gid")
pingpong "${by[@]}" -c -n 50
if [[ $test_argument == long ]]; then
  [[ -z $gid ]] || by=(-x "$gid")
  pingpong "${by[@]/#-x/-g}" -e -c -s 65536 -n 50
  for tool in "ib_write_lat -s 2 -n 200" "ib_read_lat -s 2 -n 200" "ib_send_bw -s 65536 -n 200" "ib_write_bw -s 2 -n 500"; do
    read -r -a words <<<"$tool"
    pair 18520 200 "${words[@]}" -d mlx5_0 -F "${by[@]}" || fail "$tool"
    sed -n '/#bytes/,$p' /tmp/client.18520
    grep -qiE 'completion with error|failed|unable|couldn' /tmp/client.18520 /tmp/server.18520 && fail "$tool speaks of errors"
  done
fi
no_complaints "the drivers under KVM"
