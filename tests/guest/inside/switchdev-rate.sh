# SPDX-License-Identifier: BSD-3-Clause
# boot: --lockstep --hca link=eth,vfs=2,id=left,cable=right --hca link=eth,id=right
# Rates of virtual functions in switchdev mode as devlink has them: of a function, of a group, shares; measured in exact time. What is sent
# is RDMA writes, through a bridge that the card has taken over, to another card at the far end of the cable.
mark_kernel_log
card=pci/${pf##*/}
theirs=$(rdma_of "/sys/bus/pci/devices/$(hca_addresses | tail -n 1)")
far_end
functions_there 2
mode switchdev
ip link add name br0 type bridge && ip link set "$port" master br0 && ip link set br0 up || fail "bridge"
representors_up 2
for vf in 0 1; do ip link set "${rep[vf]}" master br0 || fail "representor $vf"; done
functions_up 2
for vf in 0 1; do
  rdma[vf]=$(rdma_of "$(vf_of $vf)")
  # The function's devlink port: "pci/ADDRESS/INDEX: ...".
  function[vf]=$(devlink port show | sed -nE "s,^($card/[0-9]+): .*flavour pcivf .*vfnum $vf( .*)?\$,\1,p")
  [[ -n ${function[vf]} ]] || fail "virtual function $vf has no port: $(devlink port show)"
  reaches "in_vf $vf" 10.9.1.200
done
for device in "${rdma[@]}" "$theirs"; do within 60 has_v2_gid "$device"; done
rate() { devlink port function rate "$@" || fail "devlink port function rate $*: $(dmesg | tail -n 5)"; }

# gbits WRITES [WRITES]: what functions 0 and 1 send at a time with their headers, each so many RDMA writes of 4096 bytes in four packets, each
# of these with Ethernet's header, FCS, IPv4, UDP, BTH and ICRC, the first with RETH. 0: none.
gbits() {
  local vf tcp
  local -a server=() client=()
  for vf in 0 1; do
    [[ ${*:vf+1:1} == [1-9]* ]] || continue
    tcp=$((18600 + vf))
    timeout 200 ib_write_bw -F --report_gbits -m 1024 -s 4096 -n "${@:vf+1:1}" -d "$theirs" -x "$(v2_gid_of "$theirs")" -p $tcp >"/tmp/server.$vf" 2>&1 &
    server[vf]=$!
    until_listens $tcp "${server[vf]}" || fail "ib_write_bw: $(cat "/tmp/server.$vf")"
  done
  for vf in "${!server[@]}"; do
    timeout 200 ib_write_bw -F --report_gbits -m 1024 -s 4096 -n "${@:vf+1:1}" -d "${rdma[vf]}" -x "$(v2_gid_of "${rdma[vf]}")" -p $((18600 + vf)) localhost >"/tmp/client.$vf" 2>&1 &
    client[vf]=$!
  done
  for vf in "${!server[@]}"; do
    wait "${client[vf]}" && wait "${server[vf]}" || fail "ib_write_bw: $(cat "/tmp/client.$vf" "/tmp/server.$vf")"
    # By the messages, in millions a second: of bits only two places are printed.
    awk '$1 == 4096 { print $5 * 8 / 1000 * (4096 + 4 * (14 + 4 + 20 + 8 + 12 + 4) + 16) }' "/tmp/client.$vf"
  done
}
# is TEXT RATE GBITS: within 3 %.
is() {
  note "$1: $2 Gb/s of $3"
  awk -v r="$2" -v want="$3" 'BEGIN { exit !(r > want * 0.97 && r < want * 1.03) }' || fail "$1: $2 Gb/s, not $3"
}
is_unbound() {
  note "$1: $2 Gb/s"
  awk -v r="$2" 'BEGIN { exit !(r > 5) }' || fail "$1: $2 Gb/s"
}
is_unbound "a function without a rate" "$(gbits 2000)"
for mbits in 100 4000; do
  rate set "${function[0]}" tx_max ${mbits}mbit
  is "a function of $mbits Mb/s" "$(gbits $((mbits * 3)))" "$(awk "BEGIN { print $mbits / 1000 }")"
done
is_unbound "its sibling" "$(gbits 0 2000)"
rate set "${function[0]}" tx_max 0
# A group's rate is of all of its functions together.
rate add "$card/group"
rate set "$card/group" tx_max 1000mbit
for vf in 0 1; do rate set "${function[vf]}" parent group; done
devlink port function rate show "${function[1]}" | grep -q 'parent group' || fail "shown: $(devlink port function rate show)"
is "one of a group" "$(gbits 0 2000)" 1
# One begins before the other, and has the rate for itself until then.
mapfile -t both < <(gbits 12000 12000)
is "the first of two in a group" "${both[0]:-0}" 0.5
is "the second of two in a group" "${both[1]:-0}" 0.5
# Three of four parts of it are the first one's.
rate set "${function[0]}" tx_share 600mbit
rate set "${function[1]}" tx_share 200mbit
mapfile -t both < <(gbits 12000 4000)
is "the first of shares of 3 to 1" "${both[0]:-0}" 0.75
is "the second of shares of 3 to 1" "${both[1]:-0}" 0.25
for vf in 0 1; do rate set "${function[vf]}" tx_share 0 && rate set "${function[vf]}" noparent; done
rate del "$card/group"
is_unbound "a function that has no group any more" "$(gbits 2000)"
functions_down 2
ip link del br0 || fail "bridge"
to_legacy
complaints=$(switchdev_complaints)
[[ -z $complaints ]] || fail "the kernel complained: $complaints"
