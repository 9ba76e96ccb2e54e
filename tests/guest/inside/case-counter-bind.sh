# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib --no-modprobe
# ask: -
# disk: build-mutants --bug counter-bind
# program: driver_work
# breaks: destroy-busy object-unknown teardown-objects
# says: rules destroy-busy
# says: rules teardown-objects
# docs/case-studies/counter-bind.md: two QPs are to share a set of counters, and the card refuses the second one. The driver took that for the
# end of the set, which the first QP counts in.
link=mlx5_0/1
two_there() { (($(wc -l </tmp/out) == 2)); }
bound() { rdma statistic qp show link $link; }
# one_is_refused: two QPs; the first one is bound to a set of its own, the second one is to be bound to the same.
one_is_refused() {
  local set
  [[ -p /tmp/hold ]] || mkfifo /tmp/hold
  driver_work held 2 </tmp/hold >/tmp/out &
  worker=$!
  exec 9>/tmp/hold
  within 20 two_there
  mapfile -t qps </tmp/out
  rdma statistic qp bind link $link lqpn "${qps[0]}" || fail "bind of QP ${qps[0]}"
  bound
  set=$(bound | sed -n 's/.* cntn \([0-9]*\) .*/\1/p')
  inject "fault=command,opcode=RTS2RTS_QP,status=LIM_ERR"
  if rdma statistic qp bind link $link lqpn "${qps[1]}" cntn "$set"; then fail "QP ${qps[1]} was bound"; fi
}
work_ends() {
  exec 9>&-
  wait "$worker" || fail "status $?"
}
bug_ready

drivers fixed
wait_active
one_is_refused
bound | grep -q "LQPN: <${qps[0]}>" || fail "QP ${qps[0]} is bound no more: $(bound)"
[[ -z $(ask rules) ]] || fail "with the fix rules are broken"
work_ends
drivers_gone
[[ -z $(ask rules) ]] || fail "with the fix rules are broken"

drivers broken
wait_active
one_is_refused
breaks destroy-busy
said 5 'DEALLOC_Q_COUNTER'
work_ends
drivers_gone
breaks object-unknown teardown-objects
