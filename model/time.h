// SPDX-License-Identifier: BSD-3-Clause
// Simulated time inside the model: integer picoseconds since the start of the run, with
// SystemC's sc_time at its default resolution of 1 ps.
#ifndef HCASIM_MODEL_TIME_H
#define HCASIM_MODEL_TIME_H

#include <cstdint>
#include <systemc>

#include "model/clock.h"
#include "model/simulation_context.h"

namespace hcasim {

// To the nearest; times are never negative.
constexpr Time from_ns(double ns) {
  return static_cast<Time>(ns * 1000.0 + 0.5);  // NOLINT(bugprone-incorrect-roundings)
}
constexpr Time kSecond = from_ns(1e9);
constexpr double to_ns(Time t) { return static_cast<double>(t) / 1000.0; }

// What SystemC's clock shows, as a time of this run.
inline Time kernel_now() {
  return static_cast<Time>(sc_core::sc_time_stamp().value()) - simulation().clock.base;
}
inline Time sim_now() {
  const ModelClock& clock = simulation().clock;
  return clock.ahead != kNever ? clock.ahead : kernel_now();
}

// A clock's period, to whose next edge times are rounded up: without the processor's division, which takes as
// long as ten other instructions.
class Cycle {
 public:
  explicit Cycle(Time period) : period_(period) {
    while ((std::uint64_t{1} << shift_) < static_cast<std::uint64_t>(period)) ++shift_;
    // One more than 2^(63 + shift) / period: exact for all numbers of 63 bits.
    factor_ = static_cast<std::uint64_t>((Wide{1} << (63 + shift_)) / static_cast<std::uint64_t>(period)) + 1;
  }
  Time period() const { return period_; }
  // t: not negative.
  Time round_up(Time t) const {
    const Wide n = static_cast<std::uint64_t>(t + period_ - 1);
    return static_cast<Time>(static_cast<std::uint64_t>(n * factor_ >> 63 >> shift_)) * period_;
  }

 private:
  __extension__ using Wide = unsigned __int128;
  Time period_;
  unsigned shift_ = 0;
  std::uint64_t factor_ = 0;
};

inline sc_core::sc_time to_sc(Time t) { return sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(t)); }

}  // namespace hcasim
#endif
