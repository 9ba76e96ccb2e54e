// SPDX-License-Identifier: BSD-3-Clause
#include "model/sched/scheduler.h"

#include <algorithm>
#include <cstring>

#include "model/ctx/qp.h"
#include "model/fault/injector.h"
#include "model/port/port.h"
#include "model/profile.h"
#include "model/rules.h"
#include "model/sched/qos.h"
#include "model/sched/traffic_classes.h"
#include "model/state/state.h"
#include "traces/tracer.h"

namespace hcasim {

using traces::Point;

Scheduler::Scheduler(const sc_core::sc_module_name& name, const Blocks& blocks)
    : sc_module(name),
      blocks_(blocks),
      units_(blocks.profile.engine.tx_units),
      ready_(
          "ready", [this](Time due, Turn& turn) { run(due, turn); }, blocks.faults,
          blocks.profile.engine.batch_window),
      port_turns_(
          "port_turns", [this](Time due, bool&) { port_turn(due); }, blocks.faults,
          blocks.profile.engine.batch_window) {}

// Who is rung for.
inline DoorbellFate Scheduler::sender(Time t, FunctionId f, std::uint32_t qpn, std::uint32_t page,
                                      Qp*& qp) const {
  qp = blocks_.qps[f].find(qpn);
  if (!qp || !qp->has_sq || qp->state == QpState::kRst) return DoorbellFate::kNobody;
  if (page == qp->uar_page) return DoorbellFate::kTaken;
  blocks_.tracer.broke_value(Rule::kSqDoorbellUar, t, RuleObject::kQp, qp->subject(), page);
  return DoorbellFate::kOtherPage;
}

inline void Scheduler::ring(Time t, Qp& qp, std::uint16_t wqe_index) {
  blocks_.prefetcher.doorbell(t, qp);
  ++doorbells_;
  blocks_.tracer.record(Point::kDoorbell, t, qp.subject(), qp.req.next_serial, wqe_index, qp.uar_page);
  qp.req.doorbell = qp.req.doorbell_named = true;
  qp.req.doorbell_index = wqe_index;
  if (blocks_.injector.armed(FaultType::kQp)) blocks_.doorbell_faults.doorbell(t, qp);
  // In INIT and RTR the post is remembered: it is sent once the QP comes to RTS (IBTA 10.3.1.2, 10.3.1.3).
  if (qp.state == QpState::kInit || qp.state == QpState::kRtr) return;
  wake(t + blocks_.profile.engine.doorbell, qp);
}

DoorbellFate Scheduler::doorbell(Time t, FunctionId f, std::uint32_t qpn, std::uint16_t wqe_index,
                                 std::uint32_t page) {
  Qp* qp = nullptr;
  const DoorbellFate fate = sender(t, f, qpn, page, qp);
  if (fate == DoorbellFate::kTaken) ring(t, *qp, wqe_index);
  return fate;
}

DoorbellFate Scheduler::blueflame(Time t, FunctionId f, std::uint32_t qpn, const std::uint8_t* bytes,
                                  unsigned len, std::uint32_t page) {
  if (len < sizeof(prm::CtrlSeg)) return DoorbellFate::kNobody;
  Qp* qp = nullptr;
  const DoorbellFate fate = sender(t, f, qpn, page, qp);
  if (fate != DoorbellFate::kTaken) return fate;
  RequesterState& s = qp->req;
  s.blueflame_len = std::min<unsigned>(len, s.blueflame.size());
  std::memcpy(s.blueflame.data(), bytes, s.blueflame_len);
  prm::CtrlSeg ctrl;
  std::memcpy(&ctrl, bytes, sizeof ctrl);
  ring(t, *qp, ctrl.wqe_index());
  return fate;
}

void Scheduler::wake(Time t, Qp& qp) {
  if (t >= qp.req.turn_at) return;
  qp.req.turn_at = t;
  ready_.push(t, Turn{qp.qpn, qp.function, false, qp.req.epoch});
}

void Scheduler::wake_responder(Time t, Qp& qp) {
  if (t >= qp.resp.turn_at) return;
  qp.resp.turn_at = t;
  ready_.push(t, Turn{qp.qpn, qp.function, true, qp.req.epoch});
}

void Scheduler::resume(Time t) {
  blocks_.qps.for_each([&](QpTable& qps) {
    qps.for_each_qp([&](Qp& qp) {
      if (qp.req.turn_at != kNever && !qp.req.port_queued) wake(t, qp);
      if (qp.resp.turn_at != kNever && !qp.resp.port_queued) wake_responder(t, qp);
    });
  });
  if (port_queue_.empty()) return;
  for (Waiting& w : port_queue_) w.open = t;
  arm_port(t);
}

void Scheduler::leave_line(Time t, FunctionId f) {
  for (auto it = port_queue_.begin(); it != port_queue_.end();) {
    if (it->turn.function != f) {
      ++it;
      continue;
    }
    blocks_.classes.left(it->tc);
    blocks_.qos[f].left(t, it->group);
    it = port_queue_.erase(it);
  }
}

void Scheduler::recount_line() {
  blocks_.qos.for_each([](Qos& qos) { qos.forget_waiting(); });
  for (const Waiting& w : port_queue_) blocks_.qos[w.turn.function].waits(w.group);
}

void Scheduler::clear() { reset_state(*this); }

Time Scheduler::port_open(PortAffinity affinity, std::uint32_t requester) const {
  const Profile::Engine& e = blocks_.profile.engine;
  const Time ahead =
      blocks_.port.backlog_limit() + blocks_.profile.pcie.read_latency + e.gather + e.tx_pipeline;
  const Port& port = blocks_.port.egress(affinity);
  const Time free = port.tx_free(requester), now = sim_now();
  // A unit is busy for longer with a response than with a request, so that what it took ahead of its time
  // comes apart, and keeps nobody from going in between.
  const Time apart = requester == kResponder && free > now + ahead ? port.tx_idle(now) : 0;
  return std::max<Time>(free - apart - ahead, 0);
}

namespace {

// How much sooner than others the next message of a QP begins, as it waits for its first page.
Time lead_of(const Qp* qp, bool responder, const Profile& profile) {
  if (!qp) return 0;
  if (!responder) {
    const RequesterState& s = qp->req;
    if (s.next_to_send >= s.window.size() || s.window[s.next_to_send].inline_data) return 0;
    return PagePace::lead(s.window[s.next_to_send].length, profile);
  }
  for (const ResponderResource& r : qp->resp.resources)
    if (!r.done()) return r.atomic ? 0 : PagePace::lead(r.length, profile);
  return 0;
}

}  // namespace

// Who is free only then has to wait longer than what may share this activation.
bool Scheduler::beyond(Time due, Time free) const {
  return free > due && free > sim_now() + blocks_.profile.engine.batch_window;
}

// Null: the QP was reset since, or is no more.
Qp* Scheduler::qp_of(const Turn& turn) const {
  Qp* qp = blocks_.qps[turn.function].find(turn.qpn);
  return qp && qp->req.epoch == turn.epoch ? qp : nullptr;
}

bool Scheduler::alone_in_line(const Qp& qp) const {
  const Turn& first = port_queue_.front().turn;
  return port_queue_.size() == 1 && first.qpn == qp.qpn && first.function == qp.function && !first.responder;
}

void Scheduler::run(Time due, const Turn& turn) {
  Qp* qp = qp_of(turn);
  if (!qp) return;
  Time& turn_at = turn.responder ? qp->resp.turn_at : qp->req.turn_at;
  if (due != turn_at) return;  // an earlier turn took its place
  const Time own = turn.responder ? qp->resp.unit_until : qp->req.unit_until;
  const Time free = units_.idle_at(due) ? own : std::max(units_.free_at(), own);
  if (beyond(due, free)) {
    turn_at = free;
    ready_.push(free, turn);
    return;
  }
  take(due, turn, *qp);
}

void Scheduler::take(Time due, const Turn& turn, Qp& qp) {
  const Profile& profile = blocks_.profile;
  // Whoever resumes the function gives its queues turns.
  if (const Suspension& held = blocks_.qps[turn.function].suspension;
      __builtin_expect(turn.responder ? held.responder : held.initiator, 0)) {
    (turn.responder ? qp.resp.turn_at : qp.req.turn_at) = kNever;
    return;
  }
  Time& own = turn.responder ? qp.resp.unit_until : qp.req.unit_until;
  Time& unit = units_.best(std::max(due, own));
  const Time start = std::max({due, own, unit}) + profile.engine.schedule;
  (turn.responder ? qp.resp.turn_at : qp.req.turn_at) = kNever;
  const auto next = [&](const auto& result) {
    unit = own = std::max(start, result.engine_free);
    traces::trace_busy(blocks_.tracer, traces::Unit::kTurns, units_.number(unit),
                       start - profile.engine.schedule, unit, turn.qpn);
    if (result.again == kNever) return;
    const Time again = std::max(result.again, start + profile.cycle);
    if (result.port)
      wait_for_port(turn, qp, again);
    else if (turn.responder)
      wake_responder(again, qp);
    else
      wake(again, qp);
  };
  if (turn.responder)
    next(blocks_.responder.turn(start, qp));
  else
    next(blocks_.requester.turn(start, qp));
}

void Scheduler::wait_for_port(const Turn& turn, Qp& qp, Time open) {
  (turn.responder ? qp.resp.turn_at : qp.req.turn_at) = open;  // no event before then gives it a turn
  bool& queued = turn.responder ? qp.resp.port_queued : qp.req.port_queued;
  if (queued) return;
  queued = true;
  const std::uint32_t group = turn.responder ? qp.qos.responder_group : qp.qos.group;
  blocks_.qos[turn.function].waits(group);
  const unsigned tc = blocks_.classes.of(qp.priority());
  blocks_.classes.waits(tc);
  port_queue_.push_back({{qp.qpn, qp.function, turn.responder, qp.req.epoch},
                         group,
                         open,
                         qp.affinity,
                         static_cast<std::uint8_t>(tc)});
  arm_port(open);  // the first one may have asked for room for more
}

void Scheduler::arm_port(Time t) {
  if (t >= port_armed_) return;
  port_armed_ = t;
  port_turns_.push(t, true);
}

// The QPs that come next are known: what their turns look at is fetched while others have theirs, one pointer
// further each time.
void Scheduler::prefetch_next() const {
  if (!many_qps(blocks_.qps)) return;
  for (std::size_t i = 0; i < std::min<std::size_t>(port_queue_.size(), 3); ++i) {
    const Turn& turn = port_queue_[i].turn;
    const Qp* qp = turn.responder ? nullptr : blocks_.qps[turn.function].find(turn.qpn);
    if (!qp) continue;
    const RequesterState& s = qp->req;
    if (i == 2) {
      qp->prefetch();
      qp->prefetch_pace();
      s.prefetch();
    } else if (s.next_to_send < s.window.size()) {
      const SendWqe& wqe = s.window[s.next_to_send];
      if (i == 1)
        wqe.prefetch();
      else
        wqe.prefetch_targets();
    }
  }
}

// Of the class whose turn it is.
std::deque<Scheduler::Waiting>::iterator Scheduler::first_in_line() {
  if (!blocks_.classes.mixed()) return port_queue_.begin();
  const unsigned tc = blocks_.classes.next();
  const auto it =
      std::find_if(port_queue_.begin(), port_queue_.end(), [tc](const Waiting& w) { return w.tc == tc; });
  return it != port_queue_.end() ? it : port_queue_.begin();
}

// When there is room for its packet.
Time Scheduler::room_for(const Waiting& w) const {
  if (port_queue_.size() == 1) return w.open;
  const Turn& turn = w.turn;
  return port_open(w.affinity, turn.responder ? kResponder : blocks_.tracer.tag(turn.qpn)) -
         lead_of(qp_of(turn), turn.responder, blocks_.profile);
}

// The first that leaves by another port than this one: each port of a link has a line of its own.
std::deque<Scheduler::Waiting>::iterator Scheduler::first_of_other_port(const Waiting& than) {
  if (!blocks_.port.aggregated()) return port_queue_.end();
  const Port* of = &blocks_.port.egress(than.affinity);
  return std::find_if(port_queue_.begin(), port_queue_.end(),
                      [&](const Waiting& w) { return &blocks_.port.egress(w.affinity) != of; });
}

void Scheduler::port_turn(Time due) {
  if (due != port_armed_) return;  // an earlier one took its place
  port_armed_ = kNever;
  while (!port_queue_.empty()) {
    auto first = first_in_line();
    Time room = room_for(*first);
    if (room > due) {
      const auto other = first_of_other_port(*first);
      const Time there = other != port_queue_.end() ? room_for(*other) : kNever;
      if (there < room) first = other, room = there;
    }
    if (room > due) return arm_port(room);
    const Turn turn = first->turn;
    if (const Time free = units_.idle_at(due) ? 0 : units_.free_at(); beyond(due, free))
      return arm_port(free);
    const std::uint32_t group = first->group;
    blocks_.classes.left(first->tc);
    port_queue_.erase(first);
    blocks_.qos[turn.function].left(due, group);
    Qp* qp = qp_of(turn);
    if (!qp) continue;
    (turn.responder ? qp->resp.port_queued : qp->req.port_queued) = false;
    prefetch_next();
    take(due, turn, *qp);
  }
}

}  // namespace hcasim
