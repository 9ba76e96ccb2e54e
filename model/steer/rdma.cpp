// SPDX-License-Identifier: BSD-3-Clause
#include "model/steer/rdma.h"

#include <utility>
#include <vector>

#include "model/port/port.h"
#include "model/steer/flow.h"
#include "model/steer/roce_frame.h"

namespace hcasim {

namespace {

bool roce(const Packet& p) { return p.kind == PacketKind::kRoceV1 || p.kind == PacketKind::kRoceV2; }

}  // namespace

bool RdmaSteering::sees_transmitted(FunctionId f) const {
  const FlowSteering& flows = blocks_.flows[f];
  return flows.active(FlowTableType::kRdmaTx) || flows.active(FlowTableType::kSnifferTx);
}

void RdmaSteering::transmit_roce(Time t, FunctionId f, PacketRef&& packet) {
  if (!roce(*packet) || !blocks_.flows[f].active(FlowTableType::kRdmaTx)) {
    blocks_.port.transmit(t, std::move(packet));
    return;
  }
  SteeredFrame frame = as_frame(packet, blocks_.flows[f]);
  frame.sqn = packet->sqn;
  FlowVerdict& verdict = blocks_.flows[f].run(t, FlowTableType::kRdmaTx, std::move(frame));
  if (verdict.deliveries.empty()) return blocks_.port.drop(t, *packet, DropReason::kRule);
  std::vector<FlowDelivery> list;
  list.swap(verdict.deliveries);
  for (FlowDelivery& d : list) {
    if (d.fate != FlowDelivery::kPass) continue;
    PacketRef out = d.frame.version != 0 ? as_packet(d.frame) : PacketPool::copy(*packet);
    out->trail = d.frame.trail;
    blocks_.port.transmit(t, std::move(out));
  }
}

FlowVerdict& RdmaSteering::receive(Time t, FunctionId f, PacketRef& packet, bool& goes_on) {
  FlowVerdict& verdict = blocks_.flows[f].run(t, FlowTableType::kRdmaRx, as_frame(packet, blocks_.flows[f]));
  goes_on = false;
  for (FlowDelivery& d : verdict.deliveries) {
    if (d.fate != FlowDelivery::kPass || goes_on) continue;  // one transport, one packet
    goes_on = true;
    if (d.frame.version != 0) packet = as_packet(d.frame);
    packet->trail = d.frame.trail;
  }
  goes_on = goes_on && roce(*packet);
  return verdict;
}

}  // namespace hcasim
