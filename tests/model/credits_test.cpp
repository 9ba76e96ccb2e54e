// SPDX-License-Identifier: BSD-3-Clause
#include "model/pcie/credits.h"

#include <gtest/gtest.h>

#include "model/state/state.h"

namespace hcasim::test {
namespace {

constexpr Time kBack = from_ns(200), kLong = from_ns(10);  // a TLP's time on the link

// The times at which so many TLPs, all ready at t, leave one behind the other.
std::vector<Time> leave(Credits& credits, unsigned n, std::uint32_t bytes, Time t = 0) {
  std::vector<Time> times;
  Time link = t;
  for (unsigned i = 0; i < n; ++i) {
    times.push_back(std::max(link, credits.take(t, bytes)));
    credits.left(link = times.back() + kLong, bytes);
  }
  return times;
}

TEST(Credits, WithoutALimitNothingWaits) {
  Credits none(0, 0, kBack), some(0, 1, kBack);
  EXPECT_FALSE(none.modelled());
  EXPECT_TRUE(some.modelled());
}

TEST(Credits, ATlpTakesAHeader) {
  Credits credits(2, 0, kBack);
  EXPECT_EQ(leave(credits, 5, 4096),
            (std::vector<Time>{0, kLong, kLong + kBack, 2 * kLong + kBack, 2 * (kLong + kBack)}));
  EXPECT_EQ(credits.waits(), 3u);
}

TEST(Credits, AndOneForSixteenBytesBegun) {
  Credits credits(0, 16, kBack);
  EXPECT_EQ(leave(credits, 3, 113), (std::vector<Time>{0, kLong, kLong + kBack})) << "eight each";
  credits.clear();
  EXPECT_EQ(leave(credits, 3, 129), (std::vector<Time>{0, kLong + kBack, 2 * (kLong + kBack)})) << "nine";
  credits.clear();
  EXPECT_EQ(leave(credits, 2, 4096), (std::vector<Time>{0, kLong + kBack})) << "more than there ever are";
}

TEST(Credits, AreBackWhenTheyWereNotMissed) {
  Credits credits(2, 0, kBack);
  leave(credits, 2, 64);
  EXPECT_EQ(leave(credits, 2, 64, from_ns(1000)), (std::vector<Time>{from_ns(1000), from_ns(1000) + kLong}));
  EXPECT_EQ(credits.waits(), 0u);
}

TEST(Credits, WhoAsksForAnEarlierTimeFindsWhatIsOut) {
  Credits credits(2, 0, kBack);
  leave(credits, 2, 64, from_ns(1000));
  EXPECT_EQ(credits.take(0, 64), from_ns(1000) + kLong + kBack);
}

TEST(Credits, AResetGivesThemAllBack) {
  Credits credits(2, 4, kBack), fresh(2, 4, kBack);
  leave(credits, 3, 64);
  EXPECT_NE(digest_state(credits), digest_state(fresh));
  reset_state(credits);
  EXPECT_EQ(digest_state(credits), digest_state(fresh));
  EXPECT_EQ(leave(credits, 1, 64), std::vector<Time>{0});
}

}  // namespace
}  // namespace hcasim::test
