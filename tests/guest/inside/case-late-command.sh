# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib --no-modprobe --append slub_debug=P,kmalloc-512,kmalloc-1k
# ask: -
# disk: build-mutants --bug late-command
# program: driver_work
# dies: cmd_comp_notifier\+0x
# says: commands ALLOC_PD .* 80000
# docs/case-studies/late-command.md: a command's answer comes when the driver has given the card up, and has ended all commands itself. The
# driver without the fix dies of it.
pci=pci/$(hca_addresses)
# late: a command of a program is answered after 8 s; within them the card's health is fatal. Nobody recovers it (a setting of the
# administrator's), so that the card's event queues are listened to when the answer comes.
is_late() { (($(ask counter faults_injected) > faults)); }
is_answered() { (($(ask counter fw_bad_deliveries) > answers)); }
late() {
  local worker faults answers
  devlink health set "$pci" reporter fw_fatal auto_recover false || fail "auto_recover"
  inject "fault=command,opcode=ALLOC_PD,delay=8s"
  faults=$(ask counter faults_injected)
  driver_work mrs 1 >/tmp/out 2>&1 &
  worker=$!
  within 20 is_late
  ask inject "fault=health,syndrome=1,reset=on,at=+0" >/dev/null
  said 20 'Fatal error .* detected'
  answers=$(ask counter fw_bad_deliveries)
  wait "$worker" || fail "status $?"
  cat /tmp/out
  grep -q ibv_alloc_pd /tmp/out || fail "the program had its PD"
  # In a fatal state the card executes nothing, and says so in its answer. The driver asks for nothing more.
  within 20 is_answered
}
recovers() {
  devlink health recover "$pci" reporter fw_fatal || fail "recover"
  wait_active
}
bug_ready

drivers fixed
wait_active
late
not_said 'refcount_t\|WARNING\|after timeout'
recovers
drivers_gone

# In memory that has been freed (slub_debug makes it the same each time) it finds a command to complete.
drivers broken
wait_active
late
