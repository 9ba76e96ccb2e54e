// SPDX-License-Identifier: BSD-3-Clause
// Packets of a long message that leave in one go: what they have in common is done once for all of them. Each
// has its own times, close to what they would be had each packet had a turn of its own: a run is sent only
// where nothing could come between (no other QP waits for the port, no pace, no fault generator, no filter).
// It takes the port further ahead than single packets do, but lets others in where they would have let them
// (Port::reserve()). What differs is who gives way, and that its writes to the host are made when its last
// packet is here.
#include <algorithm>
#include <utility>

#include "model/cc/congestion.h"
#include "model/pcie/dma.h"
#include "model/port/port.h"
#include "model/port/run.h"
#include "model/profile.h"
#include "model/req/requester.h"
#include "model/sched/qos.h"
#include "model/sched/scheduler.h"
#include "model/sched/transmit_pipeline.h"
#include "model/steer/rdma.h"
#include "traces/tracer.h"

namespace hcasim {

using prm::WqeOp;
using traces::Point;

// No other queue, limit or rule has a say in single packets of this QP.
bool Requester::runs_allowed(const Qp& qp) const {
  if (!blocks_.dma.borrows(qp.function) || !blocks_.scheduler.alone(qp) || !blocks_.port.takes_runs())
    return false;
  if (blocks_.qos[qp.function].limits(qp) || qp.cc.limited) return false;
  return blocks_.port.link() == LinkType::kIb || !blocks_.rdma.sees_transmitted(qp.function);
}

// How many packets of this message, which has several, the QP may send next as one.
unsigned Requester::run_of(const Pace& pace, const Qp& qp, const SendWqe& w) const {
  const RequesterState& s = qp.req;
  if (qp.type != QpType::kRc || w.one_by_one) return 1;
  if (w.fence >= prm::kFenceFence || w.done || w.syndrome || s.send_fault.active) return 1;
  bool plain_end = true;
  switch (w.opcode) {
    case WqeOp::kRdmaWrite:
    case WqeOp::kSend:
      break;
    case WqeOp::kRdmaWriteImm:
    case WqeOp::kSendImm:
    case WqeOp::kSendInval:
      plain_end = false;  // what the last packet brings more may be refused for itself
      break;
    default:
      return 1;
  }
  if (!runs_allowed(qp)) return 1;
  const Profile& profile = blocks_.profile;
  const std::uint64_t packets = w.started ? w.packets : (w.length + qp.mtu - 1) / qp.mtu;
  std::uint64_t n = packets - w.sent;
  if (!plain_end) --n;
  // A run that comes back is written to the host by the engine that fetches the next one, whose requests
  // would wait for all of it: it is no longer than what single packets take the port ahead.
  const bool back = qp.path.force_loopback || !blocks_.port.connected();
  const unsigned most = back ? profile.port.tx_backlog_packets : kMaxRun;
  n = std::min<std::uint64_t>({n, kMaxRun, most, profile.engine.burst_packets - pace.packets});
  const std::uint32_t psn = w.started ? (w.first_psn + w.sent) & kPsnMask : s.next_psn;
  const std::int64_t room =
      static_cast<std::int64_t>(profile.engine.inflight_packets) - psn_diff(psn, s.una_psn);
  return static_cast<unsigned>(std::max<std::int64_t>(1, std::min(static_cast<std::int64_t>(n), room)));
}

Time Requester::port_open(Pace& pace, const Qp& qp) const {
  pace.run = run_ahead(pace, qp);
  const SendWqe& w = qp.req.window[qp.req.next_to_send];
  const Time lead = w.inline_data ? 0 : PagePace::lead(w.length, blocks_.profile);
  const Time open = blocks_.scheduler.port_open(qp.affinity, blocks_.tracer.tag(qp.qpn)) - lead;
  if (pace.run == 1) return open;
  // Not so late that the port would be idle before the first packet of the run has come from the host.
  const unsigned most = std::max(2u, blocks_.profile.port.tx_backlog_packets);
  return open + (std::min(pace.run, most) - 2) * blocks_.port.full_packet(qp.mtu);
}

Requester::RunPlan Requester::plan_run(const Qp& qp, const SendWqe& wqe, unsigned packets) {
  RunPlan plan;
  plan.packets = packets;
  plan.first = wqe.sent == 0;
  plan.last = wqe.sent + packets == wqe.packets;
  plan.offset = static_cast<std::uint64_t>(wqe.sent) * qp.mtu;
  plan.bytes = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(std::uint64_t{packets} * qp.mtu, wqe.length - plan.offset));
  return plan;
}

