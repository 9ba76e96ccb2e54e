// SPDX-License-Identifier: BSD-3-Clause
// Simulated time inside the model: integer picoseconds since the start of the simulation, the value of
// SystemC's sc_time at its default resolution of 1 ps.
#ifndef HCASIM_MODEL_TIME_H
#define HCASIM_MODEL_TIME_H

#include <cstdint>
#include <systemc>

namespace hcasim {

using Time = std::int64_t;  // ps

constexpr Time kNever = INT64_MAX;
// To the nearest; times are never negative.
constexpr Time from_ns(double ns) {
  return static_cast<Time>(ns * 1000.0 + 0.5);  // NOLINT(bugprone-incorrect-roundings)
}
constexpr double to_ns(Time t) { return static_cast<double>(t) / 1000.0; }

// Of all HCAs of the process: what each turn of a block reads or writes, in one cache line.
struct alignas(64) ModelClock {
  // The time that the model's blocks have come to, where SystemC's clock is behind it (model/agenda.h);
  // kNever: SystemC's clock is right.
  Time ahead = kNever;
  // Since the start of the process: how often the blocks were given turns, and how many.
  std::uint64_t activations = 0, turns = 0;
  // Whose turn it is (Agenda::Block), null: nobody's; when it wants another, and the order among equal times.
  const void* current = nullptr;
  Time another = kNever;
  std::uint64_t another_seq = 0, seq = 0;
};
extern ModelClock g_clock;

inline Time sim_now() {
  return g_clock.ahead != kNever ? g_clock.ahead : static_cast<Time>(sc_core::sc_time_stamp().value());
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
