// SPDX-License-Identifier: BSD-3-Clause
#include "model/rx/receiver.h"

#include <vector>

#include "model/cc/congestion.h"
#include "model/eth/rx.h"
#include "model/firmware_port.h"
#include "model/health.h"
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

// A run of packets for a QP that takes them, with nothing on its way that looks at packets.
bool Receiver::takes_run(const Packet& p) const {
  if (blocks_.port.link() == LinkType::kEthernet && !p.internal &&
      (blocks_.flows.active(FlowTableType::kSnifferRx) || blocks_.flows.active(FlowTableType::kRdmaRx)))
    return false;
  const Qp* qp = blocks_.steering.unicast(p.dest_qpn);
  return qp && qp->type == QpType::kRc && qp->mtu == p.unit && !blocks_.tags.serves(*qp);
}

// Packets of many QPs come in by turns: what the next ones will need is fetched while others have their
// turns, one pointer further each time.
void Receiver::prefetch_next() const {
  if (blocks_.qps.qp_count() < kManyQps) return;
  if (const Packet* second = blocks_.port.to_come(1)) second->prefetch();
  const Packet* first = blocks_.port.to_come(0);
  const Qp* qp = first ? blocks_.qps.find(first->dest_qpn) : nullptr;
  if (!qp) return;
  qp->prefetch();
  if (traits_of(first->opcode).request)
    qp->resp.prefetch();
  else
    qp->req.prefetch();
}

void Receiver::receive(Time t, PacketRef& packet) {
  if (blocks_.health.fatal()) return;
  prefetch_next();
  if (packet->packets > 1 && !takes_run(*packet)) {
    each_part(*packet, [this](Time at, PacketRef& part) { receive(at, part); });
    return;
  }
  const bool from_link = blocks_.port.link() == LinkType::kEthernet && !packet->internal;
  const FunctionId f = from_link ? take_from_link(t, packet) : classifier_.owner(*packet);
  if (f == kNoFunction) return;
  const TransportVerdict verdict = classifier_.transport(f, *packet);
  if (verdict.management && blocks_.firmware.take_mad(t, *packet)) return;
  if (verdict.to == TransportVerdict::To::kMulticast)
    deliver_multicast(t, packet);
  else
    deliver(t, verdict, packet);
}

// A RoCE packet that somebody may look at all the same: as a frame.
void Receiver::take_frame(Time t, PacketRef& packet) {
  Packet& p = *packet;
  if (p.kind == PacketKind::kEthernet) {
    blocks_.port.count_vport_rx(p);
    blocks_.eth_rx.receive(t, packet);
    return;
  }
  if (p.packets > 1) {
    each_part(p, [this](Time at, PacketRef& part) { receive(at, part); });
    return;
  }
  PacketRef frame = PacketPool::make();
  frame->frame_len = static_cast<std::uint16_t>(encode(p, frame->frame(), kMaxFrame));
  frame->kind = PacketKind::kEthernet;
  frame->looped = p.looped;
  blocks_.port.count_vport_rx(*frame);
  blocks_.eth_rx.receive(t, frame);
}

// From an Ethernet link: the function that a RoCE packet is for which the tables have let pass. kNoFunction:
// the packet has been dropped, or given to the receive queues of frames.
FunctionId Receiver::take_from_link(Time t, PacketRef& packet) {
  blocks_.eth_rx.sniff(t, FlowTableType::kSnifferRx, *packet);
  const LinkVerdict verdict = classifier_.link(*packet);
  if (verdict.to == LinkVerdict::To::kFrames) {
    take_frame(t, packet);
    return kNoFunction;
  }
  blocks_.port.count_vport_rx(*packet);
  if (verdict.decoded) blocks_.port.trace_received(t, *packet);
  if (verdict.to == LinkVerdict::To::kDrop) {
    blocks_.port.drop(t, *packet, verdict.reason);
    return kNoFunction;
  }
  if (!blocks_.flows.active(FlowTableType::kRdmaRx)) return verdict.function;
  bool goes_on = false;
  FlowVerdict& flow = blocks_.rdma.receive(t, packet, goes_on);
  if (flow.deliveries.empty())
    blocks_.port.drop(t, *packet, DropReason::kRule);
  else
    blocks_.eth_rx.deliver(t, flow);
  return goes_on ? verdict.function : kNoFunction;
}

void Receiver::deliver_multicast(Time t, const PacketRef& packet) {
  // A copy: a receiver's error handling may end up in detaching.
  const std::vector<std::uint32_t> list = *blocks_.steering.multicast(packet->dgid);
  for (const std::uint32_t qpn : list) {
    PacketRef shared = packet;
    Qp* qp = blocks_.qps.find(qpn);
    if (!qp || !blocks_.vports.takes_multicast(qp->function, *packet)) continue;
    if (packet->looped && qp->block_own_multicast && qpn == packet->src_qpn) continue;
    deliver(t, classifier_.for_qp(*qp, *shared), shared);
  }
}

void Receiver::deliver(Time t, TransportVerdict verdict, PacketRef& packet) {
  switch (verdict.to) {
    case TransportVerdict::To::kRequest:
      blocks_.cc.received(t, *verdict.qp, *packet);
      blocks_.responder.receive(t, *verdict.qp, packet);
      break;
    case TransportVerdict::To::kAnswer:
      blocks_.cc.received(t, *verdict.qp, *packet);
      blocks_.requester.receive(t, *verdict.qp, packet);
      break;
    case TransportVerdict::To::kDcTarget:
      blocks_.responder.receive_dc(t, *verdict.qp, packet);
      break;
    case TransportVerdict::To::kCnp:
      blocks_.cc.receive_cnp(t, *packet);
      break;
    case TransportVerdict::To::kMulticast:  // taken apart by receive()
      break;
    case TransportVerdict::To::kDrop:
      blocks_.port.drop(t, *packet, verdict.reason);
      break;
  }
}

}  // namespace hcasim
