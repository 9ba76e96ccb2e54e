// SPDX-License-Identifier: BSD-3-Clause
#include "model/sched/scheduler.h"

#include <algorithm>
#include <cstring>

#include "model/hca.h"

namespace hcasim {

using traces::Point;

Scheduler::Scheduler(const sc_core::sc_module_name& name, Hca& hca)
    : sc_module(name),
      hca_(hca),
      ready_(
          "ready", [this](Time due, Turn& turn) { run(due, turn); }, hca, hca.profile().engine.batch_window) {
}

bool Scheduler::doorbell(Time t, std::uint32_t qpn, std::uint16_t wqe_index) {
  Qp* qp = hca_.qps().find(qpn);
  if (!qp || !qp->has_sq || qp->state == QpState::kRst) return false;
  ++doorbells_;
  hca_.tracer().record(Point::kDoorbell, t, qpn, qp->req.next_serial, wqe_index, qp->uar_page);
  qp->req.doorbell = true;
  // In INIT and RTR the post is remembered: it is sent once the QP comes to RTS (IBTA 10.3.1.2, 10.3.1.3).
  if (qp->state == QpState::kInit || qp->state == QpState::kRtr) return true;
  wake(t + hca_.profile().engine.doorbell, *qp);
  return true;
}

bool Scheduler::blueflame(Time t, std::uint32_t qpn, const std::uint8_t* bytes, unsigned len) {
  Qp* qp = hca_.qps().find(qpn);
  if (!qp || !qp->has_sq || qp->state == QpState::kRst || len < sizeof(prm::CtrlSeg)) return false;
  RequesterState& s = qp->req;
  s.blueflame_len = std::min<unsigned>(len, s.blueflame.size());
  std::memcpy(s.blueflame.data(), bytes, s.blueflame_len);
  prm::CtrlSeg ctrl;
  std::memcpy(&ctrl, bytes, sizeof ctrl);
  return doorbell(t, qpn, ctrl.wqe_index());
}

void Scheduler::wake(Time t, Qp& qp) {
  if (t >= qp.req.turn_at) return;
  qp.req.turn_at = t;
  ready_.push(t, Turn{qp.qpn, false, qp.req.epoch});
}

void Scheduler::wake_responder(Time t, Qp& qp) {
  if (t >= qp.resp.turn_at) return;
  qp.resp.turn_at = t;
  ready_.push(t, Turn{qp.qpn, true, qp.req.epoch});
}

void Scheduler::clear() {
  ready_.clear();
  free_at_ = 0;
}

void Scheduler::run(Time due, const Turn& turn) {
  Qp* qp = hca_.qps().find(turn.qpn);
  if (!qp || qp->req.epoch != turn.epoch) return;
  Time& turn_at = turn.responder ? qp->resp.turn_at : qp->req.turn_at;
  if (due != turn_at) return;  // an earlier turn took its place

  // The pipeline is busy beyond what may share this activation: take the turn when it is free.
  const Profile::Engine& e = hca_.profile().engine;
  const Time busy_until = free_at_;
  if (busy_until > due && busy_until > sim_now() + e.batch_window) {
    turn_at = busy_until;
    ready_.push(busy_until, turn);
    return;
  }
  turn_at = kNever;
  const Time start = std::max(due, busy_until) + e.schedule;
  Time again = kNever;
  if (turn.responder) {
    const auto r = hca_.responder().turn(start, *qp);
    free_at_ = std::max(free_at_, r.engine_free);
    again = r.again;
    if (again != kNever) wake_responder(std::max(again, start + hca_.profile().cycle), *qp);
  } else {
    const auto r = hca_.requester().turn(start, *qp);
    free_at_ = std::max(free_at_, r.engine_free);
    again = r.again;
    if (again != kNever) wake(std::max(again, start + hca_.profile().cycle), *qp);
  }
}

}  // namespace hcasim
