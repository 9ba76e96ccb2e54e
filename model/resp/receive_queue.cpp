// SPDX-License-Identifier: BSD-3-Clause
// Receive WQEs: the QP's own RQ, SRQs, flush.
#include <algorithm>
#include <cstring>

#include "model/cq/cq.h"
#include "model/ctx/q_counters.h"
#include "model/ctx/qp.h"
#include "model/eq/eq.h"
#include "model/pcie/dma.h"
#include "model/profile.h"
#include "model/resp/responder.h"
#include "model/rules.h"
#include "model/tm/tag_unit.h"
#include "model/wqe/parse.h"
#include "model/wqe/ring_read.h"
#include "traces/tracer.h"

namespace hcasim {

using prm::CqeOp;
using prm::CqeSyndrome;
using prm::EqeType;
using prm::NakCode;
using traces::Point;

bool Responder::read_count(Time t, FunctionId f, std::uint64_t dbr_addr, std::uint16_t& count) {
  prm::be32 word;
  if (!blocks_.dma
           .read(t, dbr_addr + offsetof(prm::QpDbr, rcv), &word, sizeof word, Space::kHost, WriteOwner(f))
           .ok)
    return false;
  count = static_cast<std::uint16_t>(word);
  return true;
}

Responder::Take Responder::take_wqe(Time t, Qp& qp, const Packet& packet) {
  ResponderState& s = qp.resp;
  s.wqe.valid = false;
  s.wqe.sges.clear();
  s.wqe.capacity = 0;
  Take got = Take::kEmpty;
  std::uint32_t queue = qp.qpn;
  s.wqe.srqn = qp.type == QpType::kXrc ? s.xrc_srqn : qp.use_srq ? qp.srqn : 0;
  if (s.wqe.srqn != 0) {
    Srq* srq = blocks_.qps[qp.function].find_srq(s.wqe.srqn);
    queue = s.wqe.srqn;
    if (!srq || srq->error) return Take::kBroken;
    got = take_from_srq(t, qp, *srq);
  } else if (qp.has_rq) {
    got = take_from_rq(t, qp);
  }
  if (s.wqe.valid)
    blocks_.tracer.record(Point::kRwqeFetch, t, {qp.function, packet.trace_qpn}, packet.wqe_serial,
                          s.wqe.counter, queue);
  return got;
}

// A message needs a receive WQE, and the queue has none, or is broken.
void Responder::refuse_without_wqe(Time t, Qp& qp, const Packet& p, Take got) {
  if (got == Take::kEmpty) {
    ++blocks_.q_counters[qp.function][qp.counter_set].out_of_buffer;
    if (is_reliable(qp.type)) nak_rnr(t, qp, p);
    return;
  }
  if (qp.resp.wqe.valid) receive_error(t, qp, CqeSyndrome::kLocalQpOp, 0);
  fail(t, qp, p, NakCode::kRemoteOp, EqeType::kWqCatas);
}

Responder::Take Responder::take_from_rq(Time t, Qp& qp) {
  ResponderState& s = qp.resp;
  if (s.rq_consumer == s.rq_producer) {
    std::uint16_t posted;
    if (!read_count(t, qp.function, qp.dbr_addr, posted)) return Take::kBroken;
    if (static_cast<std::uint16_t>(posted - s.rq_consumer) > 1u << qp.log_rq_size) {
      blocks_.tracer.record(Point::kDoorbellBad, t, qp.subject(), traces::bad_record(RuleObject::kQp),
                            qp.dbr_addr, posted);
      blocks_.tracer.broke_value(Rule::kRqRecordJump, t, RuleObject::kQp, qp.subject(), posted);
      return Take::kBroken;
    }
    s.rq_producer = posted;
    if (s.rq_consumer == s.rq_producer) return Take::kEmpty;
  }
  const std::uint32_t stride = 1u << qp.log_rq_stride;
  const std::uint8_t* bytes =
      recv_wqe_ahead(blocks_.profile, blocks_.dma, t, qp.function, qp.ring, qp.log_rq_size, qp.log_rq_stride,
                     s.rq_consumer, s.rq_producer, s.rq_ahead);
  if (!bytes) return Take::kBroken;
  s.wqe.counter = s.rq_consumer++;
  s.wqe.pd = qp.pd;
  s.wqe.valid = true;
  if (parse_recv_segments(bytes, stride, s.wqe)) return Take::kTaken;
  blocks_.tracer.broke(Rule::kRwqeSegment, t, RuleObject::kQp, qp.subject(), bytes, stride);
  return Take::kBroken;
}

Responder::Take Responder::take_from_srq(Time t, Qp& qp, Srq& srq) {
  ResponderState& s = qp.resp;
  const auto broken = [&] {
    srq.error = true;
    blocks_.eqs.srq_event(t, qp.function, static_cast<std::uint8_t>(EqeType::kSrqCatas), srq.srqn);
    return Take::kBroken;
  };
  if (srq.consumed == srq.producer) {
    std::uint16_t posted;
    if (!read_count(t, srq.function, srq.dbr_addr, posted)) return broken();
    if (static_cast<std::uint16_t>(posted - srq.consumed) > 1u << srq.log_size) {
      blocks_.tracer.broke_value(Rule::kSrqRecordJump, t, RuleObject::kSrq, srq.subject(), posted);
      return broken();
    }
    srq.producer = posted;
    if (srq.consumed == srq.producer) {
      check_srq_limit(t, srq);  // it may have been armed when there was nothing left
      return Take::kEmpty;
    }
  }
  std::uint8_t bytes[kMaxRecvWqe];
  const std::uint32_t stride = std::min<std::uint32_t>(1u << srq.log_stride, sizeof bytes);
  if (srq.head >= 1u << srq.log_size || stride < sizeof(prm::SrqNextSeg)) {
    blocks_.tracer.broke_value(Rule::kSrqLink, t, RuleObject::kSrq, srq.subject(), srq.head);
    return broken();
  }
  if (!read_ring(blocks_.dma, t, srq.function, srq.ring,
                 static_cast<std::uint64_t>(srq.head) << srq.log_stride, bytes, stride))
    return broken();
  prm::SrqNextSeg next;
  std::memcpy(&next, bytes, sizeof next);
  s.wqe.counter = srq.wqe_counter();
  s.wqe.pd = srq.pd;
  s.wqe.valid = true;
  srq.took(next.next_wqe_index);
  const bool good = parse_recv_segments(bytes + sizeof next, stride - sizeof next, s.wqe);
  if (!good) blocks_.tracer.broke(Rule::kRwqeSegment, t, RuleObject::kSrq, srq.subject(), bytes, stride);
  check_srq_limit(t, srq);
  return good ? Take::kTaken : Take::kBroken;
}

void Responder::check_srq_limit(Time t, Srq& srq) {
  if (srq.limit == 0) return;
  std::uint16_t posted;
  if (!read_count(t, srq.function, srq.dbr_addr, posted)) return;
  if (static_cast<std::uint16_t>(posted - srq.consumed) >= srq.limit) return;
  srq.limit = 0;  // fires once
  blocks_.eqs.srq_event(t, srq.function, static_cast<std::uint8_t>(EqeType::kSrqLimit), srq.srqn);
}

// XRC SRQs and XRQs have a CQ of their own.
Cq* Responder::receive_cq(const Qp& qp, const RecvWqe& wqe) const {
  const Srq* srq = wqe.srqn != 0 ? blocks_.qps[qp.function].find_srq(wqe.srqn) : nullptr;
  // Whoever had an XRC SRQ may be gone before its last message ended; the QP's own CQ is nobody's then.
  if (wqe.srqn != 0 && !srq && qp.type == QpType::kXrc) return nullptr;
  return blocks_.cqs.find(qp.function, srq && srq->has_cq() ? srq->cqn : qp.rcq);
}

void Responder::post_receive(Time t, Qp& qp, const RecvWqe& wqe, Completion c) {
  Cq* cq = receive_cq(qp, wqe);
  if (!cq) return;
  const Srq* srq = wqe.srqn != 0 ? blocks_.qps[qp.function].find_srq(wqe.srqn) : nullptr;
  c.qpn = qp.number();
  const std::uint32_t user_index = srq && srq->has_cq() ? srq->user_index : qp.user_index;
  c.user_index = user_index != 0xffffff ? user_index : srq ? srq->srqn : 0;
  c.wqe_counter = wqe.counter;
  c.behind = {WriteOwner::kQp, qp.function, qp.qpn};
  blocks_.cqs.post(t, *cq, c);
}

void Responder::flush(Time t, Qp& qp) {
  ResponderState& s = qp.resp;
  s.ack_pending = s.rnr_owed = s.sequence_owed = false;
  s.fault = {};
  s.resources.clear();
  s.message = ResponderState::Message::kNone;
  flush_rq(t, qp);
  if (qp.dctn != 0) return;  // of many connections, one
  if (qp.use_srq) {
    // Nothing more will be taken from the SRQ for this QP (IBTA 11.6.3.2, Last WQE Reached).
    blocks_.eqs.qp_event(t, qp.function, static_cast<std::uint8_t>(EqeType::kLastWqe), qp.qpn);
  } else if (qp.has_rq && s.poll_since == kNever) {
    // A post to the RQ rings no doorbell: late ones are found by looking.
    s.poll_since = t;
    polls_.push(t + from_ns(20'000), Poll{qp.qpn, qp.function, qp.req.epoch});
  }
}

void Responder::flush_rq(Time t, Qp& qp) {
  ResponderState& s = qp.resp;
  const auto flushed = [&](std::uint16_t counter, std::uint32_t srqn = 0) {
    QCounter& q = blocks_.q_counters[qp.function][qp.counter_set];
    ++q.resp_cqe_flush_error;
    ++q.resp_cqe_error;
    blocks_.tracer.record(Point::kFlush, t, qp.subject(), 0, counter, 1);
    Completion c;
    c.opcode = static_cast<std::uint8_t>(CqeOp::kRespErr);
    c.syndrome = static_cast<std::uint8_t>(CqeSyndrome::kWrFlush);
    RecvWqe wqe;
    wqe.counter = counter;
    wqe.srqn = srqn;
    post_receive(t, qp, wqe, c);
  };
  if (s.wqe.valid) {
    s.wqe.valid = false;
    if (s.tagged.matched)
      blocks_.tags.cancel(t, qp, s.tagged.index);
    else
      flushed(s.wqe.counter, s.wqe.srqn);
  }
  if (qp.use_srq || !qp.has_rq) return;
  std::uint16_t posted;
  if (!read_count(t, qp.function, qp.dbr_addr, posted)) return;
  if (static_cast<std::uint16_t>(posted - s.rq_consumer) > 1u << qp.log_rq_size) return;
  s.rq_producer = posted;
  while (s.rq_consumer != s.rq_producer) flushed(s.rq_consumer++);
}

void Responder::on_poll(Time due, const Poll& poll) {
  Qp* qp = blocks_.qps[poll.function].find(poll.qpn);
  if (!qp || qp->req.epoch != poll.epoch || qp->state != QpState::kErr) return;
  flush_rq(due, *qp);
  // Soon after the error often, later rarely.
  const Time period = std::clamp<Time>((due - qp->resp.poll_since) / 4, from_ns(20'000), from_ns(20e6));
  polls_.push(due + period, poll);
}

}  // namespace hcasim
