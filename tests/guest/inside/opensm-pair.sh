# SPDX-License-Identifier: BSD-3-Clause
# pair: --link ib --hca sm=off
# A subnet manager in guest a brings both ports up; then the tools that look at a subnet, in both guests.
mark_kernel_log
ends_up
state() { cat "/sys/class/infiniband/$device/ports/1/state"; }
[[ $(state) == *INIT* ]] || fail "the port is '$(state)' without a subnet manager"
barrier init
if [[ $side == a ]]; then
  mkdir -p /var/cache/opensm /var/log
  opensm --daemon --log_file /tmp/opensm.log --timeout 2000 >/tmp/opensm.out 2>&1 || { cat /tmp/opensm.out && fail "opensm"; }
fi
# wait_active, with what the subnet manager says.
end=$((SECONDS + 90))
until [[ $(state) == *ACTIVE* ]]; do
  if ((SECONDS >= end)); then
    tail -n 40 /tmp/opensm.log 2>/dev/null
    fail "the port stays '$(state)'"
  fi
  sleep 0.5
done
lid=$(($(cat "/sys/class/infiniband/$device/ports/1/lid"))) sm_lid=$(($(cat "/sys/class/infiniband/$device/ports/1/sm_lid")))
note "LID $lid, subnet manager at $sm_lid"
tell "lid $side $lid"
hear "lid " && other_lid=${heard#* }
[[ $lid != 0 && $other_lid != 0 && $lid != "$other_lid" ]] || fail "LIDs $lid and $other_lid"
if [[ $side == a ]]; then [[ $sm_lid == "$lid" ]]; else [[ $sm_lid == "$other_lid" ]]; fi || fail "the subnet manager's LID is $sm_lid"
barrier lids

# try TOOL ARGS...: in this guest, output in /tmp/out.
try() {
  timeout 60 "$@" >/tmp/out 2>&1 || { cat /tmp/out && fail "$*: status $?"; }
  if [[ -n ${show:-} ]]; then sed 's/^/    /' /tmp/out; fi
  note "ok: $*"
}
has() { grep -qE -- "$1" /tmp/out || { cat /tmp/out && fail "no '$1' in the output"; }; }
looks() {
  try ibstat && has 'State: Active' && has "Base lid: $lid" && has "SM lid: $sm_lid"
  try ibstatus && has '4: ACTIVE'
  try ibaddr && has "LID start 0x"
  try sminfo && has 'SMINFO_MASTER'
  try smpquery nodeinfo "$other_lid" && has 'NodeType:.*Channel Adapter'
  try smpquery -D nodeinfo 0,1 && has 'LocalPort'
  try smpquery portinfo "$other_lid" 1 && has 'LinkState:.*Active'
  try smpquery nodedesc "$other_lid" && has 'Node Description'
  try smpquery pkeys "$other_lid" && has 0xffff
  try smpquery guidinfo "$other_lid"
  show=y try ibportstate "$other_lid" 1 && has 'LinkState:.*Active' && has 'PhysLinkState:.*LinkUp'
  show=y try ibnetdiscover && has 'lid '"$lid"' ' && has 'lid '"$other_lid"' '
  [[ $(grep -c '^Ca' /tmp/out) == 2 ]] || fail "ibnetdiscover does not see two nodes"
  try ibhosts && [[ $(grep -c '^Ca' /tmp/out) == 2 ]] || fail "ibhosts does not see two nodes"
  try ibtracert "$lid" "$other_lid"
  try saquery && [[ $(grep -c 'NodeRecord dump' /tmp/out) == 2 ]] || fail "saquery does not list two nodes"
  try saquery -p && has 'PathRecord dump'
  try saquery -g && has '0xC000|c000'
  try saquery -s && has 'IsSM|SM'
  try saquery -c && has 'ClassVersion|Class version'
  show=y try perfquery "$other_lid" 1 && has 'PortXmitPkts:\.*[1-9]'
  try perfquery && has 'PortXmitPkts'
  show=y try perfquery -x "$other_lid" 1 && has 'PortXmitData:\.*[1-9]' && has 'PortUnicastRcvPkts'
  try perfquery -R "$other_lid" 1 0xffff
  try ibqueryerrors
}
for who in a b; do
  if [[ $who == "$side" ]]; then looks; fi
  barrier "looks $who" 300
done

# A node that gets another name tells the subnet manager by a trap.
if [[ $side == b ]]; then echo "second node" >"/sys/class/infiniband/$device/node_desc" || fail "node_desc"; fi
if [[ $side == a ]]; then
  end=$((SECONDS + 60))
  until saquery 2>/dev/null | grep -q "second node"; do
    ((SECONDS < end)) || fail "the subnet manager does not know the new description"
    sleep 1
  done
  note "the subnet manager knows the new description"
fi
barrier description

# A link that is taken down at one end is down at both; the subnet manager finds it again.
is_active() { [[ $(state) == *ACTIVE* ]]; }
if [[ $side == a ]]; then show=y try ibportstate "$other_lid" 1 reset; fi
barrier reset
within 60 is_active
barrier active

ibping_answers() { ibping -c 1 "$other_lid" 2>/dev/null | grep -q '1 packets transmitted, 1 received'; }
for client in a b; do
  if is_server; then
    ibping -S >/tmp/ibping 2>&1 &
    server=$!
  fi
  barrier "ibping $client"
  # Nothing on the server's side shows when it answers.
  if is_client; then within 60 ibping_answers; fi
  if is_client; then try ibping -c 10 "$other_lid" && has '10 packets transmitted, 10 received'; fi
  barrier "ibping done $client"
  if is_server; then kill $server; fi
done

# Connections by GID and by IP address.
ipoib_up
if is_client; then ping -c 5 -i 0.3 -W 5 "$theirs" || fail "ping over IPoIB"; fi
barrier ping
for client in a b; do
  ends 60 cm rping -s -a 0.0.0.0 -v -V -C 50 -S 4000 -- rping -c -a "$theirs" -v -V -C 50 -S 4000
  ends 60 cm ucmatose -c 4 -C 10 -S 5000 -- ucmatose -s "$theirs" -c 4 -C 10 -S 5000
  ends 60 cm udaddy -c 2 -C 10 -S 500 -- udaddy -s "$theirs" -c 2 -C 10 -S 500
done
client=a
ends 60 cm ib_write_bw -R -F -s 65536 -n 50 -d "$device" -- ib_write_bw -R -F -s 65536 -n 50 -d "$device" "$theirs"
# shellcheck disable=SC2009 # by its name
ends_opensm() { kill "$(ps -e -o pid=,comm= | awk '$2 == "opensm" {print $1}')"; }
opensm_is_gone() { ! pgrep -x opensm >/dev/null; }

no_complaints "a subnet under opensm"

# A manager that gives the ports an M_Key: who has another one gets no answer, and the manager is told (and the kernel complains, whose
# command the port has refused). It sets virtual lanes, too.
key=0x1122334455667788
if [[ $side == a ]]; then
  ends_opensm && within 60 opensm_is_gone
  printf 'm_key %s\nm_key_protection_level 2\nm_key_lease_period 0\n' $key >/tmp/opensm.conf
  printf 'qos %s\nqos_max_vls %s\nqos_high_limit %s\nqos_vlarb_high %s\nqos_vlarb_low %s\nqos_sl2vl %s\n' \
    TRUE 4 2 0:4 1:64,2:32,3:16 0,1,2,3,3,3,3,3,3,3,3,3,3,3,3,15 >>/tmp/opensm.conf
  opensm --daemon --config /tmp/opensm.conf --log_file /tmp/keys.log --timeout 2000 >/tmp/opensm.out 2>&1 || { cat /tmp/opensm.out && fail "opensm"; }
fi
barrier keys
key_is_there() { timeout 20 smpquery -y $key portinfo "$other_lid" 1 2>/dev/null | grep -q 'ProtectBits:\.*2'; }
within 90 key_is_there
try smpquery -y $key portinfo "$other_lid" 1 && has 'ProtectBits:\.*2'
if timeout 30 smpquery -y 0x5 nodeinfo "$other_lid" >/tmp/out 2>&1; then cat /tmp/out && fail "an answer in spite of a wrong M_Key"; fi
try smpquery -y $key portinfo "$other_lid" 1 && has 'MkeyViolations:\.*[1-9]'
show=y try smpquery -y $key sl2vl "$other_lid" 1 && has '\| *0\| *1\| *2\| *3\| *3\|.*\| *3\|15\|'
show=y try smpquery -y $key vlarb "$other_lid" 1 && has '0x40.*0x20.*0x10'
try smpquery -y $key portinfo "$other_lid" 1 && has 'OperVLs:\.*VL0-3' && has 'VLHighLimit:\.*2$'
# Lanes carry what goes by their service levels.
for sl in 0 2 9; do ends 60 tcp:18515 ib_write_bw -F -S $sl -s 65536 -n 50 -d "$device" -- ib_write_bw -F -S $sl -s 65536 -n 50 -d "$device" "$theirs"; done
manager_knows() { grep -q 'num:256' /tmp/keys.log; }
if [[ $side == a ]]; then
  within 60 manager_knows
  grep 'num:256' /tmp/keys.log | head -n 1
  ends_opensm
fi
