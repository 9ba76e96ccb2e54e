// SPDX-License-Identifier: BSD-3-Clause
// What a card's tracer has counted, as state: by the names of points and rules, as their numbers change.
#ifndef HCASIM_CARD_STATE_TRACE_STATE_H
#define HCASIM_CARD_STATE_TRACE_STATE_H

#include <cstdint>
#include <string>

#include "traces/tracer.h"

namespace hcasim::saved {

class TraceState {
 public:
  explicit TraceState(traces::Tracer& tracer) : tracer_(tracer) {}

  template <class Archive>
  void list_state(Archive& a) {
    std::uint32_t steps = tracer_.steps();
    a("steps", steps);
    if constexpr (Archive::kLoads) tracer_.set_steps(steps);
    list<Archive, traces::Point>(a, "points", traces::kPoints, tracer_);
    list<Archive, traces::Rule>(a, "rules", traces::kRules, tracer_.rules());
  }

 private:
  struct Count {
    std::string name;
    std::uint64_t count = 0;

    template <class Archive>
    void list_state(Archive& a) {
      a("name", name);
      a("count", count);
    }
  };
  // Those that are not 0. A point or rule that there is no more was counted for nothing.
  template <class Archive, class What, class Counts>
  static void list(Archive& a, const char* name, unsigned end, Counts& counts) {
    if constexpr (Archive::kLoads) {
      for (unsigned i = 0; i < end; ++i) counts.set_count(static_cast<What>(i), 0);
      a.list(name, [&](auto read) {
        Count one;
        read(one);
        for (unsigned i = 0; i < end; ++i)
          if (one.name == traces::info(static_cast<What>(i)).name)
            counts.set_count(static_cast<What>(i), one.count);
      });
    } else {
      a.list(name, [&](auto write) {
        for (unsigned i = 0; i < end; ++i) {
          Count one{traces::info(static_cast<What>(i)).name, counts.count(static_cast<What>(i))};
          if (one.count != 0) write(one);
        }
      });
    }
  }

  traces::Tracer& tracer_;
};

}  // namespace hcasim::saved
#endif
