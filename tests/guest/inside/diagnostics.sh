# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth --debian 13
# ask: -
# image: new.mfa2 --psid HCA_0000000001 --version 16.36.1010
# image: damaged.mfa2 --psid HCA_0000000001 --version 16.37.1010 --damaged
# image: foreign.mfa2 --psid HCA_0000000001 --image-psid HCA_0000004119 --version 16.37.1010
# What mlx5_core's diagnostics ask of the card, by Debian 13's devlink, rdma and ethtool: the firmware's tracer, dumps of contexts and of
# the card's registers by the health reporters, raw contexts, the temperature, and an image of the firmware that is flashed, refused when
# it is damaged or another board's, and started.
ends_up 1500
dev=pci/$(hca_addresses)
works() { pingpong_ends ibv_rc_pingpong -n 100; }
# shows PATTERN COMMAND...
shows() {
  local want=$1 text
  shift
  text=$(timeout 120 "$@" 2>&1) || fail "$*: status $?: $(head -c 2000 <<<"$text")"
  grep -Eq -- "$want" <<<"$text" || fail "$* does not show '$want':"$'\n'"$(head -c 3000 <<<"$text")"
  note "ok: $*: $(grep -Em 1 -- "$want" <<<"$text" | head -c 150)"
}
# refused PATTERN COMMAND...
refused() {
  local want=$1 text
  shift
  if text=$(timeout 120 "$@" 2>&1); then fail "$*: succeeded: $text"; fi
  grep -Eq -- "$want" <<<"$text" || fail "$* does not say '$want':"$'\n'"$text"
  note "ok, refused: $*: $(grep -Em 1 -- "$want" <<<"$text" | head -c 150)"
}
mark_kernel_log
works

note "the firmware's tracer"
mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing || fail "tracefs"
echo 1 >/sys/kernel/tracing/events/mlx5/mlx5_fw/enable || fail "no trace event mlx5_fw"
shows 'core: host pages [1-9][0-9]*, in use' devlink health dump show "$dev" reporter fw
shows 'tracer on, firmware 16\.35\.1000' devlink health dump show "$dev" reporter fw
devlink health dump clear "$dev" reporter fw || fail "dump clear"
shows 'mlx5_fw: 0000:.* core: EQs [1-9]' cat /sys/kernel/tracing/trace
inject fault=health,action=syndrome,syndrome=16,ext_syndrome=0x8123,reset=0
within 30 eval 'grep -q "health syndrome 0x10, extended 0x8123, reset requested 0" /sys/kernel/tracing/trace'
note "$(grep -m 1 'health syndrome 0x10' /sys/kernel/tracing/trace)"
# The driver has taken a dump by itself.
within 30 eval 'devlink health show "$dev" reporter fw | grep -q "error 1"'
shows 'synd: 16 ext_synd: 33059|ext_synd.*33059' devlink health dump show "$dev" reporter fw
shows 'Syndrome: 16.*High temperature|Description: High temperature' devlink health diagnose "$dev" reporter fw
inject fault=health,action=syndrome,syndrome=0
within 30 eval '! devlink health diagnose "$dev" reporter fw | grep -q "Syndrome: 16"'
echo 0 >/sys/kernel/tracing/events/mlx5/mlx5_fw/enable

