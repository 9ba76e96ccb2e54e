// SPDX-License-Identifier: BSD-3-Clause
// A rate limiter as plain data: a token bucket kept as the time at which its tokens are used up. What is idle
// saves up `burst` bytes at most.
#ifndef HCASIM_MODEL_SCHED_RATE_CLOCK_H
#define HCASIM_MODEL_SCHED_RATE_CLOCK_H

#include <cstdint>

#include "model/state/fields.h"
#include "model/time.h"

namespace hcasim {

struct RateClock {
  double mbps = 0;          // 0: no limit
  std::uint64_t burst = 0;  // bytes that may go at once
  Time next = 0;

  Time time_of(std::uint64_t bytes) const;
  Time earliest(Time t) const;
  void sent(Time t, std::uint64_t bytes);

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, mbps, burst, next);
  }
};

// Of a QP or SQ.
struct QpQos {
  std::uint16_t pace = 0;             // index of a rate limiter, 0: none
  std::uint32_t group = 0;            // scheduling element of its requests, 0: none
  std::uint32_t responder_group = 0;  // of its READ and atomic responses
  RateClock clock;                    // of `pace`

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, pace, group, responder_group, clock);
  }
};

}  // namespace hcasim
#endif
