# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth -global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off
# ask: -
# The card is pulled out of a slot that does hot plug (pciehp), and put back, twice: the kernel hears of it, takes the driver off what is
# not there, and finds the card when it is back.
works() { pingpong_ends ibv_rc_pingpong -n 100; }
ends_up 1500
works
address=$(hca_addresses)
for round in 1 2; do
  note "round $round"
  rm -f /tmp/watch # of the round before: it, too, says that it listens
  ibv_asyncwatch -d "$device" >/tmp/watch 2>&1 &
  watch=$!
  within 20 grep -q 'event FD' /tmp/watch
  inject fault=pcie,action=remove
  said 20 'pciehp: Slot(.*): Link Down'
  within 60 grep -q IBV_EVENT_DEVICE_FATAL /tmp/watch
  kill $watch 2>/dev/null || true
  within 60 test ! -e "/sys/bus/pci/devices/$address"
  said 20 'E-Switch: cleanup\|Unload vfs'
  sleep 3 # what comes within a second of the slot's power going off is not listened to
  inject fault=pcie,action=insert
  said 20 'pciehp: Slot(.*): Card present\|pciehp: Slot(.*): Link Up'
  said 60 'firmware version'
  ends_up 1500
  works
done
if dmesg | grep 'Call Trace\|WARNING:\|BUG:'; then fail "the kernel complained"; fi
