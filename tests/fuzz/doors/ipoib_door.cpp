// SPDX-License-Identifier: BSD-3-Clause
// Worlds of an InfiniBand card that does IPoIB by queues of frames.
#include "door.h"
#include "world_visit.h"

namespace hcasim::fuzz {

constexpr auto kCard = bare::WorldKind::kIpoib;

void open_door(const std::uint8_t* bytes, std::size_t len) { visit_world(kCard, bytes, len); }
std::vector<std::string> seeds() { return world_seeds(kCard); }

}  // namespace hcasim::fuzz
