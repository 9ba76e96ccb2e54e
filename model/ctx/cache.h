// SPDX-License-Identifier: BSD-3-Clause
// Timing of an on-chip context cache (QPC, CQC, MKEY, MTT): which identifiers hit, and since when. Contents
// live in the tables of the model; this holds only tags. Set-associative, LRU in each set.
#ifndef HCASIM_MODEL_CTX_CACHE_H
#define HCASIM_MODEL_CTX_CACHE_H

#include <cstdint>
#include <vector>

#include "model/cache_lines.h"
#include "model/time.h"

namespace hcasim {

// In one cache line, as a hit writes to it.
class alignas(64) ContextCache {
 public:
  // entries: total, rounded up to a multiple of ways with a power-of-two number of sets.
  ContextCache(unsigned entries, unsigned ways);
  // True when `id` is present; otherwise it is brought in (the least recently used of its set leaves).
  bool touch(std::uint64_t id) {
    last_ = set_of(id);
    if (lines_[last_].tag != id + 1) return touch_others(id);
    ++hits_;
    return true;
  }
  // Of the entry touched last: from when on it can be used. One that nothing was told of: at once.
  Time there() const { return lines_[last_].there; }
  void arrives(Time t) { lines_[last_].there = t; }
  // The same for `id`, if it is still in the cache and nothing was told of it.
  void arrives(std::uint64_t id, Time t);
  void invalidate(std::uint64_t id);
  void clear();
  void take_lines() const { take_line(this); }
  // It will be asked for soon: its place comes into the processor's own caches meanwhile.
  void ask_for(std::uint64_t id) const { take_line(&lines_[set_of(id)]); }
  std::uint64_t hits() const { return hits_; }
  std::uint64_t misses() const { return misses_; }

 private:
  struct Line {
    std::uint64_t tag = 0;  // 0 = empty, id + 1
    Time there = 0;
  };
  // Neighbouring identifiers spread over the sets in any case; the multiplication keeps strided ones apart
  // too.
  std::size_t set_of(std::uint64_t id) const {
    const std::uint64_t h = id * 0x9e3779b97f4a7c15ULL;
    return ((h ^ h >> 32) & set_mask_) * ways_;
  }
  bool touch_others(std::uint64_t id);

  unsigned ways_;
  std::uint64_t set_mask_;
  std::vector<Line> lines_;  // [set][way], most recent first
  std::size_t last_ = 0;
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
};

}  // namespace hcasim
#endif
