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

// The time that the model's blocks have come to, while they run ahead of SystemC's clock (model/agenda.h);
// kNever while they do not run.
extern Time g_time_ahead;

inline Time sim_now() {
  return g_time_ahead != kNever ? g_time_ahead : static_cast<Time>(sc_core::sc_time_stamp().value());
}
inline sc_core::sc_time to_sc(Time t) { return sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(t)); }

}  // namespace hcasim
#endif
