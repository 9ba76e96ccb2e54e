// SPDX-License-Identifier: BSD-3-Clause
// The least time between two interrupts of a function's vector (CONFIG_INT_MODERATION).
#ifndef HCASIM_MODEL_EQ_INTERRUPT_PACE_H
#define HCASIM_MODEL_EQ_INTERRUPT_PACE_H

#include <algorithm>
#include <map>

#include "model/state/fields.h"
#include "model/time.h"

namespace hcasim {

class InterruptPace {
 public:
  // 0: none.
  void set(unsigned vector, Time least) {
    if (least == 0)
      vectors_.erase(vector);
    else
      vectors_[vector].least = least;
  }
  Time of(unsigned vector) const {
    const auto it = vectors_.find(vector);
    return it != vectors_.end() ? it->second.least : 0;
  }
  // By how much an interrupt that is due at t has to wait; it is sent then.
  Time wait(unsigned vector, Time t) {
    const auto it = vectors_.find(vector);
    if (it == vectors_.end()) return 0;
    const Time at = std::max(t, it->second.next);
    it->second.next = at + it->second.least;
    return at - t;
  }
  void clear() { vectors_.clear(); }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, vectors_);
  }

 private:
  struct Vector {
    Time least = 0, next = 0;  // no interrupt comes before `next`

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, least, next);
      if constexpr (Archive::kLoads)
        a.check(least > 0 && least < kNever / 4 && next >= 0 && next < kNever / 2, "there is no such time");
    }
  };
  std::map<unsigned, Vector> vectors_;
};

}  // namespace hcasim
#endif
