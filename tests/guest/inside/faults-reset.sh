# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth
# watch: -
# The reset of the card that its host agrees to: `devlink dev reload action fw_activate`. The driver is asked, says yes, takes the interface
# down, and loads again when the card is back. A host that says no stops it. What the firmware cannot do (a live patch) is refused.
works() { pingpong_ends ibv_rc_pingpong -n 100; }
dev=pci/$(hca_addresses)
ends_up 1500
works
mark_kernel_log
timeout 90 devlink dev reload "$dev" action fw_activate || { fail "devlink: status $?"; }
said 5 'PCI Sync FW Update Reset Ack. Device reset is expected'
said 5 'Sync Reset now. Device is going to reset'
kernel_says | tail -n 30
ends_up 1500
works
fail x
