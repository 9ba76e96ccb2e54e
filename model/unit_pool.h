// SPDX-License-Identifier: BSD-3-Clause
// Several units of one kind side by side, any of which can take the next piece of work: until when each is
// busy. Occupancy by arithmetic; no event of its own.
#ifndef HCASIM_MODEL_UNIT_POOL_H
#define HCASIM_MODEL_UNIT_POOL_H

#include <algorithm>
#include <vector>

#include "model/time.h"

namespace hcasim {

class UnitPool {
 public:
  explicit UnitPool(unsigned units) : busy_until_(std::max(1u, units), 0) {}

  // The unit for work that could begin at t: of those idle by then the one that became so last (it leaves the
  // smallest hole), else the one that is idle soonest. The caller sets it to the end of the work.
  Time& best(Time t) {
    Time* found = &busy_until_.front();
    for (Time& unit : busy_until_) {
      if (unit == t) return unit;
      const bool better = *found > t ? unit < *found : unit <= t && unit > *found;
      if (better) found = &unit;
    }
    return *found;
  }
  // Which of them that is.
  unsigned number(const Time& unit) const { return static_cast<unsigned>(&unit - busy_until_.data()); }
  // Whether one of them is idle then.
  bool idle_at(Time t) const {
    for (const Time unit : busy_until_)
      if (unit <= t) return true;
    return false;
  }
  // When the first of them is idle.
  Time free_at() const { return *std::min_element(busy_until_.begin(), busy_until_.end()); }
  void clear() { std::fill(busy_until_.begin(), busy_until_.end(), 0); }
  template <class Archive>
  void list_state(Archive& a) {
    a.kept("busy_until", busy_until_);
  }

 private:
  std::vector<Time> busy_until_;
};

}  // namespace hcasim
#endif
