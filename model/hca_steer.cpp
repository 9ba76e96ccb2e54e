// SPDX-License-Identifier: BSD-3-Clause
// RoCE packets of QPs in the RDMA flow tables of both directions. Frames of send queues take the NIC's tables
// instead (model/req/ethernet.cpp, model/eth/rx.cpp); a table may lead from one kind to the other.
#include "model/hca.h"
#include "model/port/codec.h"

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

bool Hca::takes_runs(const Qp& qp) const {
  if (!dma_.lends() || !scheduler_.alone(qp.qpn) || !port_.takes_runs()) return false;
  if (qp.qos.pace != 0 || qp.qos.group != 0 || qp.qos.responder_group != 0 || qp.cc.limited) return false;
  if (port_.link() == LinkType::kIb) return true;
  return !flows_.active(FlowTableType::kRdmaTx) && !flows_.active(FlowTableType::kSnifferTx);
}

void Hca::transmit(Time t, std::uint32_t qpn, PacketRef packet) {
  if (!roce(*packet) || !flows_.active(FlowTableType::kRdmaTx)) {
    port_.transmit(t, std::move(packet));
    return;
  }
  FlowVerdict& verdict = flows_.run(t, FlowTableType::kRdmaTx, as_frame(*packet, qpn));
  if (verdict.deliveries.empty()) return port_.drop(t, *packet, DropReason::kRule);
  std::vector<FlowDelivery> list;
  list.swap(verdict.deliveries);
  for (FlowDelivery& d : list) {
    if (d.fate != FlowDelivery::kPass) continue;
    PacketRef out = d.frame.version != 0 ? as_packet(d.frame) : PacketPool::copy(*packet);
    port_.transmit(t, std::move(out));
  }
}

// False: it does not go on to a QP.
bool Hca::steer_roce(Time t, PacketRef& packet) {
  FlowVerdict& verdict = flows_.run(t, FlowTableType::kRdmaRx, as_frame(*packet, 0));
  if (verdict.deliveries.empty()) {
    port_.drop(t, *packet, DropReason::kRule);
    return false;
  }
  bool goes_on = false;
  for (FlowDelivery& d : verdict.deliveries) {
    if (d.fate != FlowDelivery::kPass || goes_on) continue;  // one transport, one packet
    goes_on = true;
    if (d.frame.version != 0) packet = as_packet(d.frame);
  }
  eth_rx_.deliver(t, verdict);
  return goes_on && roce(*packet);
}

}  // namespace hcasim
