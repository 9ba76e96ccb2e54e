// SPDX-License-Identifier: BSD-3-Clause
// When a unit that does one thing at a time (a link direction, a pipeline stage) can take the next. Work is
// computed ahead of its time, so a later call may well ask for an earlier time: it gets a gap that was left.
#ifndef HCASIM_MODEL_OCCUPANCY_H
#define HCASIM_MODEL_OCCUPANCY_H

#include <algorithm>
#include <array>

#include "model/prefetch.h"
#include "model/state/fields.h"
#include "model/time.h"

namespace hcasim {

class alignas(64) Occupancy {
 public:
  // Takes the unit for `duration` from t or as soon after as it is idle that long; returns the start.
  Time reserve(Time t, Time duration) {
    if (t >= free_) {
      if (t > free_) remember(free_, t);
      free_ = t + duration;
      return t;
    }
    if (count_ == 0 || at(count_ - 1).to < t + duration) {  // as of a unit that is never idle
      const Time start = free_;
      free_ += duration;
      return start;
    }
    return reserve_gap(t, duration);
  }
  // The same for work that may be interrupted: takes what is idle from t on, piece by piece; returns its end.
  Time fill(Time t, Time duration) { return fills_behind(t) ? append(t, duration) : fill_gaps(t, duration); }
  // Whether work for `duration` that could begin at t, and whatever could begin later, finds no gap: then it
  // goes behind all that was given (append(), which returns its end).
  bool appends(Time t, Time duration) const {
    return t >= free_ || count_ == 0 || at(count_ - 1).to < t + duration;
  }
  // The same of fill(): it finds nothing idle from t on but the end.
  bool fills_behind(Time t) const {
    return t >= free_ || count_ == 0 || t >= full_from_ || at(count_ - 1).to <= t;
  }
  Time append(Time t, Time duration) {
    if (t > free_) {
      remember(free_, t);
      free_ = t;
    }
    return free_ += duration;
  }
  void prefetch() const { prefetch_line(this); }
  // From when on it is idle for good, as far as known.
  Time free_at() const { return free_; }
  void clear() {
    free_ = 0;
    full_from_ = kNever;
    count_ = 0;
  }
  template <class Archive>
  void list_state(Archive& a) {
    if constexpr (Archive::kResets) {
      clear();
    } else {
      HCASIM_FIELDS(a, free_, full_from_);
      if constexpr (Archive::kLoads) {
        count_ = 0;
        a.list("gaps", [&](auto read) {
          a.check(count_ < kGaps, "there are more gaps than a unit remembers");
          read(at(count_++));
        });
      } else if constexpr (Archive::kStores) {
        a.list("gaps", [&](auto write) {
          for (unsigned i = 0; i < count_; ++i) write(at(i));
        });
      } else {
        for (unsigned i = 0; i < count_; ++i) HCASIM_FIELDS(a, at(i).from, at(i).to);
      }
    }
  }

 private:
  struct Gap {
    Time from, to;

    template <class Archive>
    void list_state(Archive& a) {
      a("from", from);
      a("to", to);
    }
  };
  static constexpr unsigned kGaps = 64;

  // Gaps lie one behind the other: those that end too early come first.
  [[gnu::noinline]] Time reserve_gap(Time t, Time duration) {
    for (unsigned i = first_ending(t + duration); i < count_; ++i) {
      Gap& gap = at(i);
      const Time start = std::max(gap.from, t);
      if (start + duration > gap.to) continue;
      const Gap rest{start + duration, gap.to};
      if (start == gap.from && rest.from == rest.to) {
        remove(i);
      } else if (start == gap.from) {
        gap = rest;
      } else {
        gap.to = start;
        if (rest.from < rest.to) insert_after(i, rest);
      }
      return start;
    }
    const Time start = free_;
    free_ += duration;
    return start;
  }
  [[gnu::noinline]] Time fill_gaps(Time t, Time duration) {
    for (unsigned i = first_ending(t + 1); i < count_ && duration > 0; ++i) {
      Gap& gap = at(i);
      const Time start = std::max(gap.from, t);
      const Time end = std::min(gap.to, start + duration);
      if (end <= start) continue;
      duration -= end - start;
      if (start == gap.from) {
        gap.from = end;
      } else {
        const Gap rest{end, gap.to};
        gap.to = start;
        if (rest.from < rest.to) insert_after(i, rest);
      }
      if (duration == 0) return end;
    }
    if (duration > 0) full_from_ = t;
    free_ += duration;
    return free_;
  }
  // The first gap that does not end before t.
  unsigned first_ending(Time t) {
    unsigned from = 0, to = count_;
    while (from != to) {
      const unsigned middle = (from + to) / 2;
      if (at(middle).to < t)
        from = middle + 1;
      else
        to = middle;
    }
    return from;
  }
  Gap& at(unsigned i) { return gaps_[(head_ + i) % kGaps]; }
  const Gap& at(unsigned i) const { return gaps_[(head_ + i) % kGaps]; }
  void remember(Time from, Time to) {
    full_from_ = kNever;
    at(count_) = Gap{from, to};  // of a full list: in place of the oldest
    if (count_ == kGaps)
      head_ = (head_ + 1) % kGaps;
    else
      ++count_;
  }
  void remove(unsigned i) {
    if (2 * i < count_) {
      for (unsigned j = i; j > 0; --j) at(j) = at(j - 1);
      head_ = (head_ + 1) % kGaps;
    } else {
      for (unsigned j = i; j + 1 < count_; ++j) at(j) = at(j + 1);
    }
    --count_;
  }
  // Whichever side is shorter makes room; in a full list the oldest goes for it.
  void insert_after(unsigned i, Gap gap) {
    if (count_ == kGaps && i == 0) return;  // its rest is lost
    if (2 * i < count_) {
      if (count_ != kGaps) {
        head_ = (head_ + kGaps - 1) % kGaps;
        ++count_;
        ++i;
      }
      for (unsigned j = 0; j < i; ++j) at(j) = at(j + 1);
      at(i) = gap;
      return;
    }
    if (count_ == kGaps) {
      head_ = (head_ + 1) % kGaps;
      --count_;
      --i;
    }
    for (unsigned j = count_; j > i + 1; --j) at(j) = at(j - 1);
    at(i + 1) = gap;
    ++count_;
  }

  // What each reservation writes lies together; of the gaps it writes one.
  Time free_ = 0;
  Time full_from_ = kNever;  // no gap is left from here on
  unsigned head_ = 0, count_ = 0;
  std::array<Gap, kGaps> gaps_{};
};

}  // namespace hcasim
#endif
