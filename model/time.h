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
inline sc_core::sc_time to_sc(Time t) { return sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(t)); }

}  // namespace hcasim
#endif
