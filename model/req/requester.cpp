// SPDX-License-Identifier: BSD-3-Clause
// The requester's transmit side: turns, packets, local operations.
#include "model/req/requester.h"

#include <algorithm>
#include <cstring>

#include "model/cc/congestion.h"
#include "model/ctx/context_gate.h"
#include "model/pcie/dma.h"
#include "model/port/path.h"
#include "model/port/port.h"
#include "model/profile.h"
#include "model/rules.h"
#include "model/sched/qos.h"
#include "model/sched/scheduler.h"
#include "model/sched/transmit_pipeline.h"
#include "model/state/state.h"
#include "model/steer/flow.h"
#include "model/steer/rdma.h"
#include "model/tm/tag_unit.h"
#include "model/tpt/tpt.h"
#include "model/wqe/umr.h"
#include "traces/tracer.h"

namespace hcasim {

using prm::BthOp;
using prm::CqeSyndrome;
using prm::WqeOp;
using traces::Point;

Requester::Requester(const sc_core::sc_module_name& name, const Blocks& blocks)
    : sc_module(name),
      blocks_(blocks),
      mover_(blocks.tpt, blocks.dma),
      gather_ps_(blocks.profile.gather_ps_per_byte()),
      timers_(
          "timers", [this](Time due, Timer& timer) { on_timer(due, timer); }, blocks.faults) {}

void Requester::clear() { reset_state(*this); }

void Requester::qp_changed(Time t, Qp& qp, QpState old) {
  RequesterState& s = qp.req;
  if (qp.state == QpState::kRst) {
    blocks_.dma.loans().settle(qp.function, qp.qpn);
    s = RequesterState{};
    return;
  }
  // An XRC target: no doorbell record is its. Nor is one the tag-matching unit's, but that sends.
  if (!qp.has_sq && !qp.rendezvous) return;
  if (qp.state == QpState::kRts) {
    if (old == QpState::kInit || old == QpState::kRtr) {
      s.una_psn = s.next_psn;
      s.retries_left = qp.retry_count;
      s.rnr_left = qp.rnr_retry;
    }
    // Posted before, or while drained. A queue that comes from reset begins with its next doorbell: its
    // record is still what it was when the queue failed.
    if (old == QpState::kRst) return;
    s.doorbell = qp.has_sq;
    blocks_.scheduler.wake(t, qp);
  } else if (qp.state == QpState::kErr) {
    s.doorbell = qp.has_sq;
    flush(t, qp);
  } else if (qp.state == QpState::kSqd) {
    put_back(qp);
    finish_drain(t, qp);
  }
}

bool Requester::fenced(const Qp& qp, const SendWqe& wqe) const {
  const RequesterState& s = qp.req;
  switch (wqe.fence) {
    case prm::kFenceFence:
    case prm::kFenceSmallAndFence:
      return s.inflight_reads != 0;
    case prm::kFenceStrong:
      return s.next_to_send != 0;
    default:
      return false;  // local operations are executed in order: a small fence waits for nothing
  }
}

TurnResult Requester::turn(Time t, Qp& qp) {
  RequesterState& s = qp.req;
  if (qp.state == QpState::kErr || qp.state == QpState::kSqErr) {
    flush(t, qp);
    return {t, kNever};
  }
  if (qp.state != QpState::kRts && qp.state != QpState::kSqd) return {t, kNever};
  if (t < s.rnr_until) return {t, s.rnr_until};
  if (s.response_fault.active) return {t, kNever};

  // Nothing is known of the queue without its context: another QP has the unit until it is there.
  // Once there it stays until something was done with it, whatever else the turn has to wait for.
  if (s.context_due == 0) s.context_due = std::max<Time>(1, blocks_.contexts.usable_at(t, qp));
  if (t < s.context_due) return {t, s.context_due};

  Pace pace{t, t};
  const TurnResult result = progress(pace, qp);
  send_messages(pace);
  return result;
}

TurnResult Requester::progress(Pace& pace, Qp& qp) {
  RequesterState& s = qp.req;
  const Profile::Engine& e = blocks_.profile.engine;
  const Time t = pace.engine;
  blocks_.tracer.record(Point::kScheduled, t, qp.subject(), s.next_serial,
                        static_cast<std::uint16_t>(s.db_counter - s.fetched));

  const std::uint64_t epoch = s.epoch;
  for (;;) {
    if (s.next_to_send >= s.window.size()) {
      if (qp.state == QpState::kSqd) break;
      if (!fetch(pace, qp)) break;
    } else if (runs_short(s) && qp.state == QpState::kRts) {
      if (!fetch(pace, qp) && qp.state != QpState::kRts) break;
    }
    if (pace.packets >= e.burst_packets) {
      // Behind a run it would find the port busy: no turn for that alone.
      if (pace.run == 1) return {pace.engine, pace.engine};
      pace.packets = 0;
      const Time open = port_open(pace, qp);
      return {pace.engine, std::max(pace.engine, open), open > pace.engine};
    }
    // Asked before the port: who waits for it takes part in the sharing of its bandwidth.
    const Time allowed = blocks_.qos[qp.function].earliest(pace.engine, qp, false);
    if (allowed > pace.engine) return {pace.engine, allowed};
    if (const Time open = port_open(pace, qp); open > pace.engine) return {pace.engine, open, true};

    const Time paced = blocks_.cc.earliest(pace.engine, qp);
    if (paced > pace.engine) return {pace.engine, paced};

    SendWqe& wqe = s.window[s.next_to_send];
    pace.ready = wqe.due;
    if (wqe.sent == 0 && wqe.gathers()) {
      // What is asked for then has its WQE, and the next ones theirs, by when an engine takes it.
      const Time soon = s.pages.room(blocks_.profile) - blocks_.profile.pcie.read_latency;
      if (soon > std::max(pace.engine, pace.ready)) return {pace.engine, soon};
    }
    if (wqe.done) {  // acknowledged by an earlier transmission
      ++s.next_to_send;
      continue;
    }
    if (wqe.syndrome) {
      // Fails in order: when everything before it has completed.
      if (s.next_to_send != 0) break;
      fail_front(pace.engine, qp, static_cast<CqeSyndrome>(wqe.syndrome), wqe.vendor);
      if (qp.state == QpState::kErr || qp.state == QpState::kSqErr) break;
      continue;  // one stream of a DCI
    }
    if (!s.errored_streams.empty() && s.stream_errored(wqe.stream)) {
      if (s.next_to_send != 0) break;
      complete(pace.engine, qp, wqe, CqeSyndrome::kWrFlush, 0);
      s.window.pop();
      continue;
    }
    if (fenced(qp, wqe)) break;
    s.context_due = 0;
    const Time begin = pace.engine;
    const bool first = wqe.sent == 0;
    if (first) pace.engine += e.wqe_parse;
    const Step step_done = step(pace, qp, wqe);
    pace.engine =
        step_done == Step::kBlocked
            ? begin
            : std::max(pace.engine, begin + (first ? e.tx_wqe : e.tx_more) + (pace.run - 1) * e.tx_more);
    if (s.epoch != epoch || (qp.state != QpState::kRts && qp.state != QpState::kSqd)) break;
    if (step_done == Step::kBlocked) break;
    // A message broke in its middle: what is before it must be acknowledged for its error to come out.
    if (step_done == Step::kFailed && s.next_to_send != 0 && s.since_ack_req != 0)
      rewind(pace.engine, qp, s.una_psn);
  }
  if (s.epoch == epoch) s.context_due = 0;
  if (s.epoch == epoch && qp.state == QpState::kSqd) finish_drain(pace.engine, qp);
  return {pace.engine, kNever};
}

Requester::Step Requester::refuse(SendWqe& wqe, CqeSyndrome syndrome, std::uint8_t vendor) const {
  wqe.syndrome = static_cast<std::uint8_t>(syndrome);
  wqe.vendor = vendor;
  return Step::kFailed;
}

Requester::Step Requester::step(Pace& pace, Qp& qp, SendWqe& wqe) {
  if (joins(pace, qp, wqe)) return add_message(pace, qp, wqe);
  send_messages(pace);
  if (wqe.is_local()) return run_local(pace, qp, wqe);
  const PendingFault& fault = qp.req.send_fault;
  if (fault.active && wqe.serial == fault.serial && wqe.sent >= fault.packet) return Step::kBlocked;
  if (qp.type == QpType::kSq) return send_frame(pace, qp, wqe);
  if (!wqe.started) {
    const Step s = start(qp, wqe);
    if (s != Step::kSent) return s;
  }
  if (qp.type == QpType::kDci && !dc_connect(pace.engine, qp, wqe)) return Step::kBlocked;
  if (sends_datagrams(qp.type)) return send_datagram(pace, qp, wqe);
  if (wqe.is_read_or_atomic()) return send_request(pace, qp, wqe);
  return send_packet(pace, qp, wqe);
}

constexpr std::uint32_t kMostPsns = (kPsnMask + 1) / 2;  // of packets that are not acknowledged

// Checks the whole message before its first packet, and gives it its PSNs. kBlocked: when there are some.
Requester::Step Requester::start(Qp& qp, SendWqe& wqe) {
  RequesterState& s = qp.req;
  const bool datagram = sends_datagrams(qp.type);
  const unsigned mtu = datagram ? blocks_.profile.port.max_mtu : qp.mtu;
  if (datagram && wqe.length > mtu)
    return refuse(wqe, CqeSyndrome::kLocalLength, static_cast<std::uint8_t>(WqeFault::kLength));
  if (!wqe.inline_data) {
    const Access access = wqe.is_read_or_atomic() ? Access::kLocalWrite : Access::kLocalRead;
    const TptStatus status = mover_.check(qp, wqe.sges, access);
    if (status != TptStatus::kOk) {
      blocks_.tracer.record(Point::kAccessErr, sim_now(), qp.subject(), wqe.serial,
                            wqe.sges.empty() ? 0 : wqe.sges[0].lkey, wqe.sges.empty() ? 0 : wqe.sges[0].addr);
      return refuse(wqe, CqeSyndrome::kLocalProt, static_cast<std::uint8_t>(status));
    }
  }
  wqe.packets = packets_of(wqe.length, mtu);
  // Of more PSNs under way nobody could tell what is old and what is new (IBTA 9.7.1).
  if (is_reliable(qp.type) && ((s.next_psn - s.una_psn) & kPsnMask) + wqe.packets > kMostPsns)
    return Step::kBlocked;
  wqe.first_psn = s.next_psn;
  s.next_psn = (s.next_psn + wqe.packets) & kPsnMask;
  wqe.started = true;
  return Step::kSent;
}

PacketRef Requester::make_packet(const Qp& qp, const SendWqe& wqe) const {
  PacketRef p = PacketPool::make();
  if (qp.type == QpType::kDci) {
    dc_fill(*p, qp, wqe.av);
  } else {
    if (!sends_datagrams(qp.type)) fill_path(*p, qp, blocks_.port, blocks_.vports[qp.function]);
    p->dest_qpn = qp.remote_qpn;
    p->src_qpn = wqe.xrc_srqn;
  }
  p->trace_qpn = blocks_.tracer.tag(qp.qpn);
  p->trace_packets = wqe.packets;
  p->wqe_serial = wqe.serial;
  return p;
}

void Requester::transmit(Time ready, Qp& qp, PacketRef&& packet) {
  RequesterState& s = qp.req;
  s.last_ready = blocks_.tx.pass(std::max(s.last_ready, ready));
  blocks_.cc.sending(s.last_ready, qp, *packet);
  blocks_.qos[qp.function].sent(s.last_ready, qp, false, *packet);
  blocks_.rdma.transmit(s.last_ready, qp.function, qp.qpn, std::move(packet));
}

MoveResult Requester::gather_message(Time ready, const Qp& qp, const SendWqe& wqe, std::uint64_t offset,
                                     const PayloadPlace& to) {
  const bool fenced = wqe.fence >= prm::kFenceFence;
  if (wqe.inline_head == 0) {
    // Until an acknowledged message is complete its data stay as they are (IBTA 10.8.2.2).
    return is_reliable(qp.type) && !fenced && to.borrower
               ? mover_.gather_payload(ready, qp, wqe.sges, offset, *to.borrower)
               : mover_.gather(ready, qp, wqe.sges, offset, to.len, to.bytes, fenced);
  }
  std::uint32_t head = 0;  // of this packet, what comes out of the WQE
  if (offset < wqe.inline_head) {
    head = static_cast<std::uint32_t>(std::min<std::uint64_t>(wqe.inline_head - offset, to.len));
    std::memcpy(to.bytes, wqe.bytes.data() + offset, head);
  }
  return mover_.gather(ready, qp, wqe.sges, offset + head - wqe.inline_head, to.len - head, to.bytes + head,
                       fenced);
}

Requester::Step Requester::load_payload(Pace& pace, Qp& qp, SendWqe& wqe, std::uint64_t offset,
                                        const PayloadPlace& to, Time& ready) {
  const std::uint32_t len = to.len;
  if (len == 0) return Step::kSent;
  if (wqe.inline_data) {
    std::memcpy(to.bytes, wqe.bytes.data() + offset, len);
    return Step::kSent;
  }
  const Time begun = qp.req.pages.begin(ready + blocks_.profile.engine.gather, offset, blocks_.profile);
  ready = begun;
  const MoveResult r = gather_message(ready, qp, wqe, offset, to);
  if (r.status == TptStatus::kFault) return payload_fault(ready, qp, wqe, offset);
  if (r.status != TptStatus::kOk)
    return refuse(wqe, CqeSyndrome::kLocalProt, static_cast<std::uint8_t>(r.status));
  if (!r.dma_ok) return refuse(wqe, CqeSyndrome::kLocalQpOp, static_cast<std::uint8_t>(WqeFault::kFetch));
  // The unit goes on when a miss of the translation has been asked for: while too many are under way, it
  // waits.
  const Time asked = r.addressed - blocks_.profile.pcie.read_latency;
  if (asked > ready) pace.engine += asked - ready;
  if (offset == 0)
    blocks_.tracer.record(Point::kTranslated, ready, qp.subject(), wqe.serial, wqe.sges.size());
  ready = r.local ? r.at : qp.req.pages.end(r.at, offset, len, blocks_.profile);
  if (offset + len == wqe.length)
    blocks_.tracer.record(Point::kGathered, ready, qp.subject(), wqe.serial, wqe.length);
  if (!r.local) ready = std::max(begun, ready - blocks_.port.ahead_of_end(len, gather_ps_));
  return Step::kSent;
}

// AckReq is left out while more of the same queue follows at once, and set where something waits for the ACK.
bool Requester::wants_ack(Qp& qp, std::size_t index) {
  RequesterState& s = qp.req;
  if (index + 1 >= s.window.size()) return true;
  // Its CQE is what frees the places of the WQEs without one before it: who waits for those waits for the
  // ACK.
  if (index > 0 && s.window[index].signaled && !s.window[index - 1].signaled) return true;
  SendWqe& next = s.window[index + 1];
  if (!s.errored_streams.empty() && s.stream_errored(next.stream)) return true;
  if (!next.is_local() && !next.started && !next.syndrome && start(qp, next) == Step::kBlocked) return true;
  if (qp.type == QpType::kDci && !dc_same_target(s.window[index], next)) return true;
  return next.is_local() || next.syndrome || next.fence != prm::kFenceNone;
}

Requester::Step Requester::send_packet(Pace& pace, Qp& qp, SendWqe& wqe) {
  RequesterState& s = qp.req;
  const Profile::Engine& e = blocks_.profile.engine;
  const bool rc = is_reliable(qp.type);
  const std::uint32_t psn = (wqe.first_psn + wqe.sent) & kPsnMask;
  if (rc && psn_diff(psn, s.una_psn) >= static_cast<std::int32_t>(e.inflight_packets)) return Step::kBlocked;

  if (pace.run > 1 && send_run(pace, qp, wqe)) return Step::kSent;
  pace.run = 1;
  const bool first = wqe.sent == 0, last = wqe.sent + 1 == wqe.packets;
  const std::uint64_t offset = static_cast<std::uint64_t>(wqe.sent) * qp.mtu;
  PacketRef p = make_packet(qp, wqe);
  p->psn = psn;
  p->payload_len = static_cast<std::uint32_t>(std::min<std::uint64_t>(qp.mtu, wqe.length - offset));

  const bool write = wqe.opcode == WqeOp::kRdmaWrite || wqe.opcode == WqeOp::kRdmaWriteImm;
  const bool with_imm = wqe.opcode == WqeOp::kSendImm || wqe.opcode == WqeOp::kRdmaWriteImm;
  BthOp op;
  if (write && first && last)
    op = with_imm ? BthOp::kWriteOnlyImm : BthOp::kWriteOnly;
  else if (write)
    op = first  ? BthOp::kWriteFirst
         : last ? (with_imm ? BthOp::kWriteLastImm : BthOp::kWriteLast)
                : BthOp::kWriteMiddle;
  else if (wqe.opcode == WqeOp::kSendInval)
    op = first && last ? BthOp::kSendOnlyInv
         : first       ? BthOp::kSendFirst
         : last        ? BthOp::kSendLastInv
                       : BthOp::kSendMiddle;
  else
    op = first && last ? (with_imm ? BthOp::kSendOnlyImm : BthOp::kSendOnly)
         : first       ? BthOp::kSendFirst
         : last        ? (with_imm ? BthOp::kSendLastImm : BthOp::kSendLast)
                       : BthOp::kSendMiddle;
  p->opcode = static_cast<std::uint8_t>(op) | transport_bits(qp.type);
  if (write && first) {
    p->va = wqe.raddr;
    p->rkey = wqe.rkey;
    p->dma_len = static_cast<std::uint32_t>(wqe.length);
  }
  if (last) {
    p->imm = wqe.imm;
    p->solicited = wqe.solicited;
  }

  ++pace.packets;
  Time ready = std::max(pace.engine, pace.ready);
  const Step loaded = load_payload(pace, qp, wqe, offset, all_of(*p), ready);
  if (loaded != Step::kSent) return loaded;
  if (rc) {
    ++s.since_ack_req;
    p->ack_req = s.since_ack_req >= e.ack_every || (last && wants_ack(qp, s.next_to_send));
    if (p->ack_req) s.since_ack_req = 0;
  }
  transmit(ready + e.tx_pipeline, qp, std::move(p));
  ++wqe.sent;
  if (last) ++s.next_to_send;
  if (rc) {
    arm_timer(ready, qp);
  } else if (last) {  // UC: complete once sent
    wqe.done = true;
    complete_front(s.last_ready, qp);
  }
  return Step::kSent;
}

Requester::Step Requester::send_request(Pace& pace, Qp& qp, SendWqe& wqe) {
  RequesterState& s = qp.req;
  const Profile::Engine& e = blocks_.profile.engine;
  if (s.inflight_reads >= 1u << qp.log_sra_max) return Step::kBlocked;
  PacketRef p = make_packet(qp, wqe);
  p->psn = (wqe.first_psn + wqe.answered) & kPsnMask;
  p->rkey = wqe.rkey;
  p->va = wqe.raddr;
  p->ack_req = true;
  if (wqe.opcode == WqeOp::kRdmaRead) {
    // After a loss only what is missing is read again.
    const std::uint64_t have = static_cast<std::uint64_t>(wqe.answered) * qp.mtu;
    p->opcode = static_cast<std::uint8_t>(BthOp::kReadReq) | transport_bits(qp.type);
    p->va += have;
    p->dma_len = static_cast<std::uint32_t>(wqe.length - have);
  } else if (wqe.is_masked_atomic()) {
    p->opcode = static_cast<std::uint8_t>(wqe.opcode == WqeOp::kMaskedCs ? BthOp::kMaskedCmpSwap
                                                                         : BthOp::kMaskedFetchAdd) |
                transport_bits(qp.type);
    p->dma_len = static_cast<std::uint32_t>(wqe.length);
    p->payload_len = static_cast<std::uint32_t>(wqe.bytes.size());
    std::memcpy(p->data(), wqe.bytes.data(), wqe.bytes.size());
  } else {
    p->opcode =
        static_cast<std::uint8_t>(wqe.opcode == WqeOp::kAtomicCs ? BthOp::kCmpSwap : BthOp::kFetchAdd) |
        transport_bits(qp.type);
    p->swap_add = wqe.swap_add;
    p->compare = wqe.compare;
  }
  if (wqe.is_atomic() && (wqe.raddr & (wqe.length - 1)) != 0)
    broke_access(blocks_.tracer, Rule::kAtomicUnaligned, pace.engine, RuleObject::kQp, qp.subject(),
                 wqe.raddr, wqe.rkey, wqe.length);
  ++pace.packets;
  s.since_ack_req = 0;
  const Time ready = blocks_.contexts.read_usable_at(std::max(pace.engine, pace.ready), qp, wqe.serial);
  transmit(ready + e.tx_pipeline, qp, std::move(p));
  wqe.sent = wqe.packets;
  ++s.inflight_reads;
  ++s.next_to_send;
  arm_timer(ready, qp);
  return Step::kSent;
}

// Whatever the tables hold now. The address' reserved bytes are ignored: UCX leaves in them what the ring
// held before.
void Requester::check_address(Time t, const Qp& qp, const prm::AvSeg& av) const {
  const bool has_source =
      blocks_.port.link() == LinkType::kEthernet
          ? av.extended()
          : !av.extended() || !av.has_grh() || av.sgid_index() < blocks_.vports[qp.function].gids.size();
  if (!has_source)
    blocks_.tracer.broke(Rule::kAvSource, t, RuleObject::kQp, qp.subject(), &av,
                         av.extended() ? sizeof av : prm::AvSeg::kShortBytes);
}

Requester::Step Requester::send_datagram(Pace& pace, Qp& qp, SendWqe& wqe) {
  RequesterState& s = qp.req;
  const Profile::Engine& e = blocks_.profile.engine;
  PacketRef p = make_packet(qp, wqe);
  const prm::AvSeg& av = wqe.av;
  fill_av(*p, av, qp, blocks_.port, blocks_.vports[qp.function]);
  check_address(pace.engine, qp, av);
  p->dest_qpn = av.dqpn();
  p->psn = wqe.first_psn;
  const bool with_imm = wqe.opcode == WqeOp::kSendImm;
  p->opcode = static_cast<std::uint8_t>(with_imm ? BthOp::kSendOnlyImm : BthOp::kSendOnly) | prm::bth::kUd;
  p->imm = wqe.imm;
  p->solicited = wqe.solicited;
  p->qkey = datagram_qkey(av, qp);
  p->src_qpn = qp.type == QpType::kQp1 || qp.sends_as_qp1 ? 1 : qp.type == QpType::kQp0 ? 0 : qp.qpn;
  p->payload_len = static_cast<std::uint32_t>(wqe.length);
  ++pace.packets;
  Time ready = std::max(pace.engine, pace.ready);
  const Step loaded = load_payload(pace, qp, wqe, 0, all_of(*p), ready);
  if (loaded != Step::kSent) return loaded;
  transmit(ready + e.tx_pipeline, qp, std::move(p));
  wqe.sent = 1;
  wqe.done = true;
  ++s.next_to_send;
  complete_front(s.last_ready, qp);
  return Step::kSent;
}

Requester::Step Requester::run_local(Pace& pace, Qp& qp, SendWqe& wqe) {
  RequesterState& s = qp.req;
  Time done = std::max(pace.engine, pace.ready);
  if (is_tls(qp, wqe)) {
    if (const Step step = run_tls(done, qp, wqe); step != Step::kSent) return step;
    pace.engine += blocks_.profile.engine.umr;
  } else if (wqe.opcode == WqeOp::kUmr) {
    // An invalidation must not overtake what still uses the key.
    if (s.next_to_send != 0 && umr_invalidates(wqe)) return Step::kBlocked;
    wqe.started =
        true;  // what stops the queue meanwhile (a signature that its list does not match) leaves it there
    const UmrResult r =
        execute_umr(done, {blocks_.profile, blocks_.tracer, blocks_.tpt, blocks_.dma}, qp, wqe);
    if (r.syndrome) return refuse(wqe, static_cast<CqeSyndrome>(r.syndrome), r.vendor);
    done = r.at;
    pace.engine += blocks_.profile.engine.umr;
  } else if (wqe.opcode == WqeOp::kTagMatch) {
    if (!blocks_.tags.execute(done, qp, wqe))
      return refuse(wqe, CqeSyndrome::kLocalQpOp, static_cast<std::uint8_t>(WqeFault::kTag));
  } else if (wqe.opcode == WqeOp::kAso) {
    if (const Step step = access_aso(done, qp, wqe); step != Step::kSent) return step;
  } else if (wqe.opcode == WqeOp::kFlowTableAccess) {
    if (!blocks_.flows[qp.function].header_arguments.write(qp.pd, wqe.imm, wqe.bytes.data(),
                                                           wqe.bytes.size()))
      return refuse(wqe, CqeSyndrome::kLocalQpOp, static_cast<std::uint8_t>(WqeFault::kAso));
  } else if (wqe.opcode == WqeOp::kSetPsv) {
    const UmrResult r =
        execute_set_psv(done, {blocks_.profile, blocks_.tracer, blocks_.tpt, blocks_.dma}, qp, wqe);
    if (r.syndrome) return refuse(wqe, static_cast<CqeSyndrome>(r.syndrome), r.vendor);
    done = r.at;
  }
  wqe.done = true;
  s.last_ready = std::max(s.last_ready, done);
  ++s.next_to_send;
  ++pace.packets;
  complete_front(done, qp);
  return Step::kSent;
}

}  // namespace hcasim