PacketRef Requester::make_run(const Qp& qp, const SendWqe& wqe, const RunPlan& plan) const {
  const bool write = wqe.opcode == WqeOp::kRdmaWrite || wqe.opcode == WqeOp::kRdmaWriteImm;
  PacketRef packet = make_packet(qp, wqe);
  Packet& p = *packet;
  p.psn = (wqe.first_psn + wqe.sent) & kPsnMask;
  p.packets = static_cast<std::uint16_t>(plan.packets);
  p.unit = qp.mtu;
  p.payload_len = plan.bytes;
  p.opcode =
      piece_opcode(static_cast<std::uint8_t>(write ? prm::BthOp::kWriteFirst : prm::BthOp::kSendFirst) |
                       transport_bits(qp.type),
                   plan.first, plan.last);
  if (write && plan.first) {
    p.va = wqe.raddr;
    p.rkey = wqe.rkey;
    p.dma_len = static_cast<std::uint32_t>(wqe.length);
  }
  p.solicited = plan.last && wqe.solicited;
  return packet;
}

// False: it cannot go as one, and nothing has been done.
bool Requester::send_run(Pace& pace, Qp& qp, SendWqe& wqe) {
  const RunPlan plan = plan_run(qp, wqe, pace.run);
  PacketRef packet = make_run(qp, wqe, plan);
  const Profile::Engine& e = blocks_.profile.engine;
  const Time ready =
      qp.req.pages.begin(std::max(pace.engine, pace.ready) + e.gather, plan.offset, blocks_.profile);
  MoveResult r;
  if (!mover_.gather_run(ready, e.tx_more, qp, wqe.sges, plan.offset, *packet, r)) {
    wqe.one_by_one = true;
    return false;
  }
  const Time asked = r.addressed - blocks_.profile.pcie.read_latency;
  if (asked > ready) pace.engine += asked - ready;
  commit_run(pace, ready, qp, wqe, plan, std::move(packet));
  return true;
}

// What each packet's share of the link has brought, as the engines of its pages have it.
void Requester::pace_run(Time ready, Qp& qp, const RunPlan& plan, Packet& p) {
  for (unsigned i = 0; i < plan.packets; ++i) {
    const std::uint64_t from = plan.offset + std::uint64_t{i} * p.unit;
    const auto len =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(p.unit, plan.offset + plan.bytes - from));
    qp.req.pages.begin(ready + i * blocks_.profile.engine.tx_more, from, blocks_.profile);
    p.at[i] = qp.req.pages.end(p.at[i], from, len, blocks_.profile);
  }
}

// Its payload is on its way from the host since `ready`.
void Requester::commit_run(Pace& pace, Time ready, Qp& qp, SendWqe& wqe, const RunPlan& plan,
                           PacketRef&& packet) {
  RequesterState& s = qp.req;
  const unsigned n = plan.packets;
  Packet& p = *packet;
  if (plan.first) blocks_.tracer.record(Point::kTranslated, ready, qp.subject(), wqe.serial, wqe.sges.size());
  pace_run(ready, qp, plan, p);
  const Time gathered = p.at[n - 1];
  const Time ahead = blocks_.port.ahead_of_end(p.unit, gather_ps_);
  for (unsigned i = 0; i < n; ++i) p.at[i] -= ahead;
  if (plan.last) blocks_.tracer.record(Point::kGathered, gathered, qp.subject(), wqe.serial, wqe.length);

  pace.packets += n;
  s.since_ack_req += n;
  p.ack_req =
      s.since_ack_req >= blocks_.profile.engine.ack_every || (plan.last && wants_ack(qp, s.next_to_send));
  if (p.ack_req) s.since_ack_req = 0;
  s.last_ready = blocks_.tx.pass_run(s.last_ready, p.at.data(), n);
  blocks_.cc.sending(s.last_ready, qp, p);
  blocks_.rdma.transmit(s.last_ready, qp.function, qp.qpn, std::move(packet));
  wqe.sent += n;
  if (plan.last) ++s.next_to_send;
  arm_timer(gathered, qp);
}

}  // namespace hcasim
