// SPDX-License-Identifier: BSD-3-Clause
// How a message's payload comes from the host: page by page, each read by an engine at its own pace, which is
// less than the link's, several side by side. So the first page sets how soon a message leaves, whatever its
// packets are; behind it the link does, or how many pages are read at a time. Of one queue's messages but a
// few are read at a time, too.
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

  // When an engine can begin with the next message at the soonest.
  Time room(const Profile& profile) const {
    const unsigned n = profile.engine.gather_messages;
    if (n == 0) return 0;
    if (busy_until_ == 0) return messages_[place_ % n];
    return n == 1 ? busy_until_ : messages_[(place_ + 1) % n];
  }

  // Bytes from `offset` of a message on could be asked for at t; returns when they are.
  Time begin(Time t, std::uint64_t offset, const Profile& profile) {
    const std::uint64_t page = offset / kPage;
    if (offset == 0 && busy_until_ != 0 && profile.engine.gather_messages != 0) {
      messages_[place_ % profile.engine.gather_messages] = busy_until_;
      place_ = (place_ + 1) % profile.engine.gather_messages;
      busy_until_ = 0;
    }
    if (offset == 0 || page != page_) {
      const bool next = offset != 0 && page == page_ + 1 && page >= profile.engine.gather_pages;
      start_ = next ? std::max(t, ends_[page % profile.engine.gather_pages]) : t;
      if (offset == 0)
        if (const Time free = room(profile); free != 0) start_ = std::max(t, free + profile.engine.gather);
      page_ = page;
    }
    return std::max(t, start_);
  }
  // Bytes [offset, offset + len), len > 0, of that page have come over the link at t; returns when its engine
  // has them all.
  Time end(Time t, std::uint64_t offset, std::uint32_t len, const Profile& profile) {
    const std::uint64_t into = offset % kPage + len;
    const Time pace =
        into <= kFirst ? 0 : profile.engine.gather_page * static_cast<Time>(into - kFirst) / kPage;
    const Time paced = pace == 0 ? 0 : start_ + profile.pcie.read_latency + pace;
    // The next message's requests are under way while the answers to these come.
    if (pace != 0) busy_until_ = std::max(busy_until_, start_ + pace);
    return ends_[page_ % profile.engine.gather_pages] = std::max(t, paced);
  }

  // So much sooner than one that needs no page may a message begin, for the port to be kept busy.
  static Time lead(std::uint64_t length, const Profile& profile) {
    return profile.engine.gather_page * static_cast<Time>(std::min<std::uint64_t>(length, kPage)) / kPage;
  }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, page_, start_, ends_);
    HCASIM_FIELDS_SINCE(10, a, place_, busy_until_, messages_);
    if constexpr (Archive::kLoads) {
      for (const Time t : messages_) a.check(t >= 0 && t < kNever / 2, "an engine is busy for ever");
      a.check(busy_until_ >= 0 && busy_until_ < kNever / 2, "an engine is busy for ever");
    }
  }

 private:
  std::uint64_t page_ = 0;
  Time start_ = 0;
  std::array<Time, Profile::Engine::kMostPages> ends_{};
  // Until when engines were busy with the messages before, in turn, each from its set-up on; the next place
  // is of the one that they are busy with now, until then (0: nothing of it was read yet, or no more than a
  // read brings at once).
  std::array<Time, Profile::Engine::kMostMessages> messages_{};
  unsigned place_ = 0;
  Time busy_until_ = 0;
};

}  // namespace hcasim
#endif
