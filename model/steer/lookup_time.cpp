// SPDX-License-Identifier: BSD-3-Clause
#include "model/steer/lookup_time.h"

#include "model/ctx/fetch.h"

namespace hcasim {

namespace {
constexpr unsigned kEntryBytes = 64;  // of a steering table entry in memory
}

LookupTime::LookupTime(const Blocks& blocks)
    : profile_(blocks.profile.steering),
      contexts_(blocks.contexts),
      entries_(blocks.profile.cache.ste, blocks.profile.cache.ways) {}

Time LookupTime::look_up(Time t, std::uint64_t line) {
  const Time start = busy_.reserve(t, profile_.look_up_every);
  return contexts_.get(start, entries_, line, kEntryBytes).at + profile_.look_up;
}

void LookupTime::clear() {
  entries_.clear();
  busy_.clear();
}

}  // namespace hcasim
