// SPDX-License-Identifier: BSD-3-Clause
// The way of a received packet to its engine: address checks, steering, P_Keys.
#include "model/hca.h"

#include <algorithm>

#include "model/port/codec.h"
#include "model/port/path.h"
#include "model/port/run.h"
#include "model/port/traits.h"

namespace hcasim {

namespace {

constexpr std::uint32_t kMulticastQpn = 0xffffff;

bool same_partition(std::uint16_t a, std::uint16_t b) {
  return (a & kPkeyBase) == (b & kPkeyBase) && ((a | b) & kFullMember) != 0;
}

}  // namespace

// A run of packets for a QP that takes them, with nothing on its way that looks at packets.
bool Hca::takes_run(const Packet& p) {
  if (port_.link() == LinkType::kEthernet && !p.internal &&
      (flows_.active(FlowTableType::kSnifferRx) || flows_.active(FlowTableType::kRdmaRx)))
    return false;
  const Qp* qp = steering_.unicast(p.dest_qpn);
  return qp && qp->type == QpType::kRc && qp->mtu == p.unit && !tags_.serves(*qp);
}

// Packets of many QPs come in by turns: what the next ones will need is fetched while others have their
// turns, one pointer further each time.
void Hca::prefetch_next() {
  if (qps_.qp_count() < kManyQps) return;
  if (const Packet* second = port_.to_come(1)) second->prefetch();
  const Packet* first = port_.to_come(0);
  const Qp* qp = first ? qps_.find(first->dest_qpn) : nullptr;
  if (!qp) return;
  prefetch_range(qp, offsetof(Qp, path) + sizeof qp->path);
  if (traits_of(first->opcode).request)
    prefetch_range(&qp->resp, offsetof(ResponderState, comm_established));
  else
    prefetch_range(&qp->req, offsetof(RequesterState, send_fault));
}

void Hca::receive(Time t, PacketRef& packet) {
  if (dead_) return;
  prefetch_next();
  if (packet->packets > 1 && !takes_run(*packet)) {
    each_part(*packet, [this](Time at, PacketRef& part) { receive(at, part); });
    return;
  }
  if (port_.link() == LinkType::kEthernet && !packet->internal) {
    eth_rx_.sniff(t, FlowTableType::kSnifferRx, *packet);
    if (!take_roce(t, packet)) return;
    if (flows_.active(FlowTableType::kRdmaRx) && !steer_roce(t, packet)) return;
  }
  const Packet& p = *packet;
  const prm::BthTraits& traits = traits_of(p.opcode);
  if (!traits.valid) {
    port_.drop(t, p, DropReason::kOpcode);
    return;
  }
  if (p.opcode == prm::bth::kCnp && p.kind == PacketKind::kRoceV2) {
    cc_.receive_cnp(t, p);
    return;
  }
  if (p.kind == PacketKind::kIb && (p.dest_qpn == 0) != p.vl15) {  // QP0's, and nobody else's, come on VL15
    port_.drop(t, p, DropReason::kMalformed);
    return;
  }
  if (p.dest_qpn == kMulticastQpn) {
    const std::vector<std::uint32_t>* members =
        p.has_grh && traits.deth ? steering_.multicast(p.dgid) : nullptr;
    if (!members) {
      port_.drop(t, p, DropReason::kNoGroup);
      return;
    }
    // A copy: a receiver's error handling may end up in detaching.
    const std::vector<std::uint32_t> list = *members;
    for (const std::uint32_t qpn : list) {
      PacketRef shared = packet;
      Qp* qp = qps_.find(qpn);
      if (!qp || (p.looped && qp->block_own_multicast && qpn == p.src_qpn)) continue;
      deliver(t, *qp, shared);
    }
    return;
  }
  if (p.dest_qpn <= 1 && firmware_ && firmware_->take_mad(t, p)) return;
  Qp* qp = steering_.unicast(p.dest_qpn);
  if (!qp) {
    port_.drop(t, p, DropReason::kNoQp);
    return;
  }
  deliver(t, *qp, packet);
}

// True: a RoCE packet for this function. All else has been dropped or given to the receive queues of frames.
bool Hca::take_roce(Time t, PacketRef& packet) {
  Packet& p = *packet;
  const std::uint8_t* to = p.dest_mac();
  Mac dest;
  std::copy(to, to + dest.size(), dest.begin());
  const bool multicast = (to[0] & 1) != 0;
  const bool mine = port_.roce_enabled && (multicast || port_.own_mac(dest));
  if (p.kind == PacketKind::kEthernet) {
    const Decoded decoded = mine ? decode_roce(p) : Decoded::kNotRoce;
    port_.count_vport_rx(p);
    switch (decoded) {
      case Decoded::kOk:
        port_.trace_received(t, p);
        break;
      case Decoded::kNotRoce:
        eth_rx_.receive(t, packet);
        return false;
      case Decoded::kMalformed:
        port_.drop(t, p, DropReason::kMalformed);
        return false;
      case Decoded::kBadCrc:
        port_.drop(t, p, DropReason::kIcrc);
        return false;
    }
  } else {
    if (!mine && packet->packets > 1) {
      each_part(p, [this](Time at, PacketRef& part) { receive(at, part); });
      return false;
    }
    if (!mine) {  // somebody may look at it all the same: as a frame
      PacketRef frame = PacketPool::make();
      frame->frame_len = static_cast<std::uint16_t>(encode(p, frame->frame(), kMaxFrame));
      frame->kind = PacketKind::kEthernet;
      frame->looped = p.looped;
      port_.count_vport_rx(*frame);
      eth_rx_.receive(t, frame);
      return false;
    }
    port_.count_vport_rx(p);
  }
  if (p.dest_qpn != kMulticastQpn && !port_.own_gid(p.dgid, p.kind == PacketKind::kRoceV2)) {
    port_.drop(t, p, DropReason::kNoAddress);
    return false;
  }
  return true;
}

void Hca::deliver(Time t, Qp& qp, PacketRef& packet) {
  const Packet& p = *packet;
  if ((p.opcode & prm::bth::kTransportMask) != transport_bits(qp.type)) {
    port_.drop(t, p, DropReason::kNoQp);
    return;
  }
  if (qp.state != QpState::kRtr && qp.state != QpState::kRts && qp.state != QpState::kSqd &&
      qp.state != QpState::kSqErr) {
    port_.drop(t, p, DropReason::kQpState);
    return;
  }
  // IBTA 10.9.3 (RoCE has the default partition alone: A16.4.3): QP0 takes any P_Key, QP1 any of the port's
  // table, others their own.
  bool pkey = true;
  if (p.kind != PacketKind::kIb) {
    pkey = same_partition(p.pkey, kRocePkey);
  } else if (qp.type == QpType::kQp1) {
    pkey = port_.pkey_valid(p.pkey);
  } else if (qp.type != QpType::kQp0) {
    const std::size_t index = qp.path.pkey_index;
    pkey = index < port_.pkeys.size() && same_partition(p.pkey, port_.pkeys[index]);
  }
  if (!pkey) {
    port_.drop(t, p, DropReason::kPkey);
    return;
  }
  if (is_dc(qp.type)) {
    if (traits_of(p.opcode).request != (qp.type == QpType::kDct)) {
      port_.drop(t, p, DropReason::kOpcode);
      return;
    }
    if (qp.type == QpType::kDct) {
      responder_.receive_dc(t, qp, packet);
      return;
    }
  }
  cc_.received(t, qp, p);
  if (traits_of(p.opcode).request) {
    responder_.receive(t, qp, packet);
  } else {
    requester_.receive(t, qp, packet);
  }
}

bool Hca::wait_for_context(Time t, const Qp& qp, Parked& parked, const PacketRef& packet) {
  const Time there = context(t, qp.qpn);
  if (there <= t && parked.count == 0) return false;
  ++parked.count;
  parked.until = std::max(parked.until, there);
  if (packet->packets > 1)
    for (unsigned i = 0; i < packet->packets; ++i) packet->at[i] = std::max(packet->at[i], parked.until);
  parked_.push(parked.until, ParkedPacket{qp.qpn, qp.req.epoch, packet});
  return true;
}

void Hca::unpark(Time due, ParkedPacket& item) {
  Qp* qp = qps_.find(item.qpn);
  if (!qp || qp->req.epoch != item.epoch || dead_) return;
  const bool request = traits_of(item.packet->opcode).request;
  --(request ? qp->resp.parked : qp->req.parked).count;
  if (request)
    responder_.take(due, *qp, item.packet);
  else
    requester_.take(due, *qp, item.packet);
}

}  // namespace hcasim
