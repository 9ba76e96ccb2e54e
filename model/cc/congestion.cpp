// SPDX-License-Identifier: BSD-3-Clause
#include "model/cc/congestion.h"

#include <algorithm>

#include "model/ctx/qp.h"
#include "model/port/port.h"
#include "model/profile.h"
#include "model/state/state.h"
#include "model/steer/rdma.h"
#include "traces/tracer.h"

namespace hcasim {

using traces::Point;

namespace {

constexpr unsigned kDscpShift = 2, kPcpShift = 13;
constexpr std::uint16_t kVlanId = 0x0fff;

bool has(std::uint8_t mask, unsigned priority) { return (mask >> priority & 1) != 0; }

bool connected(const Qp& qp) {
  return qp.type == QpType::kRc || qp.type == QpType::kUc || qp.type == QpType::kXrc;
}

// What the port will find its packets to have (PriorityMap::of()); only RoCE v2 has a DSCP.
unsigned priority_of(const Qp& qp, const PriorityMap& map) {
  const AddressPath& path = qp.path;
  if (map.by_dscp) return path.source.version != 0 ? map.of_dscp[path.dscp % kDscps] : 0u;
  return path.source.vlan_valid ? path.eth_prio & 7u : 0u;
}

}  // namespace

double CongestionControl::line_rate() const { return blocks_.port.rate_gbps() * 1000; }

void CongestionControl::reset() { reset_state(*this); }

// ---- Notification point ----

void CongestionControl::marked(Time t, Qp& qp, const Packet& p) {
  ++statistics_.np_ecn_marked_roce_packets;
  const unsigned priority = blocks_.port.priorities.of(p);
  if (!has(np_enabled, priority)) return;
  // Responses do not say whose they are; an initiator has one target at a time.
  const std::uint32_t to = connected(qp)             ? qp.remote_qpn
                           : qp.type == QpType::kDci ? qp.req.dc_target.dqpn()
                                                     : p.src_qpn;
  if (to <= 1 || p.dest_qpn == kMulticastQpn) return;  // no reaction point
  Qp* const context = qp.type == QpType::kDct ? blocks_.qps[qp.function].dc_contexts().find(
                                                    qp.qpn, p.src_qpn, DcContexts::source_of(p))
                                              : nullptr;
  const bool of_flow = blocks_.profile.port.cnp_moderation == Profile::Port::kCnpsOfFlow;
  Time& last = of_flow ? (context ? context->cc : qp.cc).last_cnp_sent : last_cnp_sent_;
  const Time interval = static_cast<Time>(np.min_time_between_cnps) * from_ns(1000);
  if (last >= 0 && t < last + interval) return;
  last = t;
  PacketRef cnp = PacketPool::make();
  cnp->kind = PacketKind::kRoceV2;
  cnp->opcode = prm::bth::kCnp;
  cnp->migreq = false;  // as the cards send it
  cnp->dest_qpn = to;
  cnp->pkey = p.pkey;
  cnp->has_grh = true;
  cnp->ipv4 = p.ipv4;
  cnp->sgid = p.dgid;
  cnp->dgid = p.sgid;
  cnp->smac = p.dmac;
  cnp->dmac = p.smac;
  cnp->udp_sport = p.udp_sport;
  // Queues of datagrams and DC initiators have no path of their own.
  cnp->hop_limit = qp.path.hop_limit != 0 ? qp.path.hop_limit : kDefaultHops;
  cnp->tclass = static_cast<std::uint8_t>(np.cnp_dscp << kDscpShift);
  cnp->has_vlan = p.has_vlan;
  const unsigned pcp = np.cnp_prio_mode ? priority : np.cnp_802p_prio;
  cnp->vlan_tci = static_cast<std::uint16_t>((p.vlan_tci & kVlanId) | pcp << kPcpShift);
  cnp->function = qp.function;
  cnp->affinity = qp.affinity;
  cnp->trace_qpn = blocks_.tracer.tag(qp.qpn);
  ++statistics_.np_cnp_sent;
  traces::trace(blocks_.tracer, Point::kCnpTx, t, {qp.function, blocks_.tracer.tag(qp.qpn)}, 0u, to);
  blocks_.rdma.transmit(t + blocks_.profile.engine.ack, qp.function, qp.qpn, std::move(cnp));
}

// ---- Reaction point ----

// Datagrams have the priorities of their address vectors.
bool CongestionControl::reacts(const Qp& qp) const {
  if (!connected(qp)) return rp_enabled != 0;
  return has(rp_enabled, priority_of(qp, blocks_.port.egress(qp.affinity).priorities));
}

void CongestionControl::receive_cnp(Time t, FunctionId f, const Packet& p) {
  Qp* qp = blocks_.qps[f].find(p.dest_qpn);
  const bool sends =
      qp && (qp->state == QpState::kRtr || qp->state == QpState::kRts || qp->state == QpState::kSqd);
  if (!sends || qp->type == QpType::kSq || !reacts(*qp)) {
    ++statistics_.rp_cnp_ignored;
    return;
  }
  ++statistics_.rp_cnp_handled;
  if (qp->type != QpType::kDct) {
    slow(t, *qp, qp->qpn);
    return;
  }
  // It names no initiator: whoever is there gets its responses over the path that is congested.
  blocks_.qps[f].dc_contexts().for_each_of(qp->qpn, [&](const DcContexts::Address& from, Qp& context) {
    if (from == DcContexts::source_of(p)) slow(t, context, qp->qpn);
  });
}

void CongestionControl::slow(Time t, Qp& qp, std::uint32_t traced_qpn) {
  if (!qp.cc.limited) ++statistics_.sum_flows;
  qp.cc.on_cnp(t, rp, line_rate());
  traces::trace(blocks_.tracer, Point::kCnpRx, t, {qp.function, blocks_.tracer.tag(traced_qpn)}, 0u,
                static_cast<std::uint64_t>(qp.cc.current), static_cast<std::uint64_t>(qp.cc.target));
}

Time CongestionControl::earliest_of_slowed(Time t, Qp& qp) {
  const Port& port = blocks_.port.egress(qp.affinity);
  if (port.stopped(t) && connected(qp)) {
    t = port.link() == LinkType::kIb ? port.lane_open_at(t, qp.path.sl)
                                     : port.open_at(t, priority_of(qp, port.priorities));
  }
  if (!qp.cc.limited) return t;
  qp.cc.advance(t, rp, line_rate());
  return qp.cc.earliest(t, rp, line_rate());
}

void CongestionControl::stamp(Time t, Qp& qp, Packet& p) {
  if (qp.type == QpType::kQp1 || qp.sends_as_qp1) return;
  if (rp_enabled != 0xff && !has(rp_enabled, blocks_.port.egress(qp.affinity).priorities.of(p))) return;
  p.tclass = static_cast<std::uint8_t>((p.tclass & ~kEcnMask) | kEct0);
  if (qp.cc.limited) {
    qp.cc.advance(t, rp, line_rate());
    if (qp.cc.limited) qp.cc.on_sent(Port::wire_bytes(p), rp, line_rate());
  }
}

std::uint32_t CongestionControl::current_flows() {
  std::uint32_t n = 0;
  const Time t = sim_now();
  blocks_.qps.for_each([&](QpTable& qps) {
    qps.for_each_qp([&](Qp& qp) {
      if (!qp.cc.limited) return;
      qp.cc.advance(t, rp, line_rate());
      n += qp.cc.limited;
    });
  });
  return n;
}

}  // namespace hcasim
