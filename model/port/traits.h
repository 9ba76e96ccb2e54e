// SPDX-License-Identifier: BSD-3-Clause
// prm::bth_traits() of all BTH opcodes, worked out at compile time: asked several times for each packet.
#ifndef HCASIM_MODEL_PORT_TRAITS_H
#define HCASIM_MODEL_PORT_TRAITS_H

#include <array>
#include <cstdint>

#include "prm/packet.h"

namespace hcasim {

inline constexpr std::array<prm::BthTraits, 256> kBthTraits = [] {
  std::array<prm::BthTraits, 256> all{};
  for (unsigned i = 0; i < 256; ++i) all[i] = prm::bth_traits(static_cast<std::uint8_t>(i));
  return all;
}();

inline const prm::BthTraits& traits_of(std::uint8_t opcode) { return kBthTraits[opcode]; }

}  // namespace hcasim
#endif
