# SPDX-License-Identifier: BSD-3-Clause
# from: snapshot
# boot: --hca link=eth
# ask: -
# The reset of the card that its host agrees to: `devlink dev reload action fw_activate`. The driver is asked, says yes, takes the interface
# down, and loads again when the card is back. A host that says no stops it. What the firmware cannot do (a live patch) is refused.
works() { pingpong_ends ibv_rc_pingpong -n 100; }
dev=pci/$(hca_addresses)
reload() { timeout 90 devlink dev reload "$dev" action fw_activate "$@" >/tmp/reload 2>&1; local status=$?; cat /tmp/reload; return $status; }
ends_up 1500
works
mark_kernel_log
reload || fail "fw_activate"
grep -q 'driver_reinit fw_activate' /tmp/reload || fail "not performed"
said 5 'PCI Sync FW Update Reset Ack. Device reset is expected'
said 5 'Sync Reset now. Device is going to reset'
said 5 'PCI Link up'
said 5 'Firmware responds to PCI config cycles again'
said 5 'firmware version'
ends_up 1500
works

mark_kernel_log
reload limit no_reset && fail "a live patch"
# Linux 6.12 refuses, before it asks the driver, what the image's devlink sends: its selector has a bit for "no limit".
grep -q "can't be done by FW live patching\|Attribute failed policy validation" /tmp/reload || fail "devlink said something else"
works

devlink dev param set "$dev" name enable_remote_dev_reset value false cmode runtime || fail "devlink param"
mark_kernel_log
reload && fail "against a host's will"
said 5 'PCI Sync FW Update Reset Nack Sent'
grep -q 'One of the hosts disabled reset' /tmp/reload || fail 'devlink said something else'
works
devlink dev param set "$dev" name enable_remote_dev_reset value true cmode runtime || fail "devlink param"
reload || fail "fw_activate, again"
ends_up 1500
works

note "another host asks for it"
inject fault=fw_reset,action=sync
said 10 'PCI Sync FW Update Reset Ack. Device reset is expected'
said 10 'Sync Reset now. Device is going to reset'
said 30 'firmware version'
within 30 test -e "/sys/class/infiniband/$device/ports/1/state"
ends_up 1500
works

note "the firmware does it by itself, and the driver finds out"
inject fault=fw_reset
said 20 'Fatal error 3 detected'
said 60 'health recovery succeeded'
within 30 test -e "/sys/class/infiniband/$device/ports/1/state"
ends_up 1500
works
if dmesg | grep 'Call Trace\|WARNING:\|BUG:'; then fail "the kernel complained"; fi
