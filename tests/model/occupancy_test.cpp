// SPDX-License-Identifier: BSD-3-Clause
#include "model/occupancy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace hcasim {
namespace {

TEST(Occupancy, BackToBack) {
  Occupancy o;
  EXPECT_EQ(o.reserve(100, 10), 100);
  EXPECT_EQ(o.reserve(100, 10), 110);
  EXPECT_EQ(o.reserve(115, 10), 120);
  EXPECT_EQ(o.free_at(), 130);
}

TEST(Occupancy, AnEarlierTimeGetsTheGapThatWasLeft) {
  Occupancy o;
  EXPECT_EQ(o.reserve(1000, 10), 1000);
  EXPECT_EQ(o.reserve(500, 10), 500);
  EXPECT_EQ(o.reserve(500, 10), 510);
  EXPECT_EQ(o.reserve(985, 10), 985);
  EXPECT_EQ(o.reserve(985, 10), 1010);  // 5 are left before 1000
  EXPECT_EQ(o.reserve(0, 400), 0);
  EXPECT_EQ(o.reserve(0, 400), 520);
}

TEST(Occupancy, HowLongItIsIdleInAll) {
  Occupancy o;
  EXPECT_EQ(o.idle_from(0), 0);
  o.reserve(0, 10);
  EXPECT_EQ(o.idle_from(0), 0) << "what comes behind all work is not between it";
  o.reserve(30, 10);
  o.reserve(50, 10);
  EXPECT_EQ(o.idle_from(0), 30);
  EXPECT_EQ(o.idle_from(25), 15) << "a gap that has begun";
  EXPECT_EQ(o.idle_from(40), 10);
  EXPECT_EQ(o.idle_from(50), 0);
  o.reserve(12, 5);  // into the first
  EXPECT_EQ(o.idle_from(0), 25);
}

// Many turns that each give their work out ahead of its time leave as many gaps, and those who come before
// them find theirs.
TEST(Occupancy, ManyGapsAreKept) {
  Occupancy o;
  for (Time t = 1000; t < 2200; t += 20) EXPECT_EQ(o.reserve(t, 10), t);
  EXPECT_EQ(o.reserve(500, 10), 500);
  for (Time t = 1010; t < 2000; t += 20) EXPECT_EQ(o.reserve(t, 10), t);
}

TEST(Occupancy, NeverTwoAtOnce) {
  std::mt19937 random(7);
  Occupancy o;
  std::map<Time, Time> taken;  // start -> end
  Time base = 0;
  for (int i = 0; i < 20000; ++i) {
    base += random() % 20;
    const Time t = base + random() % 500, duration = 1 + random() % 30;
    const Time start = o.reserve(t, duration);
    ASSERT_GE(start, t);
    const auto next = taken.lower_bound(start);
    if (next != taken.end()) {
      ASSERT_LE(start + duration, next->first);
    }
    if (next != taken.begin()) {
      ASSERT_LE(std::prev(next)->second, start);
    }
    taken[start] = start + duration;
  }
}

// What is idle for less than any work of the unit takes is not kept, and does not take the place of what is.
TEST(Occupancy, GapsTooShortForAnyWorkAreForgotten) {
  Occupancy all, useful;
  for (Occupancy* o : {&all, &useful}) {
    const Time shortest = o == &all ? 1 : 10;
    EXPECT_EQ(o->reserve(1000, 10, shortest), 1000);
    for (Time t = 1015; t < 3000; t += 15) EXPECT_EQ(o->reserve(t, 10, shortest), t);
  }
  EXPECT_EQ(useful.reserve(500, 10, 10), 500);
  EXPECT_EQ(all.reserve(500, 10), 3005);  // it remembers gaps of 5 alone
  EXPECT_EQ(useful.reserve(505, 485, 10), 510);
  EXPECT_EQ(useful.reserve(500, 10, 10), 3005);  // 995 to 1000 is no gap
}

// The same as going over a list of all that is idle, of which the latest 64 are known.
TEST(Occupancy, AsAListOfWhatIsIdle) {
  struct Listed {
    std::vector<std::pair<Time, Time>> idle;
    Time free = 0, shortest = 1;

    void keep(std::size_t i, Time from, Time to) {
      if (to - from < shortest) return;
      if (idle.size() == 64) {
        if (i == 1) return;  // what is before it is the oldest
        idle.erase(idle.begin());
        --i;
      }
      idle.insert(idle.begin() + static_cast<std::ptrdiff_t>(i), {from, to});
    }
    Time reserve(Time t, Time duration) {
      for (std::size_t i = 0; i < idle.size(); ++i) {
        const auto [from, to] = idle[i];
        const Time start = std::max(t, from);
        if (start + duration > to) continue;
        idle.erase(idle.begin() + static_cast<std::ptrdiff_t>(i));
        if (start - from >= shortest)
          idle.insert(idle.begin() + static_cast<std::ptrdiff_t>(i++), {from, start});
        keep(i, start + duration, to);
        return start;
      }
      if (t > free) keep(idle.size(), free, t);
      const Time start = std::max(t, free);
      free = start + duration;
      return start;
    }
  };
  for (const Time shortest : {1, 4, 12}) {
    std::mt19937 random(3);
    Occupancy o;
    Listed listed;
    listed.shortest = shortest;
    Time base = 0;
    for (int i = 0; i < 100000; ++i) {
      base += random() % 40;
      const bool far = random() % 8 == 0;
      const Time t = base + random() % (far ? 4000 : 200), duration = shortest + random() % 30;
      ASSERT_EQ(o.reserve(t, duration, shortest), listed.reserve(t, duration)) << i << ", " << shortest;
    }
  }
}

TEST(Occupancy, WhatMayBeInterruptedFillsTheGaps) {
  Occupancy o;
  EXPECT_EQ(o.reserve(100, 10), 100);  // gaps: 0-100, 110-120, 130-200
  EXPECT_EQ(o.reserve(120, 10), 120);
  EXPECT_EQ(o.reserve(200, 10), 200);
  EXPECT_EQ(o.fill(95, 5), 100);
  EXPECT_EQ(o.fill(112, 10), 132);  // 112-120, 130-132
  EXPECT_EQ(o.fill(0, 97), 112);    // 0-95, 110-112
  EXPECT_EQ(o.fill(140, 70), 220);  // 140-200, 210-220
  EXPECT_EQ(o.reserve(0, 8), 132);  // 132-140 is left
  EXPECT_EQ(o.fill(0, 5), 225);
  EXPECT_EQ(o.fill(300, 5), 305);
  EXPECT_EQ(o.free_at(), 305);
}

}  // namespace
}  // namespace hcasim
