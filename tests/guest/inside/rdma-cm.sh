# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth --mem 2G
# disk: package-disk cm qperf librdmacm1 rdmacm-utils ibverbs-providers dash base-files
# Programs that connect by RDMA CM: rsockets (streams, files), connections in numbers, qperf with each of its transports; fio's engine.
if [[ $(<"/sys/class/infiniband/mlx5_0/ports/1/link_layer") == Ethernet ]]; then
  ends_up 4200
else
  ends_up
  wait_active "$device"
  mine=10.9.0.1 theirs=10.9.0.1
  ipoib_up
fi
mark_kernel_log
package_roots
modprobe rdma_ucm || fail "rdma_ucm"
ends_limit=100
dd if=/dev/urandom of=/tmp/file bs=1M count=4 status=none
# serves READY SERVER... -- CLIENT...: a server that does not end by itself.
serves() {
  local ready=$1 server
  local -a command=()
  shift
  while [[ $1 != -- ]]; do command+=("$1") && shift; done
  shift
  "${in[@]}" "${command[@]}" >/tmp/server 2>&1 &
  server=$!
  within 20 bash -c "$ready"
  timeout 100 "${in[@]}" "$@" >/tmp/client 2>&1 || { cat /tmp/client /tmp/server && fail "$*"; }
  tail -n 2 /tmp/client
  kill "$server" 2>/dev/null || true # or it has ended
  wait "$server" || true # of the signal
}
for debian in 12 13; do
  in=(chroot "/tmp/roots/$debian")
  note "of Debian $debian:"
  for tool in rstream riostream; do
    ends 100 cm "${in[@]}" $tool -b "$mine" -T v -S all -C 20 -- "${in[@]}" $tool -s "$theirs" -T v -S all -C 20
    ends 100 cm "${in[@]}" $tool -b "$mine" -S 65536 -C 100 -- "${in[@]}" $tool -s "$theirs" -S 65536 -C 100
  done
  cp /tmp/file "/tmp/roots/$debian/tmp/file"
  serves 'rdma resource show cm_id | grep -q LISTEN' rcopy -- rcopy /tmp/file "$theirs:/tmp/copy"
  if is_server; then cmp "/tmp/roots/$debian/tmp/file" "/tmp/roots/$debian/tmp/copy" || fail "rcopy"; fi
  # Later ones connect without QPs, too, by numbers that they make up: at both ends the same, which one node takes for old connections.
  made_up=()
  ((debian == 12)) || made_up=(-q 5000)
  serves 'rdma resource show cm_id | grep -q LISTEN' cmtime -b "$mine" -c 40 "${made_up[@]}" -- cmtime -s "$theirs" -c 40
  tests=(rc_bw rc_bi_bw rc_lat rc_rdma_read_bw rc_rdma_read_lat rc_rdma_write_bw rc_rdma_write_lat rc_rdma_write_poll_lat
    rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap ver_rc_fetch_add)
  # It connects these by LIDs alone.
  [[ -n $gid ]] || tests+=(uc_bw uc_bi_bw uc_lat uc_rdma_write_bw uc_rdma_write_lat ud_bw ud_lat)
  ends 200 tcp:19765 "${in[@]}" qperf -- "${in[@]}" qperf "$theirs" --use_cm 1 -t 1 "${tests[@]}" quit
  cat /tmp/client
  (($(grep -cE '^ +[a-z_]+ +=' /tmp/client) >= ${#tests[@]})) || fail "qperf has not done all"
done
for verb in write read send; do
  more=(--name=fio --ioengine=rdma --port=8765 --size=8m --bs=64k --iodepth=16)
  # It gives a SEND no second chance: the other end posts receives for all of them at once.
  ahead=16 room=16
  [[ $verb != send ]] || ahead=1 room=128
  ends 100 cm fio "${more[@]}" --rw=read --iodepth=$room -- fio "${more[@]}" --rw=write --verb=$verb --iodepth=$ahead --hostname="$theirs"
  grep -oE '(READ|WRITE): bw=[^ ]+' /tmp/client
done
no_complaints "these programs"
