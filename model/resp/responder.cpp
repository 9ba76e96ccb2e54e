// SPDX-License-Identifier: BSD-3-Clause
// The responder's checks of requests, before the operation takes them.
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
using prm::EqeType;
using prm::NakCode;
using traces::Point;
using Message = ResponderState::Message;

Responder::Responder(const sc_core::sc_module_name& name, const Blocks& blocks)
    : sc_module(name),
      blocks_(blocks),
      mover_(blocks.tpt, blocks.dma, false),
      gather_ps_(blocks.profile.gather_ps_per_byte()),
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

namespace {

// While a refusal waits behind responses that are owed, these alone are of interest: they may need to be
// asked for again, as their pages were not there.
bool asks_again(const Qp& qp, const Packet& p, const prm::BthTraits& traits) {
  return p.packets == 1 && !traits.send && !traits.write && psn_diff(p.psn, qp.resp.expected_psn) < 0;
}

}  // namespace

void Responder::take(Time t, Qp& qp, PacketRef& packet) {
  const Packet& p = *packet;
  const Traits& traits = traits_of(p.opcode);
  const std::uint8_t transport = p.opcode & prm::bth::kTransportMask;
  const bool datagram = sends_datagrams(qp.type);
  if (!receives(qp.state) || (!traits.valid && !traits.unsupported) || transport != transport_bits(qp.type) ||
      (qp.resp.failing && !asks_again(qp, p, traits))) {
    trace_drop(blocks_.tracer, t, p, DropReason::kQpState);
    return;
  }
  // The first packet in RTR shows that the other side is there (IBTA 11.6.3.2).
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
    if (traits.valid) duplicate(t, qp, p, traits);
    return;
  }
  s.nak_sent = s.sequence_owed = false;
  if (s.fault.active) {
    while_faulted(t, qp, p);
    return;
  }
  s.rnr_owed = false;
  // A request that is not supported is refused as one out of place is (IBTA 9.7.4.1.1, 9.7.5.2.8).
  if (traits.unsupported || !in_sequence(qp, p, traits)) {
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
    if (read) {
      // What is before the PSN asked for has come. The requester may have moved its key and address on with
      // it, and may do without the end.
      const auto from = static_cast<std::uint32_t>(into);
      const std::uint32_t n = packets_of(p.dma_len, qp.mtu);
      if (n > r.packets - from) return;
      const std::uint32_t unasked = r.packets - from - n;
      const bool under_way = !r.done() && !r.parked;
      r.va = p.va - std::uint64_t{from} * qp.mtu;
      r.rkey = p.rkey;
      if (!under_way || from <= r.sent) r.asked_from = r.sent = from;  // else it comes as part of that
      if (!under_way || unasked <= r.unasked) {
        r.unasked = unasked;
        r.length = from * qp.mtu + p.dma_len;
      }
    } else {
      r.sent = 0;
    }
    r.parked = false;
    r.ready = t;
    blocks_.scheduler.wake_responder(t, qp);
    return;
  }
}

constexpr Time kMostBehind = from_ns(1e6);

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
  // A receive WQE each bounds what SENDs have waiting for the host, acknowledgements what reliable QPs have.
  if (traits.write && blocks_.dma.stalled_until() > sim_now() + kMostBehind) {
    s.message = Message::kNone;
    trace_drop(blocks_.tracer, t, p, DropReason::kBehind);
    return;
  }
  if (traits.send)
    take_send(t, qp, packet, traits);
  else
    take_write(t, qp, packet, traits);
}

}  // namespace hcasim
