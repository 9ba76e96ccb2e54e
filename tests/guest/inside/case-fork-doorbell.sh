# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib --no-modprobe
# ask: -
# disk: build-mutants --bug fork-doorbell
# program: driver_work
# breaks: wqe-doorbell-before-visible
# says: rules wqe-doorbell-before-visible
# docs/case-studies/fork-doorbell.md: a child works with the device that its parent has opened. Its doorbell records lie where its parent's
# do, in memory of its own; the driver gave the card the parent's.
bug_ready

drivers fixed
wait_active
driver_work forked 20 >/tmp/out || fail "status $?"
[[ ! -s /tmp/out ]] || fail "with the fix: $(cat /tmp/out)"
silent
drivers_gone
silent

drivers broken
wait_active
driver_work forked 20 >/tmp/out || fail "status $?"
cat /tmp/out
grep -q 'WRITE 0: no completion' /tmp/out || fail "the child's WQE was done"
breaks wqe-doorbell-before-visible
drivers_gone
silent
