# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,vfs=2,id=left,cable=right --hca link=eth,id=right
# disk: package-disk ovs openvswitch-switch
# Open vSwitch with hw-offload=true, as Debian packages it: a bridge over representors and the port. A flow's first packets go through
# the representors to the bridge; it gives the card a rule for the flow, and the rest never reach a processor. With argument ct (kernel own)
# the bridge is a firewall: it tracks connections, and lets through what virtual function 0 opens, and what is answered.
mark_kernel_log
package_roots
far_end
to_switchdev 2
functions_up 2
for dev in "$port" "${rep[@]}"; do ethtool -K "$dev" hw-tc-offload on || fail "hw-tc-offload on $dev"; done

# ovs COMMAND...: of the package, in its root.
ovs() { PATH=$PATH:/usr/lib/openvswitch-switch OVS_RUNDIR=/tmp/ovs OVS_LOGDIR=/tmp/ovs OVS_DBDIR=/tmp/ovs chroot /tmp/roots/12 "$@"; }
said_by_ovs() { fail "Open vSwitch: $*: $(tail -n 20 /tmp/roots/12/tmp/ovs/*.log)"; }
mkdir -p /tmp/roots/12/tmp/ovs
ovs ovsdb-tool create /tmp/ovs/conf.db /usr/share/openvswitch/vswitch.ovsschema || said_by_ovs "no database"
ovs ovsdb-server /tmp/ovs/conf.db --remote=punix:/tmp/ovs/db.sock --pidfile --detach --log-file=/tmp/ovs/db.log || said_by_ovs "no server"
ovs ovs-vsctl --no-wait init || said_by_ovs "init"
ovs ovs-vsctl --no-wait set Open_vSwitch . other_config:hw-offload=true other_config:max-idle=60000 || said_by_ovs "hw-offload"
modprobe openvswitch || fail "openvswitch"
ovs ovs-vswitchd unix:/tmp/ovs/db.sock --pidfile --detach --log-file=/tmp/ovs/switch.log || said_by_ovs "no switch"
ovs ovs-vsctl --timeout=30 add-br br0 || said_by_ovs "no bridge"
for dev in "$port" "${rep[@]}"; do ovs ovs-vsctl --timeout=30 add-port br0 "$dev" || said_by_ovs "no $dev"; done
note "$(ovs ovs-vsctl --version | head -n 1)"

neighbours_known

offloaded() { ovs ovs-appctl dpctl/dump-flows type=offloaded; }
# flows_from DEVICE...: there is an offloaded flow of each.
number_of() { ovs ovs-appctl dpctl/show | awk -v dev="$1" '$1 == "port" && $3 == dev { sub(":", "", $2); print $2 }'; }
flows_from() {
  local dev flows
  flows=$(offloaded)
  for dev in "$@"; do
    grep 'eth_type(0x0800)' <<<"$flows" | grep -qE "in_port\(($dev|$(number_of "$dev"))\)" || return 1
  done
}
# between A B "SERVER" "CLIENT" ADDRESS: devices of the bridge, and who is behind them.
between_ends() {
  local before after
  before=$(by_software "$1")
  reaches "$4" "$5"
  after=$(by_software "$1")
  ((after > before)) || fail "the first packet of a flow has not come to $1"
  within 20 flows_from "$1" "$2"
  untouched "flow of $1" tcp_between "$3" "$4" "$5"
  note "$1 and $2: $((after - before)) packets by software, the rest by the card"
}
# A firewall. Of a connection's first packets the kernel learns that it is established.
tracked_by_bridge() {
  ovs ovs-ofctl add-flows br0 - <<RULES || said_by_ovs "rules"
table=0,priority=100,ip,ct_state=-trk,actions=ct(table=1)
table=0,priority=0,actions=NORMAL
table=1,priority=100,ip,ct_state=+trk+new,in_port=${rep[0]},actions=ct(commit),NORMAL
table=1,priority=100,ip,ct_state=+trk+est,actions=NORMAL
table=1,priority=0,actions=drop
RULES
  tracking_ready
  reaches "in_vf 0" 10.9.1.2
  is_parted "in_vf 1" 10.9.1.1
  listen "in_vf 1"
  call TCP:10.9.1.2:7000
  exchange 20
  by_card "TCP" "${rep[0]}" "${rep[1]}" 'tcp .*dport=7000 '
  offloaded >/tmp/flows
  note "$(grep 'ct_state' /tmp/flows)"
  hang_up
  within 30 no_connections
  # The driver knows a connection once the card has it: what comes in between, and meets no rule of the bridge's yet, it drops.
  tracking_ends 3
}
if [[ $test_argument == ct ]]; then
  tracked_by_bridge
else
  between_ends "${rep[0]}" "${rep[1]}" "in_vf 1" "in_vf 0" 10.9.1.2
  between_ends "${rep[1]}" "$port" in_far "in_vf 1" 10.9.1.200
  offloaded >/tmp/flows
  note "$(grep 'eth_type(0x0800)' /tmp/flows)"
  # The card's counters are the flows'.
  counts_move() { offloaded | sed -n 's/.*eth_type(0x0800).*packets:\([0-9]*\).*/\1/p' | awk '$1 > 1000 { n++ } END { exit !(n >= 2) }'; }
  within 20 counts_move
fi

ovs ovs-appctl exit --cleanup || said_by_ovs "exit"
ovs ovs-appctl -t ovsdb-server exit || said_by_ovs "exit"
functions_down 2
to_legacy
complaints=$(switchdev_complaints)
[[ -z $complaints ]] || fail "the kernel complained: $complaints"
