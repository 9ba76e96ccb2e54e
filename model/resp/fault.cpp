// SPDX-License-Identifier: BSD-3-Clause
// The responder without its pages (on-demand paging): it says "not ready" (RNR NAK) to what needs them, as
// long as the driver brings them in; requests of unacknowledged transports are dropped.
#include "model/tpt/fault.h"
#include "model/ctx/q_counters.h"
#include "model/ctx/qp_states.h"
#include "model/port/port.h"
#include "model/port/traits.h"
#include "model/resp/responder.h"
#include "model/wqe/parse.h"
#include "traces/tracer.h"

namespace hcasim {

using prm::Aeth;
using prm::CqeSyndrome;
using prm::EqeType;
using prm::NakCode;
using Message = ResponderState::Message;

namespace {

constexpr auto kVendor = static_cast<std::uint8_t>(WqeFault::kPageFault);

bool acknowledged(const Qp& qp) { return qp.type != QpType::kUc && !sends_datagrams(qp.type); }

void wait_for(PendingFault& fault, FaultKind kind, std::uint32_t psn, std::uint32_t trace_qpn,
              std::uint32_t serial) {
  fault = {};
  fault.active = true;
  fault.kind = kind;
  fault.psn = psn;
  fault.trace_qpn = trace_qpn;
  fault.trace_serial = serial;
}

}  // namespace

// A request that cannot be taken yet.
void Responder::not_ready(Time t, Qp& qp, const Packet& p) {
  if (acknowledged(qp)) {
    nak_rnr(t, qp, p);
    return;
  }
  qp.resp.message = Message::kNone;
  trace_drop(blocks_.tracer, t, p, DropReason::kNoBuffer);
}

// The receive WQE's memory is not there; the WQE stays, for the message's next attempt.
bool Responder::receive_fault(Time t, Qp& qp, const Packet& p, std::uint64_t done) {
  ResponderState& s = qp.resp;
  const std::uint32_t srqn = s.wqe.srqn;
  const FaultKind kind = srqn ? FaultKind::kSrqReceive : FaultKind::kReceive;
  if (s.fault.active ||
      !blocks_.page_faults.raise(t, qp,
                                 PageFaults::Wqe{kind, srqn ? srqn : qp.qpn, s.wqe.counter, done,
                                                 p.payload_len, p.trace_qpn, p.wqe_serial}))
    return false;
  wait_for(s.fault, kind, p.psn, p.trace_qpn, p.wqe_serial);
  s.fault.queue = srqn;
  not_ready(t, qp, p);
  return true;
}

// The memory of a WRITE or atomic is not there. done: bytes of it before this packet.
bool Responder::remote_fault(Time t, Qp& qp, const Packet& p, std::uint32_t rkey, std::uint64_t va,
                             std::uint64_t len, std::uint64_t done) {
  ResponderState& s = qp.resp;
  if (s.fault.active ||
      !blocks_.page_faults.raise(t, qp,
                                 PageFaults::Rdma{FaultKind::kRdmaWrite, rkey, va, len, done, p.payload_len,
                                                  p.trace_qpn, p.wqe_serial}))
    return false;
  wait_for(s.fault, FaultKind::kRdmaWrite, p.psn, p.trace_qpn, p.wqe_serial);
  not_ready(t, qp, p);
  return true;
}

// The memory of a READ's next response packet is not there: it and all behind it wait until the requester
// asks again. False: no driver listens.
bool Responder::read_fault(Time t, Qp& qp, ResponderResource& r, std::uint32_t packet_len) {
  ResponderState& s = qp.resp;
  const std::uint32_t psn = (r.first_psn + r.sent) & kPsnMask;
  if (!s.fault.active) {
    const std::uint64_t done = static_cast<std::uint64_t>(r.sent) * qp.mtu;
    if (!blocks_.page_faults.raise(t, qp,
                                   PageFaults::Rdma{FaultKind::kRdmaRead, r.rkey, r.va, r.length, done,
                                                    packet_len, r.trace_qpn, r.wqe_serial}))
      return false;
    wait_for(s.fault, FaultKind::kRdmaRead, psn, r.trace_qpn, r.wqe_serial);
  }
  r.parked = true;
  s.rnr_owed = s.sequence_owed = false;
  send_ack(t, qp, psn, Aeth::kRnrNak | (qp.min_rnr_nak & Aeth::kValueMask), r.trace_qpn, r.wqe_serial);
  return true;
}

// The next request in sequence came while a fault is being dealt with.
void Responder::while_faulted(Time t, Qp& qp, const Packet& p) {
  if (qp.resp.fault.psn == p.psn && qp.resp.fault.kind != FaultKind::kRdmaRead) {
    not_ready(t, qp, p);
    return;
  }
  // Sent before the requester heard of the fault: it comes again.
  trace_drop(blocks_.tracer, t, p, DropReason::kPageFault);
}

void Responder::fault_resumed(Time t, Qp& qp, PendingFault&, bool error) {
  ResponderState& s = qp.resp;
  const PendingFault was = s.fault;
  s.fault = {};
  if (!error) return;  // the requester tries again
  if (s.failing && was.kind != FaultKind::kRdmaRead) return;
  s.failing = false;  // of what lies behind the READ
  PacketRef p = PacketPool::make();
  p->psn = was.psn;
  p->trace_qpn = was.trace_qpn;
  p->wqe_serial = was.trace_serial;
  s.rnr_owed = s.sequence_owed = false;
  switch (was.kind) {
    case FaultKind::kSrqReceive:
    case FaultKind::kReceive:
      if (s.wqe.valid) receive_error(t, qp, CqeSyndrome::kLocalProt, kVendor);
      if (sends_datagrams(qp.type))
        blocks_.errors.qp_error(t, qp, 0);
      else
        fail(t, qp, *p, NakCode::kRemoteOp, EqeType::kComp);
      break;
    default:
      if (s.wqe.valid) receive_error(t, qp, CqeSyndrome::kLocalAccess, kVendor);
      if (was.kind == FaultKind::kRdmaRead) s.resources.clear();
      ++blocks_.q_counters[qp.function][qp.counter_set].resp_remote_access_errors;
      fail(t, qp, *p, NakCode::kRemoteAccess, EqeType::kWqAccess);
  }
}

}  // namespace hcasim
