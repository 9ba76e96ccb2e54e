# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth --mem 3G
# disk: package-disk programs libfabric-bin ibverbs-providers perftest iproute2 xdp-tools ibutils dash
# Programs that people run on such a card: iproute2's rdma and devlink against what the guest has made, perftest
# with the options that other tests leave out, and ethtool's FEC. All of Debian 13.
# All of it is run; what failed is said at the end.
mark_kernel_log
ends_up 4200
package_roots
modprobe rdma_ucm || fail "rdma_ucm"
address=$(hca_addresses)
of_13() { chroot /tmp/roots/13 "$@"; }

failed=()
# shows PATTERN COMMAND...: of Debian 13; it succeeds, and one of its lines is like this.
shows() {
  local want=$1 text status=0
  shift
  text=$(timeout 30 chroot /tmp/roots/13 "$@" 2>&1 </dev/null) || status=$?
  if ((status == 0)) && grep -Eq -- "$want" <<<"$text"; then
    note "ok: $*: $(grep -Em 1 -- "$want" <<<"$text" | head -c 160)"
  else
    failed+=("$*: status $status, no '$want'")
    note "FAILED: $*: status $status, no '$want': $(head -c 1500 <<<"$text")"
  fi
}
# lacks COMMAND...: the card does not have it, and the driver says so.
lacks() {
  local text status=0
  text=$(timeout 30 chroot /tmp/roots/13 "$@" 2>&1 </dev/null) || status=$?
  if ((status != 0 && status < 124)) && grep -Eqi 'not supported|no such|invalid argument' <<<"$text"; then
    note "ok, refused: $*: $(head -n 1 <<<"$text")"
  else
    failed+=("$*: status $status")
    note "FAILED: $*: status $status, not refused: $(head -c 1500 <<<"$text")"
  fi
}
# two DEBIAN READY COMMAND...: as server, which is READY (as until_ready has it), and with an address behind as its client.
two() {
  local debian=$1 ready=$2
  shift 2
  local -a run=(chroot "/tmp/roots/$debian" "$@")
  if try_ends 60 "$ready" "${run[@]}" -- "${run[@]}" "$theirs" && ! grep -Ei 'completion with error|failed|unable|couldn' /tmp/client /tmp/server; then
    grep -E '^ *[0-9]' /tmp/client | tail -n 1
  else
    failed+=("Debian $debian, $*")
    note "FAILED: Debian $debian, $*"
  fi
}

# A QP each, of two processes that talk; with events, so that neither takes a processor from what is looked at.
on_cpu 0 timeout 300 stdbuf -oL ibv_rc_pingpong -d "$device" -g "$gid" -e -n 100000000 >/tmp/server 2>&1 &
first=$!
until_listens 18515 "$first" || fail "ibv_rc_pingpong"
on_cpu 1 timeout 300 stdbuf -oL ibv_rc_pingpong -d "$device" -g "$gid" -e -n 100000000 localhost >/tmp/client 2>&1 &
second=$!
within 30 grep -q remote /tmp/client
qpn() { echo $((0x$(sed -nE "s/^ *$1 address:.*QPN 0x([0-9a-f]+),.*/\1/p" /tmp/client))); }
client_qpn=$(qpn local) server_qpn=$(qpn remote)
mapfile -t pids < <(pgrep -x ibv_rc_pingpong)  # the server started first
node_guid=$(<"/sys/class/infiniband/$device/node_guid")

