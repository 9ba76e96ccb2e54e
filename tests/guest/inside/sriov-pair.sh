# SPDX-License-Identifier: BSD-3-Clause
# pair: --link eth --hca vfs=2
# capture: --min roce-rc=1000 --min roce-ud=100
# Virtual functions of two guests' cards: perftest and RDMA CM between them, and with the other's physical one.
mark_kernel_log
ends_up
physical=$device
echo 2 >"$pf/sriov_numvfs" || fail "virtual functions"
within 60 test -d "$pf/virtfn0/infiniband"
interface=$(net_of "$(vf_of 0)") device=$(rdma_of "$(vf_of 0)")
of_physical=$theirs
mine=${mine/10.9.0./10.9.1.} theirs=${theirs/10.9.0./10.9.1.}
# Two of this guest's interfaces are on one wire: each answers for its own address alone.
for name in all default; do echo 1 >/proc/sys/net/ipv4/conf/$name/arp_ignore && echo 2 >/proc/sys/net/ipv4/conf/$name/arp_announce || fail "ARP"; done
ip link set "$interface" up && ip address add "$mine/24" dev "$interface" || fail "$interface"
wait_active "$device"
settled
find_gid "$(gid_of "$mine")"
barrier functions
ping -q -c 3 -i 0.2 -W 5 "$theirs" || fail "ping to the other's virtual function"
ping -q -c 3 -i 0.2 -W 5 "$of_physical" || fail "ping to the other's physical function"
for client in a b; do
  pingpong_ends ibv_rc_pingpong -c -n 200
  for tool in ib_send ib_write ib_read; do
    perftest_ends ${tool}_lat -s 2 -n 50
    perftest_ends ${tool}_bw -s 65536 -n 100
  done
  perftest_ends ib_atomic_bw -n 50
  perftest_ends ib_send_bw -c UD -s 1024 -n 200
  modprobe rdma_ucm || fail "rdma_ucm"
  ends 60 cm rping -s -a "$mine" -C 20 -- rping -c -a "$theirs" -C 20 -V
done
# a is a virtual function, b the physical one.
if [[ $side == b ]]; then
  device=$physical mine=$of_physical
  find_gid "$(gid_of "10.9.0.2")"
fi
client=a
perftest_ends ib_write_bw -s 65536 -n 100
client=b
perftest_ends ib_send_lat -s 64 -n 50
barrier over
echo 0 >"$pf/sriov_numvfs" || fail "no virtual functions"
no_complaints "virtual functions of two guests"
