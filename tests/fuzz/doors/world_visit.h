// SPDX-License-Identifier: BSD-3-Clause
// Doors to the driver's side of a card with its features in use (worlds.h), one for each kind of card (which
// all HCAs of a process are put back with): commands that were right but for what the input says, WQEs and
// memory that are otherwise, packets that do not fit.
#ifndef HCASIM_TESTS_FUZZ_DOORS_WORLD_VISIT_H
#define HCASIM_TESTS_FUZZ_DOORS_WORLD_VISIT_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/fuzz/worlds.h"

namespace hcasim::fuzz {

void visit_world(bare::WorldKind::Card card, const std::uint8_t* bytes, std::size_t len);
std::vector<std::string> world_seeds(bare::WorldKind::Card card);

}  // namespace hcasim::fuzz
#endif
