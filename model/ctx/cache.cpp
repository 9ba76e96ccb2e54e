// SPDX-License-Identifier: BSD-3-Clause
#include "model/ctx/cache.h"

#include <algorithm>

namespace hcasim {

namespace {
// Neighbouring identifiers spread over the sets in any case; the multiplication keeps strided ones apart too.
std::uint64_t spread(std::uint64_t id) {
  const std::uint64_t h = id * 0x9e3779b97f4a7c15ULL;
  return h ^ h >> 32;
}
}  // namespace

ContextCache::ContextCache(unsigned entries, unsigned ways) : ways_(std::max(1u, ways)) {
  std::uint64_t sets = 1;
  while (sets * ways_ < entries) sets *= 2;
  set_mask_ = sets - 1;
  tags_.assign(sets * ways_, 0);
}

bool ContextCache::touch(std::uint64_t id) {
  std::uint64_t* set = &tags_[(spread(id) & set_mask_) * ways_];
  const std::uint64_t tag = id + 1;
  if (set[0] == tag) {
    ++hits_;
    return true;
  }
  unsigned way = 1;
  while (way < ways_ && set[way] != tag) ++way;
  const bool hit = way < ways_;
  for (unsigned i = hit ? way : ways_ - 1; i > 0; --i) set[i] = set[i - 1];
  set[0] = tag;
  ++(hit ? hits_ : misses_);
  return hit;
}

void ContextCache::invalidate(std::uint64_t id) {
  std::uint64_t* set = &tags_[(spread(id) & set_mask_) * ways_];
  std::uint64_t* end = std::remove(set, set + ways_, id + 1);
  std::fill(end, set + ways_, 0);
}

void ContextCache::clear() {
  std::fill(tags_.begin(), tags_.end(), 0);
  hits_ = misses_ = 0;
}

}  // namespace hcasim
