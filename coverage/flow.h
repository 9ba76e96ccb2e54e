// SPDX-License-Identifier: BSD-3-Clause
/// How often each conditional jump went which way, from how often each instruction ran.
///
/// What enters an instruction (from the one before it, and by jumps) is as often as it ran, and what leaves a
/// conditional jump as often as that ran. Most unknowns have an equation with no other unknown: the way
/// straight on is often the only way to what follows. What is left then cannot be told from counts, and is
/// said to be so.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "coverage/binary.h"

namespace hcasim::coverage {

enum class Kind { kPlain, kConditional, kJump, kIndirectJump, kReturn, kRepeated };

/// What an x86-64 instruction does to the way on. `target`: of a conditional or a direct jump, relative to
/// the instruction's end.
struct Decoded {
  Kind kind = Kind::kPlain;
  std::int64_t target = 0;
};
Decoded decode(const std::uint8_t* bytes, std::size_t size);

/// An instruction that ran.
struct Step {
  std::uint64_t count = 0;
  std::uint8_t size = 0;
  Kind kind = Kind::kPlain;
  std::optional<Place> target;  ///< of a jump; nothing: outside of this binary
};
using Steps = std::map<Place, Step>;

struct Ways {
  std::optional<std::uint64_t> straight, jumped;
};

/// An instruction that repeats itself (rep movsb) is begun once for each turn: it gets the count of what
/// comes behind it.
void settle_repeated(Steps& steps);

/// The ways of each conditional jump among `steps`. `entries`: where functions begin, sorted; there calls
/// come in, which nobody counts.
std::map<Place, Ways> solve(const Steps& steps, const std::vector<Place>& entries);

}  // namespace hcasim::coverage
