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
  // Takes the unit for `duration` from t or as soon after as it is idle that long; returns the start. No work
  // of the unit takes less than `shortest`: what is idle for less is of no use, and not remembered.
  Time reserve(Time t, Time duration, Time shortest = 1) {
    if (t >= free_) {
      if (t - free_ >= shortest) remember(free_, t);
      free_ = t + duration;
      return t;
    }
    if (last_gap_to_ < t + duration) {  // as of a unit that is never idle
      const Time start = free_;
      free_ += duration;
      return start;
    }
    return reserve_gap(t, duration, shortest);
  }
  // The same for work that may be interrupted: takes what is idle from t on, piece by piece; returns its end.
  Time fill(Time t, Time duration, Time shortest = 1) {
    return fills_behind(t) ? append(t, duration, shortest) : fill_gaps(t, duration);
  }
  // Whether work for `duration` that could begin at t, and whatever could begin later, finds no gap: then it
  // goes behind all that was given (append(), which returns its end).
  bool appends(Time t, Time duration) const { return t >= free_ || last_gap_to_ < t + duration; }
  // The same of fill(): it finds nothing idle from t on but the end.
  bool fills_behind(Time t) const { return t >= free_ || t >= full_from_ || last_gap_to_ <= t; }
  Time append(Time t, Time duration, Time shortest = 1) {
    if (t > free_) {
      if (t - free_ >= shortest) remember(free_, t);
      free_ = t;
    }
    return free_ += duration;
  }
  // Of one that nothing was given yet: it is, until t.
  void taken_until(Time t) { free_ = t; }
  void prefetch() const { prefetch_line(this); }
  // From when on it is idle for good, as far as known.
  Time free_at() const { return free_; }
  // How long it is idle in all between t and free_at(), as far as remembered: of work that comes apart.
  Time idle_from(Time t) const {
    Time idle = 0;
    for (unsigned i = end_; i > first_ && gaps_[i - 1].to > t; --i)
      idle += gaps_[i - 1].to - std::max(gaps_[i - 1].from, t);
    return idle;
  }
  void clear() {
    free_ = 0;
    full_from_ = kNever;
    forget_gaps();
  }
  template <class Archive>
  void list_state(Archive& a) {
    if constexpr (Archive::kResets) {
      clear();
    } else {
      HCASIM_FIELDS(a, free_, full_from_);
      if constexpr (Archive::kLoads) {
        forget_gaps();
        a.list("gaps", [&](auto read) {
          a.check(end_ < kGaps, "there are more gaps than a unit remembers");
          read(gaps_[end_]);
          last_gap_to_ = gaps_[end_++].to;
        });
      } else if constexpr (Archive::kStores) {
        a.list("gaps", [&](auto write) {
          for (unsigned i = first_; i < end_; ++i) write(gaps_[i]);
        });
      } else {
        for (unsigned i = first_; i < end_; ++i) HCASIM_FIELDS(a, gaps_[i].from, gaps_[i].to);
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
  static constexpr unsigned kGaps = 64;  // remembered at most
  static constexpr unsigned kNear = 4;

  [[gnu::noinline]] Time reserve_gap(Time t, Time duration, Time shortest) {
    for (unsigned i = first_ending(t + duration); i < end_; ++i) {
      Gap& gap = gaps_[i];
      const Time start = std::max(gap.from, t);
      if (start + duration > gap.to) continue;
      const Gap rest{start + duration, gap.to};
      const bool before = start - gap.from >= shortest, after = rest.to - rest.from >= shortest;
      if (before) {
        gap.to = start;
        if (after) insert_behind(i, rest);
      } else if (after) {
        gap = rest;
      } else {
        remove(i);
      }
      note_last();
      return start;
    }
    const Time start = free_;
    free_ += duration;
    return start;
  }
  [[gnu::noinline]] Time fill_gaps(Time t, Time duration) {
    for (unsigned i = first_ending(t + 1); i < end_ && duration > 0; ++i) {
      Gap& gap = gaps_[i];
      const Time start = std::max(gap.from, t);
      const Time end = std::min(gap.to, start + duration);
      if (end <= start) continue;
      duration -= end - start;
      if (start == gap.from) {
        gap.from = end;
      } else {
        const Gap rest{end, gap.to};
        gap.to = start;
        if (rest.from < rest.to) insert_behind(i, rest);
      }
      if (duration == 0) {
        note_last();
        return end;
      }
    }
    note_last();
    if (duration > 0) full_from_ = t;
    free_ += duration;
    return free_;
  }
  // The first gap that does not end before t. Work comes about when the work before it did: the search begins
  // where the last one ended.
  unsigned first_ending(Time t) {
    unsigned from = first_, to = end_, i = std::clamp(near_, first_, end_);
    if (i == end_ || gaps_[i].to >= t) {
      for (unsigned steps = 0; i > from && steps < kNear && gaps_[i - 1].to >= t; ++steps) --i;
      if (i == from || gaps_[i - 1].to < t) return near_ = i;
      to = i;
    } else {
      for (unsigned steps = 0; i < to && steps < kNear && gaps_[i].to < t; ++steps) ++i;
      if (i == to || gaps_[i].to >= t) return near_ = i;
      from = i;
    }
    while (from != to) {
      const unsigned middle = (from + to) / 2;
      if (gaps_[middle].to < t)
        from = middle + 1;
      else
        to = middle;
    }
    return near_ = from;
  }
  void remember(Time from, Time to) {
    if (end_ == gaps_.size()) to_the_front();
    full_from_ = kNever;
    gaps_[end_++] = Gap{from, last_gap_to_ = to};
    if (end_ - first_ > kGaps) ++first_;
  }
  // Whichever side is shorter closes up, or makes room.
  void remove(unsigned i) {
    Gap *const gaps = gaps_.data(), *const gap = gaps + i;
    if (i - first_ < end_ - i)
      std::copy_backward(gaps + first_++, gap, gap + 1);
    else
      std::copy(gap + 1, gaps + end_--, gap);
  }
  void insert_behind(unsigned i, Gap rest) {
    Gap* const gaps = gaps_.data();
    if (end_ - first_ == kGaps) {  // the oldest goes for it
      if (i == first_) return;     // which is the one that this is the rest of
      ++first_;
    }
    if (first_ > 0 && i - first_ < end_ - i) {
      std::copy(gaps + first_, gaps + i + 1, gaps + first_ - 1);
      --first_;
      gaps[i] = rest;
      return;
    }
    if (end_ == gaps_.size()) i -= to_the_front();
    std::copy_backward(gaps + i + 1, gaps + end_, gaps + end_ + 1);
    ++end_;
    gaps[i + 1] = rest;
  }
  // Returns by how much the gaps are nearer to it.
  [[gnu::noinline]] unsigned to_the_front() {
    std::copy(gaps_.data() + first_, gaps_.data() + end_, gaps_.data());
    const unsigned by = first_;
    end_ -= by;
    first_ = 0;
    return by;
  }
  void forget_gaps() {
    first_ = end_ = 0;
    last_gap_to_ = 0;
  }
  void note_last() { last_gap_to_ = end_ == first_ ? 0 : gaps_[end_ - 1].to; }

  // What each reservation looks at and writes lies together; of the gaps it writes one.
  Time free_ = 0;
  Time full_from_ = kNever;  // no gap is left from here on
  Time last_gap_to_ = 0;     // where the last gap ends
  unsigned first_ = 0, end_ = 0;
  unsigned near_ = 0;                  // where a search begins: no state, it finds the same from anywhere
  std::array<Gap, 2 * kGaps> gaps_{};  // [first_, end_) one behind the other, further back as time goes on
};

}  // namespace hcasim
#endif
