// SPDX-License-Identifier: BSD-3-Clause
// Timing of an on-chip context cache (QPC, CQC, MKEY, MTT): which identifiers hit, and since when. Contents
// live in the tables of the model; this holds only tags. Set-associative, LRU in each set.
#ifndef HCASIM_MODEL_CTX_CACHE_H
#define HCASIM_MODEL_CTX_CACHE_H

#include <cstdint>
#include <vector>

#include "model/prefetch.h"
#include "model/state/fields.h"
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
    if (first_[last_].tag != id + 1) return touch_others(id);
    ++hits_;
    return true;
  }
  // One that was touched by this work before is again, and nothing else of its set was.
  void touch_again() { ++hits_; }
  // Of the entry touched last: from when on it can be used. Without such a time: at once.
  Time there() const { return first_[last_].there; }
  void arrives(Time t) { first_[last_].there = t; }
  // The same for `id`, if it is still in the cache and no such time was set.
  void arrives(std::uint64_t id, Time t);
  // Whether it is there, without a use of it.
  bool contains(std::uint64_t id) const;
  void invalidate(std::uint64_t id);
  // All entries whose identifier is `which`: those of a function that is reset.
  template <class Which>
  void invalidate_if(Which which) {
    for (std::vector<Line>* lines : {&first_, &others_})
      for (Line& line : *lines)
        if (line.tag != 0 && which(line.tag - 1)) line = {};
  }
  void clear();
  void prefetch() const { prefetch_line(this); }
  // It will be asked for soon: its place comes into the processor's own caches meanwhile.
  void ask_for(std::uint64_t id) const { prefetch_line(&first_[set_of(id)]); }
  template <class Archive>
  void list_state(Archive& a) {
    a.kept("first", first_);
    a.kept("others", others_);
    HCASIM_FIELDS(a, last_, hits_, misses_);
    if constexpr (Archive::kLoads) a.check(last_ < first_.size() || last_ == 0, "there is no such line");
  }
  std::uint64_t hits() const { return hits_; }
  std::uint64_t misses() const { return misses_; }

 private:
  struct Line {
    std::uint64_t tag = 0;  // 0 = empty, id + 1
    Time there = 0;
    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, tag, there);
    }
  };
  // Neighbours lie in neighbouring sets, as they do in hardware, and so side by side here; where a stretch of
  // them begins is hashed, which keeps strided ones and those of several tables apart.
  std::size_t set_of(std::uint64_t id) const {
    const std::uint64_t stretch = id >> log_sets_;
    return (id + (stretch * 0x9e3779b97f4a7c15ULL >> 32)) & set_mask_;
  }
  bool touch_others(std::uint64_t id);

  Line* others(std::size_t set) { return others_.data() + set * (ways_ - 1); }

  unsigned ways_, log_sets_ = 0;
  std::uint64_t set_mask_;
  std::vector<Line> first_;   // of each set: the most recent
  std::vector<Line> others_;  // [set][way - 1], most recent first
  std::size_t last_ = 0;
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
};

}  // namespace hcasim
#endif
