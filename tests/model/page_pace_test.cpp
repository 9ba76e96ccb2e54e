// SPDX-License-Identifier: BSD-3-Clause
#include "model/wqe/page_pace.h"

#include <gtest/gtest.h>

namespace hcasim {
namespace {

class PagePaceTest : public ::testing::Test {
 protected:
  PagePaceTest() {
    profile.engine.gather_page = from_ns(800);
    profile.engine.gather_pages = 2;
    profile.engine.gather = 0;
    profile.pcie.read_latency = from_ns(400);
  }
  // A message that may be asked for at t, of so many bytes, all over the link at once. Returns when its
  // engine began.
  Time message(Time t, std::uint32_t len) {
    const Time began = pace.begin(std::max(t, pace.room(profile)), 0, profile);
    for (std::uint32_t at = 0; at < len; at += PagePace::kPage) {
      const Time start = pace.begin(began, at, profile);
      end = pace.end(start + from_ns(400), at, std::min(len - at, PagePace::kPage), profile);
    }
    return began;
  }
  Profile profile;
  PagePace pace;
  Time end = 0;
};

TEST_F(PagePaceTest, AnyNumberOfMessagesIfNothingLimitsThem) {
  for (int i = 0; i < 10; ++i) EXPECT_EQ(message(from_ns(1), 4096), from_ns(1));
  EXPECT_EQ(pace.room(profile), 0);
}

TEST_F(PagePaceTest, AsManyMessagesAtATimeAsTheProfileSays) {
  const Time page = from_ns(800) * (4096 - 64) / 4096;
  for (const unsigned most : {1u, 2u, 3u, Profile::Engine::kMostMessages}) {
    profile.engine.gather_messages = most;
    pace = {};
    for (unsigned i = 0; i < 20; ++i)
      EXPECT_EQ(message(from_ns(1), 4096), from_ns(1) + i / most * page) << most;
  }
}

// The next may begin as the last page has been read, and the answers' way is not in that.
TEST_F(PagePaceTest, AMessageIsReadUntilItsLastPageIs) {
  profile.engine.gather_messages = 1;
  const Time began = message(from_ns(1), 3 * 4096);
  // Two pages at a time: the third behind the first, by when that one's bytes are there.
  EXPECT_EQ(message(from_ns(1), 64), end - from_ns(400));
  EXPECT_GT(end - from_ns(400), began + from_ns(800));
}

// A message that is begun again (its first packets were lost) is none that waits for itself.
TEST_F(PagePaceTest, BegunTwiceWithoutBeingRead) {
  profile.engine.gather_messages = 2;
  message(from_ns(1), 4096);
  pace.begin(from_ns(5), 0, profile);
  pace.begin(from_ns(6), 0, profile);
  EXPECT_EQ(pace.room(profile), 0);
}

// An engine is busy from the set-up on.
TEST_F(PagePaceTest, TheSetUpIsTheEngines) {
  profile.engine.gather_messages = 1;
  profile.engine.gather = from_ns(60);
  message(from_ns(100), 4096);
  const Time busy = pace.room(profile);
  EXPECT_EQ(message(from_ns(100), 4096), busy + from_ns(60));
}

TEST_F(PagePaceTest, SmallMessagesHardlyTakeTheEngines) {
  profile.engine.gather_messages = 1;
  EXPECT_EQ(message(from_ns(1), 64), from_ns(1));
  EXPECT_EQ(message(from_ns(1), 64), from_ns(1));
}

}  // namespace
}  // namespace hcasim
