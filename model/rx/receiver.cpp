// SPDX-License-Identifier: BSD-3-Clause
#include "model/rx/receiver.h"

#include <vector>

#include "model/cc/congestion.h"
#include "model/eswitch/eswitch.h"
#include "model/eth/rx.h"
#include "model/firmware_port.h"
#include "model/health.h"
#include "model/lag/lag.h"
#include "model/port/codec.h"
#include "model/port/run.h"
#include "model/port/traits.h"
#include "model/req/requester.h"
#include "model/resp/responder.h"
#include "model/steer/flow.h"
#include "model/steer/rdma.h"
#include "model/steer/steer.h"
#include "model/tm/tag_unit.h"

namespace hcasim {

namespace {
constexpr FunctionId kPhysical = 0;  // of each port
}

// A run of packets for a QP that takes them, with nothing on its way that looks at packets.
bool Receiver::takes_run(FunctionId f, const Packet& p) const {
  const FlowSteering& flows = blocks_.flows[f];
  if (blocks_.port.link() == LinkType::kEthernet && !p.internal &&
      (flows.active(FlowTableType::kSnifferRx) || flows.active(FlowTableType::kRdmaRx)))
    return false;
  const Qp* qp = blocks_.steering[f].unicast(p.dest_qpn);
  return qp && qp->type == QpType::kRc && (p.of_messages ? qp->mtu >= p.unit : qp->mtu == p.unit) &&
         !blocks_.tags.serves(*qp);
}

// Packets of many QPs come in by turns: what the next ones will need is fetched while others have their
// turns, one pointer further each time.
void Receiver::prefetch_next() const {
  if (const Packet* second = blocks_.port.to_come(1)) second->prefetch();
  const Packet* first = blocks_.port.to_come(0);
  const Qp* qp =
      first ? blocks_.qps[classifier_.owner(*first, blocks_.port.link() == LinkType::kEthernet)].find(
                  first->dest_qpn)
            : nullptr;
  if (!qp) return;
  qp->prefetch();
  if (traits_of(first->opcode).request)
    qp->resp.prefetch();
  else
    qp->req.prefetch();
}

void Receiver::receive(Time t, PacketRef& packet) {
  if (many_qps(blocks_.qps)) prefetch_next();
  const bool from_ethernet = blocks_.port.link() == LinkType::kEthernet;
  const FunctionId sender = packet->function;
  if (__builtin_expect(blocks_.port.switched(), 0) && !packet->internal)
    return receive_switched(t, sender, packet);
  if (__builtin_expect(classifier_.reaches_many(*packet, from_ethernet), 0)) {
    const auto functions = static_cast<FunctionId>(blocks_.health.size());
    for (FunctionId f = 0; f < functions; ++f) {
      PacketRef own = PacketPool::copy(*packet);  // what is RoCE is decoded in place
      receive(t, f, sender, own);
    }
    return;
  }
  receive(t, classifier_.owner(*packet, from_ethernet), sender, packet);
}

void Receiver::receive_switched(Time t, FunctionId sender, PacketRef& packet) {
  if (packet->packets > 1)
    return each_part(*packet,
                     [this, sender](Time at, PacketRef& part) { receive_switched(at, sender, part); });
  if (packet->switched_to != kNoFunction) return receive(t, packet->switched_to, sender, packet);
  EmbeddedSwitch::Copies copies;
  blocks_.eswitch.from_uplink(t, packet, copies);
  for (EmbeddedSwitch::Copy& copy : copies) {
    if (copy.to == kNoFunction)
      blocks_.port.send_back(std::move(copy));
    else if (copy.other)
      blocks_.lag.switch_over(copy.at, copy.to, copy.packet);
    else
      receive(copy.at, copy.to, sender, copy.packet);
  }
  if (copies.empty()) blocks_.port.drop(t, *packet, DropReason::kRule);
}

// Of several functions: whether management lets packets pass to this one. Counts those that it does, but for
// multicast ones, which may be of groups that it is not in.
bool Receiver::comes_to(Time t, FunctionId f, const Packet& p) const {
  if (p.internal || blocks_.port.link() == LinkType::kEthernet) return true;
  if (!blocks_.vports.open(f)) {
    blocks_.port.drop_received(t, p, DropReason::kLinkDown);
    return false;
  }
  if (p.dest_qpn != kMulticastQpn) count_for(f, p);
  return true;
}

void Receiver::count_for(FunctionId f, const Packet& p) const {
  blocks_.vports.received(f, p.dest_qpn == kMulticastQpn, blocks_.port.counted(Port::bytes_of(p), p.packets),
                          p.packets);
}

// For one function.
void Receiver::receive(Time t, FunctionId f, FunctionId sender, PacketRef& packet) {
  if (__builtin_expect(f == kPhysical && blocks_.lag.hands_over() && !packet->looped, 0))
    return blocks_.lag.hand_over(t, packet);
  if (blocks_.health[f].fatal()) return;
  packet->function = f;
  if (Suspension& held = blocks_.qps[f].suspension; __builtin_expect(held.responder, 0)) {
    held.lost_packets += packet->packets;
    blocks_.port.drop(t, *packet, DropReason::kSuspended);
    return;
  }
  if (packet->packets > 1 && !takes_run(f, *packet)) {
    each_part(*packet, [this, f, sender](Time at, PacketRef& part) { receive(at, f, sender, part); });
    return;
  }
  if (blocks_.vports.size() != 1 && !comes_to(t, f, *packet)) return;
  if (blocks_.port.link() == LinkType::kEthernet && !packet->internal && !take_from_link(t, f, packet))
    return;
  const TransportVerdict verdict = classifier_.transport(f, *packet);
  if (verdict.management && blocks_.firmware[f].take_mad(t, *packet)) return;
  if (verdict.to == TransportVerdict::To::kMulticast)
    deliver_multicast(t, f, sender, packet);
  else
    deliver(t, verdict, packet);
}

void Receiver::take_over(Time t, PacketRef& packet) {
  if (blocks_.health[kPhysical].fatal()) return;
  packet->crossed = true;
  receive(t, kPhysical, kPhysical, packet);
}

void Receiver::take_switched(Time t, FunctionId f, PacketRef& packet) { receive(t, f, f, packet); }

void Receiver::take_back(Time t, PacketRef& packet) {
  if (blocks_.health[kPhysical].fatal()) return;
  packet->crossed = false;
  packet->function = kPhysical;
  blocks_.port.count_vport_rx(*packet);
  blocks_.eth_rx.receive(t, kPhysical, packet);
}

// A RoCE packet that somebody may look at all the same: as a frame.
void Receiver::take_frame(Time t, FunctionId f, PacketRef& packet) {
  Packet& p = *packet;
  if (p.kind == PacketKind::kEthernet) {
    if (p.crossed) return take_crossed(t, packet);
    blocks_.port.count_vport_rx(p);
    blocks_.eth_rx.receive(t, f, packet);
    return;
  }
  if (p.packets > 1) {
    each_part(p, [this, f](Time at, PacketRef& part) { receive(at, f, f, part); });
    return;
  }
  PacketRef frame = PacketPool::make();
  frame->frame_len = static_cast<std::uint16_t>(encode(p, frame->frame(), kMaxFrame));
  frame->kind = PacketKind::kEthernet;
  frame->function = f;
  frame->looped = p.looped;
  frame->source_vport = p.source_vport;
  frame->reg_c = p.reg_c;
  frame->trail = p.trail;
  if (p.crossed) {
    frame->crossed = true;
    return take_crossed(t, frame);
  }
  blocks_.port.count_vport_rx(*frame);
  blocks_.eth_rx.receive(t, f, frame);
}

// Without a table that says otherwise, each port's frames are its own.
void Receiver::take_crossed(Time t, PacketRef& frame) {
  if (blocks_.flows[kPhysical].parts_ports())
    blocks_.eth_rx.receive(t, kPhysical, frame);
  else
    blocks_.lag.give_back(t, frame);
}

// From an Ethernet link. True: a RoCE packet for this function, which the tables have let pass; all else has
// been dropped or given to the receive queues of frames.
bool Receiver::take_from_link(Time t, FunctionId f, PacketRef& packet) {
  blocks_.eth_rx.sniff(t, f, FlowTableType::kSnifferRx, *packet);
  const LinkVerdict verdict = classifier_.link(f, *packet);
  if (verdict.to == LinkVerdict::To::kFrames) {
    take_frame(t, f, packet);
    return false;
  }
  blocks_.port.count_vport_rx(*packet);
  if (verdict.decoded) blocks_.port.found_roce(t, *packet);
  if (verdict.to == LinkVerdict::To::kDrop) {
    blocks_.port.drop(t, *packet, verdict.reason);
    return false;
  }
  if (!blocks_.flows[f].active(FlowTableType::kRdmaRx)) return true;
  bool goes_on = false;
  FlowVerdict& flow = blocks_.rdma.receive(t, f, packet, goes_on);
  if (flow.deliveries.empty())
    blocks_.port.drop(t, *packet, DropReason::kRule);
  else
    blocks_.eth_rx.deliver(t, f, flow);
  return goes_on;
}

void Receiver::deliver_multicast(Time t, FunctionId f, FunctionId sender, const PacketRef& packet) {
  const bool infiniband = !packet->internal && blocks_.port.link() == LinkType::kIb;
  if (blocks_.vports.size() != 1 && infiniband) count_for(f, *packet);
  // A copy: a receiver's error handling may end up in detaching.
  const std::vector<std::uint32_t> list = *blocks_.steering[f].multicast(packet->dgid);
  for (const std::uint32_t qpn : list) {
    PacketRef shared = packet;
    Qp* qp = blocks_.qps[f].find(qpn);
    const bool own = packet->looped && sender == f && qpn == packet->src_qpn;
    if (!qp || (own && qp->block_own_multicast)) continue;
    deliver(t, classifier_.for_qp(*qp, *shared), shared);
  }
}

void Receiver::deliver(Time t, TransportVerdict verdict, PacketRef& packet) {
  switch (verdict.to) {
    case TransportVerdict::To::kRequest:
      if (__builtin_expect(verdict.qp->carries_frames, 0)) {
        blocks_.eth_rx.receive_datagram(t, *verdict.qp, packet);
        break;
      }
      blocks_.cc.received(t, *verdict.qp, *packet);
      blocks_.responder.receive(t, *verdict.qp, packet);
      break;
    case TransportVerdict::To::kAnswer:
      blocks_.cc.received(t, *verdict.qp, *packet);
      blocks_.requester.receive(t, *verdict.qp, packet);
      break;
    case TransportVerdict::To::kDcTarget:
      if (packet->dc_key == verdict.qp->dc_key) blocks_.cc.received(t, *verdict.qp, *packet);
      blocks_.responder.receive_dc(t, *verdict.qp, packet);
      break;
    case TransportVerdict::To::kCnp:
      blocks_.cc.receive_cnp(t, verdict.function, *packet);
      break;
    case TransportVerdict::To::kMulticast:  // taken apart by receive()
      break;
    case TransportVerdict::To::kDrop:
      blocks_.port.drop(t, *packet, verdict.reason);
      break;
  }
}

}  // namespace hcasim
