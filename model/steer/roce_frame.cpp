// SPDX-License-Identifier: BSD-3-Clause
#include "model/steer/roce_frame.h"

#include <utility>

#include "model/port/codec.h"
#include "model/steer/flow.h"

namespace hcasim {

SteeredFrame as_frame(const PacketRef& packet, const FlowSteering& flows) {
  const Packet& p = *packet;
  if (p.kind == PacketKind::kEthernet) return flows.frame(packet);
  PacketRef frame = PacketPool::make();
  Packet& f = *frame;
  f.kind = PacketKind::kEthernet;
  f.looped = p.looped;
  f.transport_domain = p.transport_domain;
  f.wqe_serial = p.wqe_serial;
  f.function = p.function;
  f.trace_qpn = p.trace_qpn;
  f.trace_packets = p.trace_packets;
  f.first_bit = p.first_bit;
  f.sqn = p.sqn;
  f.source_vport = p.source_vport;
  f.reg_c = p.reg_c;
  f.trail = p.trail;
  f.affinity = p.affinity;
  f.crossed = p.crossed;
  f.frame_len = static_cast<std::uint16_t>(encode(p, f.frame(), kMaxFrame));
  return flows.frame(std::move(frame));
}

PacketRef as_packet(SteeredFrame& frame) {
  frame.writable();
  PacketRef packet = std::move(frame.packet);
  decode_roce(*packet, Icrc::kMade);
  return packet;
}

}  // namespace hcasim
