// SPDX-License-Identifier: BSD-3-Clause
#include "model/tm/tag_list.h"

#include <algorithm>

namespace hcasim {

bool TagList::append(TagEntry entry, std::uint16_t next) {
  if (!valid(next_) || !valid(next) || used_[next_]) return false;
  entry.index = next_;
  entry.ready = hw_phase_ == sw_phase_;
  used_[next_] = true;
  next_ = next;
  entries_.push_back(entry);
  return true;
}

void TagList::erase(std::size_t at) {
  used_[entries_[at].index] = false;
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(at));
}

bool TagList::remove(std::uint16_t index) {
  if (!valid(index) || !used_[index]) return false;
  const auto it =
      std::find_if(entries_.begin(), entries_.end(), [index](const TagEntry& e) { return e.index == index; });
  if (it == entries_.end()) return false;
  erase(static_cast<std::size_t>(it - entries_.begin()));
  return true;
}

std::optional<TagEntry> TagList::match(std::uint64_t tag) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const TagEntry& e = entries_[i];
    // Entries turn ready from the oldest on, so none behind this one is.
    if (!e.ready) return std::nullopt;
    if ((tag & e.mask) == e.tag) {
      const TagEntry found = e;
      erase(i);
      return found;
    }
  }
  return std::nullopt;
}

void TagList::synchronize(std::uint16_t sw_phase) {
  sw_phase_ = sw_phase;
  if (sw_phase_ != hw_phase_) return;
  for (TagEntry& e : entries_) e.ready = true;
}

}  // namespace hcasim
