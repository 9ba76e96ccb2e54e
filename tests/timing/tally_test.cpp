// SPDX-License-Identifier: BSD-3-Clause
#include "driver/timing/tally.h"

#include <gtest/gtest.h>

namespace hcasim::timing {
namespace {

using Measurement = Setup;                               // testing::Test has a Setup of its own
constexpr Ps kUs = 1'000'000, kBegin = 1'000'000 * kUs;  // traffic begins a second after the simulation

// Two QPs of a message each us. The second one's first completion comes within the measured interval, half of
// whose messages were sent before it.
TEST(Tally, AFirstCompletionCountsFromWhenTrafficBegins) {
  Measurement s;
  s.qps = 2;
  s.warmup = 100;
  s.iterations = 300;
  Tally tally(s, 1, kBegin);
  tally.note(0, 0, 100, kBegin + 100 * kUs);  // warm
  tally.note(0, 0, 100, kBegin + 200 * kUs);
  EXPECT_FALSE(tally.over());
  tally.note(0, 1, 200, kBegin + 200 * kUs);
  EXPECT_TRUE(tally.over());
  const Result r = tally.result();
  EXPECT_DOUBLE_EQ(r.simulated_ns, 100'000);
  EXPECT_DOUBLE_EQ(r.mops(), 2);
}

}  // namespace
}  // namespace hcasim::timing
