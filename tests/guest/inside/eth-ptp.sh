# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,id=left,cable=right,options=generation=connectx6dx --hca link=eth,id=right,options=generation=connectx6dx --smp 2
# PTP (linuxptp) between the clocks of two cards, one in the name space "far": over Ethernet and over UDP, with the times of CQEs and
# with those of frames at the port (tx_port_ts), and with a receive queue for PTP alone, which the driver has beside queues whose CQEs
# are compressed.
mark_kernel_log
near=$(net_of "/sys/bus/pci/devices/$(hca_addresses | head -n 1)")
far=$(net_of "/sys/bus/pci/devices/$(hca_addresses | tail -n 1)")
ip netns add far && ip link set "$far" netns far || fail "name space"
in_far() { ip netns exec far "$@"; }
ip link set "$near" up && ip address add 10.9.1.1/24 dev "$near" || fail "$near"
in_far ip link set lo up && in_far ip link set "$far" up && in_far ip address add 10.9.1.2/24 dev "$far" || fail "$far"
carrier() { $1 grep -qs 1 "/sys/class/net/$2/carrier"; }
links_up() {
  within 30 carrier "" "$near"
  within 30 carrier in_far "$far"
}
links_up
clock_of() { $1 ethtool -T "$2" | sed -nE 's/^(PTP Hardware Clock|Hardware timestamp provider index): //p'; }
cat >/tmp/ptp.conf <<'TEXT'
[global]
logAnnounceInterval -2
logSyncInterval -4
logMinDelayReqInterval -4
tx_timestamp_timeout 5000
summary_interval -4
sanity_freq_limit 0
first_step_threshold 0.000002
step_threshold 0.000002
TEXT
# The last offsets that the far end reports, in ns; all of them are of a clock that is held (s2), and small.
held() {
  grep -E 'master offset +-?[0-9]+ s2' /tmp/far.log | tail -n 24 | awk -v most="$1" '{ for (i = 1; i < NF; i++) if ($i == "offset") { v = $(i + 1); if (v < 0) v = -v; if (v > most) bad = 1 } n++ } END { exit !(n == 24 && !bad) }'
}
held_or_gone() { held 200 || ! alive "$master" "$slave"; }
# follows WHAT TRANSPORT: the far clock, an hour off at first, comes to that of the near one and stays there.
follows() {
  in_far phc_ctl "/dev/ptp$(clock_of in_far "$far")" adj 3600 >/dev/null || fail "phc_ctl"
  timeout 200 ptp4l "$2" -H -m -f /tmp/ptp.conf -i "$near" --masterOnly 1 --uds_address /tmp/near.uds >/tmp/near.log 2>&1 &
  master=$!
  # Not by the function, whose shell a signal would end, and not what it waits for.
  ip netns exec far timeout 200 ptp4l "$2" -H -m -f /tmp/ptp.conf -i "$far" -s --uds_address /tmp/far.uds >/tmp/far.log 2>&1 &
  slave=$!
  within 120 held_or_gone
  held 200 || fail "$1: ptp4l has ended: $(tail -n 20 /tmp/near.log /tmp/far.log)"
  note "$1: $(tail -n 1 /tmp/far.log)"
  alive $master $slave || fail "ptp4l has ended: $(tail -n 20 /tmp/near.log /tmp/far.log)"
  kill $master $slave
  wait $master $slave
}
counters() { $1 ethtool -S "$2" | awk -v name="$3:" '$1 ~ "^" name { sum += $2 } END { print sum + 0 }'; }
follows "L2, times of CQEs" -2
ethtool --set-priv-flags "$near" tx_port_ts on && in_far ethtool --set-priv-flags "$far" tx_port_ts on || fail "tx_port_ts"
links_up
follows "L2, times at the port" -2
follows "UDP, times at the port" -4
for side in "" in_far; do
  if [[ -z $side ]]; then dev=$near; else dev=$far; fi
  (($(counters "$side" "$dev" 'ptp_cq[0-9]_cqe') > 30)) || fail "$dev: no times from the port: $($side ethtool -S "$dev" | grep ptp)"
  for bad in 'ptp_cq[0-9]_err_cqe' 'ptp_cq[0-9]_abort' 'ptp_cq[0-9]_resync_event' 'ptp_cq[0-9]_ooo_cqe_drop'; do
    (($(counters "$side" "$dev" "$bad") == 0)) || fail "$dev: $bad: $($side ethtool -S "$dev" | grep ptp)"
  done
done
in_far ethtool --set-priv-flags "$far" rx_cqe_compress on || fail "rx_cqe_compress"
links_up
follows "UDP, a queue for PTP alone" -4
(($(counters in_far "$far" 'ptp_rq0_packets') > 30)) || fail "no frames by the queue for PTP: $(in_far ethtool -S "$far" | grep ptp)"
no_complaints "PTP"
