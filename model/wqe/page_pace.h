// SPDX-License-Identifier: BSD-3-Clause
// How a message's payload comes from the host: page by page, each read by an engine at its own pace, which is
// less than the link's, several side by side. So the first page sets how soon a message leaves, whatever its
// packets are; behind it the link does, or how many pages are read at a time.
#ifndef HCASIM_MODEL_WQE_PAGE_PACE_H
#define HCASIM_MODEL_WQE_PAGE_PACE_H

#include <algorithm>
#include <array>
#include <cstdint>

#include "model/profile.h"
#include "model/state/fields.h"
#include "model/time.h"

namespace hcasim {

// Of one queue's messages, one after the other.
class PagePace {
 public:
  static constexpr std::uint32_t kPage = Profile::Engine::kPage;
  static constexpr std::uint32_t kFirst = 64;  // bytes that the latency of a read brings

  // Bytes from `offset` of a message on could be asked for at t; returns when they are.
  Time begin(Time t, std::uint64_t offset, const Profile& profile) {
    const std::uint64_t page = offset / kPage;
    if (offset == 0 || page != page_) {
      const bool next = offset != 0 && page == page_ + 1 && page >= profile.engine.gather_pages;
      start_ = next ? std::max(t, ends_[page % profile.engine.gather_pages]) : t;
      page_ = page;
    }
    return std::max(t, start_);
  }
  // Bytes [offset, offset + len), len > 0, of that page have come over the link at t; returns when its engine
  // has them all.
  Time end(Time t, std::uint64_t offset, std::uint32_t len, const Profile& profile) {
    const std::uint64_t into = offset % kPage + len;
    const Time paced = into <= kFirst
                           ? 0
                           : start_ + profile.pcie.read_latency +
                                 profile.engine.gather_page * static_cast<Time>(into - kFirst) / kPage;
    return ends_[page_ % profile.engine.gather_pages] = std::max(t, paced);
  }

  // So much sooner than one that needs no page may a message begin, for the port to be kept busy.
  static Time lead(std::uint64_t length, const Profile& profile) {
    return profile.engine.gather_page * static_cast<Time>(std::min<std::uint64_t>(length, kPage)) / kPage;
  }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, page_, start_, ends_);
  }

 private:
  std::uint64_t page_ = 0;
  Time start_ = 0;
  std::array<Time, Profile::Engine::kMostPages> ends_{};
};

}  // namespace hcasim
#endif
