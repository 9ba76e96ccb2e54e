# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib --lockstep
# The HCA on QEMU's instruction-counting clock: simulated time is the guest's time, and everything works in it.
wait_active mlx5_0 120
mark_kernel_log
pingpong -c -s 4096 -n 50
pingpong -e -n 50

# The card's PTP clock goes as the guest's own do: all are simulated time.
offset() { phc_ctl /dev/ptp0 cmp | sed -nE 's/.*offset from CLOCK_REALTIME is (-?[0-9]+)ns.*/\1/p'; }
before=$(offset)
sleep 4 # the interval over which the drift is measured
after=$(offset)
[[ -n $before && -n $after ]] || fail "phc_ctl: $(phc_ctl /dev/ptp0 cmp 2>&1)"
drift=$((after - before))
note "the PTP clock and the guest's parted by $drift ns in 4 s"
((${drift#-} < 100000)) || fail "the PTP clock does not go as the guest's"
no_complaints "ibv_rc_pingpong in lockstep"
