// SPDX-License-Identifier: BSD-3-Clause
// The responder's checks and the SEND and RDMA WRITE families.
#include "model/resp/responder.h"
#include "model/port/port.h"

#include <algorithm>

#include "model/ctx/context_gate.h"
#include "model/ctx/q_counters.h"
#include "model/eq/eq.h"
#include "model/pcie/dma.h"
#include "model/port/traits.h"
#include "model/profile.h"
#include "model/rules.h"
#include "model/rx/receive_pipeline.h"
#include "model/sched/scheduler.h"
#include "model/state/state.h"
#include "model/tm/tag_unit.h"
#include "model/tpt/tpt.h"
#include "traces/tracer.h"

namespace hcasim {

using prm::BthOp;
using prm::CqeOp;
using prm::CqeSyndrome;
using prm::EqeType;
using prm::NakCode;
using traces::Point;
using Message = ResponderState::Message;

Responder::Responder(const sc_core::sc_module_name& name, const Blocks& blocks)
    : sc_module(name),
      blocks_(blocks),
      mover_(blocks.tpt, blocks.dma, false),
      atomic_free_(blocks.profile.engine.atomic_slots, 0),
      polls_(
          "polls", [this](Time due, Poll& poll) { on_poll(due, poll); }, blocks.faults),
      acks_(
          "acks", [this](Time due, AckDue& ack) { on_ack(due, ack); }, blocks.faults) {}

void Responder::clear() { reset_state(*this); }

void Responder::qp_changed(Time t, Qp& qp, QpState old) {
  if (qp.state == QpState::kRst)
    qp.resp = new_responder_state();
  else if (qp.state == QpState::kErr && old != QpState::kErr)
    flush(t, qp);
}

void Responder::receive(Time t, Qp& qp, PacketRef& packet) {
  const Profile::Engine& e = blocks_.profile.engine;
  const bool first = traits_of(packet->opcode).first;
  t = packet->packets > 1 ? blocks_.rx.admit_run(*packet, qp.resp.rx_until)
                          : blocks_.rx.admit(t, qp.resp.rx_until, first ? e.rx_message : e.rx_more);
  if (!blocks_.contexts.wait(t, qp, qp.resp.parked, packet)) take(t, qp, packet);
}

void Responder::take(Time t, Qp& qp, PacketRef& packet) {
  const Packet& p = *packet;
  const Traits& traits = traits_of(p.opcode);
  const std::uint8_t transport = p.opcode & prm::bth::kTransportMask;
  const bool datagram = sends_datagrams(qp.type);
  if (!receives(qp.state) || !traits.valid || transport != transport_bits(qp.type) || qp.resp.failing) {
    trace_drop(blocks_.tracer, t, p, DropReason::kQpState);
    return;
  }
  // The first packet in RTR tells that the other side is there (IBTA 11.6.3.2).
  if (qp.state == QpState::kRtr && !qp.resp.comm_established && !datagram) {
    qp.resp.comm_established = true;
    blocks_.eqs.qp_event(t, qp.function, static_cast<std::uint8_t>(EqeType::kCommEst), qp.qpn);
  }
  if (datagram)
    receive_ud(t, qp, packet);
  else if (qp.type == QpType::kUc)
    receive_uc(t, qp, packet, traits);
  else
    receive_rc(t, qp, packet, traits);
}

// Opcode after opcode, and lengths, as IBTA 9.7.4.1.2 to 9.7.4.1.6 allow.
bool Responder::in_sequence(const Qp& qp, const Packet& p, const Traits& traits) const {
  const ResponderState& s = qp.resp;
  if (traits.first != (s.message == Message::kNone)) return false;
  if (!traits.first && traits.send != (s.message == Message::kSend)) return false;
  if (!traits.send && !traits.write) return true;
  if (!traits.last) return p.payload_len == qp.mtu;
  if (p.payload_len > qp.mtu) return false;
  return traits.first || p.payload_len > 0;
}

void Responder::receive_rc(Time t, Qp& qp, PacketRef& packet, const Traits& traits) {
  ResponderState& s = qp.resp;
  const Packet& p = *packet;
  if (p.packets > 1) {
    receive_run(t, qp, packet, traits);
    return;
  }
  const std::int32_t ahead = psn_diff(p.psn, s.expected_psn);
  if (ahead > 0) {
    nak_sequence(t, qp, p);
    return;
  }
  if (ahead < 0) {
    duplicate(t, qp, p, traits);
    return;
  }
  s.nak_sent = false;
  if (s.fault.active) {
    while_faulted(t, qp, p);
    return;
  }
  s.rnr_owed = false;
  if (!in_sequence(qp, p, traits)) {
    fail(t, qp, p, NakCode::kInvalidReq, EqeType::kWqInvalidReq);
    return;
  }
  blocks_.tracer.record(Point::kChecked, t, {qp.function, p.trace_qpn}, p.wqe_serial,
                        p.psn | static_cast<std::uint64_t>(p.opcode) << 24, qp.qpn);
  if (qp.type == QpType::kXrc && traits.first && !select_xrc_srq(qp, p)) {
    fail(t, qp, p, NakCode::kInvalidReq, EqeType::kWqInvalidReq);
    return;
  }
  bool taken;
  if (traits.send)
    taken = take_send(t, qp, packet, traits);
  else if (traits.write)
    taken = take_write(t, qp, packet, traits);
  else if (static_cast<BthOp>(p.opcode & prm::bth::kOpMask) == BthOp::kReadReq)
    taken = take_read(t, qp, p);
  else
    taken = take_atomic(t, qp, p);
  if (!taken) return;
  if (traits.send || traits.write) {
    s.expected_psn = (s.expected_psn + 1) & kPsnMask;
    if (traits.last) s.msn = (s.msn + 1) & 0xffffff;
    if (p.ack_req) acknowledge(t, qp, p);
  }
}

void Responder::duplicate(Time t, Qp& qp, const Packet& p, const Traits& traits) {
  ResponderState& s = qp.resp;
  ++blocks_.q_counters[qp.function][qp.counter_set].duplicate_request;
  blocks_.tracer.record(Point::kDuplicate, t, {qp.function, p.trace_qpn}, p.wqe_serial, p.psn,
                        s.expected_psn);
  if (traits.send || traits.write) {  // never executed twice, but acknowledged again
    acknowledge(t, qp, p);
    return;
  }
  const bool read = static_cast<BthOp>(p.opcode & prm::bth::kOpMask) == BthOp::kReadReq;
  for (ResponderResource& r : s.resources) {
    const std::int32_t into = psn_diff(p.psn, r.first_psn);
    if (into < 0 || into >= static_cast<std::int32_t>(r.packets)) continue;
    if (read == r.atomic) return;
    if (read) {  // from the PSN asked for; the requester may have moved its key and address on with it
      r.va = p.va - static_cast<std::uint64_t>(into) * qp.mtu;
      r.rkey = p.rkey;
    }
    r.sent = std::min(r.sent, static_cast<std::uint32_t>(into));
    r.parked = false;
    r.ready = t;
    blocks_.scheduler.wake_responder(t, qp);
    return;
  }
}

void Responder::receive_uc(Time t, Qp& qp, PacketRef& packet, const Traits& traits) {
  ResponderState& s = qp.resp;
  const Packet& p = *packet;
  // A gap drops the message in progress; a new message may begin at any PSN (IBTA 9.8.2.2.2).
  const bool gap = p.psn != s.expected_psn;
  s.expected_psn = (p.psn + 1) & kPsnMask;
  if (traits.first || gap) {
    if (s.message != Message::kNone) {
      s.message = Message::kNone;
      s.received = 0;  // the receive WQE, if taken, serves the next message
    }
    if (!traits.first) {
      trace_drop(blocks_.tracer, t, p, DropReason::kSequence);
      return;
    }
  }
  if (s.fault.active || !in_sequence(qp, p, traits)) {
    s.message = Message::kNone;
    trace_drop(blocks_.tracer, t, p, s.fault.active ? DropReason::kPageFault : DropReason::kSequence);
    return;
  }
  if (traits.send)
    take_send(t, qp, packet, traits);
  else
    take_write(t, qp, packet, traits);
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

bool Responder::take_send(Time t, Qp& qp, PacketRef& packet, const Traits& traits) {
  ResponderState& s = qp.resp;
  const Packet& p = *packet;
  const bool rc = is_reliable(qp.type);
  if (traits.first) {
    const TagUnit::Arrival tagged =
        s.wqe.valid ? TagUnit::Arrival::kNotForTags : blocks_.tags.arrive(t, qp, p, traits.last);
    if (tagged == TagUnit::Arrival::kDone) {
      if (!traits.ieth || invalidate(qp, p.imm)) return true;
      fail(t, qp, p, NakCode::kRemoteAccess, EqeType::kComp);
      return false;
    }
    if (!s.wqe.valid) {
      const Take got = take_wqe(p.packets > 1 ? p.at[0] : t, qp, p);
      if (got != Take::kTaken && p.packets > 1) return false;
      switch (got) {
        case Take::kTaken:
          blocks_.tags.accepted(t, qp);
          break;
        case Take::kEmpty:
          s.tagged = {};
          ++blocks_.q_counters[qp.function][qp.counter_set].out_of_buffer;
          if (rc) nak_rnr(t, qp, p);
          return false;
        case Take::kBroken:
          if (s.wqe.valid) receive_error(t, qp, CqeSyndrome::kLocalQpOp, 0);
          fail(t, qp, p, NakCode::kRemoteOp, EqeType::kWqCatas);
          return false;
      }
    }
    s.received = 0;
    s.landed = std::max(s.landed, t);
    s.message = Message::kSend;
  }
  const std::uint32_t skip = traits.first ? s.tagged.skip : 0, len = p.payload_len - skip;
  if (s.received + len > s.wqe.capacity) {
    if (p.packets > 1) return false;
    ++blocks_.q_counters[qp.function][qp.counter_set].resp_local_length_error;
    receive_error(t, qp, CqeSyndrome::kLocalLength, 0);
    fail(t, qp, p, NakCode::kInvalidReq, EqeType::kComp);
    return false;
  }
  s.in_cqe = traits.first && traits.last && into_cqe(qp, p);
  if (len && !s.in_cqe) {
    const MoveResult r =
        mover_.scatter(t, qp, s.wqe.pd, s.wqe.sges, s.received, packet, skip, len, traits.last);
    if (!r.ok() && p.packets > 1) return false;
    if (r.status == TptStatus::kFault && receive_fault(t, qp, p)) {
      if (traits.first) s.message = Message::kNone;
      return false;
    }
    if (!r.ok()) {
      blocks_.tracer.record(Point::kAccessErr, t, {qp.function, p.trace_qpn}, p.wqe_serial,
                            s.wqe.sges.empty() ? 0 : s.wqe.sges[0].lkey,
                            s.wqe.sges.empty() ? 0 : s.wqe.sges[0].addr);
      receive_error(t, qp, CqeSyndrome::kLocalProt, static_cast<std::uint8_t>(r.status));
      fail(t, qp, p, NakCode::kRemoteOp, EqeType::kComp);
      return false;
    }
    s.landed = std::max(s.landed, r.at);
  }
  s.received += len;
  if (!traits.last) return true;
  s.message = Message::kNone;
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

bool Responder::take_write(Time t, Qp& qp, PacketRef& packet, const Traits& traits) {
  ResponderState& s = qp.resp;
  const Packet& p = *packet;
  const bool rc = is_reliable(qp.type);
  if (traits.first) {
    const std::uint64_t len = p.dma_len;
    if (!qp.rwe && p.packets > 1) return false;
    if (!qp.rwe) {  // a QP that is not set up for the operation: invalid request, not a key violation
      broke_access(blocks_.tracer, Rule::kQpRights, t, RuleObject::kQp, qp.subject(), p.va, p.rkey, len);
      fail(t, qp, p, NakCode::kInvalidReq, EqeType::kWqInvalidReq);
      return false;
    }
    TptStatus status = TptStatus::kOk;
    if (len) status = blocks_.tpt.check(p.rkey, rights_user(qp), Access::kRemoteWrite, p.va, len);
    if (status != TptStatus::kOk && p.packets > 1) return false;
    if (status != TptStatus::kOk) {
      ++blocks_.q_counters[qp.function][qp.counter_set].resp_remote_access_errors;
      broke_access(blocks_.tracer, remote_rule(status), t, RuleObject::kQp, qp.subject(), p.va, p.rkey, len);
      blocks_.tracer.record(Point::kAccessErr, t, {qp.function, p.trace_qpn}, p.wqe_serial, p.rkey, p.va);
      fail(t, qp, p, NakCode::kRemoteAccess, EqeType::kWqAccess);
      return false;
    }
    s.write_va = p.va;
    s.write_rkey = p.rkey;
    s.write_len = len;
    s.received = 0;
    s.landed = std::max(s.landed, t);
  }
  const std::uint64_t after = s.received + p.payload_len;
  if (after > s.write_len || (traits.last && after != s.write_len)) {
    if (p.packets > 1) return false;
    fail(t, qp, p, NakCode::kInvalidReq, EqeType::kWqInvalidReq);
    return false;
  }
  if (traits.imm &&
      !s.wqe.valid) {  // the immediate completes a receive WQE: it must be there before the data
    const Take got = take_wqe(t, qp, p);
    if (got == Take::kEmpty) {
      ++blocks_.q_counters[qp.function][qp.counter_set].out_of_buffer;
      if (rc) nak_rnr(t, qp, p);
      return false;
    }
    if (got == Take::kBroken) {
      if (s.wqe.valid) receive_error(t, qp, CqeSyndrome::kLocalQpOp, 0);
      fail(t, qp, p, NakCode::kRemoteOp, EqeType::kWqCatas);
      return false;
    }
  }
  s.message = traits.last ? Message::kNone : Message::kWrite;
  if (p.payload_len) {
    const MoveResult r =
        mover_.write_remote(t, qp, rights_pd(qp), s.write_rkey, s.write_va + s.received, packet, traits.imm);
    if (!r.ok() && p.packets > 1) return false;
    if (r.status == TptStatus::kFault &&
        remote_fault(t, qp, p, s.write_rkey, s.write_va, s.write_len, s.received)) {
      s.message = traits.first || !rc ? Message::kNone : Message::kWrite;
      return false;
    }
    if (!r.ok()) {  // the key went away between the packets
      broke_access(blocks_.tracer, remote_rule(r.status), t, RuleObject::kQp, qp.subject(), s.write_va,
                   s.write_rkey, s.write_len);
      blocks_.tracer.record(Point::kAccessErr, t, {qp.function, p.trace_qpn}, p.wqe_serial, s.write_rkey,
                            s.write_va);
      if (s.wqe.valid) receive_error(t, qp, CqeSyndrome::kLocalAccess, static_cast<std::uint8_t>(r.status));
      fail(t, qp, p, NakCode::kRemoteAccess, EqeType::kWqAccess);
      return false;
    }
    s.landed = std::max(s.landed, r.at);
  }
  if (traits.first) ++blocks_.q_counters[qp.function][qp.counter_set].rx_write_requests;
  s.received = after;
  if (!traits.last) return true;
  blocks_.tracer.record(Point::kScattered, s.landed, {qp.function, p.trace_qpn}, p.wqe_serial, s.received,
                        qp.qpn);
  if (traits.imm) finish_receive(t, qp, p, CqeOp::kRespWrImm);
  return true;
}

// A small message of one packet goes into the CQE if the QP wants it there.
bool Responder::into_cqe(const Qp& qp, const Packet& p) {
  if (qp.cs_res == prm::InlineScatter::kNone || p.payload_len == 0 || qp.resp.tagged.matched) return false;
  const Cq* cq = receive_cq(qp, qp.resp.wqe);
  return cq && p.payload_len <= CqUnit::inline_room(*cq, qp.cs_res);
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
