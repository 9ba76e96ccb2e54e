// SPDX-License-Identifier: BSD-3-Clause
// The requester's receive side: acknowledgements, responses, completions.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "model/cq/cq.h"
#include "model/ctx/context_gate.h"
#include "model/ctx/q_counters.h"
#include "model/ctx/qp_states.h"
#include "model/firmware_port.h"
#include "model/pcie/dma.h"
#include "model/port/port.h"
#include "model/profile.h"
#include "model/req/requester.h"
#include "model/resp/atomic_op.h"
#include "model/rules.h"
#include "model/rx/receive_pipeline.h"
#include "model/sched/scheduler.h"
#include "model/tm/tag_unit.h"
#include "traces/tracer.h"

namespace hcasim {

using prm::Aeth;
using prm::BthOp;
using prm::CqeOp;
using prm::CqeSyndrome;
using prm::NakCode;
using prm::WqeOp;
using traces::Point;

void Requester::receive(Time t, Qp& qp, PacketRef& packet) {
  RequesterState& s = qp.req;
  const Profile::Engine& e = blocks_.profile.engine;
  const bool plain = (packet->opcode & prm::bth::kOpMask) == static_cast<std::uint8_t>(BthOp::kAck);
  t = blocks_.rx.admit(t, s.rx_until, plain ? 0 : e.rx_more) + e.ack;
  if (!blocks_.contexts.wait(t, qp, s.parked, packet)) take(t, qp, packet);
}

void Requester::take(Time t, Qp& qp, PacketRef& packet) {
  RequesterState& s = qp.req;
  if (!is_reliable(qp.type) || (qp.state != QpState::kRts && qp.state != QpState::kSqd)) {
    trace_drop(blocks_.tracer, t, *packet, DropReason::kQpState);
    return;
  }
  // Ghosts: nothing that we asked for (IBTA 9.7.5.1.1).
  if (psn_diff(packet->psn, s.next_psn) >= 0 || psn_diff(packet->psn, s.una_psn) < 0) return;
  if (s.response_fault.active && psn_diff(packet->psn, s.response_fault.psn) >= 0) {
    trace_drop(blocks_.tracer, t, *packet, DropReason::kPageFault);  // asked for again when pages are there
    return;
  }
  switch (static_cast<BthOp>(packet->opcode & prm::bth::kOpMask)) {
    case BthOp::kAck:
      if ((packet->aeth & Aeth::kTypeMask) == Aeth::kAck) {
        blocks_.tracer.record(Point::kAckRx, t, qp.subject(), s.window.empty() ? 0 : s.window.front().serial,
                              packet->psn, packet->aeth);
        take_ack(t, qp, packet->psn);
      } else {
        take_nak(t, qp, *packet);
      }
      break;
    case BthOp::kReadRespFirst:
    case BthOp::kReadRespMiddle:
    case BthOp::kReadRespLast:
    case BthOp::kReadRespOnly:
      take_read_response(t, qp, packet);
      break;
    case BthOp::kAtomicAck:
    case BthOp::kMaskedAtomicAck:
      take_atomic_response(t, qp, packet);
      break;
    default:
      trace_drop(blocks_.tracer, t, *packet, DropReason::kUnasked);
  }
}

// Everything up to and including psn has arrived at the responder.
void Requester::take_ack(Time t, Qp& qp, std::uint32_t psn) {
  RequesterState& s = qp.req;
  bool progress = false;
  for (std::size_t i = 0; i < s.window.size(); ++i) {
    SendWqe& w = s.window[i];
    if (w.done) continue;
    if (w.is_local() || !w.started || psn_diff(psn, w.first_psn) < 0) break;
    if (w.is_read_or_atomic()) {
      // A later packet was acknowledged and the response is not here: it is lost (implied NAK,
      // IBTA 9.7.5.2.3).
      const std::uint32_t missing = (w.first_psn + w.answered) & kPsnMask;
      if (psn_diff(psn, missing) >= 0 && s.rewound_at != missing) {
        ++blocks_.q_counters[qp.function][qp.counter_set].implied_nak_seq_err;
        s.una_psn = missing;
        complete_front(t, qp);
        retry(t, qp, missing);
        return;
      }
      break;
    }
    progress = true;
    const std::uint32_t last = (w.first_psn + w.packets - 1) & kPsnMask;
    if (psn_diff(psn, last) >= 0) {
      w.done = true;
      w.done_at = t;
      s.una_psn = (last + 1) & kPsnMask;
      continue;
    }
    const auto arrived = static_cast<std::uint32_t>(psn_diff(psn, w.first_psn)) + 1;
    w.sent = std::max(w.sent, arrived);
    s.una_psn = (psn + 1) & kPsnMask;
    break;
  }
  const std::uint64_t epoch = s.epoch;
  complete_front(t, qp);
  if (s.epoch == epoch) after_progress(t, qp, progress);
}

void Requester::take_nak(Time t, Qp& qp, const Packet& packet) {
  RequesterState& s = qp.req;
  const std::uint8_t value = packet.aeth & Aeth::kValueMask;
  const bool rnr = (packet.aeth & Aeth::kTypeMask) == Aeth::kRnrNak;
  const std::uint32_t serial = s.window.empty() ? 0 : s.window.front().serial;
  blocks_.tracer.record(rnr ? Point::kRnrRx : Point::kNakRx, t, qp.subject(), serial, packet.psn, value);
  const std::uint64_t epoch = s.epoch;
  if (!rnr && qp.type == QpType::kDci && static_cast<NakCode>(value) == NakCode::kDcNoConnection) {
    dc_reconnect(t, qp);
    return;
  }
  if (psn_diff(packet.psn, s.una_psn) > 0) take_ack(t, qp, (packet.psn - 1) & kPsnMask);
  if (s.epoch != epoch || qp.state == QpState::kErr || s.window.empty()) return;
  if (psn_diff(packet.psn, s.una_psn) != 0) return;  // old, or a response before it is missing

  QCounter& q = blocks_.q_counters[qp.function][qp.counter_set];
  if (rnr) {
    if (qp.rnr_retry != 7) {  // 7: no limit (IBTA 9.7.5.2.8)
      if (s.rnr_left == 0) {
        ++q.req_rnr_retries_exceeded;
        fail_front(t, qp, CqeSyndrome::kRnrRetryExc, value);
        return;
      }
      --s.rnr_left;
    }
    ++q.rnr_nak_retry_err;
    s.rnr_until = t + from_ns(1000.0 * prm::rnr_timer_us(value));
    s.rewound_at = packet.psn;
    rewind(t, qp, packet.psn);
    s.timer_due = kNever;
    blocks_.scheduler.wake(s.rnr_until, qp);
    return;
  }
  switch (static_cast<NakCode>(value)) {
    case NakCode::kPsnSeqErr:
      ++q.packet_seq_err;
      // A responder reports a gap once, and what it misses is under way again already: this is an answer to
      // packets sent before. Software RoCE says so for each packet behind one that it was not ready for.
      if (s.rewound_at == packet.psn) return;
      retry(t, qp, packet.psn);
      return;
    case NakCode::kInvalidReq:
      ++q.req_remote_invalid_request;
      fail_front(t, qp, CqeSyndrome::kRemoteInvalReq, value);
      return;
    case NakCode::kRemoteAccess:
      ++q.req_remote_access_errors;
      fail_front(t, qp, CqeSyndrome::kRemoteAccess, value);
      return;
    case NakCode::kRemoteOp:
      fail_front(t, qp, CqeSyndrome::kRemoteOp, value);
      return;
    default:
      fail_front(t, qp, CqeSyndrome::kBadResp, value);
      return;
  }
}

void Requester::take_read_response(Time t, Qp& qp, PacketRef& packet) {
  RequesterState& s = qp.req;
  const std::uint64_t epoch = s.epoch;
  blocks_.tracer.record(Point::kReadRespRx, t, qp.subject(), s.window.empty() ? 0 : s.window.front().serial,
                        packet->psn, packet->payload_len);
  take_ack(t, qp, (packet->psn - 1) & kPsnMask);
  if (s.epoch != epoch || qp.state == QpState::kErr || s.window.empty()) return;
  SendWqe& w = s.window.front();
  if (w.opcode != WqeOp::kRdmaRead || !w.started || w.done) return;
  if (packet->psn != ((w.first_psn + w.answered) & kPsnMask)) return;  // duplicate, or behind a loss

  const std::uint64_t offset = static_cast<std::uint64_t>(w.answered) * qp.mtu;
  const bool last = w.answered + 1 == w.packets;
  const std::uint64_t want = std::min<std::uint64_t>(qp.mtu, w.length - offset);
  const auto op = static_cast<BthOp>(packet->opcode & prm::bth::kOpMask);
  const bool ends = op == BthOp::kReadRespLast || op == BthOp::kReadRespOnly;
  if (packet->payload_len != want || ends != last) {
    fail_front(t, qp, CqeSyndrome::kBadResp, 0);
    return;
  }
  if (want && w.packets == 1 && into_cqe(qp, w, *packet)) {
    // nothing in the buffers
  } else if (want) {
    const MoveResult r =
        mover_.scatter(t, qp, qp.pd, w.sges, offset, packet, 0, packet->payload_len, last && w.signaled);
    if (r.status == TptStatus::kFault) return response_fault(t, qp, w, offset, *packet);
    if (!r.ok()) {
      blocks_.tracer.record(Point::kAccessErr, t, qp.subject(), w.serial, w.sges.empty() ? 0 : w.sges[0].lkey,
                            w.raddr);
      fail_front(t, qp, CqeSyndrome::kLocalProt, static_cast<std::uint8_t>(r.status));
      return;
    }
    if (last) blocks_.tracer.record(Point::kScattered, r.at, qp.subject(), w.serial, w.length, qp.qpn);
  }
  ++w.answered;
  w.sent = std::max(w.sent, w.answered);
  s.una_psn = (packet->psn + 1) & kPsnMask;
  if (last) {
    w.done = true;
    w.done_at = t;
    if (s.inflight_reads) --s.inflight_reads;
  }
  complete_front(t, qp);
  if (s.epoch == epoch) after_progress(t, qp, true);
}

void Requester::take_atomic_response(Time t, Qp& qp, PacketRef& packet) {
  RequesterState& s = qp.req;
  const std::uint64_t epoch = s.epoch;
  take_ack(t, qp, (packet->psn - 1) & kPsnMask);
  if (s.epoch != epoch || qp.state == QpState::kErr || s.window.empty()) return;
  SendWqe& w = s.window.front();
  if (!w.is_atomic() || !w.started || w.done) return;
  if (packet->psn != w.first_psn) return;
  const bool masked = static_cast<BthOp>(packet->opcode & prm::bth::kOpMask) == BthOp::kMaskedAtomicAck;
  const auto bytes = static_cast<std::uint32_t>(w.length);
  if (masked != w.is_masked_atomic() || (masked && packet->payload_len != bytes)) {
    fail_front(t, qp, CqeSyndrome::kBadResp, 0);
    return;
  }
  // The original value: 8 bytes in the order that SET_HCA_CAP has chosen, others in network order.
  std::uint8_t* data = packet->data();
  if (!masked) store_words({packet->swap_add}, 8, data);
  if (bytes == 8 && blocks_.qps[qp.function].atomic_host_endian) swap_words(data, bytes);
  packet->payload_len = bytes;
  MoveResult r;
  r.at = t;
  if (!into_cqe(qp, w, *packet)) r = mover_.scatter(t, qp, qp.pd, w.sges, 0, packet, 0, bytes, w.signaled);
  if (r.status == TptStatus::kFault) return response_fault(t, qp, w, 0, *packet);
  if (!r.ok()) {
    fail_front(t, qp, CqeSyndrome::kLocalProt, static_cast<std::uint8_t>(r.status));
    return;
  }
  blocks_.tracer.record(Point::kScattered, r.at, qp.subject(), w.serial, bytes, qp.qpn);
  w.answered = 1;
  w.done = true;
  w.done_at = t;
  s.una_psn = (packet->psn + 1) & kPsnMask;
  if (s.inflight_reads) --s.inflight_reads;
  complete_front(t, qp);
  if (s.epoch == epoch) after_progress(t, qp, true);
}

// A small result goes into the CQE if the QP wants it there. False: it goes where it always does.
bool Requester::into_cqe(const Qp& qp, SendWqe& w, const Packet& packet) {
  if (!w.signaled || qp.cs_req == prm::InlineScatter::kNone || w.rendezvous != SendWqe::Rendezvous::kNone)
    return false;
  const Cq* cq = blocks_.cqs.find(qp.function, qp.scq);
  if (!cq || packet.payload_len > CqUnit::inline_room(*cq, qp.cs_req)) return false;
  w.bytes.assign(packet.data(), packet.data() + packet.payload_len);
  w.in_cqe = true;
  return true;
}

// Completes the oldest WQEs that are done, in order.
void Requester::complete_front(Time t, Qp& qp) {
  RequesterState& s = qp.req;
  Loans& loans = blocks_.dma.loans();
  // Those without a completion are recorded together: their serials count up.
  std::array<Time, kMaxRun> times;
  std::uint32_t first = 0;
  unsigned silent = 0;
  const auto record_silent = [&] {
    if (silent != 0)
      blocks_.tracer.record_series(Point::kWqeDone, times.data(), silent, qp.subject(), first, 0, 0, 0);
    silent = 0;
  };
  while (!s.window.empty() && s.window.front().done) {
    SendWqe& w = s.window.front();
    if (!loans.empty()) loans.release(qp.function, qp.qpn, w.first_psn, w.packets, &blocks_.dma);
    if (w.signaled) {
      record_silent();
      blocks_.tracer.record(Point::kWqeDone, t, qp.subject(), w.serial, 1u << 8);
      complete(t, qp, w, CqeSyndrome::kOk, 0);
    } else if (blocks_.tracer.enabled()) {
      if (silent == times.size() || w.serial != first + silent) record_silent();
      if (silent == 0) first = w.serial;
      times[silent++] = t;
    }
    s.window.pop();
    if (s.next_to_send) --s.next_to_send;
  }
  record_silent();
}

void Requester::complete(Time t, Qp& qp, const SendWqe& wqe, CqeSyndrome syndrome, std::uint8_t vendor) {
  if (wqe.rendezvous != SendWqe::Rendezvous::kNone) {
    blocks_.tags.request_done(t, qp, wqe, syndrome == CqeSyndrome::kOk);
    return;
  }
  Cq* cq = blocks_.cqs.find(qp.function, qp.scq);
  QCounter& q = blocks_.q_counters[qp.function][qp.counter_set];
  if (syndrome == CqeSyndrome::kWrFlush) {
    if (wqe.silent_flush || (qp.type == QpType::kSq && !qp.flush_in_error)) return;
    ++q.req_cqe_flush_error;
    ++q.req_cqe_error;
    blocks_.tracer.record(Point::kFlush, t, qp.subject(), wqe.serial, wqe.counter, 0);
  } else if (syndrome != CqeSyndrome::kOk) {
    ++q.req_cqe_error;
    blocks_.tracer.record(Point::kWqeErr, t, qp.subject(), wqe.serial,
                          static_cast<std::uint64_t>(syndrome) | static_cast<std::uint64_t>(vendor) << 8,
                          static_cast<std::uint64_t>(wqe.opcode));
  }
  if (!cq) return;
  Completion c;
  c.opcode = static_cast<std::uint8_t>(syndrome == CqeSyndrome::kOk ? CqeOp::kReq : CqeOp::kReqErr);
  c.send_opcode = static_cast<std::uint8_t>(wqe.opcode);
  c.qpn = qp.qpn;
  c.user_index = qp.user_index != 0xffffff ? qp.user_index : qp.use_srq ? qp.srqn : 0;
  c.wqe_counter = wqe.counter;
  c.behind = {WriteOwner::kQp, qp.function, qp.qpn};
  if (wqe.is_read_or_atomic()) c.byte_cnt = static_cast<std::uint32_t>(wqe.length);
  if (wqe.opcode == WqeOp::kUmr) c.imm = wqe.imm;
  if (wqe.in_cqe) {
    c.inline_data = wqe.bytes.data();
    c.inline_len = static_cast<std::uint32_t>(wqe.bytes.size());
  }
  c.syndrome = static_cast<std::uint8_t>(syndrome);
  c.vendor_syndrome = vendor;
  c.trace_qpn = qp.qpn;
  c.wqe_serial = wqe.serial;
  blocks_.cqs.post(t, *cq, c);
}

// The oldest WQE fails; what comes after it is flushed. Connected QPs and local operations: the QP goes to
// ERR; datagram and UC QPs: the send queue alone (IBTA 10.3.1.6, SQE).
void Requester::fail_front(Time t, Qp& qp, CqeSyndrome syndrome, std::uint8_t vendor) {
  RequesterState& s = qp.req;
  blocks_.dma.loans().settle(qp.function, qp.qpn);
  const SendWqe& failed = s.window.front();
  const std::uint16_t stream = failed.stream;
  if (!failed.reported) {
    const Sge sge = failed.sges.empty() ? Sge{} : failed.sges[0];
    broke_access(blocks_.tracer, rule_of(syndrome, vendor), t, RuleObject::kQp, qp.subject(), sge.addr,
                 sge.lkey, failed.length);
  }
  complete(t, qp, failed, syndrome, vendor);
  s.window.pop();
  if (s.next_to_send) --s.next_to_send;
  if (qp.type == QpType::kDci && stream_failed(t, qp, stream)) return;
  // Local operations behind it may have been executed; they are flushed all the same (IBTA 10.3.1.7).
  for (std::size_t i = 0; i < s.window.size(); ++i) s.window[i].done = false;
  if (qp.type == QpType::kUd || qp.type == QpType::kUc || qp.type == QpType::kQp0 ||
      qp.type == QpType::kQp1) {
    blocks_.tracer.record(Point::kQpError, t, qp.subject(), 0, static_cast<std::uint64_t>(QpState::kSqErr),
                          static_cast<std::uint64_t>(syndrome));
    qp.state = QpState::kSqErr;
    flush(t, qp);
    blocks_.firmware[qp.function].qp_failed(qp.qpn);
    return;
  }
  blocks_.errors.qp_error(t, qp, 0);
}

void Requester::flush(Time t, Qp& qp) {
  RequesterState& s = qp.req;
  s.timer_due = kNever;
  s.inflight_reads = 0;
  s.next_to_send = 0;
  s.blueflame_len = 0;
  s.send_fault = s.response_fault = {};
  blocks_.dma.loans().settle(qp.function, qp.qpn);
  complete_front(t, qp);
  while (!s.window.empty()) {
    complete(t, qp, s.window.front(), CqeSyndrome::kWrFlush, 0);
    s.window.pop();
  }
  for (const SendWqe& w : std::exchange(s.own, {})) complete(t, qp, w, CqeSyndrome::kWrFlush, 0);
  if (qp.has_sq) flush_unfetched(t, qp);
}

// The window has opened, or the oldest WQEs are gone: restarts the timer and the send queue.
void Requester::after_progress(Time t, Qp& qp, bool progress) {
  RequesterState& s = qp.req;
  if (progress) {
    s.retries_left = qp.retry_count;
    s.rnr_left = qp.rnr_retry;
    s.rewound_at = ~0u;
    s.timer_due = kNever;
    if (outstanding(qp)) arm_timer(t, qp);
  }
  if (s.next_to_send < s.window.size() || s.doorbell || s.fetched != s.db_counter || !s.own.empty())
    blocks_.scheduler.wake(t, qp);
  if (qp.state == QpState::kSqd) finish_drain(t, qp);
}

}  // namespace hcasim
