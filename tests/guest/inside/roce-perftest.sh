# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth --mem 3G
# perftest's whole family on a RoCE v2 GID, in all sizes; roce-perftest-pair runs it between two guests.
mark_kernel_log
ends_up 4200
ends_limit=200
for tool in ib_send ib_write ib_read; do
  perftest_ends ${tool}_lat -a -n 10
  perftest_ends ${tool}_bw -a -n 20
  sed -n '/^ [0-9]/p' /tmp/client
done
for tool in ib_atomic_lat ib_atomic_bw; do perftest_ends $tool -n 50; done
for transport in UC UD; do
  perftest_ends ib_send_lat -c $transport -a -n 20
  perftest_ends ib_send_bw -c $transport -a -n 20
done
perftest_ends ib_write_lat -c UC -a -n 20
perftest_ends ib_write_bw -c UC -a -n 20
perftest_ends ib_write_bw -a -b -n 20
no_complaints "perftest"
