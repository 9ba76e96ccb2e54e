// SPDX-License-Identifier: BSD-3-Clause
#include "model/pcie/cr_space.h"

namespace hcasim {

std::optional<std::uint32_t> CrSpace::read(std::uint32_t address) const {
  if (address == kChipId) return generation_.hw_id | std::uint32_t{generation_.revision} << 16;
  if (address == generation_.boot_status_at) return 0;  // the card is configured before its host can ask
  return {};
}

}  // namespace hcasim
