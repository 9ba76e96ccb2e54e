// SPDX-License-Identifier: BSD-3-Clause
// perftest's measurements on HCAs of this process, in simulated time. Equal set-ups give equal results.
#ifndef HCASIM_DRIVER_TIMING_MEASURE_H
#define HCASIM_DRIVER_TIMING_MEASURE_H

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "driver/timing/setup.h"

namespace hcasim::timing {

struct Result {
  // Latency, ns: write and send one way (half of a round trip), read and atomics the round trip.
  double median = 0, mean = 0, p99 = 0, p999 = 0, least = 0, most = 0, deviation = 0;
  // Throughput: messages per second, and their payload in bits per second, both summed over the senders.
  double rate = 0, bits = 0;
  // Of the time since the start, what the CPUs at either end did not sleep, 0 to 1; pattern=udp_*.
  double cpu_send = 0, cpu_receive = 0;
  double lost = 0;  // of the datagrams that have arrived, what found no buffer or a full socket, 0 to 1
  double simulated_ns = 0;     // duration of the measurement
  std::vector<double> shares;  // of each sender, in 1; incast
  std::uint64_t digest = 0;    // of the simulated time of every completion
  // Non-zero counters of the receiving HCA and of the (first) sending one over the whole run: "rx.NAME",
  // "tx.NAME".
  std::map<std::string, std::uint64_t> counters;

  double gbps() const { return bits / 1e9; }
  double mops() const { return rate / 1e6; }
};

// Measures in this process, once only: HCAs cannot be added after time has started. Throws SetupError,
// bare::BareError.
Result measure_here(const Setup& setup);
// Measures in a child process; throws std::runtime_error with that process's error.
Result measure(const Setup& setup);
// Measures many set-ups on up to `jobs` CPUs at a time; results in the order given. Calls done(i) after each.
// The first error is thrown when all started ones have ended.
std::vector<Result> measure_all(const std::vector<Setup>& setups, unsigned jobs,
                                const std::function<void(std::size_t)>& done = {});

}  // namespace hcasim::timing
#endif
