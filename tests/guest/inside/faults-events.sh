# SPDX-License-Identifier: BSD-3-Clause
# from: snapshot
# boot: --hca link=eth
# ask: -
# What a card tells of itself and its surroundings, and what goes wrong with queues and interrupts.
works() { pingpong_ends ibv_rc_pingpong -n 50; }
ends_up 1500
works
ibv_asyncwatch -d "$device" >/tmp/watch 2>&1 &
watch=$!
within 20 grep -q 'event FD' /tmp/watch

note "temperature, and the cable's module"
inject "fault=temperature,sensors=1"
said 10 'High temperature on sensors with bit set 0 1'
inject "fault=module,action=unplugged"
said 10 'Port module event: module 0, Cable unplugged'
inject "fault=module,action=error,error=bad-cable"
said 10 'Port module event\[error\]: module 0, Cable error, Bad or shorted cable/module'
inject "fault=module,action=error,error=high-temperature"
said 10 'Port module event\[error\]: module 0, Cable error, High Temperature'
inject "fault=module,action=plugged"
said 10 'Port module event: module 0, Cable plugged'

note "the cable is out for a while"
inject "fault=port,action=down,duration=1500ms"
said 10 "$interface: Link down"
said 20 "$interface: Link up"
within 20 grep -q IBV_EVENT_PORT_ERR /tmp/watch
within 20 grep -q IBV_EVENT_PORT_ACTIVE /tmp/watch
wait_active "$device"
works

note "packets lost, twice, late and harmed: the transport makes up for it"
inject "fault=wire,action=drop,direction=tx,nth=20;fault=wire,action=duplicate,direction=tx,nth=30;fault=wire,action=corrupt,nth=45;fault=wire,action=delay,delay=1ms,nth=60"
ends_limit=90 pingpong_ends ibv_rc_pingpong -n 100

note "a QP fails under a program"
ib_write_bw -d "$device" -x "$gid" -F -D 60 >/tmp/server 2>&1 &
server=$!
until_listens 18515 "$server" || fail "ib_write_bw does not listen: $(cat /tmp/server)"
ib_write_bw -d "$device" -x "$gid" -F -D 60 127.0.0.1 >/tmp/client 2>&1 &
client=$!
written() { cat "/sys/class/infiniband/$device/ports/1/counters/port_xmit_data"; }
before=$(written)
moves() { (($(written) > before + 1000)); }
within 60 moves
inject "fault=qp,action=catas"
ended() { ! kill -0 "$client" 2>/dev/null; }
within 60 ended
if wait "$client"; then fail "the client of a broken QP did not fail: $(cat /tmp/client)"; fi
grep -i 'completion with error\|failed status\|got event' /tmp/client || fail "the client said: $(cat /tmp/client)"
kill "$server" 2>/dev/null || true
wait "$server" || true
works

note "the firmware has an issue, and goes on"
dev=pci/$(hca_addresses)
reported() { devlink health show "$dev" reporter fw | grep -q 'error [1-9]'; }
has() { devlink health diagnose "$dev" reporter fw >/tmp/diagnose && grep -q "Syndrome: $1" /tmp/diagnose; }
inject "fault=health,syndrome=16,duration=8s"
within 10 has 16
grep -q 'High temperature' /tmp/diagnose || fail "diagnose: $(cat /tmp/diagnose)"
within 15 reported
note "$(tr '\n' ' ' </tmp/diagnose)"
within 20 has 0
not_said 'Fatal error'
works

note "an interrupt of a channel is lost: the interface finds its events when its time is up"
# Not the first channel's: the kernel's own queues, for memory regions, wait for that one's for ever.
inject "fault=msix,vector=$(vector_of comp1)"
for i in 1 2 3 4; do on_cpu 1 ping -c 1 -W 1 -I "$interface" 10.9.0.77 >/dev/null 2>&1; done
said 40 'TX timeout detected'
said 5 'Recovered [1-9][0-9]* eqes on EQ'
works

note "the firmware stands still for a while"
inject "fault=health,action=stall,duration=14s"
said 30 "device's health compromised - reached miss count"
works # its commands wait until the firmware goes on

note "the firmware takes the interface away"
inject "fault=health,action=nic-disabled"
said 20 'Fatal error 3 detected'
said 60 'health recovery succeeded'
within 20 grep -q IBV_EVENT_DEVICE_FATAL /tmp/watch
kill $watch 2>/dev/null || true
within 30 test -e "/sys/class/infiniband/$device/ports/1/state"
ends_up 1500
works
if dmesg | grep 'Call Trace\|WARNING:\|BUG:'; then fail "the kernel complained"; fi
