// SPDX-License-Identifier: BSD-3-Clause
// Receive queues of frames: their WQEs, strides, flush.
#include <algorithm>
#include <cstring>

#include "model/cq/cq.h"
#include "model/ctx/q_counters.h"
#include "model/ctx/qp.h"
#include "model/eq/eq.h"
#include "model/eth/rx.h"
#include "model/pcie/dma.h"
#include "model/profile.h"
#include "model/rules.h"
#include "model/wqe/parse.h"
#include "model/wqe/ring_read.h"
#include "traces/tracer.h"

namespace hcasim {

using prm::CqeOp;
using prm::CqeSyndrome;
using traces::Point;

namespace {

constexpr std::uint32_t kFiller = 1u << 31;  // in byte_cnt: strides left unused at the end of a WQE

RuleObject kind_of(const Rq&) { return RuleObject::kRq; }
RuleObject kind_of(const Srq&) { return RuleObject::kSrq; }
void broke_record(traces::Tracer& tracer, Time t, const Rq& rq, std::uint16_t count) {
  tracer.broke_value(Rule::kRqRecordJump, t, RuleObject::kRq, rq.subject(), count);
}
void broke_record(traces::Tracer& tracer, Time t, const Srq& rmp, std::uint16_t count) {
  tracer.broke_value(Rule::kSrqRecordJump, t, RuleObject::kSrq, rmp.subject(), count);
}

bool linked(const Rq& rq) { return rq.type == WqType::kLinkedList || rq.type == WqType::kLinkedListStriding; }

}  // namespace

// Looks at the doorbell record when all that is known of is used up. False: it cannot be. Q: Rq, or the RMP
// that is its Srq.
template <class Q>
bool EthRx::posted(Time t, Q& q, std::uint16_t consumer, bool& any) {
  if (consumer == q.producer) {
    prm::be32 word;
    if (!blocks_.dma
             .read(t, q.dbr_addr + offsetof(prm::QpDbr, rcv), &word, sizeof word, Space::kHost,
                   WriteOwner(q.function))
             .ok)
      return false;
    const auto count = static_cast<std::uint16_t>(word);
    if (static_cast<std::uint16_t>(count - consumer) > 1u << q.log_size) {
      blocks_.tracer.record(Point::kDoorbellBad, t, q.subject(), traces::bad_record(kind_of(q)), q.dbr_addr,
                            count);
      broke_record(blocks_.tracer, t, q, count);
      return false;
    }
    q.producer = count;
  }
  any = consumer != q.producer;
  return true;
}

EthRx::Take EthRx::take_wqe(Time t, Rq& rq) {
  rq.wqe.sges.clear();
  rq.wqe.capacity = 0;
  bool any = false;
  if (rq.use_rmp) {
    Srq* rmp = blocks_.qps[rq.function].find_srq(rq.rmpn);
    if (!rmp || rmp->error || !posted(t, *rmp, rmp->consumed, any)) return Take::kBroken;
    if (!any) return Take::kEmpty;
    rq.wqe.pd = rmp->pd;
    auto next = static_cast<std::uint16_t>(rmp->head);
    const std::uint16_t counter = rmp->wqe_counter();
    const Take taken =
        take_linked(t, rmp->ring, rmp->log_size, rmp->log_stride, next, rq.wqe, rmp->subject());
    if (taken == Take::kTaken) rmp->took(next);
    rq.wqe.counter = counter;
    return taken;
  }
  if (!posted(t, rq, rq.consumer, any)) return Take::kBroken;
  if (!any) return Take::kEmpty;
  rq.wqe.pd = rq.pd;
  if (!linked(rq)) return take_cyclic(t, rq);
  const Take taken = take_linked(t, rq.ring, rq.log_size, rq.log_stride, rq.head, rq.wqe, rq.subject());
  if (taken == Take::kTaken) ++rq.consumer;
  return taken;
}

EthRx::Take EthRx::take_cyclic(Time t, Rq& rq) {
  const std::uint32_t stride = 1u << rq.log_stride;
  if (stride > kMaxRecvWqe) return Take::kBroken;
  const std::uint8_t* bytes = recv_wqe_ahead(blocks_.profile, blocks_.dma, t, rq.function, rq.ring,
                                             rq.log_size, rq.log_stride, rq.consumer, rq.producer, rq.ahead);
  if (!bytes) return Take::kBroken;
  std::uint32_t head = 0;
  if (rq.type == WqType::kCyclicStriding) {
    head = sizeof(prm::SrqNextSeg);
    if (stride < head) return Take::kBroken;
  }
  rq.wqe.counter = rq.consumer++;
  rq.wqe.valid = true;
  if (parse_recv_segments(bytes + head, stride - head, rq.wqe, InlineFlag::kIgnored)) return Take::kTaken;
  blocks_.tracer.broke(Rule::kRwqeSegment, t, RuleObject::kRq, rq.subject(), bytes, stride);
  return Take::kBroken;
}

EthRx::Take EthRx::take_linked(Time t, const GuestRing& ring, unsigned log_size, unsigned log_stride,
                               std::uint16_t& head, RecvWqe& wqe, const traces::Subject& queue) {
  std::uint8_t bytes[kMaxRecvWqe];
  const std::uint32_t stride = 1u << log_stride;
  if (stride > sizeof bytes || stride < sizeof(prm::SrqNextSeg)) return Take::kBroken;
  if (head >> log_size != 0) {
    blocks_.tracer.broke_value(Rule::kSrqLink, t, RuleObject::kRq, queue, head);
    return Take::kBroken;
  }
  if (!read_ring(blocks_.dma, t, static_cast<FunctionId>(queue.function), ring,
                 static_cast<std::uint64_t>(head) << log_stride, bytes, stride))
    return Take::kBroken;
  prm::SrqNextSeg next;
  std::memcpy(&next, bytes, sizeof next);
  wqe.counter = head;
  wqe.valid = true;
  head = next.next_wqe_index;
  if (parse_recv_segments(bytes + sizeof next, stride - sizeof next, wqe, InlineFlag::kIgnored))
    return Take::kTaken;
  blocks_.tracer.broke(Rule::kRwqeSegment, t, RuleObject::kRq, queue, bytes, stride);
  return Take::kBroken;
}

EthRx::Take EthRx::make_room(Time t, Rq& rq, std::uint32_t strides) {
  const std::uint32_t all = 1u << rq.log_strides;
  if (rq.wqe.valid && all - rq.next_stride >= strides) return Take::kTaken;
  if (rq.wqe.valid) {
    // The driver counts strides to know when a WQE is used up.
    Completion c;
    FrameCompletion f;
    c.opcode = static_cast<std::uint8_t>(CqeOp::kRespSend);
    c.byte_cnt = kFiller | (all - rq.next_stride) << 16;
    c.wqe_counter = static_cast<std::uint16_t>(rq.next_stride);
    f.wqe_id = rq.wqe.counter;
    c.frame = &f;
    rq.wqe.valid = false;
    post(t, rq, c);
  }
  const Take taken = take_wqe(t, rq);
  rq.next_stride = 0;
  return taken;
}

void EthRx::post(Time t, Rq& rq, Completion& c) {
  Cq* cq = blocks_.cqs.find(rq.function, rq.cqn);
  if (!cq) return;
  c.qpn = rq.rqn;
  c.user_index = rq.user_index != 0xffffff ? rq.user_index : 0;
  c.behind = {WriteOwner::kRq, rq.function, rq.rqn};
  blocks_.cqs.post(t, *cq, c);
}

void EthRx::flush(Time t, Rq& rq) {
  if (!rq.flush_in_error) {
    rq.wqe.valid = false;
    return;
  }
  const auto flushed = [&](std::uint16_t counter) {
    QCounter& q = blocks_.q_counters[rq.function][rq.counter_set];
    ++q.resp_cqe_flush_error;
    ++q.resp_cqe_error;
    blocks_.tracer.record(Point::kFlush, t, rq.subject(), 0, counter, 1);
    Completion c;
    c.opcode = static_cast<std::uint8_t>(CqeOp::kRespErr);
    c.syndrome = static_cast<std::uint8_t>(CqeSyndrome::kWrFlush);
    c.wqe_counter = counter;
    FrameCompletion f;
    if (rq.striding()) c.frame = &f;
    f.wqe_id = counter;
    post(t, rq, c);
  };
  if (rq.wqe.valid) {
    rq.wqe.valid = false;
    flushed(rq.wqe.counter);
  }
  if (rq.use_rmp) return;  // the WQEs are not this queue's
  for (unsigned n = 0; n <= 1u << rq.log_size; ++n) {
    bool any = false;
    if (!posted(t, rq, rq.consumer, any) || !any) return;
    // A list has its order in the WQEs themselves.
    if (linked(rq) && take_wqe(t, rq) != Take::kTaken) return;
    rq.wqe.valid = false;
    flushed(linked(rq) ? rq.wqe.counter : rq.consumer++);
  }
}

void EthRx::rq_changed(Time t, Rq& rq, RqState old) {
  if (rq.state != RqState::kRdy) lro_.rq_gone(t, rq.function, rq.rqn);
  if (rq.state == RqState::kErr && old != RqState::kErr) {
    flush(t, rq);
  } else if (rq.state == RqState::kRst) {
    // No CQE of its life so far comes behind the answer of the command, none that waits for others either.
    if (Cq* cq = blocks_.cqs.find(rq.function, rq.cqn)) blocks_.cqs.settle(t, *cq);
    rq.producer = rq.consumer = rq.head = 0;
    rq.ahead.count = 0;
    rq.wqe.valid = false;
    rq.next_stride = 0;
    if (rq.split) rq.split->restart();
    rq.epoch = next_epoch();
  }
}

void EthRx::rq_failed(Time t, Rq& rq) {
  if (rq.state != RqState::kRdy) return;
  blocks_.tracer.record(Point::kQpError, t, rq.subject(), 0, static_cast<std::uint64_t>(RqState::kErr),
                        static_cast<std::uint64_t>(prm::EqeType::kWqCatas));
  rq.state = RqState::kErr;
  rq_changed(t, rq, RqState::kRdy);
  blocks_.eqs.qp_event(t, rq.function, static_cast<std::uint8_t>(prm::EqeType::kWqCatas), rq.rqn, prm::kEvRq);
}

}  // namespace hcasim
