# SPDX-License-Identifier: BSD-3-Clause
# from: snapshot
# boot: --hca link=eth
# ask: -
# What goes wrong on the PCI Express link. Errors told through AER: a corrected one is noted; the others go through the driver's
# err_detected, slot_reset and resume, and it serves again. Then the card is pulled, below a port that does not notice: the driver's health
# poll does, programs get an event and errors, and the driver can be taken off what is not there. Put back, the card is found again.
works() { pingpong_ends ibv_rc_pingpong -n 100; }
ends_up 1500
works
inject fault=pcie,error=bad-tlp
said 20 'AER: Correct.* error.* received'
said 5 'BadTLP'
not_said err_detected
works

inject fault=pcie,error=completion-timeout
said 20 'AER: Uncorrect.* (Non-Fatal) error.* received'
said 5 'CmpltTO'
said 5 'mlx5_pci_err_detected .*Enter, pci channel state = 1'
said 60 'mlx5_pci_err_detected .*need reset'
said 30 'mlx5_pci_slot_reset .*recovered'
said 30 'mlx5_pci_resume .*device recovered'
said 5 'AER: device recovery successful'
ends_up 1500
works

inject fault=pcie,error=malformed-tlp
said 20 'AER: Uncorrect.* (Fatal) error.* received'
said 5 'mlx5_pci_err_detected .*Enter, pci channel state = 2'
said 30 'Root Port link has been reset (0)'
said 30 'mlx5_pci_slot_reset .*recovered'
said 30 'mlx5_pci_resume .*device recovered'
said 5 'AER: device recovery successful'
ends_up 1500
works

address=$(hca_addresses)
ibv_asyncwatch -d "$device" >/tmp/watch 2>&1 &
watch=$!
within 20 grep -q 'event FD' /tmp/watch
inject fault=pcie,action=remove
said 40 'Fatal error 1 detected'
said 5 'PCI slot is unavailable'
within 40 grep -q IBV_EVENT_DEVICE_FATAL /tmp/watch
kill $watch 2>/dev/null || true
said 10 'handling bad device here'
said 20 'NIC IFC still 7 after 2000ms'
gone() { ! timeout 10 ibv_devinfo -d "$device" >/tmp/info 2>&1; }
within 20 gone
note "ibv_devinfo: $(head -n 1 /tmp/info)"
[[ $(setpci -s "$address" 0.l) == ffffffff ]] || fail "configuration space: $(setpci -s "$address" 0.l)"
start=$SECONDS
timeout 60 bash -c "echo 1 >/sys/bus/pci/devices/$address/remove" || fail "the driver hangs on a card that is not there"
note "the driver let go in $((SECONDS - start)) s"
said 5 'health recovery flow aborted, PCI reads still not working'
[[ ! -e /sys/bus/pci/devices/$address ]] || fail "$address is still there"

inject fault=pcie,action=insert
found() { echo 1 >/sys/bus/pci/rescan && [[ -e /sys/class/infiniband/$device ]]; }
within 60 found
said 5 'firmware version'
ends_up 1500
works
if dmesg | grep 'Call Trace\|WARNING:\|BUG:'; then fail "the kernel complained"; fi
