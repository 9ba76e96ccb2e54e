// SPDX-License-Identifier: BSD-3-Clause
// Simulated time as a number, and the clock that counts it (SimulationContext, model/simulation_context.h,
// has the one there is). For what is done with times, see model/time.h.
#ifndef HCASIM_MODEL_CLOCK_H
#define HCASIM_MODEL_CLOCK_H

#include <cstdint>

namespace hcasim {

using Time = std::int64_t;  // ps

constexpr Time kNever = INT64_MAX;

// Turns have numbers (ModelClock::seq). A saved state has none beyond this, so that they never go round.
constexpr std::uint64_t kMostTurns = UINT64_MAX / 2;

// Of all HCAs of the process: what each turn of a block reads or writes, in one cache line.
struct alignas(64) ModelClock {
  // The time that the model's blocks have come to, where SystemC's clock is behind it (model/agenda.h);
  // kNever: SystemC's clock is right.
  Time ahead = kNever;
  // Since the start of the run: how often the blocks were given turns, and how many.
  std::uint64_t activations = 0, turns = 0;
  // Whose turn it is (Agenda::Block), null: nobody's; when it wants another, and the order among equal times.
  const void* current = nullptr;
  Time another = kNever;
  std::uint64_t another_seq = 0, seq = 0;
  // What SystemC's clock showed when the run began: not 0 if it is not the first of the process.
  Time base = 0;
};

}  // namespace hcasim
#endif
