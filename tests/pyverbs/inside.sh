# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# In the guest: brings the port up as an administrator would, runs rdma-core's tests, looks at the kernel's log.
# Given by tests/pyverbs/run: suite_names, suite_omitted (arrays), suite_limit, suite_vf.
# shellcheck disable=SC2154
dmesg -C
device=mlx5_0
if [[ $suite_vf == -lag ]]; then
  modprobe bonding max_bonds=0
  ip link add bond0 type bond mode balance-xor miimon 50 || exit
  for netdev in /sys/class/infiniband/mlx5_[01]/device/net/*; do
    netdev=${netdev##*/}
    ip link set "$netdev" down && ip link set "$netdev" master bond0 || exit
  done
  ip link set bond0 up
  device=mlx5_bond_0
elif [[ $suite_vf == -vf ]]; then
  # The port is the physical function's to bring up.
  ip link set "$(ls "/sys/class/infiniband/$device/device/net" | head -n 1)" up
  echo 1 >"/sys/class/infiniband/$device/device/sriov_numvfs" || exit
  device=mlx5_1
fi
for ((i = 0; i < 300; i++)); do
  grep -q ACTIVE "/sys/class/infiniband/$device/ports/1/state" 2>/dev/null && break
  sleep 0.1
done
modprobe -a ib_umad rdma_ucm
case $(<"/sys/class/infiniband/$device/ports/1/link_layer") in
  Ethernet)
    netdev=$(ls "/sys/class/infiniband/$device/device/net")
    [[ $suite_vf != -lag ]] || netdev=bond0
    ip link set "$netdev" up
    ;;
  *)
    modprobe ib_ipoib
    netdev=$(ls "/sys/class/infiniband/$device/device/net" | head -n 1)
    ip link set "$netdev" up
    ;;
esac
ip addr add 10.9.0.1/24 dev "$netdev"
for ((i = 0; i < 100; i++)); do
  grep -q ACTIVE "/sys/class/infiniband/$device/ports/1/state" && ip -6 addr show dev "$netdev" | grep -q 'scope link *$' && break
  sleep 0.1
done
echo "the port: $netdev, $(<"/sys/class/infiniband/$device/ports/1/state"), $(<"/sys/class/infiniband/$device/ports/1/link_layer"), Linux $(uname -r)"
# Some tests want huge pages, the last of the memory.
echo 64 >/proc/sys/vm/nr_hugepages
mkdir -p /suite && tar -C /suite -xf /usr/local/bin/rdma-core-tests.tar || exit
status=0
python3 /usr/local/bin/suite.py /suite/tests --limit "$suite_limit" --device "$device" "${suite_omitted[@]}" "${suite_names[@]}" || status=$?
if dmesg --level=emerg,alert,crit,err,warn | grep -vE 'mlx5_cmd_out_err|cq_err_event_notifier|mlx5_ib.*(dump cqe|dump_cqe)|infiniband mlx5_[01]: (create_|dump)' | grep -E 'WARNING|BUG|Oops|Call Trace|mlx5|INFO: task|refcount|leak'; then
  echo "the kernel complained (above)"
  ((status != 0)) || status=3
fi
exit "$status"
