// SPDX-License-Identifier: BSD-3-Clause
// The requester without its pages (on-demand paging): the send queue waits where payload is missing; answers
// that find no room are dropped and asked for again once the pages are there.
#include "model/tpt/fault.h"
#include "model/req/requester.h"
#include "model/sched/scheduler.h"

namespace hcasim {

using prm::CqeSyndrome;

namespace {
constexpr auto kVendor = static_cast<std::uint8_t>(WqeFault::kPageFault);
}

// Payload of the packet that begins at `offset` of the message is not there.
Requester::Step Requester::payload_fault(Time t, Qp& qp, SendWqe& wqe, std::uint64_t offset) {
  const PageFaults::Wqe what{FaultKind::kSend, qp.qpn, wqe.counter, offset, 0, qp.qpn, wqe.serial};
  if (!blocks_.page_faults.raise(t, qp, what)) return refuse(wqe, CqeSyndrome::kLocalProt, kVendor);
  PendingFault& fault = qp.req.send_fault;
  fault = {};
  fault.active = true;
  fault.kind = FaultKind::kSend;
  fault.serial = fault.trace_serial = wqe.serial;
  fault.packet = wqe.sent;
  fault.trace_qpn = qp.qpn;
  return Step::kBlocked;
}

// The answer in `packet` has no place to go; nothing of the oldest WQE that is not there yet can be taken.
void Requester::response_fault(Time t, Qp& qp, SendWqe& wqe, std::uint64_t offset, const Packet& packet) {
  RequesterState& s = qp.req;
  const PageFaults::Wqe what{FaultKind::kReadAtomic, qp.qpn, wqe.counter, offset,
                             packet.payload_len,     qp.qpn, wqe.serial};
  if (!blocks_.page_faults.raise(t, qp, what)) {
    fail_front(t, qp, CqeSyndrome::kLocalProt, kVendor);
    return;
  }
  s.response_fault = {};
  s.response_fault.active = true;
  s.response_fault.kind = FaultKind::kReadAtomic;
  s.response_fault.psn = packet.psn;
  s.response_fault.serial = s.response_fault.trace_serial = wqe.serial;
  s.response_fault.trace_qpn = qp.qpn;
  s.timer_due = kNever;
}

void Requester::fault_resumed(Time t, Qp& qp, PendingFault& fault, bool error) {
  RequesterState& s = qp.req;
  const PendingFault was = fault;
  fault = {};
  if (qp.state != QpState::kRts && qp.state != QpState::kSqd) return;
  if (was.kind == FaultKind::kReadAtomic) {
    if (s.window.empty() || s.window.front().serial != was.serial) return;
    if (error) {
      fail_front(t, qp, CqeSyndrome::kLocalProt, kVendor);
      return;
    }
    // Asked for again from where it stopped: no retry is spent.
    s.rewound_at = was.psn;
    rewind(t, qp, was.psn);
  } else {
    if (error) {
      for (std::size_t i = 0; i < s.window.size(); ++i)
        if (s.window[i].serial == was.serial) refuse(s.window[i], CqeSyndrome::kLocalProt, kVendor);
      // The error comes out behind what is before it, and that must be acknowledged for it.
      if (s.next_to_send != 0 && s.since_ack_req != 0) rewind(t, qp, s.una_psn);
    }
    if (outstanding(qp)) arm_timer(t, qp);
  }
  blocks_.scheduler.wake(t, qp);
}

}  // namespace hcasim
