// SPDX-License-Identifier: BSD-3-Clause
// What a CQE says of a datagram's headers (Cqe::flags_rqpn, bits 31:24).
#ifndef HCASIM_MODEL_RESP_DATAGRAM_FLAGS_H
#define HCASIM_MODEL_RESP_DATAGRAM_FLAGS_H

#include <cstdint>

#include "model/packet/packet.h"

namespace hcasim {

// InfiniBand: service level, and whether there is a GRH. RoCE: what kind of network header lies in the buffer
// (kernel mlx5 device.h, CQE L3 header type).
inline std::uint32_t header_flags(const Packet& p) {
  constexpr std::uint32_t kGrh = 1u << 28, kRoceGrh = 0, kRoceIpv6 = 1, kRoceIpv4 = 2;
  if (p.kind == PacketKind::kIb) return static_cast<std::uint32_t>(p.sl & 0xf) << 24 | (p.has_grh ? kGrh : 0);
  const std::uint32_t type = p.kind == PacketKind::kRoceV1 ? kRoceGrh : p.ipv4 ? kRoceIpv4 : kRoceIpv6;
  return type << 24 | kGrh;
}

}  // namespace hcasim
#endif
