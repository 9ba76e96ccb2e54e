// SPDX-License-Identifier: BSD-3-Clause
#include "model/ctx/cache.h"
#include "model/state/state.h"

#include <algorithm>

namespace hcasim {

ContextCache::ContextCache(unsigned entries, unsigned ways) : ways_(std::max(1u, ways)) {
  while ((std::uint64_t{1} << log_sets_) * ways_ < entries) ++log_sets_;
  const std::uint64_t sets = std::uint64_t{1} << log_sets_;
  set_mask_ = sets - 1;
  first_.assign(sets, Line{});
  others_.assign(sets * (ways_ - 1), Line{});
}

// It is not the one used last of its set.
bool ContextCache::touch_others(std::uint64_t id) {
  Line* const set = others(last_);
  Line* const end = set + (ways_ - 1);
  const std::uint64_t tag = id + 1;
  Line* const found = std::find_if(set, end, [tag](const Line& line) { return line.tag == tag; });
  const bool hit = found != end;
  const Line now_first = hit ? *found : Line{tag, 0};
  if (set != end) {
    std::move_backward(set, hit ? found : end - 1, hit ? found + 1 : end);
    *set = first_[last_];
  }
  first_[last_] = now_first;
  ++(hit ? hits_ : misses_);
  return hit;
}

void ContextCache::arrives(std::uint64_t id, Time t) {
  const std::size_t number = set_of(id);
  const auto tell = [id, t](Line& line) {
    if (line.tag == id + 1 && line.there == 0) line.there = t;
  };
  tell(first_[number]);
  std::for_each(others(number), others(number + 1), tell);
}

bool ContextCache::contains(std::uint64_t id) const {
  const std::size_t number = set_of(id);
  const auto is = [id](const Line& line) { return line.tag == id + 1; };
  const Line* const set = others_.data() + number * (ways_ - 1);
  return is(first_[number]) || std::any_of(set, set + (ways_ - 1), is);
}

void ContextCache::invalidate(std::uint64_t id) {
  const std::size_t number = set_of(id);
  Line* const set = others(number);
  Line* const all = others(number + 1);
  Line* const end = std::remove_if(set, all, [id](const Line& line) { return line.tag == id + 1; });
  std::fill(end, all, Line{});
  if (first_[number].tag != id + 1) return;
  first_[number] = Line{};
  if (set == all) return;
  first_[number] = *set;
  std::move(set + 1, all, set);
  *(all - 1) = Line{};
}

void ContextCache::clear() { reset_state(*this); }

}  // namespace hcasim
