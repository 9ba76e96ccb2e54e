# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca id=left,link=eth --hca id=right,link=eth,cable=left
# program: dr_match
# program: dr_actions
# Software steering from user space (mlx5dv_dr): two HCAs and a cable; dr_match has a rule for each field that a matcher can name, and
# frames that fit and do not.
mark_kernel_log
for device in mlx5_0 mlx5_1; do
  interface=$(ls "/sys/class/infiniband/$device/device/net")
  # Nothing but the test's frames.
  echo 1 >"/proc/sys/net/ipv6/conf/$interface/disable_ipv6"
  ip link set "$interface" up mtu 2000
  wait_active $device
done
run() { timeout -k 5 300 "$@" || fail "$*: status $?"; }
run dr_match mlx5_0 mlx5_1
run dr_actions mlx5_0 mlx5_1
no_complaints "software steering"
