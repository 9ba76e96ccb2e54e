// SPDX-License-Identifier: BSD-3-Clause
#include "model/sched/qos.h"
#include "model/state/state.h"

#include <algorithm>
#include <limits>

namespace hcasim {

namespace {
// What siblings may be apart, bytes of the one with the smallest share; and what an element may send at once
// after a rest.
constexpr std::uint64_t kQuantum = 8192;
// A sibling that has not been ready for so many quanta leaves its share to the others.
constexpr Time kIdleQuanta = 8;
// 26 days: as far ahead as a rate next to zero puts a turn, so that no sum of times leaves its range.
constexpr Time kFar = std::numeric_limits<Time>::max() / 4;
}  // namespace

Time RateClock::time_of(std::uint64_t bytes) const {
  // Mb/s: a bit takes 1000 / mbps nanoseconds.
  const double ns = static_cast<double>(bytes) * 8 * 1000 / mbps;
  const double time = ns * static_cast<double>(from_ns(1));
  return time < static_cast<double>(kFar) ? static_cast<Time>(time) : kFar;
}

Time RateClock::earliest(Time t) const {
  if (!(mbps > 0)) return t;
  return std::max(t, std::clamp(next, Time{0}, kFar) - (burst != 0 ? time_of(burst) : 0));
}

void RateClock::sent(Time t, std::uint64_t bytes) {
  if (mbps > 0) next = std::min(std::min(std::max(next, t), kFar) + time_of(bytes), kFar);
}

void Qos::set_pace(std::uint16_t index, std::uint32_t kbps, std::uint32_t burst) {
  if (index == 0 || index >= kPaces) return;
  paces_[index] = {kbps, burst};
}

Qos::Element* Qos::find(std::uint32_t id) {
  const auto it = elements_.find(id);
  return it == elements_.end() ? nullptr : &it->second;
}

void Qos::create_element(std::uint32_t id, std::uint32_t parent) {
  Element e;
  e.parent = parent;
  e.rate.burst = kQuantum;
  elements_[id] = e;
}

void Qos::set_share(std::uint32_t id, std::uint32_t share) {
  if (Element* e = find(id)) e->share = std::max(share, 1u);
}

void Qos::set_rate(std::uint32_t id, std::uint32_t mbps) {
  if (Element* e = find(id)) {
    e->rate.mbps = mbps;
    e->rate.next = 0;
  }
}

void Qos::destroy_element(std::uint32_t id) { elements_.erase(id); }

unsigned Qos::depth(std::uint32_t id) const {
  unsigned n = 0;
  for (auto it = elements_.find(id); it != elements_.end() && n <= kMaxDepth;
       it = elements_.find(it->second.parent))
    ++n;
  return n;
}

void Qos::clear() { reset_state(*this); }

Time Qos::quantum_time() const {
  RateClock port;
  port.mbps = port_mbps_;
  return std::max<Time>(1, port.time_of(kQuantum));
}

// Ahead of a sibling that wants to send: its turn comes when the sibling has had some.
Time Qos::share_delay(Time t, std::uint32_t id, Element& e) {
  const Time idle = kIdleQuanta * quantum_time();
  double least = std::numeric_limits<double>::max(), most = 0, share = e.share;
  for (auto& [other, s] : elements_) {
    if (other == id || s.parent != e.parent) continue;
    most = std::max(most, s.served);
    if (s.waiting == 0 && (s.wanted < 0 || t - s.wanted > idle)) continue;
    least = std::min(least, s.served);
    share = std::min(share, s.share);
  }
  // What nobody else wanted is not held against anyone, and what was not wanted for a while is not made up
  // for.
  if (least == std::numeric_limits<double>::max()) {
    e.served = std::max(e.served, most);
    return t;
  }
  const bool fresh = e.waiting == 0 && (e.wanted < 0 || t - e.wanted > idle);
  if (fresh) e.served = std::max(e.served, least);
  return e.served > least + static_cast<double>(kQuantum) / share ? t + quantum_time() : t;
}

void Qos::set_vport(std::uint16_t vport, std::uint32_t id) {
  if (id == 0)
    vports_.erase(vport);
  else
    vports_[vport] = id;
}

void Qos::attach(Qos& manager, std::uint16_t vport) {
  manager_ = &manager;
  vport_ = vport;
}

std::uint32_t Qos::vport_element() const {
  if (!vport_limited()) return 0;
  const auto it = manager_->vports_.find(vport_);
  return it == manager_->vports_.end() ? 0 : it->second;
}

void Qos::count_waiting(std::uint32_t id) {
  unsigned steps = 0;
  for (Element* e = find(id); e != nullptr && steps < kMaxDepth; e = find(e->parent), ++steps) ++e->waiting;
}

void Qos::count_left(Time t, std::uint32_t id) {
  unsigned steps = 0;
  for (Element* e = find(id); e != nullptr && steps < kMaxDepth; e = find(e->parent), ++steps) {
    if (e->waiting == 0) continue;
    --e->waiting;
    e->wanted = std::max(e->wanted, t);
  }
}

void Qos::begin_anew() {
  for (auto& [id, e] : elements_) {
    e.rate.next = 0;
    e.served = 0;
    e.wanted = -1;
    e.waiting = 0;
  }
}

void Qos::forget_waiting() {
  for (auto& [id, e] : elements_) e.waiting = 0;
}

void Qos::waits(std::uint32_t group) {
  count_waiting(group);
  if (const std::uint32_t vport = vport_element(); vport != 0) manager_->count_waiting(vport);
}

void Qos::left(Time t, std::uint32_t group) {
  count_left(t, group);
  if (const std::uint32_t vport = vport_element(); vport != 0) manager_->count_left(t, vport);
}

Time Qos::earliest_by_rates(Time t, std::uint32_t id, Time at) {
  // What only waits for something above it wants to be served as soon as that lets it.
  Element* ready[kMaxDepth];
  unsigned steps = 0, n = 0;
  for (Element* e = find(id); e != nullptr && steps < kMaxDepth; e = find(e->parent), ++steps) {
    at = std::max(at, e->rate.earliest(t));
    if (at <= t) ready[n++] = e;
  }
  for (unsigned i = 0; i < n && at > t; ++i) ready[i]->wanted = at;
  return at;
}

Time Qos::earliest_by_shares(Time t, std::uint32_t id) {
  Time at = t;
  unsigned steps = 0;
  for (Element* e = find(id); e != nullptr && steps < kMaxDepth; id = e->parent, e = find(id), ++steps) {
    if (e->parent != 0) at = std::max(at, share_delay(t, id, *e));
    e->wanted = t;
  }
  return at;
}

void Qos::charge(Time t, std::uint32_t id, std::uint64_t bytes) {
  unsigned steps = 0;
  for (Element* e = find(id); e != nullptr && steps < kMaxDepth; e = find(e->parent), ++steps) {
    e->rate.sent(t, bytes);
    e->served += static_cast<double>(bytes) / e->share;
  }
}

Time Qos::earliest_of_limited(Time t, Qp& qp, bool responder) {
  Time at = t;
  QpQos& q = qp.qos;
  if (!responder && q.pace != 0 && q.pace < kPaces) {
    q.clock.mbps = paces_[q.pace].kbps / 1000.0;
    q.clock.burst = paces_[q.pace].burst;
    at = std::max(at, q.clock.earliest(t));
  }
  if (classes_) at = std::max(at, classes_->earliest(t, class_of(qp)));
  const std::uint32_t group = responder ? q.responder_group : q.group, vport = vport_element();
  at = earliest_by_rates(t, group, at);
  if (vport != 0) at = manager_->earliest_by_rates(t, vport, at);
  if (at > t) return at;
  // Nothing but its siblings stands in its way.
  at = earliest_by_shares(t, group);
  if (vport != 0) at = std::max(at, manager_->earliest_by_shares(t, vport));
  return at;
}

void Qos::sent_of_limited(Time t, Qp& qp, bool responder, std::uint64_t bytes) {
  if (!responder) qp.qos.clock.sent(t, bytes);
  charge(t, responder ? qp.qos.responder_group : qp.qos.group, bytes);
  if (const std::uint32_t vport = vport_element(); vport != 0) manager_->charge(t, vport, bytes);
}

}  // namespace hcasim
