// SPDX-License-Identifier: BSD-3-Clause
// SEND requests: the receive WQE that a message goes to, its data, its completion. Once the message has its
// WQE, what a packet or a run will do is planned without any effect, and then committed.
#include <algorithm>

#include "model/ctx/q_counters.h"
#include "model/port/traits.h"
#include "model/resp/responder.h"
#include "model/rules.h"
#include "model/tm/tag_unit.h"
#include "model/tpt/tpt.h"
#include "traces/tracer.h"

namespace hcasim {

using prm::CqeOp;
using prm::CqeSyndrome;
using prm::EqeType;
using prm::NakCode;
using traces::Point;
using Message = ResponderState::Message;

// What a packet or a run of a SEND does with the receive WQE that its message has.
inline Responder::SendPlan Responder::plan_send(const Qp& qp, const Packet& p, const Traits& traits) const {
  const ResponderState& s = qp.resp;
  SendPlan plan;
  plan.offset = traits.first ? 0 : s.received;
  plan.skip = traits.first ? s.tagged.skip : 0;
  plan.length = p.payload_len - plan.skip;
  plan.fits = plan.offset + plan.length <= s.wqe.capacity;
  plan.in_cqe = traits.first && traits.last && into_cqe(qp, p);
  return plan;
}

inline bool Responder::commit_send(Time t, Qp& qp, const PacketRef& packet, const Traits& traits,
                                   const SendPlan& plan) {
  ResponderState& s = qp.resp;
  const Packet& p = *packet;
  if (traits.first) s.landed = std::max(s.landed, t);
  if (plan.length && !plan.in_cqe) {
    const MoveResult r =
        mover_.scatter(t, qp, s.wqe.pd, s.wqe.sges, plan.offset, packet, plan.skip, plan.length, traits.last);
    if (!r.ok()) {
      if (p.packets == 1) send_not_moved(t, qp, p, plan, r.status);
      return false;
    }
    s.landed = std::max(s.landed, r.at);
  }
  s.in_cqe = plan.in_cqe;
  s.received = plan.offset + plan.length;
  s.message = traits.last ? Message::kNone : Message::kSend;
  if (!traits.last) return true;
  if (traits.ieth && !invalidate(qp, p.imm)) {
    receive_error(t, qp, CqeSyndrome::kLocalAccess, 0);
    fail(t, qp, p, NakCode::kRemoteAccess, EqeType::kComp);
    return false;
  }
  blocks_.tracer.record(Point::kScattered, s.landed, {qp.function, p.trace_qpn}, p.wqe_serial, s.received,
                        qp.qpn);
  finish_receive(t, qp, p,
                 traits.ieth  ? CqeOp::kRespSendInv
                 : traits.imm ? CqeOp::kRespSendImm
                              : CqeOp::kRespSend);
  return true;
}

bool Responder::take_send(Time t, Qp& qp, PacketRef& packet, const Traits& traits) {
  const Packet& p = *packet;
  const ResponderState& s = qp.resp;
  if (traits.first && !s.wqe.valid) {
    if (blocks_.tags.arrive(t, qp, p, traits.last) == TagUnit::Arrival::kDone) {
      if (!traits.ieth || invalidate(qp, p.imm)) return true;
      fail(t, qp, p, NakCode::kRemoteAccess, EqeType::kComp);
      return false;
    }
    if (!s.wqe.valid && !take_untagged(t, qp, p)) return false;
  }
  const SendPlan plan = plan_send(qp, p, traits);
  if (plan.fits) return commit_send(t, qp, packet, traits, plan);
  if (p.packets > 1) return false;
  ++blocks_.q_counters[qp.function][qp.counter_set].resp_local_length_error;
  receive_error(t, qp, CqeSyndrome::kLocalLength, 0);
  fail(t, qp, p, NakCode::kInvalidReq, EqeType::kComp);
  return false;
}

// The receive WQE of a message that matches no tagged buffer.
bool Responder::take_untagged(Time t, Qp& qp, const Packet& p) {
  const bool run = p.packets > 1;
  const Take got = take_wqe(run ? p.at[0] : t, qp, p);
  if (got == Take::kTaken) {
    blocks_.tags.accepted(qp);
    return true;
  }
  if (run) return false;
  if (got == Take::kEmpty) qp.resp.tagged = {};
  refuse_without_wqe(t, qp, p, got);
  return false;
}

// A small message of one packet goes into the CQE if the QP wants it there.
bool Responder::into_cqe(const Qp& qp, const Packet& p) const {
  if (qp.cs_res == prm::InlineScatter::kNone || p.payload_len == 0 || qp.resp.tagged.matched) return false;
  const Cq* cq = receive_cq(qp, qp.resp.wqe);
  return cq && p.payload_len <= CqUnit::inline_room(*cq, qp.cs_res);
}

// The receive WQE's list cannot be written: a page is not there, or a key does not allow it.
void Responder::send_not_moved(Time t, Qp& qp, const Packet& p, const SendPlan& plan, TptStatus status) {
  const RecvWqe& wqe = qp.resp.wqe;
  if (status == TptStatus::kFault && receive_fault(t, qp, p, plan.offset)) return;
  blocks_.tracer.record(Point::kAccessErr, t, {qp.function, p.trace_qpn}, p.wqe_serial,
                        wqe.sges.empty() ? 0 : wqe.sges[0].lkey, wqe.sges.empty() ? 0 : wqe.sges[0].addr);
  receive_error(t, qp, CqeSyndrome::kLocalProt, static_cast<std::uint8_t>(status));
  fail(t, qp, p, NakCode::kRemoteOp, EqeType::kComp);
}

bool Responder::invalidate(Qp& qp, std::uint32_t rkey) {
  Mkey* mkey = blocks_.tpt.find(qp.function, rkey >> 8);
  if (!mkey || mkey->free || mkey->wire_key() != rkey || mkey->pd != rights_pd(qp) ||
      !mkey->remote_invalidate_en || !mkey->usable_by(qp.qpn)) {
    blocks_.tracer.broke_value(Rule::kRemoteKey, sim_now(), RuleObject::kQp, qp.subject(), rkey);
    return false;
  }
  mkey->free = true;
  trace_key(blocks_.tracer, sim_now(), *mkey);
  blocks_.tpt.invalidate(*mkey);
  return true;
}

void Responder::finish_receive(Time t, Qp& qp, const Packet& p, CqeOp opcode) {
  ResponderState& s = qp.resp;
  Completion c;
  c.opcode = static_cast<std::uint8_t>(opcode);
  c.byte_cnt = static_cast<std::uint32_t>(s.received);
  c.imm = p.imm;
  c.solicited = p.solicited;
  c.slid = p.slid;
  c.flags_rqpn = qp.remote_qpn;
  if (s.in_cqe) {
    c.inline_data = p.data();
    c.inline_len = p.payload_len;
    s.in_cqe = false;
  }
  c.trace_qpn = p.trace_qpn;
  c.wqe_serial = p.wqe_serial;
  TagUnit::complete_message(qp, c);
  post_receive(t, qp, s.wqe, c);
  s.tagged = {};
  s.wqe.valid = false;
}

}  // namespace hcasim
