# SPDX-License-Identifier: BSD-3-Clause
# from: snapshot
# boot: --hca link=eth
# What ethtool, devlink and the PTP clock ask of the interface, and what they change.
for d in /sys/class/net/*; do
  [[ $(readlink "$d/device/driver") == *mlx5_core* ]] && dev=${d##*/}
done
[[ -n ${dev:-} ]] || fail "no network interface of mlx5_core"
mark_kernel_log
ip link set "$dev" up || fail "ip link set up"
within 30 grep -q 1 "/sys/class/net/$dev/carrier"

# shows PATTERN COMMAND...
shows() {
  local want=$1 text
  shift
  text=$("$@" 2>&1) || fail "$*: status $?: $text"
  grep -Eq -- "$want" <<<"$text" || fail "$* does not show '$want':"$'\n'"$text"
  note "ok: $*"
}
# does COMMAND...
does() {
  local text
  text=$("$@" 2>&1) || fail "$*: status $?: $text"
  note "ok: $*"
}

shows 'Speed: 100000Mb/s' ethtool "$dev"
shows 'Link detected: yes' ethtool "$dev"
shows 'firmware-version: [0-9]+\.[0-9]+\.[0-9]+ ' ethtool -i "$dev"
shows 'tcp-segmentation-offload: on' ethtool -k "$dev"
shows 'rx-checksumming: on' ethtool -k "$dev"
shows 'Combined:' ethtool -l "$dev"
shows 'RX:' ethtool -g "$dev"
shows 'tx_packets_phy: [0-9]' ethtool -S "$dev"
shows 'rx_vport_unicast_packets: 0' ethtool -S "$dev"
shows 'QSFP28' ethtool -m "$dev"
shows 'temperature +: [0-9]' ethtool -m "$dev"
shows 'Adaptive RX: o(n|ff)' ethtool -c "$dev"
shows 'RX:.*on' ethtool -a "$dev"
shows '(PTP Hardware Clock|provider index): 0' ethtool -T "$dev"
shows 'toeplitz: on' ethtool -x "$dev"

does ethtool -G "$dev" rx 512 tx 2048
shows '^RX:[[:space:]]+512' ethtool -g "$dev"
does ethtool -C "$dev" adaptive-rx off
does ethtool -C "$dev" rx-usecs 32
shows 'rx-usecs:[[:space:]]+32' ethtool -c "$dev"
does ethtool -L "$dev" combined 1
does ethtool -L "$dev" combined "$(nproc)"
does ethtool -A "$dev" rx off tx off
shows 'RX:[[:space:]]+off' ethtool -a "$dev"
does ethtool -A "$dev" rx on tx on
for feature in rxvlan rx-fcs tso rx ntuple; do
  does ethtool -K "$dev" "$feature" off
  does ethtool -K "$dev" "$feature" on
done
does ethtool -K "$dev" rx-fcs off
does ethtool -X "$dev" equal 1
does ethtool -X "$dev" hfunc xor
does ethtool -X "$dev" hfunc toeplitz
does ethtool -N "$dev" flow-type tcp4 dst-port 80 action 0
does ethtool -N "$dev" flow-type udp4 src-ip 10.1.2.3 dst-port 81 action -1
shows 'Total 2 rules' ethtool -n "$dev"
does ethtool -X "$dev" context new equal 1 # 6.1 wants some change with it
does ethtool -X "$dev" context 1 equal "$(nproc)"
shows 'RX flow hash indirection' ethtool -x "$dev" context 1
does ethtool -N "$dev" flow-type tcp4 dst-port 90 context 1 loc 10
shows 'RSS Context (ID: )?1' ethtool -n "$dev" rule 10
does ethtool -N "$dev" delete 10
does ethtool -X "$dev" context 1 delete
shows 'tx_pause_frames: 0' ethtool -I -a "$dev"
shows 'corrected_bits: 0' ethtool -I --show-fec "$dev"
shows 'rx_pcs_symbol_err_phy: 0' ethtool -S "$dev"
shows 'rx_discards_phy: 0' ethtool -S "$dev"
shows '^rx-all: off \[fixed\]' ethtool -k "$dev"
if ethtool -K "$dev" rx-all on >/dev/null 2>&1; then fail "ethtool -K rx-all on"; fi
shows 'rx_err_lane_3_phy: 0' ethtool -S "$dev"
does ethtool --set-priv-flags "$dev" rx_striding_rq on
shows 'The test result is PASS' ethtool -t "$dev"
does ethtool --set-priv-flags "$dev" rx_cqe_compress on
shows 'The test result is PASS' ethtool -t "$dev"
does ethtool --set-priv-flags "$dev" rx_striding_rq off
shows 'rx_cqe_compress *: on' ethtool --show-priv-flags "$dev"
does ethtool --set-priv-flags "$dev" rx_cqe_compress off
shows 'The test result is PASS' ethtool -t "$dev"
does ip link add link "$dev" name vlan5 type vlan id 5
does ip link set vlan5 up
does ip link del vlan5

shows 'fw.version [0-9]+\.[0-9]+\.[0-9]+' devlink dev info
health=$(devlink health show) || fail 'devlink health show'
[[ $health == *'state healthy'* && $health != *'state error'* ]] || fail "devlink health: $health"
# The clock runs as fast as the guest's own, between whose times it is read.
phc() { phc_ctl /dev/ptp0 "$@" | sed -n 's/.*clock time is \([0-9]*\.[0-9]*\).*/\1/p'; }
times=("$EPOCHREALTIME" "$(phc get)" "$EPOCHREALTIME")
sleep 3
times+=("$EPOCHREALTIME" "$(phc get)" "$EPOCHREALTIME")
note "the guest's time, the PTP clock's, the guest's, and so 3 s later: ${times[*]}"
awk '{ took = $5 - $2; exit !(took > 0.5 * ($4 - $3) && took < 2 * ($6 - $1)) }' <<<"${times[*]}" ||
  fail "the PTP clock went from ${times[1]} to ${times[4]} meanwhile"
now=$(phc set 1000 freq 500 adj 2.5 get)
awk '{ exit !($1 >= 1002.5 && $1 < 1062) }' <<<"$now" || fail "the PTP clock, set to 1000 s and put forward by 2.5 s: $now"
no_complaints "ethtool, devlink and the clock" "Failed to send a RSS delete notification" # of ethtool's own, on 7.3
