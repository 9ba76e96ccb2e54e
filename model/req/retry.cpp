// SPDX-License-Identifier: BSD-3-Clause
// The requester's retries: ACK timer, rewinding the send window, SQ drain
// (IBTA 9.7.5.1.3, 9.7.6.1.3, 10.3.1.5).
#include <algorithm>
#include <utility>

#include "model/ctx/q_counters.h"
#include "model/ctx/qp.h"
#include "model/eq/eq.h"
#include "model/firmware_port.h"
#include "model/req/requester.h"
#include "model/sched/scheduler.h"
#include "prm/eqe.h"
#include "traces/tracer.h"

namespace hcasim {

using prm::CqeSyndrome;
using traces::Point;

bool Requester::outstanding(const Qp& qp) const {
  const RequesterState& s = qp.req;
  for (std::size_t i = 0; i < s.window.size(); ++i) {
    const SendWqe& w = s.window[i];
    if (w.done || w.is_local()) continue;
    if (!w.started) return false;
    if (w.is_read_or_atomic()) return w.sent > w.answered;
    return w.sent != 0 && psn_diff((w.first_psn + w.sent) & kPsnMask, s.una_psn) > 0;
  }
  return false;
}

// Sends again from psn on. READs ask for what is missing only.
void Requester::rewind(Time t, Qp& qp, std::uint32_t psn) {
  RequesterState& s = qp.req;
  std::uint32_t packets = 0;
  bool found = false;
  s.inflight_reads = 0;
  for (std::size_t i = 0; i < s.window.size(); ++i) {
    SendWqe& w = s.window[i];
    if (w.is_local()) {
      if (!w.done && !found) break;
      continue;
    }
    if (!w.started) break;
    if (w.done) continue;
    const std::int32_t ahead = psn_diff(psn, w.first_psn);
    const std::uint32_t keep = w.is_read_or_atomic() ? w.answered
                               : ahead <= 0          ? 0
                                                     : std::min(static_cast<std::uint32_t>(ahead), w.packets);
    if (keep == w.packets) continue;
    packets += w.sent > keep ? w.sent - keep : 0;
    w.sent = std::min(w.sent, keep);
    if (!found) {
      found = true;
      s.next_to_send = std::min(s.next_to_send, i);
    }
  }
  s.since_ack_req = 0;
  ++retransmits_;
  blocks_.tracer.record(Point::kRetransmit, t, qp.subject(), s.window.empty() ? 0 : s.window.front().serial,
                        psn, packets);
}

// Something was lost: one of the QP's retries is spent.
void Requester::retry(Time t, Qp& qp, std::uint32_t psn) {
  RequesterState& s = qp.req;
  if (s.window.empty()) return;
  if (s.retries_left == 0) {
    ++blocks_.q_counters[qp.function][qp.counter_set].req_transport_retries_exceeded;
    fail_front(t, qp, CqeSyndrome::kTransportRetryExc, 0x81);
    return;
  }
  --s.retries_left;
  s.rewound_at = psn;
  rewind(t, qp, psn);
  s.timer_due = kNever;
  blocks_.scheduler.wake(t, qp);
}

void Requester::arm_timer(Time t, Qp& qp) {
  RequesterState& s = qp.req;
  if (qp.path.ack_timeout == 0 || s.timer_due != kNever) return;
  s.timer_due = t + (from_ns(4096) << std::min<unsigned>(qp.path.ack_timeout, 31));
  if (s.timer_queued) return;  // the queued one comes first and goes on to this
  s.timer_queued = true;
  timers_.push(s.timer_due, Timer{qp.qpn, qp.function, s.epoch});
}

void Requester::on_timer(Time due, const Timer& timer) {
  Qp* qp = blocks_.qps[timer.function].find(timer.qpn);
  if (!qp || qp->req.epoch != timer.epoch) return;
  RequesterState& s = qp->req;
  s.timer_queued = false;
  if (s.timer_due == kNever) return;
  if (blocks_.qps[timer.function].suspension.initiator) {  // begins anew with restart()
    s.timer_due = kNever;
    return;
  }
  if (s.timer_due > due) {
    s.timer_queued = true;
    timers_.push(s.timer_due, timer);
    return;
  }
  s.timer_due = kNever;
  if (s.send_fault.active || s.response_fault.active) return;  // starts again when the pages are there
  if ((qp->state != QpState::kRts && qp->state != QpState::kSqd) || !outstanding(*qp)) return;
  ++timeouts_;
  ++blocks_.q_counters[qp->function][qp->counter_set].local_ack_timeout_err;
  blocks_.tracer.record(Point::kTimeout, due, qp->subject(), s.window.front().serial, s.una_psn,
                        s.retries_left);
  retry(due, *qp, s.una_psn);
}

void Requester::send_own(Time t, Qp& qp, std::vector<std::uint8_t> message, std::uint32_t imm) {
  SendWqe w;
  w.opcode = prm::WqeOp::kSendImm;
  w.imm = imm;
  w.inline_data = true;
  w.length = message.size();
  w.bytes = std::move(message);
  qp.req.own.push_back(std::move(w));
  blocks_.scheduler.wake(t, qp);
}

void Requester::stop(Qp& qp) {
  RequesterState& s = qp.req;
  s.epoch = next_epoch();  // what turns, timers and packets that were set aside are of
  s.last_ready = s.unit_until = s.rx_until = s.context_due = s.rnr_until = 0;
  s.pages = {};
  s.timer_due = s.turn_at = kNever;
  s.timer_queued = s.port_queued = false;
  s.parked = {};
  s.rewound_at = ~0u;
  for (std::size_t i = 0; i < s.window.size(); ++i) s.window[i].due = s.window[i].done_at = 0;
}

void Requester::restart(Time t, Qp& qp) {
  RequesterState& s = qp.req;
  if (!qp.has_sq && !qp.rendezvous) return;
  const bool sends = qp.state == QpState::kRts || qp.state == QpState::kSqd;
  if (!sends && qp.state != QpState::kErr && qp.state != QpState::kSqErr) return;
  if (sends && is_reliable(qp.type) && outstanding(qp) && !s.response_fault.active) rewind(t, qp, s.una_psn);
  if (s.doorbell || !s.window.empty() || !s.own.empty() || s.fetched != s.db_counter)
    blocks_.scheduler.wake(t, qp);
}

// What has been fetched and not begun stays in the queue: its owner may change it until sending goes on
// (IBTA 10.3.1.5), and it is fetched again.
void Requester::put_back(Qp& qp) {
  RequesterState& s = qp.req;
  s.blueflame_len = 0;
  if (qp.rendezvous) return;  // its WQEs are in no queue
  while (s.window.size() > s.next_to_send) {
    const SendWqe& last = s.window[s.window.size() - 1];
    if (last.started || last.done) break;
    s.fetched = last.counter;
    s.window.pop_back();
  }
}

void Requester::stop_behind(Time t, Qp& qp) {
  if (qp.state != QpState::kRts) return;
  put_back(qp);
  qp.state = QpState::kSqd;
  qp.draining = qp.sqd_event = true;
  finish_drain(t, qp);
}

// SQD: done when nothing begun is left in flight (IBTA 10.3.1.5); then the driver's event.
void Requester::finish_drain(Time t, Qp& qp) {
  if (!qp.draining || !qp.req.window.empty()) return;
  qp.draining = false;
  if (qp.sqd_event) {
    qp.sqd_event = false;
    blocks_.eqs.qp_event(t, qp.function, static_cast<std::uint8_t>(prm::EqeType::kSqDrained), qp.qpn);
  }
}

}  // namespace hcasim