note "dumps of contexts"
port=$(devlink port show | sed -nE "s/^([^ ]+): .*netdev $interface .*/\1/p" | head -n 1)
[[ -n $port ]] || fail "no devlink port of $interface: $(devlink port show)"
port=${port%:}
for reporter in tx rx; do
  shows 'SQN|sqn|rqn' devlink health diagnose "$port" reporter $reporter
  text=$(timeout 120 devlink -j health dump show "$port" reporter $reporter 2>&1) || fail "dump of $reporter: $text"
  ((${#text} > 1000)) || fail "dump of $reporter: $text"
  note "ok: $reporter dumped: $(head -c 120 <<<"$text")"
  shows '' devlink health recover "$port" reporter $reporter
done
# A QP that somebody has, as the PRM has its context; its type and number stand in it.
timeout 100 ibv_rc_pingpong -d "$device" -g "$gid" -e -n 100000000 >/tmp/server 2>&1 &
server=$!
until_listens 18515 "$server" || fail "ibv_rc_pingpong"
for object in qp cq mr; do
  shows '"data|data' rdma -j -r res show $object
done
kill $server || fail "ibv_rc_pingpong ended: $(cat /tmp/server)"
wait $server

note "the card's registers"
text=$(timeout 170 devlink health dump show "$dev" reporter fw_fatal 2>&1) || fail "dump of fw_fatal: $(head -c 500 <<<"$text")"
# The chip's ID at 0xf0014, in the order of this machine's bytes: 0x20d. Where nothing is: 0xbadacce5.
grep -q 'e5 cc da ba' <<<"$text" || fail "dump of fw_fatal: $(head -c 1000 <<<"$text")"
tr -d '\n' <<<"$text" | grep -Eq '0d +02 +00 +00' || fail "no chip ID in the dump of fw_fatal"
note "ok: fw_fatal dumped: ${#text} characters"
devlink health dump clear "$dev" reporter fw_fatal || fail "dump clear"

note "counters, temperature, self tests"
if devlink health show "$dev" | grep -q 'reporter vnic'; then
  shows 'invalid_command: [0-9]|total_error_queues' devlink health diagnose "$dev" reporter vnic
fi
sensor=$(grep -l '^mlx5$' /sys/class/hwmon/*/name 2>/dev/null | head -n 1)
if [[ -n $sensor ]]; then
  sensor=${sensor%/name}
  celsius=$(($(<"$sensor/temp1_input") / 1000))
  ((celsius >= 35 && celsius <= 70)) || fail "$celsius degrees"
  [[ $(<"$sensor/temp1_label") == asic && $(<"$sensor/temp1_crit") == 105000 ]] || fail "$(head "$sensor"/temp1_*)"
  note "ok: $celsius degrees; $(<"$sensor/temp2_label"): $(<"$sensor/temp2_input")"
  inject fault=temperature,sensors=1
  has_been_hot() { (($(<"$sensor/temp1_highest") >= 104000)); }
  within 10 has_been_hot || fail "it has not been hot: $(head "$sensor"/temp1_*)"
  echo 1 >"$sensor/temp1_reset_history"
elif [[ $(uname -r) != 6.1.* ]]; then
  fail "no sensor: $(grep . /sys/class/hwmon/*/name)"
fi
shows 'The test result is PASS' ethtool -t "$interface" online
shows 'The test result is PASS' ethtool -t "$interface" offline
ethtool -p "$interface" 1 || fail "the port's LED does not blink"
shows 'Hardware Receive Filter Modes' ethtool -T "$interface"
shows 'enable_roce' devlink dev param show "$dev" name enable_roce

note "an image of the firmware"
mkdir -p /lib/firmware && cp /usr/local/bin/{new,damaged,foreign}.mfa2 /lib/firmware || fail "no images"
shows 'fw.version 16\.35\.1000' devlink dev info "$dev"
refused 'component hash mismatch' devlink dev flash "$dev" file damaged.mfa2
refused 'component not applicable' devlink dev flash "$dev" file foreign.mfa2
cp /usr/local/bin/wire-up /lib/firmware/none.mfa2 2>/dev/null || head -c 3000 /dev/zero >/lib/firmware/none.mfa2
refused 'not MFA2' devlink dev flash "$dev" file none.mfa2
shows 'Firmware flash done' devlink dev flash "$dev" file new.mfa2
text=$(devlink dev info "$dev")
grep -A 9 running: <<<"$text" | grep -q 'fw.version 16.35.1000' || fail "running: $text"
sed '1,/stored:/d' <<<"$text" | grep -q 'fw.version 16.36.1010' || fail "stored: $text"
works
timeout 90 devlink dev reload "$dev" action fw_activate || fail "fw_activate"
ends_up 1500
works
text=$(devlink dev info "$dev")
grep -A 9 running: <<<"$text" | grep -q 'fw.version 16.36.1010' || fail "running: $text"
shows 'firmware-version: 16\.36\.1010' ethtool -i "$interface"
shows 'fw_ver:[[:space:]]+16\.36\.1010' ibv_devinfo -d "$device"
note "ok: 16.36.1010 runs"

note "a card that has failed: dumped, and recovered"
inject fw_fatal=1
said 60 'health recovery succeeded'
within 60 test -e "/sys/class/infiniband/$device/ports/1/state"
shows 'reporter fw_fatal' devlink health show "$dev" reporter fw_fatal
within 30 eval 'devlink health show "$dev" reporter fw_fatal | grep -q "error 1 recover 1"'
shows 'crdump_data|e5 cc da ba' devlink health dump show "$dev" reporter fw_fatal
ends_up 1500
works
if dmesg | grep 'Call Trace\|WARNING:\|BUG:'; then fail "the kernel complained"; fi
