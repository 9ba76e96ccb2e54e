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

SteeredFrame headers_as_frame(const PacketRef& packet, const FlowSteering& flows) {
  const Packet& p = *packet;
  if (p.kind == PacketKind::kEthernet) return flows.frame(packet);
  const PacketRef headers = PacketPool::make();
  Packet& h = *headers;
  h.kind = p.kind;
  h.ipv4 = p.ipv4;
  h.has_vlan = p.has_vlan;
  h.vlan_tci = p.vlan_tci;
  h.dmac = p.dmac;
  h.smac = p.smac;
  h.udp_sport = p.udp_sport;
  h.tclass = p.tclass;
  h.hop_limit = p.hop_limit;
  h.flow_label = p.flow_label;
  h.sgid = p.sgid;
  h.dgid = p.dgid;
  h.opcode = p.opcode;
  h.pkey = p.pkey;
  h.dest_qpn = p.dest_qpn;
  return as_frame(headers, flows);
}

PacketRef as_packet(SteeredFrame& frame) {
  frame.writable();
  PacketRef packet = std::move(frame.packet);
  decode_roce(*packet, Icrc::kMade);
  return packet;
}

}  // namespace hcasim
