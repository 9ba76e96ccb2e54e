# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib,id=left,cable=right --hca link=ib,id=right
# Two HCAs in one guest, joined by a cable: one subnet, traffic from one to the other, and a cable that is pulled.
mark_kernel_log
wait_active mlx5_0
wait_active mlx5_1
lid() { cat "/sys/class/infiniband/$1/ports/1/lid"; }
sm_lid() { cat "/sys/class/infiniband/$1/ports/1/sm_lid"; }
[[ $(lid mlx5_0) != "$(lid mlx5_1)" ]] || fail "both have LID $(lid mlx5_0)"
[[ $(sm_lid mlx5_0) == "$(sm_lid mlx5_1)" ]] || fail "two subnet managers"
note "LIDs $(lid mlx5_0) and $(lid mlx5_1), subnet manager at $(sm_lid mlx5_0)"
sent() { cat "/sys/class/infiniband/$1/ports/1/counters/port_xmit_packets" 2>/dev/null || echo 0; }

# across TOOL ARGS...: server on the one HCA, client on the other; then the other way around.
across() {
  local from=mlx5_0 to=mlx5_1 server status
  for _ in 1 2; do
    on_cpu 0 timeout -k 5 60 "$@" -d $to -p 18600 >/tmp/server 2>&1 &
    server=$!
    status=0
    until_listens 18600 $server || status=1
    on_cpu 1 timeout -k 5 60 "$@" -d $from -p 18600 localhost >/tmp/client 2>&1 || status=1
    wait $server || status=1
    [[ $status == 0 ]] || fail "$* from $from to $to:"$'\n'"$(cat /tmp/client /tmp/server)"
    from=mlx5_1 to=mlx5_0
  done
  note "$*"
}
across ibv_rc_pingpong -c -s 65536 -n 200
across ibv_ud_pingpong -c -s 2048 -n 200
across ibv_uc_pingpong -c -s 4096 -n 200
across ib_write_bw -s 1048576 -n 200
across ib_read_lat -s 64 -n 200
for device in mlx5_0 mlx5_1; do
  (($(sent $device) > 10000)) || fail "only $(sent $device) packets left $device"
done
no_complaints "two joined HCAs"
