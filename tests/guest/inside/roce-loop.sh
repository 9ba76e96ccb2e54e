# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth
# RoCE v2, all transports, from the GID table to RDMA CM. In one guest the port is a cable to itself; roce-pair runs the same
# in two guests.
mark_kernel_log
ends_up 4200
ibv_devinfo -v -d "$device" >/tmp/devinfo || fail "ibv_devinfo: status $?"
sed -n '/state:\|active_mtu\|link_layer\|GID/p' /tmp/devinfo
grep -q 'GID.*RoCE v2' /tmp/devinfo || fail "no RoCE v2 GID"

clients=a
[[ -z $side ]] || clients='a b'
for client in $clients; do
  pingpong_ends ibv_rc_pingpong -c -n 200
  pingpong_ends ibv_rc_pingpong -c -e -s 65536 -n 50
  pingpong_ends ibv_uc_pingpong -c -n 200
  pingpong_ends ibv_ud_pingpong -c -s 1024 -n 200
  pingpong_ends ibv_srq_pingpong -c -n 100
done
client=a
pingpong_ends ibv_rc_pingpong -c -s 1048576 -n 20
for mtu in 256 1024 4096; do pingpong_ends ibv_rc_pingpong -m $mtu -c -s 16384 -n 20; done

# Other GIDs: IPv6, a VLAN's, and RoCE v1 where the driver has it.
if [[ -n $(ethtool -i "$interface" 2>/dev/null | grep mlx5) ]]; then
  ipv4_gid=$gid
  find_gid "$(gid_of_link_local)"
  pingpong_ends ibv_rc_pingpong -c -n 50
  pingpong_ends ibv_ud_pingpong -c -s 512 -n 50
  ip link add link "$interface" name vlan7 type vlan id 7 && ip link set vlan7 up && ip address add "${mine/10.9.0./10.9.7.}/24" dev vlan7 ||
    fail "VLAN 7"
  find_gid "$(gid_of "${mine/10.9.0./10.9.7.}")"
  pingpong_ends ibv_rc_pingpong -c -n 50
  pingpong_ends ibv_ud_pingpong -c -s 512 -n 50
  gid=$ipv4_gid
  ip link del vlan7
  if find_gid "$(gid_of "$mine")" 'IB/RoCE v1' 0; then
    pingpong_ends ibv_rc_pingpong -c -n 50
  fi
  gid=$ipv4_gid
fi

for tool in ib_send ib_write ib_read; do
  perftest_ends ${tool}_lat -s 2 -n 50
  perftest_ends ${tool}_bw -s 65536 -n 100
done
perftest_ends ib_atomic_lat -n 50
perftest_ends ib_atomic_bw -n 100
perftest_ends ib_send_bw -c UC -s 65536 -n 100
perftest_ends ib_write_bw -c UC -s 65536 -n 100
perftest_ends ib_send_lat -c UD -s 1024 -n 100
perftest_ends ib_send_bw -c UD -s 1024 -n 100
perftest_ends ib_write_bw -s 4096 -q 16 -n 20 -b

cm_ends() { ends "${ends_limit:-60}" cm "$@"; }
for client in $clients; do
  cm_ends rping -s -a 0.0.0.0 -v -V -C 50 -S 4000 -- rping -c -a "$theirs" -v -V -C 50 -S 4000
  cm_ends ucmatose -c 4 -C 10 -S 5000 -- ucmatose -s "$theirs" -c 4 -C 10 -S 5000
  cm_ends udaddy -c 2 -C 10 -S 500 -- udaddy -s "$theirs" -c 2 -C 10 -S 500
done
client=a
# Multicast: the receiver must have joined (239.1.9.1) before the sender sends.
ends 60 group:010901EF mckey -m 239.1.9.1 -b "$mine" -C 10 -- mckey -m 239.1.9.1 -b "$mine" -C 10 -s
cm_ends ib_write_bw -R -F -s 65536 -n 50 -d "$device" -- ib_write_bw -R -F -s 65536 -n 50 -d "$device" "$theirs"
cm_ends ib_send_lat -R -F -s 64 -n 50 -d "$device" -- ib_send_lat -R -F -s 64 -n 50 -d "$device" "$theirs"

if [[ -d /sys/class/infiniband/$device/ports/1/hw_counters ]]; then
  grep -H . "/sys/class/infiniband/$device/ports/1/hw_counters/"{out_of_sequence,packet_seq_err,local_ack_timeout_err,rx_icrc_encapsulated,duplicate_request} 2>/dev/null |
    sed 's/.*hw_counters.//'
fi
no_complaints "RoCE"