version=$(<"/sys/class/infiniband/$device/fw_ver")
shows "^[0-9]+: $device: node_type ca .*fw $version node_guid $node_guid " rdma dev show
shows "^link $device/1 state ACTIVE physical_state LINK_UP netdev $interface" rdma link show
shows 'netns shared' rdma system show
shows "$device: pd [1-9][0-9]* cq [1-9][0-9]* qp $(rdma resource show qp | grep -c lqpn) .* mr 2 ctx 2 " rdma resource show
shows "link $device/1 lqpn $client_qpn rqpn $server_qpn type RC state RTS .*pid ${pids[1]} comm ibv_rc_pingpong" rdma resource show qp
shows "link $device/1 lqpn $server_qpn rqpn $client_qpn type RC state RTS " rdma -d resource show qp
shows "\"lqpn\": *$client_qpn,\"rqpn\": *$server_qpn,\"type\": *\"RC\"" rdma -j -dd resource show qp
shows "cqe [0-9]+ users [0-9]+ .*pid ${pids[0]} comm ibv_rc_pingpong" rdma resource show cq
shows "mrlen 4096 .*pid ${pids[0]} comm ibv_rc_pingpong" rdma resource show mr
shows "users [0-9]+ .*pid ${pids[1]} comm ibv_rc_pingpong" rdma resource show pd
shows "ctxn [0-9]+ pid ${pids[1]} comm ibv_rc_pingpong" rdma resource show ctx
shows '' rdma resource show srq
shows '' rdma resource show cm_id
shows '' rdma statistic mode
shows "^link $device/1 supported optional-counters " rdma statistic mode supported
shows '' rdma statistic qp show
shows 'qp auto' rdma statistic qp mode
# The contexts as the hardware has them: segments, the first of which (0xfffe) says which card. Not of one number: with that, kernels of
# the end of 2026 (6.1.192, 6.12.117) show none.
shows '"data": *\[0,4,255,254,' rdma -j -r resource show qp
alive "$first" "$second" || fail "ibv_rc_pingpong has ended by itself: $(tail -n 3 /tmp/server /tmp/client)"
kill "$first" "$second"
for pid in "$first" "$second"; do
  status=0
  wait "$pid" || status=$?
  ((status == 128 + 15)) || fail "ibv_rc_pingpong: status $status"
done

shows "^pci/$address" devlink dev show
shows "fw.version $version" devlink dev info
shows 'name flow_steering_mode|name enable_roce' devlink dev param show
shows "netdev $interface" devlink port show
shows 'state healthy' devlink health show
shows '' devlink health diagnose "pci/$address" reporter fw
shows '' devlink region show
shows '' devlink trap show
shows '' devlink trap group show
shows '' devlink trap policer show
shows '' devlink port function rate show
shows '' devlink sb show
shows '' devlink lc show
lacks devlink dev eswitch show "pci/$address"
lacks devlink resource show "pci/$address"
lacks devlink dpipe table show "pci/$address"
for reporter in tx rx; do shows 'SQ|RQ' devlink health diagnose "auxiliary/mlx5_core.eth.0/65535" reporter $reporter; done

# Forward error correction: one choice after the other; the driver takes the link down and up for each.
for encoding in off rs auto; do
  ethtool --set-fec "$interface" encoding $encoding || failed+=("ethtool --set-fec encoding $encoding: status $?")
  wait_active "$device"
  case $encoding in off) active=Off ;; *) active=RS ;; esac
  text=$(ethtool --show-fec "$interface" 2>&1)
  if grep -q "^Active FEC encoding: $active\$" <<<"$text" && grep -Eqi "Configured FEC encodings: $encoding\$" <<<"$text"; then
    note "ok: ethtool --set-fec encoding $encoding"
  else
    failed+=("ethtool --set-fec encoding $encoding: $text")
  fi
done
# A ConnectX-5 has no lanes of 50 Gb/s.
if ethtool --set-fec "$interface" encoding llrs; then failed+=("ethtool --set-fec llrs succeeds"); else note "ok, refused: llrs"; fi

perftest() {
  local ready=$1 tool=$2
  shift 2
  two 13 "$ready" "$tool" -F -d "$device" "$@"
}
echo 64 >/proc/sys/vm/nr_hugepages || fail "no huge pages"
perftest tcp:18515 ib_write_bw -x "$gid" -n 100 --use_hugepages
perftest tcp:18515 ib_write_bw -x "$gid" -n 100 --odp
perftest tcp:18515 ib_read_bw -x "$gid" -n 100 --odp
perftest cm ib_send_lat -n 100 -R --tos 96
perftest cm ib_write_bw -n 100 -R --odp

writes=$(<"/sys/class/infiniband/$device/ports/1/hw_counters/rx_write_requests")
((writes >= 200)) || failed+=("rx_write_requests is $writes after 200 writes and more")
shows "rx_write_requests $writes( |\$)" rdma statistic show

((${#failed[@]} == 0)) || fail "$(printf '%s\n' "" "${failed[@]}")"
no_complaints "these programs"
