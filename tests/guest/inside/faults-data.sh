# SPDX-License-Identifier: BSD-3-Clause
# from: snapshot
# boot: --hca link=eth,options=command_limit_ms=3000
# program: async_events
# ask: -
# breaks: teardown-objects
# What goes wrong on the way of data: transfers that the host refuses, poisons or delays, completions and events that are late or never
# come, queues that fail. The program whose QP it is sees the error that a card gives, another one goes on all the time, and the next
# works. Then what reaches further: the driver's own event queues, and a poisoned read, after which the kernel resets the card.
works() { pingpong_ends ibv_rc_pingpong -n 50; }
writer() { MLX5_SHUT_UP_BF=1 exec timeout 60 async_events --device "$device" --gid-index "$gid" --victim yes; }
# A program that writes until something goes wrong with it: $qpn, $peer, $cqn, and the bus addresses $source, $target, $sq.
victim_starts() {
  writer >/tmp/victim 2>&1 &
  victim=$!
  within 20 grep -q 'victim: qpn=' /tmp/victim
  # shellcheck disable=SC2034
  read -r _ qpn peer cqn source target sq < <(sed -n '/^victim: qpn=/s/[a-z]*=//gp' /tmp/victim)
}
# victim_ends STATUS TEXT...: so it ended, and said so; others did not notice.
victim_ends() {
  local status=0 text
  wait "$victim" || status=$?
  sed 's/^/   /' /tmp/victim
  ((status == $1)) || fail "the victim's status is $status"
  shift
  for text in "$@"; do grep -q "$text" /tmp/victim || fail "the victim did not say '$text'"; done
  kill -0 "$bystander" || fail "another program went with it: $(cat /tmp/bystander)"
}
# victim_waits: it waited for a while and is well.
victim_waits() {
  within 20 grep -q 'victim: late' /tmp/victim
  kill "$victim"
  wait "$victim" 2>/dev/null || true
  grep late /tmp/victim
  if grep 'status\|event' /tmp/victim; then fail "late is all that was asked for"; fi
}
ends_up 1500
mount -t debugfs none /sys/kernel/debug 2>/dev/null || true
debug=/sys/kernel/debug/mlx5/$(hca_addresses)
works
MLX5_SHUT_UP_BF=1 async_events --device "$device" --gid-index "$gid" --victim yes >/tmp/bystander 2>&1 &
bystander=$!
within 20 grep -q 'victim: qpn=' /tmp/bystander

note "a read of payload is refused"
victim_starts
inject "fault=dma,owner=qp,number=$qpn,direction=read,address=$source-$((source + 63))"
victim_ends 3 'status: local QP operation error'

note "a read of a WQE is refused"
victim_starts
inject "fault=dma,owner=qp,number=$qpn,direction=read,address=$sq-$((sq + 63))"
victim_ends 3 'event: local work queue catastrophic error'

note "a write of payload is refused"
victim_starts
inject "fault=dma,owner=qp,number=$peer,direction=write,address=$target-$((target + 63))"
victim_ends 3 'event: local work queue catastrophic error'

note "a write of a CQE is refused"
victim_starts
inject "fault=dma,owner=cq,number=$cqn,direction=write"
victim_ends 3 'event: CQ error'

note "a read of payload is slow, then a CQE"
victim_starts
inject "fault=dma,action=slow,delay=1500ms,owner=qp,number=$qpn,direction=read,address=$source-$((source + 63))"
victim_waits
victim_starts
inject "fault=cqe,delay=1500ms,cqn=$cqn"
victim_waits

note "a CQE is lost"
victim_starts
inject "fault=cqe,action=lost,qpn=$qpn"
victim_ends 4 'no completion'

note "a CQ fails"
victim_starts
inject "fault=cq,cqn=$cqn"
victim_ends 3 'event: CQ error'

note "a QP fails, three ways"
victim_starts
inject "fault=qp,qpn=$qpn,action=catas"
victim_ends 3 'event: local work queue catastrophic error'
victim_starts
inject "fault=qp,qpn=$qpn,action=access"
victim_ends 3 'status: Work Request Flushed Error' 'event: local access violation work queue error'
victim_starts
inject "fault=qp,qpn=$qpn,action=invalid"
victim_ends 3 'event: invalid request local work queue error'
works

note "a request for pages is lost, the next one is not"
pages() { cat "$debug/pages/fw_pages_total"; }
before=$(pages)
# The driver serves requests in order: with both there would be 40 more, and never 24.
inject "fault=page_request,action=lost;fault=page_request,action=ask,pages=16,at=+1ms;fault=page_request,action=ask,pages=24,at=+2ms"
given() { (($(pages) == before + 24)); }
within 10 given
kill "$bystander" || fail "the bystander: $(cat /tmp/bystander)"
wait "$bystander" 2>/dev/null || true
if dmesg -l emerg,alert,crit,err | grep mlx5; then fail "the driver said something of a program's troubles"; fi

