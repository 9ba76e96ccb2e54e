# SPDX-License-Identifier: BSD-3-Clause
# pair: --link ib
# program: rds_pair
# Reliable datagrams over RDMA between two guests, by IPoIB's addresses.
mark_kernel_log
ends_up
wait_active "$device"
ipoib_up
modprobe rds_rdma || fail "rds_rdma"
barrier rds
for client in a b; do
  ends 120 line:^bound rds_pair "$mine" -- rds_pair "$mine" "$theirs"
done
sent=$(cat "/sys/class/infiniband/$device/ports/1/counters/port_xmit_packets")
dmesg | grep -q 'RDS/IB: .* conn connected' || fail "RDS has no connection over InfiniBand"
# Each way 400 messages of 13 KB on the average, in fragments of 4 KiB.
((sent > 1440)) || fail "only $sent packets left the port: that was not RDMA"
no_complaints "RDS"
