// SPDX-License-Identifier: BSD-3-Clause
#include "model/eswitch/eswitch.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "model/eth/headers.h"
#include "model/port/codec.h"
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
  if (const auto* trace = flows.tracer()) trace_end(*trace, std::max(t, frame.at), frame, how, vport);
}

// What a rule has made too short for the cable, by a tag or a tunnel's headers.
void pad(Packet& p) {
  if (p.kind != PacketKind::kEthernet || p.frame_len >= kShortestFrame) return;
  std::memset(p.frame() + p.frame_len, 0, kShortestFrame - p.frame_len);
  p.frame_len = kShortestFrame;
}

// Through the ACL of that side of a vport, if there is one. False: dropped. `led` is where its entry leads,
// if that is to a vport.
bool pass_acl(FlowSteering& flows, Time t, FlowTableType side, std::uint16_t vport, SteeredFrame& frame,
              unsigned& work, FlowDelivery* led = nullptr) {
  if (flows.root(side, vport) == 0) return true;
  FlowVerdict& verdict = flows.run(t, side, std::move(frame), vport, work);
  work = flows.work_left();
  if (verdict.deliveries.empty()) return false;
  FlowDelivery& first = verdict.deliveries.front();
  frame = std::move(first.frame);
  if (led != nullptr) *led = {first.fate, 0, {}, first.vport, first.other};
  return true;
}

}  // namespace

bool ESwitch::on() const {
  return present_ && (shared_root_ != 0 || blocks_.flows.active(FlowTableType::kFdb));
}

bool ESwitch::share(std::uint32_t table) {
  const FlowTable* root = other_ != nullptr ? other_->blocks_.flows.find_table(table) : nullptr;
  if (root == nullptr || root->type != FlowTableType::kFdb) return false;
  shared_root_ = table;
  return true;
}

void ESwitch::forget(std::uint32_t table) {
  if (other_ != nullptr && other_->shared_root_ == table) other_->shared_root_ = 0;
}

void ESwitch::clear() {
  shared_root_ = 0;
  if (other_ != nullptr) other_->shared_root_ = 0;
}

void ESwitch::from_function(Time t, PacketRef& packet, Copies& out) {
  const FunctionId f = packet->function;
  // What a function sends to a group it may have subscribed to itself: that is its own affair, and none of
  // the switch's, which gives nothing back to where it came from.
  if (to_group(*packet)) out.push_back({f, PacketPool::copy(*packet), false, t});
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
  frame.at = t;
  if (from != nullptr) frame.source_vhca = from->vhca_id;
  if (const auto* trace = flows.tracer()) trace_entry(*trace, t, frame, FlowTableType::kFdb, source);
  // The ACL looks at what the function has sent: Linux 5.10's lets frames pass that have no tag, and has one
  // put on behind it.
  unsigned work = FlowSteering::kMaxWork;
  if (!pass_acl(flows, t, FlowTableType::kEswIngressAcl, source, frame, work)) return;
  if (from != nullptr && !from->vlans.insert(frame))
    return ends(flows, t, frame, traces::FrameEnd::kTagged, source);
  ESwitch& fdb = shared_root_ != 0 ? *other_ : *this;
  const std::uint32_t root = shared_root_ != 0 ? shared_root_ : flows.root(FlowTableType::kFdb);
  std::vector<FlowDelivery> list;
  list.swap(fdb.blocks_.flows.run_from(t, FlowTableType::kFdb, root, std::move(frame), work).deliveries);
  work = fdb.blocks_.flows.work_left();
  const Passage way{*this, source, packet, out, from != nullptr ? last_[packet->function] : last_.back(),
                    work};
  const std::uint16_t by_default = from != nullptr ? kUplinkVport : std::uint16_t{kManager};
  for (FlowDelivery& d : list) {
    const std::uint16_t to = d.fate == FlowDelivery::kVport    ? static_cast<std::uint16_t>(d.vport)
                             : d.fate == FlowDelivery::kUplink ? kUplinkVport
                                                               : by_default;
    ESwitch* at = d.other ? fdb.other_ : &fdb;
    if (at == this)
      leave(t, way, to, std::move(d.frame));
    else if (at != nullptr)
      at->plug(t, way, to, std::move(d.frame));
  }
}

void ESwitch::leave(Time t, const Passage& way, std::uint16_t to, SteeredFrame frame) {
  FlowSteering& flows = blocks_.flows;
  if (to == way.source && to_group(*way.packet)) return ends(flows, t, frame, traces::FrameEnd::kBack, to);
  // The rule for what no other matches leads to the manager; what that one sends itself would go round.
  if (to == way.source && to == kManager && !is_for(*way.packet, blocks_.vports[kManager]))
    return ends(flows, t, frame, traces::FrameEnd::kBack, to);
  plug(t, way, to, std::move(frame));
}

void ESwitch::plug(Time t, const Passage& way, std::uint16_t to, SteeredFrame frame, bool forwarded) {
  FlowSteering& flows = blocks_.flows;
  // Nothing goes back, but from a termination table. Of one FDB the uplinks are one.
  if (to == kUplinkVport && way.source == to && !frame.turned &&
      (this == &way.at || shared_root_ != 0 || way.at.shared_root_ != 0))
    return ends(flows, t, frame, traces::FrameEnd::kBack, to);
  const FunctionId receiver = to != kUplinkVport ? blocks_.vports.function_at(to) : kNoFunction;
  if (to != kUplinkVport) {
    if (receiver == kNoFunction) return ends(flows, t, frame, traces::FrameEnd::kNoVport, to);
    // A vport that is down may lead to another one: of representors in a bond, the passive one's does.
    FlowDelivery led;
    led.fate = FlowDelivery::kPass;
    if (!pass_acl(flows, t, FlowTableType::kEswEgressAcl, to, frame, way.work, &led)) return;
    if (led.fate == FlowDelivery::kVport) {
      ESwitch* at = led.other ? other_ : this;
      // Two that lead to each other would keep it for ever.
      if (forwarded || at == nullptr) return ends(flows, t, frame, traces::FrameEnd::kAcl, to);
      return at->plug(t, way, static_cast<std::uint16_t>(led.vport), std::move(frame), true);
    }
    if (!blocks_.vports.passes(receiver, true))
      return ends(flows, t, frame, traces::FrameEnd::kVportDown, to);
    blocks_.vports[receiver].vlans.strip(frame);
  }
  ends(flows, t, frame, to == kUplinkVport ? traces::FrameEnd::kUplink : traces::FrameEnd::kVport, to);
  EmbeddedSwitch::Copy copy;
  copy.other = this != &way.at;
  copy.at = way.last = std::max(frame.at, way.last);
  copy.packet = frame.version != 0 ? as_packet(frame) : PacketPool::copy(*way.packet);
  Packet& p = *copy.packet;
  if (to == kUplinkVport) pad(p);
  p.trail = frame.trail;
  p.source_vport = 0;
  p.reg_c = {};
  if (to != kUplinkVport) {
    copy.to = receiver;
    p.source_vport = way.source;
    for (unsigned i = 0; i < p.reg_c.size(); ++i)
      if ((blocks_.vports[receiver].reg_c_ids >> i & 1) != 0) p.reg_c[i] = frame.regs.c[i];
  }
  way.out.push_back(std::move(copy));
}

}  // namespace hcasim
