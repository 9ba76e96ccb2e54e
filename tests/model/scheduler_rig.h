// SPDX-License-Identifier: BSD-3-Clause
// A scheduler with its leaf blocks, and fakes in place of the engines that it gives turns to.
#ifndef HCASIM_TESTS_MODEL_SCHEDULER_RIG_H
#define HCASIM_TESTS_MODEL_SCHEDULER_RIG_H

#include <deque>
#include <vector>

#include "model/ctx/qp.h"
#include "model/fault/injector.h"
#include "model/port/port.h"
#include "model/profile.h"
#include "model/sched/qos.h"
#include "model/sched/scheduler.h"

namespace hcasim::test {

// Takes notes of turns and doorbells, and wants what it was told to want.
class FakeEngine : public TurnTaker, public DoorbellWatcher {
 public:
  struct Seen {
    Time at;
    std::uint32_t qpn;
  };
  TurnResult turn(Time t, Qp& qp) override {
    turns.push_back({t, qp.qpn});
    if (results.empty()) return {t, kNever};
    TurnResult r = results.front();
    results.pop_front();
    r.engine_free += t;
    if (r.again != kNever) r.again += t;
    return r;
  }
  void doorbell(Time t, Qp& qp) override { doorbells.push_back({t, qp.qpn}); }

  std::deque<TurnResult> results;  // of the next turns, times from the turn's start; then: no other turn
  std::vector<Seen> turns, doorbells;
};

struct SchedulerRig {
  SchedulerRig(const Profile& p, traces::Tracer& tracer, FaultSink& faults)
      : profile(p),
        port("scheduler_port", p, tracer, faults),
        qos(p.port.rate_gbps * 1000),
        injector("scheduler_injector", tracer, faults),
        scheduler("scheduler", {profile, tracer, faults, port, qos, injector, requester, responder,
                                prefetcher, doorbell_faults, qps}) {}
  const Profile& profile;
  QpTable qps;
  Port port;
  Qos qos;
  Injector injector;
  FakeEngine requester, responder, prefetcher, doorbell_faults;
  Scheduler scheduler;
};

}  // namespace hcasim::test
#endif
