// SPDX-License-Identifier: BSD-3-Clause
#include "model/steer/rdma.h"

#include <utility>
#include <vector>

#include "model/port/codec.h"
#include "model/port/port.h"
#include "model/steer/flow.h"

namespace hcasim {

namespace {

// The packet as a frame that tables can look at and change.
SteeredFrame as_frame(const Packet& p, std::uint32_t sqn) {
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
  f.frame_len = static_cast<std::uint16_t>(encode(p, f.frame(), kMaxFrame));
  SteeredFrame steered(std::move(frame));
  steered.sqn = sqn;
  return steered;
}

// The packet that a frame is now: RoCE again if its changes let it.
PacketRef as_packet(SteeredFrame& frame) {
  frame.writable();
  PacketRef packet = std::move(frame.packet);
  decode_roce(*packet, Icrc::kMade);
  return packet;
}

bool roce(const Packet& p) { return p.kind == PacketKind::kRoceV1 || p.kind == PacketKind::kRoceV2; }

}  // namespace

bool RdmaSteering::sees_transmitted(FunctionId f) const {
  const FlowSteering& flows = blocks_.flows[f];
  return flows.active(FlowTableType::kRdmaTx) || flows.active(FlowTableType::kSnifferTx);
}

void RdmaSteering::transmit_roce(Time t, FunctionId f, std::uint32_t qpn, PacketRef&& packet) {
  if (!roce(*packet) || !blocks_.flows[f].active(FlowTableType::kRdmaTx)) {
    blocks_.port.transmit(t, std::move(packet));
    return;
  }
  FlowVerdict& verdict = blocks_.flows[f].run(t, FlowTableType::kRdmaTx, as_frame(*packet, qpn));
  if (verdict.deliveries.empty()) return blocks_.port.drop(t, *packet, DropReason::kRule);
  std::vector<FlowDelivery> list;
  list.swap(verdict.deliveries);
  for (FlowDelivery& d : list) {
    if (d.fate != FlowDelivery::kPass) continue;
    PacketRef out = d.frame.version != 0 ? as_packet(d.frame) : PacketPool::copy(*packet);
    blocks_.port.transmit(t, std::move(out));
  }
}

FlowVerdict& RdmaSteering::receive(Time t, FunctionId f, PacketRef& packet, bool& goes_on) {
  FlowVerdict& verdict = blocks_.flows[f].run(t, FlowTableType::kRdmaRx, as_frame(*packet, 0));
  goes_on = false;
  for (FlowDelivery& d : verdict.deliveries) {
    if (d.fate != FlowDelivery::kPass || goes_on) continue;  // one transport, one packet
    goes_on = true;
    if (d.frame.version != 0) packet = as_packet(d.frame);
  }
  goes_on = goes_on && roce(*packet);
  return verdict;
}

}  // namespace hcasim
