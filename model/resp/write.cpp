// SPDX-License-Identifier: BSD-3-Clause
// RDMA WRITE requests. What a packet or a run will do is planned without any effect, and then committed.
#include <algorithm>

#include "model/ctx/q_counters.h"
#include "model/port/traits.h"
#include "model/resp/responder.h"
#include "model/rules.h"
#include "model/tpt/tpt.h"
#include "traces/tracer.h"

namespace hcasim {

using prm::CqeOp;
using prm::CqeSyndrome;
using prm::EqeType;
using prm::NakCode;
using traces::Point;
using Message = ResponderState::Message;

constexpr std::uint64_t kMostBytes = 1u << 31;  // of a message (IBTA 9.4.3)

inline TptStatus Responder::check_write(const Qp& qp, const WritePlan& plan) const {
  return blocks_.tpt.check(plan.rkey, rights_user(qp), Access::kRemoteWrite, plan.va, plan.length);
}

inline Responder::WritePlan Responder::plan_write(const Qp& qp, const Packet& p, const Traits& traits) const {
  const ResponderState& s = qp.resp;
  using Refusal = WritePlan::Refusal;
  WritePlan plan;
  plan.refusal = Refusal::kNone;
  if (traits.first) {
    plan.offset = 0;
    plan.va = p.va;
    plan.rkey = p.rkey;
    plan.length = p.dma_len;
    if (plan.length > kMostBytes) {
      plan.refusal = Refusal::kLength;
      return plan;
    }
    if (!qp.rwe) {
      plan.refusal = Refusal::kQpRights;
      return plan;
    }
    if (plan.length && check_write(qp, plan) != TptStatus::kOk) {
      plan.refusal = Refusal::kKey;
      return plan;
    }
  } else {
    plan.va = s.write_va;
    plan.rkey = s.write_rkey;
    plan.length = s.write_len;
    plan.offset = s.received;
  }
  const std::uint64_t after = plan.offset + p.payload_len;
  if (after > plan.length || (traits.last && after != plan.length)) plan.refusal = Refusal::kLength;
  return plan;
}

inline bool Responder::commit_write(Time t, Qp& qp, const PacketRef& packet, const Traits& traits,
                                    const WritePlan& plan) {
  ResponderState& s = qp.resp;
  const Packet& p = *packet;
  if (traits.first) {
    s.write_va = plan.va;
    s.write_rkey = plan.rkey;
    s.write_len = plan.length;
    s.landed = std::max(s.landed, t);
  }
  if (p.payload_len) {
    const MoveResult r =
        mover_.write_remote(t, qp, rights_pd(qp), plan.rkey, plan.va + plan.offset, packet, traits.imm);
    if (!r.ok()) {
      if (p.packets == 1) write_not_moved(t, qp, p, plan, r.status);
      return false;
    }
    s.landed = std::max(s.landed, r.at);
  }
  s.message = traits.last ? Message::kNone : Message::kWrite;
  s.received = plan.offset + p.payload_len;
  if (traits.first) ++blocks_.q_counters[qp.function][qp.counter_set].rx_write_requests;
  if (!traits.last) return true;
  blocks_.tracer.record(Point::kScattered, s.landed, {qp.function, p.trace_qpn}, p.wqe_serial, s.received,
                        qp.qpn);
  if (traits.imm) finish_receive(t, qp, p, CqeOp::kRespWrImm);
  return true;
}

bool Responder::take_write(Time t, Qp& qp, PacketRef& packet, const Traits& traits) {
  const Packet& p = *packet;
  const WritePlan plan = plan_write(qp, p, traits);
  if (plan.refusal != WritePlan::Refusal::kNone) {
    if (p.packets == 1) refuse_write(t, qp, p, plan);
    return false;
  }
  // The immediate completes a receive WQE: it must be there before the data.
  if (traits.imm && !qp.resp.wqe.valid) {
    const Take got = take_wqe(t, qp, p);
    if (got != Take::kTaken) {
      refuse_without_wqe(t, qp, p, got);
      return false;
    }
  }
  return commit_write(t, qp, packet, traits, plan);
}

void Responder::refuse_write(Time t, Qp& qp, const Packet& p, const WritePlan& plan) {
  switch (plan.refusal) {
    case WritePlan::Refusal::kNone:
      return;
    case WritePlan::Refusal::kQpRights:  // not set up for the operation: invalid request, no key violation
      broke_access(blocks_.tracer, Rule::kQpRights, t, RuleObject::kQp, qp.subject(), plan.va, plan.rkey,
                   plan.length);
      fail(t, qp, p, NakCode::kInvalidReq, EqeType::kWqInvalidReq);
      return;
    case WritePlan::Refusal::kKey:
      ++blocks_.q_counters[qp.function][qp.counter_set].resp_remote_access_errors;
      write_denied(t, qp, p, plan, check_write(qp, plan));
      fail(t, qp, p, NakCode::kRemoteAccess, EqeType::kWqAccess);
      return;
    case WritePlan::Refusal::kLength:
      fail(t, qp, p, NakCode::kInvalidReq, EqeType::kWqInvalidReq);
  }
}

// Traces that the key does not allow the message.
void Responder::write_denied(Time t, const Qp& qp, const Packet& p, const WritePlan& plan, TptStatus status) {
  broke_access(blocks_.tracer, remote_rule(status), t, RuleObject::kQp, qp.subject(), plan.va, plan.rkey,
               plan.length);
  blocks_.tracer.record(Point::kAccessErr, t, {qp.function, p.trace_qpn}, p.wqe_serial, plan.rkey, plan.va);
}

// A page is not there, or the key went away between the packets.
void Responder::write_not_moved(Time t, Qp& qp, const Packet& p, const WritePlan& plan, TptStatus status) {
  if (status == TptStatus::kFault && remote_fault(t, qp, p, plan.rkey, plan.va, plan.length, plan.offset))
    return;
  write_denied(t, qp, p, plan, status);
  if (qp.resp.wqe.valid && qp.type != QpType::kUc)  // there it serves the next message
    receive_error(t, qp, CqeSyndrome::kLocalAccess, static_cast<std::uint8_t>(status));
  fail(t, qp, p, NakCode::kRemoteAccess, EqeType::kWqAccess);
}

}  // namespace hcasim
