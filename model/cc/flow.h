// SPDX-License-Identifier: BSD-3-Clause
// One flow (QP) at its reaction point: DCQCN (Zhu et al., Congestion Control for Large-Scale RDMA
// Deployments, SIGCOMM 2015, ch. 3) with the parameters that ConnectX cards give it. Plain data with absolute
// times: what time has done to a flow is worked out when somebody asks, so that an idle QP costs nothing.
#ifndef HCASIM_MODEL_CC_FLOW_H
#define HCASIM_MODEL_CC_FLOW_H

#include <cstdint>

#include "model/cc/params.h"
#include "model/state/fields.h"
#include "model/time.h"

namespace hcasim {

struct CcFlow {
  bool limited = false;  // has a rate limiter: from its first CNP until its rate is the full one again
  double current = 0;    // Mb/s
  double target = 0;     // Mb/s
  double alpha = 0;      // 0 to 1024

  Time alpha_due = 0;            // next update of alpha
  bool cnp_since_alpha = false;  // a CNP came since the last
  Time cut_at = 0;               // last rate cut
  bool cut_pending = false;      // a CNP came too early after it: cut when the monitor period is over
  Time timer_due = kNever;       // next increase by the timer
  std::uint64_t bytes = 0;       // sent since the last event of the byte counter
  std::uint32_t time_events = 0, byte_events = 0;        // since the last cut
  bool raised_by_time = false, raised_by_bytes = false;  // since the last cut

  Time next_send = 0;       // the next packet leaves no earlier, at the current rate
  Time last_cnp_sent = -1;  // notification point of this QP, if it has times of its own; -1: none yet

  // A CNP for the flow. max: the port's rate, Mb/s.
  void on_cnp(Time t, const ReactionParams& p, double max);
  // Brings the state to time t.
  void advance(Time t, const ReactionParams& p, double max);
  // When the flow, brought to time t, may send, or when to ask again: t, or later, as its rate will rise if
  // no CNP comes until then. What it did not use until then is lost: it makes no bursts.
  Time earliest(Time t, const ReactionParams& p, double max);
  // A packet of so many bytes is on its way, sent when earliest() allowed: pace and byte counter. Only of a
  // limited flow.
  void on_sent(std::uint32_t size, const ReactionParams& p, double max);

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, limited, current, target, alpha, alpha_due, cnp_since_alpha, cut_at, cut_pending,
                  timer_due, bytes, time_events, byte_events, raised_by_time, raised_by_bytes, next_send,
                  last_cnp_sent);
    if constexpr (Archive::kLoads) {
      const auto rate = [](double r) { return r >= 0 && r <= kMostRate; };  // no NaN either
      a.check(rate(current) && rate(target) && alpha >= 0 && alpha <= kAlphaOne, "there is no such rate");
      const auto time = [](Time t) { return t >= 0 && t < kNever / 2; };
      a.check(time(alpha_due) && time(cut_at) && (time(timer_due) || timer_due == kNever) &&
                  time(next_send) && last_cnp_sent >= -1,
              "there is no such time");
      a.check(bytes <= kMostBytes, "no byte counter comes to that");
    }
  }

 private:
  static constexpr double kAlphaOne = 1024;
  static constexpr double kMostRate = 1e12;  // Mb/s, far beyond any port's
  // What the byte counter counts to at most.
  static constexpr std::uint64_t kMostBytes = UINT32_MAX;

  void advance_alpha(Time t, const ReactionParams& p);
  void cut(Time t, const ReactionParams& p);
  void skip_idle_events(Time t, const ReactionParams& p);
  void raise(Time t, const ReactionParams& p, double max);
  void set_current(Time t, double rate);
  // When time alone changes the rate; kNever: it does not.
  Time next_change(const ReactionParams& p) const;
};

}  // namespace hcasim
#endif
