// SPDX-License-Identifier: BSD-3-Clause
// Reads of contexts and translations that the caches on the chip do not hold. Each is a read of host memory
// that the work waits for, and only so many are under way at a time: their rate is bounded by that number
// over the read's latency, however many units ask.
#ifndef HCASIM_MODEL_CTX_FETCH_H
#define HCASIM_MODEL_CTX_FETCH_H

#include <algorithm>
#include <functional>

#include "model/ctx/cache.h"
#include "model/occupancy.h"
#include "model/profile.h"
#include "model/state/fields.h"
#include "model/time.h"

namespace hcasim {

class ContextFetch {
 public:
  // When a read of so many bytes that is asked for at t has come.
  using Read = std::function<Time(Time t, unsigned bytes)>;

  ContextFetch(const Profile& profile, Read read)
      : read_(std::move(read)), share_(profile.pcie.read_latency / std::max(1u, profile.cache.outstanding)) {}

  struct Got {
    Time at;  // when the entry can be used
    bool missed;
  };
  // Entry `id` of a cache for work at t. One that is under way already is waited for, not read again.
  [[gnu::always_inline]] Got get(Time t, ContextCache& cache, std::uint64_t id, unsigned bytes) {
    if (cache.touch(id)) return {std::max(t, cache.there()), false};
    return {fetch(t, cache, bytes), true};
  }
  // The read alone.
  Time read(Time t, unsigned bytes) { return read_(issue_.reserve(t, share_), bytes); }
  void clear() { issue_.clear(); }
  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, issue_);
  }

 private:
  // The entry touched last.
  [[gnu::noinline]] Time fetch(Time t, ContextCache& cache, unsigned bytes) {
    const Time at = read(t, bytes);
    cache.arrives(at);
    return at;
  }

  Read read_;
  const Time share_;  // of the latency, for each that may be under way: the time from one read to the next
  Occupancy issue_;
};

}  // namespace hcasim
#endif
