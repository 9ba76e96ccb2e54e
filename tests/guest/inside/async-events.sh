# SPDX-License-Identifier: BSD-3-Clause
# breaks: cq-overrun qp-rights rkey-unknown rq-record-jump srq-record-jump
# from: snapshot
# boot: --hca link=eth
# program: async_events
# Asynchronous events: those of CQs, QPs and SRQs in a program, those of the port in ibv_asyncwatch.
mark_kernel_log
ends_up 1500
timeout 200 async_events --device "$device" --gid-index "$gid" || fail "async_events: status $?"
# Errors of CQs and QPs, which the program makes, the driver tells of.
no_complaints "async_events" 'CQ error on CQN 0x[0-9a-f]+, syndrome 0x|QP [0-9]+ error: '

ibv_asyncwatch -d "$device" >/tmp/watch 2>&1 &
watch=$!
# watched TEXT: the watcher has said so.
watched() {
  local end=$((SECONDS + 90))
  until grep -qi "$1" /tmp/watch; do
    ((SECONDS < end)) || fail "ibv_asyncwatch did not say '$1':"$'\n'"$(cat /tmp/watch)"
    sleep 0.2
  done
  note "$(grep -i "$1" /tmp/watch | head -n 1)"
}
watched 'event FD'
ip link set "$interface" down
watched IBV_EVENT_PORT_ERR
ip link set "$interface" up
watched IBV_EVENT_PORT_ACTIVE
kill $watch 2>/dev/null || true
