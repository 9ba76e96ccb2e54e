// SPDX-License-Identifier: BSD-3-Clause
// What the responder says back: ACK, NAK, RNR NAK; errors on its own side.
#include <algorithm>

#include "model/cc/congestion.h"
#include "model/ctx/q_counters.h"
#include "model/ctx/qp.h"
#include "model/ctx/qp_states.h"
#include "model/port/path.h"
#include "model/port/port.h"
#include "model/port/traits.h"
#include "model/profile.h"
#include "model/resp/responder.h"
#include "model/rules.h"
#include "model/sched/qos.h"
#include "model/sched/scheduler.h"
#include "model/sched/transmit_pipeline.h"
#include "model/steer/rdma.h"
#include "model/tm/tag_unit.h"
#include "traces/tracer.h"

namespace hcasim {

using prm::Aeth;
using prm::BthOp;
using prm::CqeOp;
using prm::CqeSyndrome;
using prm::EqeType;
using prm::NakCode;
using traces::Point;

PacketRef Responder::make_reply(const Qp& qp, std::uint8_t opcode, std::uint32_t psn) const {
  PacketRef p = PacketPool::make();
  fill_path(*p, qp, blocks_.port, blocks_.vports[qp.function]);
  p->opcode = opcode | transport_bits(qp.type);
  p->dest_qpn = qp.remote_qpn;
  p->psn = psn & kPsnMask;
  p->msn = qp.resp.msn;
  return p;
}

// Whatever acknowledges a message leaves when its payload has addresses and is on its way to memory.
Time Responder::not_before_data(Time t, const Qp& qp) const {
  return std::max(t, qp.resp.landed - blocks_.profile.pcie.write_latency);
}

void Responder::transmit(Time ready, Qp& qp, PacketRef&& packet) {
  qp.resp.last_ready = blocks_.tx.pass(std::max(qp.resp.last_ready, ready));
  if (traits_of(packet->opcode).read_resp) {
    blocks_.cc.sending(qp.resp.last_ready, qp, *packet);
    blocks_.qos[qp.function].sent(qp.resp.last_ready, qp, true, *packet);
  }
  blocks_.rdma.transmit(qp.resp.last_ready, qp.function, qp.qpn, std::move(packet));
}

void Responder::send_ack(Time t, Qp& qp, std::uint32_t psn, std::uint8_t syndrome, std::uint32_t trace_qpn,
                         std::uint32_t serial) {
  PacketRef p = make_reply(qp, static_cast<std::uint8_t>(BthOp::kAck), psn);
  t = not_before_data(t, qp);
  p->aeth = syndrome;
  p->trace_qpn = trace_qpn;
  p->wqe_serial = serial;
  const std::uint8_t value = syndrome & Aeth::kValueMask;
  const std::uint8_t type = syndrome & Aeth::kTypeMask;
  blocks_.tracer.record(type == Aeth::kAck      ? Point::kAckTx
                        : type == Aeth::kRnrNak ? Point::kRnrTx
                                                : Point::kNakTx,
                        t, {qp.function, trace_qpn}, serial, psn & kPsnMask,
                        type == Aeth::kAck ? syndrome : value);
  transmit(t + blocks_.profile.engine.ack, qp, std::move(p));
}

// Acknowledges everything before expected_psn; ACKs of one QP that are close together become one, and none
// overtakes the responses that are owed before it.
void Responder::acknowledge(Time t, Qp& qp, const Packet& packet) {
  ResponderState& s = qp.resp;
  s.ack_pending = true;
  s.ack_trace_qpn = packet.trace_qpn;
  s.ack_serial = packet.wqe_serial;
  if (s.ack_queued) return;
  const Time earliest = s.last_ack + blocks_.profile.engine.ack_coalesce;
  if (t >= earliest) {
    send_pending_ack(t, qp);
    return;
  }
  s.ack_queued = true;
  acks_.push(earliest, AckDue{qp.qpn, qp.function, qp.req.epoch});
}

void Responder::send_pending_ack(Time t, Qp& qp) {
  ResponderState& s = qp.resp;
  if (!s.ack_pending) return;
  for (const ResponderResource& r : s.resources)
    if (!r.done()) return;  // turn() comes back to it
  s.ack_pending = false;
  s.last_ack = t;
  send_ack(t, qp, s.expected_psn - 1, Aeth::kAck | Aeth::kInvalidCredits, s.ack_trace_qpn, s.ack_serial);
}

void Responder::on_ack(Time due, const AckDue& ack) {
  Qp* qp = blocks_.qps[ack.function].find(ack.qpn);
  if (!qp || qp->req.epoch != ack.epoch) return;
  qp->resp.ack_queued = false;
  const bool alive = qp->state == QpState::kRtr || qp->state == QpState::kRts || qp->state == QpState::kSqd;
  if (alive) send_pending_ack(due, *qp);
}

void Responder::nak_sequence(Time t, Qp& qp, const Packet& packet) {
  ResponderState& s = qp.resp;
  blocks_.tracer.record(Point::kSeqErr, t, {qp.function, packet.trace_qpn}, packet.wqe_serial, packet.psn,
                        s.expected_psn);
  ++blocks_.q_counters[qp.function][qp.counter_set].out_of_sequence;
  if (s.nak_sent) return;  // one NAK for one gap
  s.nak_sent = true;
  s.ack_pending = false;  // the NAK acknowledges what is before it
  for (const ResponderResource& r : s.resources) {
    if (r.done()) continue;
    s.sequence_owed = !r.parked;  // behind a READ that is to be asked for again all of this comes again
    s.rnr_trace_qpn = packet.trace_qpn;
    s.rnr_serial = packet.wqe_serial;
    return;
  }
  send_ack(t, qp, s.expected_psn, Aeth::kNak | static_cast<std::uint8_t>(NakCode::kPsnSeqErr),
           packet.trace_qpn, packet.wqe_serial);
}

void Responder::nak_rnr(Time t, Qp& qp, const Packet& packet) {
  ResponderState& s = qp.resp;
  s.nak_sent = true;  // what follows this packet is out of sequence and stays unanswered
  s.ack_pending = false;
  for (const ResponderResource& r : s.resources) {
    if (r.done()) continue;
    s.rnr_owed = !r.parked;  // behind a READ that is to be asked for again this comes again, too
    s.rnr_trace_qpn = packet.trace_qpn;
    s.rnr_serial = packet.wqe_serial;
    return;
  }
  send_ack(t, qp, s.expected_psn, Aeth::kRnrNak | (qp.min_rnr_nak & Aeth::kValueMask), packet.trace_qpn,
           packet.wqe_serial);
}

void Responder::receive_error(Time t, Qp& qp, CqeSyndrome syndrome, std::uint8_t vendor) {
  ResponderState& s = qp.resp;
  const Rule rule = syndrome == CqeSyndrome::kLocalLength ? Rule::kReceiveLength : rule_of(syndrome, vendor);
  const Sge sge = s.wqe.sges.empty() ? Sge{} : s.wqe.sges[0];
  broke_access(blocks_.tracer, rule, t, RuleObject::kQp, qp.subject(), sge.addr, sge.lkey, s.wqe.capacity);
  if (s.tagged.matched) {  // an error CQE would name a WQE of the SRQ, and none was taken
    s.wqe.valid = false;
    blocks_.tags.cancel(t, qp, s.tagged.index);
    s.tagged = {};
    return;
  }
  ++blocks_.q_counters[qp.function][qp.counter_set].resp_cqe_error;
  blocks_.tracer.record(Point::kRwqeErr, t, qp.subject(), s.wqe.counter,
                        static_cast<std::uint64_t>(syndrome) | static_cast<std::uint64_t>(vendor) << 8, 0);
  Completion c;
  c.opcode = static_cast<std::uint8_t>(CqeOp::kRespErr);
  c.syndrome = static_cast<std::uint8_t>(syndrome);
  c.vendor_syndrome = vendor;
  post_receive(t, qp, s.wqe, c);
  s.wqe.valid = false;
}

void Responder::fail(Time t, Qp& qp, const Packet& packet, NakCode code, EqeType event) {
  ResponderState& s = qp.resp;
  if (qp.type == QpType::kUc) {  // no NAK: the message is gone (IBTA 9.8.2.2.4)
    s.message = ResponderState::Message::kNone;
    if (event == EqeType::kComp || event == EqeType::kWqCatas)  // the receive queue's own error
      blocks_.errors.qp_error(t, qp, static_cast<std::uint8_t>(event));
    else
      trace_drop(blocks_.tracer, t, packet, DropReason::kRefused);
    return;
  }
  s.failing = true;
  s.fail_psn = packet.psn;
  s.fail_code = static_cast<std::uint8_t>(code);
  s.fail_event = static_cast<std::uint8_t>(event);
  s.fail_trace_qpn = packet.trace_qpn;
  s.fail_serial = packet.wqe_serial;
  finish_pending(t, qp);
}

void Responder::stop(Qp& qp) {
  ResponderState& s = qp.resp;
  s.landed = s.last_ack = s.last_ready = s.unit_until = s.rx_until = s.atomic_done = 0;
  s.pages = {};
  s.poll_since = s.turn_at = kNever;
  s.ack_queued = s.port_queued = false;
  s.nak_sent = false;  // it may be among what is lost
  s.parked = {};
  for (ResponderResource& r : s.resources) r.ready = r.written = 0;
}

void Responder::restart(Time t, Qp& qp) {
  ResponderState& s = qp.resp;
  if (qp.state == QpState::kErr && qp.has_rq && !qp.use_srq && qp.dctn == 0) {
    s.poll_since = t;
    polls_.push(t, Poll{qp.qpn, qp.function, qp.req.epoch});
  }
  const bool owes = std::any_of(s.resources.begin(), s.resources.end(),
                                [](const ResponderResource& r) { return !r.done(); });
  if (owes || s.ack_pending || s.failing || s.rnr_owed || s.sequence_owed)
    blocks_.scheduler.wake_responder(t, qp);
}

// When no response is owed any more: the refusal, or the acknowledgement, that waited behind them.
void Responder::finish_pending(Time t, Qp& qp) {
  ResponderState& s = qp.resp;
  for (const ResponderResource& r : s.resources)
    if (!r.done()) return;
  if (!s.failing) {
    if (s.rnr_owed)
      send_ack(t, qp, s.expected_psn, Aeth::kRnrNak | (qp.min_rnr_nak & Aeth::kValueMask), s.rnr_trace_qpn,
               s.rnr_serial);
    else if (s.sequence_owed)
      send_ack(t, qp, s.expected_psn, Aeth::kNak | static_cast<std::uint8_t>(NakCode::kPsnSeqErr),
               s.rnr_trace_qpn, s.rnr_serial);
    s.rnr_owed = s.sequence_owed = false;
    send_pending_ack(t, qp);
    return;
  }
  s.failing = false;
  s.ack_pending = false;
  send_ack(t, qp, s.fail_psn, Aeth::kNak | s.fail_code, s.fail_trace_qpn, s.fail_serial);
  blocks_.errors.qp_error(t, qp, s.fail_event);  // EQE type 0 is a completion: no event
}

}  // namespace hcasim
