# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib,sm=off,id=left,cable=right --hca link=ib,sm=off,id=right --mem 3G
# disk: package-disk programs libfabric-bin ibverbs-providers perftest iproute2 xdp-tools ibutils dash
# Programs on InfiniBand: ibutils' ibdiagnet over two HCAs joined by a cable, with opensm; perftest that connects by RDMA CM over IPoIB.
mark_kernel_log
mkdir -p /var/cache/opensm /var/log
opensm --daemon --log_file /tmp/opensm.log --timeout 2000 >/tmp/opensm.out 2>&1 || { cat /tmp/opensm.out && fail "opensm"; }
for hca in mlx5_0 mlx5_1; do wait_active $hca 90; done
gid=
package_roots
for debian in 12 13; do
  timeout 100 chroot "/tmp/roots/$debian" ibdiagnet -o /tmp >/tmp/ibdiagnet 2>&1 </dev/null || fail "ibdiagnet of Debian $debian: status $?: $(tail -n 30 /tmp/ibdiagnet)"
  tail -n 25 /tmp/ibdiagnet
  ls "/tmp/roots/$debian/tmp"
  if grep -E '^-E-' /tmp/ibdiagnet; then fail "ibdiagnet of Debian $debian sees errors"; fi
  for hca in mlx5_0 mlx5_1; do
    guid=$(tr -d : <"/sys/class/infiniband/$hca/node_guid")
    grep -iq "$guid" "/tmp/roots/$debian/tmp/ibdiagnet.lst" || fail "ibdiagnet did not find $guid: $(<"/tmp/roots/$debian/tmp/ibdiagnet.lst")"
  done
done
mine=10.9.0.1 theirs=10.9.0.1
ipoib_up
echo 64 >/proc/sys/vm/nr_hugepages || fail "no huge pages"
ends_limit=60
for tool in ib_write_bw ib_send_lat ib_read_bw; do
  ends 60 cm "$tool" -F -R -n 100 -- "$tool" -F -R -n 100 "$theirs"
  grep -E '^ *[0-9]' /tmp/client
done
ends 60 cm ib_write_bw -F -R -n 100 --use_hugepages --tos 32 -- ib_write_bw -F -R -n 100 --use_hugepages --tos 32 "$theirs"
no_complaints "these programs"
