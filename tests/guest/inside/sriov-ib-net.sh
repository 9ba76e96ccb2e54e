# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib,vfs=2
# replay: -
# What an administrator settles of an InfiniBand card's virtual functions (ip link set ib0 vf N): GUIDs and the state of their ports; then
# IPoIB and RDMA CM between the physical function and a virtual one, and what each has counted.
wait_active mlx5_0
mark_kernel_log
modprobe ib_ipoib && modprobe rdma_cm && modprobe rdma_ucm || fail "modules"
within 30 test -e /sys/class/net/ib0
guid=12:34:56:78:9a:bc:de:f0
ip link set ib0 up || fail "ib0 up"
# Given before a function starts.
echo 0 >"$pf/sriov_drivers_autoprobe"
echo 2 >"$pf/sriov_numvfs" || fail "two virtual functions"
ip link set ib0 vf 0 node_guid $guid && ip link set ib0 vf 0 port_guid 12:34:56:78:9a:bc:de:f1 || fail "GUIDs"
ip link show ib0 | tee /tmp/shown
grep -q "vf 0 .*$guid" /tmp/shown || fail "ip link does not show the GUID"
echo 1 >"$pf/sriov_drivers_autoprobe"
for vf in 0 1; do echo "$(basename "$(vf_of $vf)")" >/sys/bus/pci/drivers/mlx5_core/bind || fail "bind of $vf"; done
for vf in 0 1; do within 60 grep -qs ACTIVE "$(vf_of $vf)"/infiniband/*/ports/1/state; done
vf0=$(rdma_of "$(vf_of 0)") vf1=$(rdma_of "$(vf_of 1)")
[[ $(<"/sys/class/infiniband/$vf0/node_guid") == 1234:5678:9abc:def0 ]] || fail "node GUID $(<"/sys/class/infiniband/$vf0/node_guid")"
[[ $(<"/sys/class/infiniband/$vf0/ports/1/gids/0") == *1234:5678:9abc:def1 ]] || fail "GID $(<"/sys/class/infiniband/$vf0/ports/1/gids/0")"
between mlx5_0 "$vf0" ibv_rc_pingpong -c -n 100

# The state of its port.
state() { grep -q "$2" "/sys/class/infiniband/$1/ports/1/state"; }
ip link set ib0 vf 0 state disable || fail "disable"
within 20 state "$vf0" DOWN
state "$vf1" ACTIVE && state mlx5_0 ACTIVE || fail "others went down, too"
between mlx5_0 "$vf1" ibv_rc_pingpong -c -n 100
ip link set ib0 vf 0 state enable || fail "enable"
within 20 state "$vf0" ACTIVE
ip link set ib0 vf 0 state auto || fail "auto"
state "$vf0" ACTIVE || fail "auto took it down"
between mlx5_0 "$vf0" ibv_rc_pingpong -c -n 100

# IPoIB.
net=$(net_of "$(vf_of 0)")
ip netns add vf && ip link set "$net" netns vf || fail "name space"
ip address add 10.9.1.1/24 dev ib0 && ip -n vf address add 10.9.1.2/24 dev "$net" && ip -n vf link set "$net" up || fail "addresses"
within 60 sh -c "ip netns exec vf cat /sys/class/net/$net/carrier | grep -q 1"
ping -q -c 10 -i 0.2 -W 5 10.9.1.2 || fail "ping"
ip netns exec vf ping -q -c 5 -i 0.2 -W 5 -M 'do' -s 2000 10.9.1.1 || fail "ping back"
tcp_between "" "ip netns exec vf" 10.9.1.1
# received VF: packets that it has got, as its manager is told.
received() {
  ip -s link show ib0 | awk -v vf="$1" '$1 == "vf" { n = $2 } n == vf && $1 == "RX:" { getline; if ($2 + 0 > 0 || $1 + 0 > 0) print $2; exit }'
}
before=$(received 0)
ping -q -c 10 -i 0.2 -W 5 10.9.1.2 || fail "ping"
((${before:-0} > 0 && $(received 0) >= before + 10)) || fail "received were $before, then $(received 0): $(ip -s link show ib0)"

# RDMA CM: by the addresses of IPoIB, the virtual function as client and as server.
rping -s -a 10.9.1.1 -C 20 -v >/tmp/server 2>&1 &
sleep 1
ip netns exec vf timeout 60 rping -c -a 10.9.1.1 -C 20 -V >/tmp/client 2>&1 || fail "rping: $(cat /tmp/client /tmp/server)"
wait
ip netns exec vf timeout 60 rping -s -a 10.9.1.2 -C 20 >/tmp/server 2>&1 &
sleep 1
timeout 60 rping -c -a 10.9.1.2 -C 20 -V >/tmp/client 2>&1 || fail "rping back: $(cat /tmp/client /tmp/server)"
wait
ip netns del vf || fail "name space"
vfs 0
no_complaints "virtual functions and what their manager settles"
