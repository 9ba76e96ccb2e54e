// SPDX-License-Identifier: BSD-3-Clause
#include "model/ctx/cache.h"

#include <algorithm>

namespace hcasim {

ContextCache::ContextCache(unsigned entries, unsigned ways) : ways_(std::max(1u, ways)) {
  std::uint64_t sets = 1;
  while (sets * ways_ < entries) sets *= 2;
  set_mask_ = sets - 1;
  lines_.assign(sets * ways_, Line{});
}

// It is not the one used last of its set.
bool ContextCache::touch_others(std::uint64_t id) {
  Line* set = &lines_[last_];
  const std::uint64_t tag = id + 1;
  unsigned way = 1;
  while (way < ways_ && set[way].tag != tag) ++way;
  const bool hit = way < ways_;
  const Line first = hit ? set[way] : Line{tag, 0};
  for (unsigned i = hit ? way : ways_ - 1; i > 0; --i) set[i] = set[i - 1];
  set[0] = first;
  ++(hit ? hits_ : misses_);
  return hit;
}

void ContextCache::arrives(std::uint64_t id, Time t) {
  Line* set = &lines_[set_of(id)];
  for (unsigned way = 0; way < ways_; ++way)
    if (set[way].tag == id + 1 && set[way].there == 0) set[way].there = t;
}

void ContextCache::invalidate(std::uint64_t id) {
  Line* set = &lines_[set_of(id)];
  Line* end = std::remove_if(set, set + ways_, [id](const Line& line) { return line.tag == id + 1; });
  std::fill(end, set + ways_, Line{});
}

void ContextCache::clear() {
  std::fill(lines_.begin(), lines_.end(), Line{});
  hits_ = misses_ = 0;
}

}  // namespace hcasim
