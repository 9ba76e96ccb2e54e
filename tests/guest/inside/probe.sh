# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib --no-modprobe
# The drivers come up, the kernel has nothing to complain about, the port is ACTIVE.
mark_kernel_log
modprobe mlx5_ib || fail "modprobe mlx5_ib"
hca_drivers || fail "modprobe"
dmesg | grep -i mlx5
wait_active mlx5_0
ibv_devinfo -v >/tmp/devinfo || fail "ibv_devinfo -v: status $?"
cat /tmp/devinfo
grep -q PORT_ACTIVE /tmp/devinfo || fail "ibv_devinfo -v shows no PORT_ACTIVE"
no_complaints "modprobe mlx5_ib"
