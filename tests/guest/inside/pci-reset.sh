# SPDX-License-Identifier: BSD-3-Clause
# A function-level reset through sysfs: first without the driver, which must find a card as after power-on; then under
# the driver, which must be able to leave and come back.
wait_active mlx5_0
pingpong -c -n 100
address=$(hca_addresses | head -n 1)
reset=/sys/bus/pci/devices/$address/reset
[[ -w $reset ]] || fail "$address has no reset"
cat "/sys/bus/pci/devices/$address/reset_method"
grep -q flr "/sys/bus/pci/devices/$address/reset_method" || fail "FLR is not among the reset methods"
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

note "reset under the driver"
echo 1 >"$reset" || fail "reset under the driver"
# The driver is not told: it finds out by its health poll or a command that is not answered, and says so in the log.
modprobe -r ib_umad
timeout 200 modprobe -r mlx5_ib mlx5_core || fail "modprobe -r after a reset under the driver"
hca_drivers || fail "modprobe after a reset under the driver"
wait_active mlx5_0 60
pingpong -c -n 100
