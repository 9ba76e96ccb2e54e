// SPDX-License-Identifier: BSD-3-Clause
// Port::wire_bytes(), in line: for each packet as it goes and as it comes.
#ifndef HCASIM_MODEL_PORT_WIRE_SIZE_H
#define HCASIM_MODEL_PORT_WIRE_SIZE_H

#include <algorithm>
#include <cstdint>

#include "model/packet/packet.h"
#include "model/port/codec.h"
#include "model/port/traits.h"

namespace hcasim {

inline std::uint32_t wire_size(const Packet& p) {
  if (p.kind != PacketKind::kIb)
    return std::max<std::uint32_t>(encoded_bytes(p), kShortestFrame) + prm::kFcsBytes;
  const std::uint32_t padded = (p.payload_len + 3) & ~3u;
  return static_cast<std::uint32_t>(sizeof(prm::Lrh) + (p.has_grh ? sizeof(prm::Grh) : 0) +
                                    sizeof(prm::Bth)) +
         traits_of(p.opcode).ext_bytes + padded + prm::kIcrcBytes + prm::kVcrcBytes;
}

}  // namespace hcasim
#endif
