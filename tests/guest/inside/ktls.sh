# SPDX-License-Identifier: BSD-3-Clause
# kernel: own
# boot: --hca id=left,generation=connectx6dx,options=crypto=on,cable=right --hca id=right --mem 2G
# program: ktls
# ask: -
# TLS that the kernel does for sockets (kTLS): one end of the cable by the card (mlx5e's tlsdev_ops), the other one by the kernel itself,
# which so checks what the card makes, and makes what the card has to understand. The drivers of Debian's kernels are built without it.
mark_kernel_log
for side in 0 1; do
  interface[side]=$(ls "/sys/class/infiniband/mlx5_$side/device/net")
  ip netns add "side$side" && ip link set "${interface[side]}" netns "side$side" || fail "name space"
  ip -n "side$side" address add "10.9.0.$((side + 1))/24" dev "${interface[side]}" && ip -n "side$side" link set "${interface[side]}" up || fail "address"
  ip -n "side$side" address add "fd09::$((side + 1))/64" dev "${interface[side]}" nodad || fail "address"
done
in_side() { ip netns exec "side$1" "${@:2}"; }
card=${interface[0]}
reaches() { in_side 0 ping -c 1 -W 1 10.9.0.2 >/dev/null 2>&1 && in_side 0 ping -6 -c 1 -W 1 fd09::2 >/dev/null 2>&1; }
within 60 reaches
counter() { in_side 0 ethtool -S "$card" | awk -v name="$1:" '$1 == name { print $2 }'; }
tls_stat() { awk -v name="$1" '$1 == name { print $2 }' <(in_side 0 cat /proc/net/tls_stat); }
feature() { in_side 0 ethtool -k "$card" | grep "^$1:"; }

[[ $(feature tls-hw-tx-offload) == *": on"* ]] || fail "$(feature tls-hw-tx-offload)"
in_side 1 ethtool -k "${interface[1]}" | grep "tls-hw-tx-offload: off \[fixed\]" || fail "the other card has TLS"

# talk WHAT SERVER ADDRESS CONNECTIONS BYTES BITS [HOW]: SERVER is the side that serves.
port=7000
talk() {
  local what=$1 server=$2 address=$3 out=/tmp/ktls.$1.$port
  shift 3
  port=$((port + 1))
  in_side "$server" timeout 300 ktls serve "$address" "$port" "$@" >"$out.serve" 2>&1 &
  local serving=$!
  within 60 listens "$port" in_side "$server"
  in_side $((1 - server)) timeout 300 ktls connect "$address" "$port" "$@" >"$out.connect" 2>&1 || fail "$what: $(cat "$out".*) $(in_side 0 ethtool -S "$card" | grep tls | grep -v ': 0')"
  wait "$serving" || fail "$what: serving: $(cat "$out".*)"
  note "$what: $(<"$out.connect"), server on side $server; tx: $(counter tx_tls_encrypted_packets) packets, $(counter tx_tls_dump_packets) dumps, $(counter tx_tls_ooo) out of order; rx: $(counter rx_tls_decrypted_packets) packets, resync $(counter rx_tls_resync_req_pkt), $(counter rx_tls_resync_res_ok), errors $(counter rx_tls_err)"
}
# sent WHAT BYTES AT LEAST: encrypted since the last call.
encrypted=0 decrypted=0
sent() {
  local now
  now=$(counter tx_tls_encrypted_bytes)
  ((now - encrypted >= $2)) || fail "$1: the card has encrypted $((now - encrypted)) bytes, not $2"
  encrypted=$now
}
received() {
  local now
  now=$(counter rx_tls_decrypted_bytes)
  ((now - decrypted >= $2)) || fail "$1: the card has decrypted $((now - decrypted)) bytes, not $2"
  decrypted=$now
}

talk "send" 1 10.9.0.2 1 1000000 128
sent send 1000000
talk "key of 256 bits, IPv6" 0 fd09::1 2 300000 256
sent "256 bits" 600000
talk "sendfile" 1 10.9.0.2 1 1000000 128 sendfile
sent sendfile 1000000
[[ $(tls_stat TlsTxDevice) == 4 ]] || fail "TlsTxDevice $(tls_stat TlsTxDevice)"
[[ $(counter tx_tls_ctx) == 4 ]] || fail "tx_tls_ctx $(counter tx_tls_ctx)"

if [[ $test_argument == rx ]]; then
  in_side 0 ethtool -K "$card" tls-hw-rx-offload on || fail "tls-hw-rx-offload"
  talk "receive" 1 10.9.0.2 1 1000000 128
  received receive 800000
  talk "receive, 256 bits, IPv6" 0 fd09::1 2 300000 256
  received "256 bits" 400000
  errors=$(counter rx_tls_err)
  talk "forged" 0 10.9.0.1 1 1 128 forge
  (($(counter rx_tls_err) > errors)) || fail "a forged record: rx_tls_err is $errors still"
  talk "early" 0 10.9.0.1 4 300000 128 early
fi

talk "100 at once" 1 10.9.0.2 100 20000 128
sent "100 at once" 2000000

# Lost on the wire, both ways. What the card has sent is sent again from within records: it gets their beginnings to see (DUMP).
ooo=$(counter tx_tls_ooo) dumps=$(counter tx_tls_dump_packets) lost=$(counter rx_tls_resync_res_ok)
inject_into left drop=0.02
inject_into right drop=0.02
talk "with losses" 1 10.9.0.2 4 400000 128
inject_into left none
inject_into right none
sent "with losses" 1600000
(($(counter tx_tls_ooo) > ooo && $(counter tx_tls_dump_packets) > dumps)) || fail "nothing was sent again by the card"
[[ $test_argument != rx ]] || (($(counter rx_tls_resync_res_ok) > lost)) || fail "the card has not found its way back"
talk "afterwards" 1 10.9.0.2 2 300000 128
sent afterwards 600000

# The interface goes down under connections: the kernel takes over, or they end; then others begin.
in_side 0 ip link set "$card" down && in_side 0 ip link set "$card" up || fail "down and up"
in_side 0 ip address add fd09::1/64 dev "$card" nodad 2>/dev/null
within 60 reaches
talk "down and up" 1 10.9.0.2 2 300000 128
sent "down and up" 600000

none_left() { (($(tls_stat TlsCurrTxDevice) == 0 && $(tls_stat TlsCurrRxDevice) == 0)); }
within 60 none_left
no_complaints "kTLS"
