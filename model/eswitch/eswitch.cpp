// SPDX-License-Identifier: BSD-3-Clause
#include "model/eswitch/eswitch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "model/eth/headers.h"
#include "model/steer/flow.h"
#include "model/steer/path_trace.h"
#include "model/steer/roce_frame.h"

namespace hcasim {

namespace {

constexpr FunctionId kManager = 0;  // and the number of its vport

bool to_group(const Packet& p) { return (p.dest_mac()[0] & 1) != 0; }

bool is_for(const Packet& p, const Vport& vport) {
  Mac mac;
  std::copy_n(p.dest_mac(), mac.size(), mac.begin());
  return vport.own_mac(mac);
}

// The end of a frame's way, if somebody wants to know.
void ends(FlowSteering& flows, Time t, SteeredFrame& frame, traces::FrameEnd how, std::uint32_t vport = 0) {
  if (const auto* trace = flows.tracer()) trace_end(*trace, t, frame, how, vport);
}

// Through the ACL of that side of a vport, if there is one. False: dropped.
bool pass_acl(FlowSteering& flows, Time t, FlowTableType side, std::uint16_t vport, SteeredFrame& frame) {
  if (flows.root(side, vport) == 0) return true;
  FlowVerdict& verdict = flows.run(t, side, std::move(frame), vport);
  if (verdict.deliveries.empty()) return false;
  frame = std::move(verdict.deliveries.front().frame);
  return true;
}

}  // namespace

bool ESwitch::on() const { return present_ && blocks_.flows.active(FlowTableType::kFdb); }

void ESwitch::from_function(Time t, PacketRef& packet, Copies& out) {
  const FunctionId f = packet->function;
  // What a function sends to a group it may have subscribed to itself: that is its own affair, and none of
  // the switch's, which gives nothing back to where it came from.
  if (to_group(*packet)) out.push_back({f, PacketPool::copy(*packet)});
  if (blocks_.vports.passes(f, false)) enter(t, &blocks_.vports[f], packet, out);
}

void ESwitch::from_uplink(Time t, PacketRef& packet, Copies& out) { enter(t, nullptr, packet, out); }

void ESwitch::enter(Time t, const Vport* from, PacketRef& packet, Copies& out) {
  const std::uint16_t source = from != nullptr ? from->number() : kUplinkVport;
  FlowSteering& flows = blocks_.flows;
  SteeredFrame frame = as_frame(packet, flows);
  frame.sqn = from != nullptr ? packet->sqn : 0;
  frame.source_port = source;
  frame.owner = owner_;
  if (from != nullptr) frame.source_vhca = from->vhca_id;
  if (const auto* trace = flows.tracer()) trace_entry(*trace, t, frame, FlowTableType::kFdb, source);
  if (from != nullptr && !from->vlans.insert(frame))
    return ends(flows, t, frame, traces::FrameEnd::kTagged, source);
  if (!pass_acl(flows, t, FlowTableType::kEswIngressAcl, source, frame)) return;
  std::vector<FlowDelivery> list;
  list.swap(flows.run(t, FlowTableType::kFdb, std::move(frame)).deliveries);
  const std::uint16_t by_default = from != nullptr ? kUplinkVport : std::uint16_t{kManager};
  for (FlowDelivery& d : list) {
    const std::uint16_t to = d.fate == FlowDelivery::kVport    ? static_cast<std::uint16_t>(d.vport)
                             : d.fate == FlowDelivery::kUplink ? kUplinkVport
                                                               : by_default;
    if (!d.other)
      leave(t, source, to, std::move(d.frame), packet, out);
    else if (other_)
      other_->plug(t, source, to, std::move(d.frame), packet, out, true);
  }
}

void ESwitch::leave(Time t, std::uint16_t source, std::uint16_t to, SteeredFrame frame,
                    const PacketRef& packet, Copies& out) {
  FlowSteering& flows = blocks_.flows;
  if (to == source && (to == kUplinkVport || to_group(*packet)))
    return ends(flows, t, frame, traces::FrameEnd::kBack, to);
  // The rule for what no other matches leads to the manager; what that one sends itself would go round.
  if (to == source && to == kManager && !is_for(*packet, blocks_.vports[kManager]))
    return ends(flows, t, frame, traces::FrameEnd::kBack, to);
  plug(t, source, to, std::move(frame), packet, out, false);
}

// Out of the switch at this vport. other: the frame has come in at the card's other switch.
void ESwitch::plug(Time t, std::uint16_t source, std::uint16_t to, SteeredFrame frame,
                   const PacketRef& packet, Copies& out, bool other) {
  FlowSteering& flows = blocks_.flows;
  const FunctionId receiver = to != kUplinkVport ? blocks_.vports.function_at(to) : kNoFunction;
  if (to != kUplinkVport) {
    if (receiver == kNoFunction) return ends(flows, t, frame, traces::FrameEnd::kNoVport, to);
    if (!blocks_.vports.passes(receiver, true))
      return ends(flows, t, frame, traces::FrameEnd::kVportDown, to);
    if (!pass_acl(flows, t, FlowTableType::kEswEgressAcl, to, frame)) return;
    blocks_.vports[receiver].vlans.strip(frame);
  }
  ends(flows, t, frame, to == kUplinkVport ? traces::FrameEnd::kUplink : traces::FrameEnd::kVport, to);
  EmbeddedSwitch::Copy copy;
  copy.other = other;
  copy.packet = frame.version != 0 ? as_packet(frame) : PacketPool::copy(*packet);
  Packet& p = *copy.packet;
  p.trail = frame.trail;
  p.source_vport = 0;
  p.reg_c = {};
  if (to != kUplinkVport) {
    copy.to = receiver;
    p.source_vport = source;
    for (unsigned i = 0; i < p.reg_c.size(); ++i)
      if ((blocks_.vports[receiver].reg_c_ids >> i & 1) != 0) p.reg_c[i] = frame.regs.c[i];
  }
  out.push_back(std::move(copy));
}

}  // namespace hcasim
