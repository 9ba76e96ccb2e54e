// SPDX-License-Identifier: BSD-3-Clause
#include "card_rig.h"

#include <algorithm>
#include <cstring>

#include "door.h"
#include "driver/bare/saved.h"
#include "prm/init_seg.h"

namespace hcasim::fuzz {

using namespace hcasim::bare;

CardRig::CardRig(const std::vector<std::string>& options, std::size_t vfs)
    : machine_(std::size_t{256} << 20) {
  // Small caches: states are short, and entries are replaced.
  for (const std::string& o : options)
    machine_.add_hca(o +
                     ",cache.qpc=64,cache.cqc=64,cache.mkey=64,cache.mtt=256,cache.ste=64,cache.reads=16");
  for (std::size_t i = 0; i < options.size(); ++i)
    for (unsigned vf = 1; vf <= vfs; ++vf) machine_.add_virtual(machine_.function(i), vf);
  machine_.start();
}

void CardRig::keep() {
  state_ = save_state();
  const std::size_t used = machine_.memory().pages_in_use() * kPage;
  const std::uint8_t* const bytes = machine_.memory().at(HostMemory::kBusBase);
  memory_.assign(bytes, bytes + used);
  now_ = machine_.now();
}

void CardRig::rewind() {
  std::copy(memory_.begin(), memory_.end(), machine_.memory().at(HostMemory::kBusBase));
  const std::string why = load_state(state_);
  if (!why.empty()) finding("the state that was kept is refused: " + why);
  machine_.set_now(now_);
  machine_.clear_log();
}

void CardRig::check() {
  for (std::size_t i = 0; i < machine_.functions(); ++i) {
    const std::uint32_t health =
        function(i).read32(offsetof(prm::InitSeg, health) + offsetof(prm::HealthBuffer, irisc_index));
    if (health != 0) finding("the card is in its fatal state");
  }
  for (const std::string& line : machine_.log(0))
    if (line.find("fault in the model") != std::string::npos) finding(line);
}

}  // namespace hcasim::fuzz
