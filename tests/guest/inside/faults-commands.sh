# SPDX-License-Identifier: BSD-3-Clause
# from: snapshot
# boot: --hca link=eth,options=command_limit_ms=3000
# ask: -
# breaks: destroy-busy
# Firmware commands that are refused, late, never answered, answered without an event, and whose interrupt is lost; the time limit that
# the firmware tells the driver is short here. Each time the driver says what it says on a card, the caller gets its error, and the
# next command works.
works() { pingpong_ends ibv_rc_pingpong -n 50; }
# refused PATTERN: a program that makes a PD, a CQ and a QP ends with this.
refused() {
  local status=0
  timeout 60 ibv_rc_pingpong -d "$device" -g "$gid" -n 1 </dev/null >/tmp/out 2>&1 || status=$?
  ((status != 0 && status != 124)) || fail "status $status: $(cat /tmp/out)"
  grep -q "$1" /tmp/out || fail "not '$1' but: $(cat /tmp/out)"
}
# up STATUS: the interface goes down and, or not, up again.
up() {
  local status=0
  ip link set "$interface" down || fail "$interface down"
  ip link set "$interface" up >/tmp/out 2>&1 || status=$?
  ((status == $1)) || fail "$interface up: status $status: $(cat /tmp/out)"
}
ends_up 1500
mount -t debugfs none /sys/kernel/debug 2>/dev/null || true
debug=/sys/kernel/debug/mlx5/$(hca_addresses)
works

note "refused to a program"
inject "fault=command,opcode=CREATE_CQ,status=LIM_ERR,syndrome=0x123456"
refused "Couldn't create CQ"
works

note "refused to the driver itself: the second CQ of the interface"
ip link set "$interface" down
inject "fault=command,opcode=CREATE_CQ,nth=2,status=BAD_RES_STATE,syndrome=0x123456"
up 2
said 5 'CREATE_CQ(0x400) op_mod(0x0) failed, status bad resource state(0x9), syndrome (0x123456), err(-22)'
up 0
ends_up 1500
works

note "late"
inject "fault=command,opcode=ALLOC_PD,delay=1500ms"
start=$(date +%s%N)
works
took=$((($(date +%s%N) - start) / 1000000))
note "$took ms"
((took > 1500)) || fail "it was not late"
not_said timeout

note "its interrupt is lost: the driver looks into its event queue when time is up"
inject "fault=msix,vector=$(vector_of async)"
works
said 5 'Recovered [1-9][0-9]* EQEs on cmd_eq'
said 5 'recovered after timeout'

note "answered, but no event tells so"
inject "fault=command,opcode=ALLOC_PD,answer=no-event"
refused "Couldn't allocate PD"
said 5 'ALLOC_PD(0x800) timeout. Will cause a leak of a command resource'
slot=$(kernel_says | sed -n 's/.*cmd\[\([0-9]*\)\]: ALLOC_PD(0x800) No done completion.*/\1/p')
works
# Until it is told after all, the slot is lost.
inject "fault=event,type=CMD,data=$(printf '%08x' $((1 << slot))),at=+0"
said 5 "Command completion arrived after timeout (entry idx = $slot)"
works

note "pages: asked for and given, taken back, refused"
pages() { cat "$debug/pages/fw_pages_total"; }
before=$(pages)
has_pages() { (($(pages) == before + $1)); }
inject "fault=page_request,action=ask,pages=64,at=+0"
within 10 has_pages 64
inject "fault=page_request,action=ask,pages=-64,at=+0"
within 10 has_pages 0
not_said 'err'
inject "fault=page_request,action=refused,status=BAD_RES_STATE,syndrome=0x777;fault=page_request,action=ask,pages=8,at=+1ms;fault=page_request,action=ask,pages=24,at=+2ms"
within 10 has_pages 24 # the driver serves requests in order: the one that was refused is over
not_said 'npages'      # what the firmware asked for and then refuses is no error to the driver
works

note "never answered"
inject "fault=command,opcode=ALLOC_PD,answer=never"
refused "Couldn't allocate PD"
said 5 'ALLOC_PD(0x800) timeout. Will cause a leak of a command resource'
works
if dmesg | grep 'Call Trace\|WARNING:\|BUG:'; then fail "the kernel complained"; fi
# The driver waits for that slot for ever when it is to let go of the card (mlx5_cmd_flush), and so would a power-off: reset by hand.
(sleep 3 && echo b >/proc/sysrq-trigger) &
