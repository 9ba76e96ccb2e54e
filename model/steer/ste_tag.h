// SPDX-License-Identifier: BSD-3-Clause
// What a frame looks like to a steering table entry: the 16 bytes of its lookup type (steering format 0), and
// the hash over them that finds an entry in a table.
#ifndef HCASIM_MODEL_STEER_STE_TAG_H
#define HCASIM_MODEL_STEER_STE_TAG_H

#include <array>
#include <cstdint>

#include "model/steer/actions.h"
#include "prm/ste.h"

namespace hcasim {

using SteTag = std::array<std::uint8_t, prm::kSteTagBytes>;

// What a lookup may ask beside the frame's own bytes.
struct SteSource {
  std::uint16_t gvmi = 0;      // function that sent it
  std::uint32_t qpn = 0;       // and its queue
  bool function_loop = false;  // sent and received by functions of this HCA
};

// Where flex parsers put what they sample, as the capabilities say (cmd_hca_cap.flex_parser_id_*).
constexpr unsigned kFlexIcmpDw0 = 0, kFlexIcmpDw1 = 1, kFlexIcmpv6Dw0 = 2, kFlexIcmpv6Dw1 = 3;

// False: there is no such lookup.
bool make_ste_tag(prm::SteLookup lookup, const SteeredFrame& frame, const SteSource& source, SteTag& tag);

// CRC-32 (IEEE 802.3 polynomial) over the tag's bytes that byte_mask names, the others as 0; its first byte
// is the lowest of the result. entries: a power of two.
std::uint32_t ste_hash(const SteTag& tag, std::uint16_t byte_mask, std::uint64_t entries);

}  // namespace hcasim
#endif
