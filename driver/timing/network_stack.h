// SPDX-License-Identifier: BSD-3-Clause
// Datagrams from program to program by way of the hosts' network stacks, with what these cost the CPUs:
// system calls, copies, the kernel's work on a frame, interrupts, the handlers that they start (NAPI),
// wake-ups, sockets that are full. A flow has a CPU at either end, which its thread shares with its channel's
// interrupts.
#ifndef HCASIM_DRIVER_TIMING_NETWORK_STACK_H
#define HCASIM_DRIVER_TIMING_NETWORK_STACK_H

#include "driver/timing/measure.h"

namespace hcasim::timing {

// pattern=udp_*, resolved. Throughput is what programs have received. Counters: "rx.socket_drops", what
// arrived at a socket that was full, beside those of the cards (which count what found no buffer).
Result measure_datagrams(const Setup& setup);

}  // namespace hcasim::timing
#endif
