// SPDX-License-Identifier: BSD-3-Clause
// What a frame looks like to a steering table entry: the 16 bytes of its lookup type (steering format 0), and
// the hash over them that finds an entry in a table.
#ifndef HCASIM_MODEL_STEER_STE_TAG_H
#define HCASIM_MODEL_STEER_STE_TAG_H

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/steer/actions.h"
#include "model/steer/geneve_option.h"
#include "prm/ste.h"
#include "prm/ste_v1.h"

namespace hcasim {

using SteTag = std::array<std::uint8_t, prm::kSteTagBytes>;

// What a lookup may ask beside the frame's own bytes.
struct SteSource {
  std::uint16_t gvmi = 0;      // function that sent it
  std::uint32_t qpn = 0;       // and its queue
  bool function_loop = false;  // sent and received by functions of this HCA
  GeneveOption option{};       // what the flex parser of Geneve samples
};

// Where flex parsers put what they sample, as the capabilities say (cmd_hca_cap.flex_parser_id_*).
// Headers that no frame has both share one.
constexpr unsigned kFlexIcmpDw0 = 0, kFlexIcmpDw1 = 1, kFlexIcmpv6Dw0 = 2, kFlexIcmpv6Dw1 = 3;
constexpr unsigned kFlexGtpuDw0 = 4, kFlexGtpuTeid = 5, kFlexGtpuDw2 = 6, kFlexGtpuExtension = 7;
constexpr unsigned kFlexMplsUdp = 4, kFlexMplsGre = 5, kFlexGeneveOption = 7;

// False: there is no such lookup.
bool make_ste_tag(prm::SteLookup lookup, const SteeredFrame& frame, const SteSource& source, SteTag& tag);

// Likewise in steering formats 1 and 2.
bool make_ste_tag(prm::SteV1Lookup lookup, const SteeredFrame& frame, const SteSource& source, SteTag& tag);

// CRC-32 (IEEE 802.3 polynomial) over the tag's bytes that byte_mask names, the others as 0; its first byte
// is the lowest of the result. entries: a power of two.
std::uint32_t ste_hash(const SteTag& tag, std::uint16_t byte_mask, std::uint64_t entries);
// The same over all bytes of a tag.
std::uint32_t ste_hash(const std::uint8_t* tag, std::size_t len, std::uint64_t entries);

}  // namespace hcasim
#endif