# eqn_of NAME: the event queue of the interrupt mlx5_NAME.
eqn_of() {
  local queue vector
  vector=$(vector_of "$1")
  for queue in "$debug"/EQs/*; do
    if (($(<"$queue/intr") == vector)); then echo $((${queue##*/})); fi
  done | tail -n 1
}
written() { cat "/sys/class/infiniband/$device/ports/1/counters/port_xmit_data"; }
# Data go out within a second. stands: none do, an absence that only time shows.
moves() {
  local before step
  before=$(written)
  for step in 1 2 3 4 5 6 7 8 9 10; do
    sleep 0.1
    if (($(written) > before + 500)); then return 0; fi
  done
  return 1
}
stands() { ! moves; }
# waits_in_vain FAULT: two programs that sleep until there are events, and one never comes.
waits_in_vain() {
  local server client
  timeout 30 ibv_rc_pingpong -d "$device" -g "$gid" -e -n 10000000 >/tmp/server 2>&1 &
  server=$!
  until_listens 18515 "$server" || fail "the server: $(cat /tmp/server)"
  timeout 30 ibv_rc_pingpong -d "$device" -g "$gid" -e -n 10000000 127.0.0.1 >/tmp/client 2>&1 &
  client=$!
  within 5 moves
  inject "$1"
  within 10 stands
  if ! kill -0 "$client" || ! kill -0 "$server"; then fail "they do not wait: $(cat /tmp/server /tmp/client)"; fi
  kill "$client" "$server"
  wait "$client" "$server" || true
}
note "an event of a completion is lost"
eqn=$(eqn_of comp0)
waits_in_vain "fault=eqe,type=COMP,eqn=$eqn"
works
pingpong_ends ibv_rc_pingpong -e -n 50

# Of the second channel: the first one's queue (comp0) has the completions of the driver's own UMR WQEs. Without them every program that
# gives a memory region back waits for ever, and cannot be killed (mlx5r_umr_post_send_wait() has no limit of time).
note "the event queue of a channel overruns: it hears nothing more, until the driver makes its queues anew"
interrupts() { awk '$NF ~ /^mlx5_comp1/ { print $2 + $3 }' /proc/interrupts; }
hears() {
  local before
  before=$(interrupts)
  for _ in 1 2; do taskset -c 1 ping -c 1 -W 1 -I "$interface" 10.9.0.77 >/dev/null 2>&1; done
  (($(interrupts) > before))
}
within 10 hears
inject "fault=eqe,action=overrun,eqn=$(eqn_of comp1)"
works
hears || true # the event that is the last
hears && fail "a queue that has overrun goes on"
# Down before the driver's watchdog (15 s) finds the frames of which nobody heard that they have left: its recovery waits for that queue,
# and a reload that is under way by then (a slow machine) waits for the network devices' lock without end.
ip link set "$interface" down
timeout 60 devlink dev reload "pci/$(hca_addresses)" || fail "reload"
ends_up 1500
within 10 hears
works

note "the event of a command is lost; it comes when the command's time is long over, and frees its slot"
inject "fault=eqe,type=CMD"
timeout 60 ibv_devinfo -d "$device" >/tmp/out 2>&1 || note "ibv_devinfo: $(head -n 1 /tmp/out)"
said 20 'timeout. Will cause a leak of a command resource'
slot=$(kernel_says | sed -n 's/.*cmd\[\([0-9]*\)\]: .* No done completion/\1/p' | head -n 1)
inject "fault=event,type=CMD,data=$(printf '%08x' $((1 << slot))),at=+0"
said 10 "Command completion arrived after timeout (entry idx = $slot)"
works

note "a read of payload comes poisoned: AER, and the kernel has the driver recover the card"
victim_starts
inject "fault=dma,action=poisoned,owner=qp,number=$qpn,direction=read,address=$source-$((source + 63))"
said 20 'AER: Uncorrect.* error.* received'
said 5 'TLP'
said 60 'mlx5_pci_slot_reset .*recovered'
said 30 'mlx5_pci_resume .*device recovered'
said 5 'AER: device recovery successful'
wait "$victim" && fail "the victim did not notice"
grep 'status\|event' /tmp/victim || fail "the victim said: $(cat /tmp/victim)"
ends_up 1500
works
if dmesg | grep 'Call Trace\|WARNING:\|BUG:'; then fail "the kernel complained"; fi
