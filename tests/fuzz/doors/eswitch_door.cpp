// SPDX-License-Identifier: BSD-3-Clause
// Worlds of a card with virtual functions: its manager, and those it may not trust.
#include "door.h"
#include "world_visit.h"

namespace hcasim::fuzz {

constexpr auto kCard = bare::WorldKind::kSwitch;

void open_door(const std::uint8_t* bytes, std::size_t len) { visit_world(kCard, bytes, len); }
std::vector<std::string> seeds() { return world_seeds(kCard); }

}  // namespace hcasim::fuzz
