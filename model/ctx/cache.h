// SPDX-License-Identifier: BSD-3-Clause
// Timing of an on-chip context cache (QPC, CQC, MKEY, MTT): which identifiers hit. Contents live in the
// tables of the model; this holds only tags. Set-associative, LRU in each set.
#ifndef HCASIM_MODEL_CTX_CACHE_H
#define HCASIM_MODEL_CTX_CACHE_H

#include <cstdint>
#include <vector>

namespace hcasim {

class ContextCache {
 public:
  // entries: total, rounded up to a multiple of ways with a power-of-two number of sets.
  ContextCache(unsigned entries, unsigned ways);
  // True when `id` is present; otherwise it is brought in (the least recently used of its set leaves).
  bool touch(std::uint64_t id);
  void invalidate(std::uint64_t id);
  void clear();
  std::uint64_t hits() const { return hits_; }
  std::uint64_t misses() const { return misses_; }

 private:
  unsigned ways_;
  std::uint64_t set_mask_;
  std::vector<std::uint64_t> tags_;  // [set][way], most recent first; 0 = empty, tag = id + 1
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
};

}  // namespace hcasim
#endif
