// SPDX-License-Identifier: BSD-3-Clause
// The cards that worlds are of, and who is at work on them.
#ifndef HCASIM_TESTS_FUZZ_WORLD_CARDS_H
#define HCASIM_TESTS_FUZZ_WORLD_CARDS_H

#include <cstddef>
#include <string>
#include <vector>

#include "worlds.h"

namespace hcasim::bare {

// Options of the HCAs of a machine that has such a card, and the virtual functions of each: behind them in
// the machine, those of the first one first.
std::vector<std::string> card_options(WorldKind::Card card);
std::size_t card_vfs(WorldKind::Card card);

// Whether a world of that kind is to be had there: with the first function (of plain cards the link decides)
// as its own. All of its card's are the others.
bool fits(const WorldKind& kind, WorldKind::Card card, bool ethernet);
Others others_of(Machine& machine, WorldKind::Card card);

// How its driver is made.
DeviceOptions world_options();

}  // namespace hcasim::bare
#endif
