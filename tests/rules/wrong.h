// SPDX-License-Identifier: BSD-3-Clause
// Drivers that are wrong in one point each: what they do, and the rule that it breaks.
#ifndef HCASIM_TESTS_RULES_WRONG_H
#define HCASIM_TESTS_RULES_WRONG_H

#include <ostream>
#include <string>
#include <vector>

#include "fixture.h"

namespace hcasim::bare {

struct Wrong {
  const char* rule;
  // Leaves the function in any state: it is reset afterwards.
  void (*drive)(Device& d);
  // What follows from it, and is reported besides.
  std::vector<std::string> consequences = {};
};
inline std::ostream& operator<<(std::ostream& out, const Wrong& w) { return out << w.rule; }

const std::vector<Wrong>& wrong_commands();  // command queue, commands, objects
const std::vector<Wrong>& wrong_queues();    // BAR0, doorbells, queues, WQEs
const std::vector<Wrong>& wrong_memory();    // keys and DMA

// Time for what was rung to be dealt with.
inline void settle(Device& d) { d.machine().advance(2'000'000); }

}  // namespace hcasim::bare
#endif
