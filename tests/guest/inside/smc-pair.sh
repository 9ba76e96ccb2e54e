# SPDX-License-Identifier: BSD-3-Clause
# pair: --link eth
# program: smc_pair
# Shared memory communications over RDMA (SMC-R) between two guests: sockets whose bytes go by RDMA writes, of connections that share a QP. Each
# guest is server once.
mark_kernel_log
ends_up 4200
modprobe smc && modprobe smc_diag || fail "smc"
barrier smc
# What it tells of its devices and links it calls warnings.
own_words='smc: *(adding ib device|ib device .* has pnetid|SMC-R lg .* (link added|link removed|state changed))'
received() { cat "/sys/class/infiniband/$device/ports/1/hw_counters/rx_write_requests"; }
for client in a b; do
  before=$(received)
  ends 120 line:^listens smc_pair "$mine" -- smc_pair "$mine" "$theirs"
  writes=$(($(received) - before))
  note "$writes RDMA writes came in"
  # 60 messages of 73 KB on the average in each of four connections, in pieces of a ring of 64 KiB or what it has grown to.
  ((writes > 240)) || fail "only $writes writes: that was not RDMA"
done
rdma resource show qp | grep -i smc || fail "no QP is SMC's"
no_complaints "SMC" "$own_words"
