// SPDX-License-Identifier: BSD-3-Clause
// Moderation that follows the load, under loads that answer to it in one way or another.
#include <gtest/gtest.h>

#include <functional>

#include "driver/timing/moderation.h"

namespace hcasim::timing {
namespace {

// Frames a millisecond and events a millisecond at each level.
struct Load {
  std::function<std::uint64_t(unsigned period_us)> frames, events;
};

class Handler {
 public:
  // `n` measurements under the load; the card takes a new level at once. Returns how often the level changed.
  unsigned run(const Load& load, unsigned n) {
    unsigned changes = 0;
    for (unsigned i = 0; i < n * 65; ++i) {
      const std::uint64_t period = moderation.level().period_us;
      const std::uint64_t events = load.events(static_cast<unsigned>(period));
      now_.time += static_cast<Ps>(1'000'000'000 / events);
      ++now_.events;
      now_.frames += load.frames(static_cast<unsigned>(period)) / events;
      now_.bytes = now_.frames * 60;
      if (!moderation.note(now_)) continue;
      ++changes;
      moderation.taken();
    }
    return changes;
  }
  AdaptiveModeration moderation;

 private:
  AdaptiveModeration::Sample now_;
};

std::uint64_t few_events(unsigned period_us) { return 1000 / period_us; }

TEST(AdaptiveModeration, BeginsAtTheSecondLevel) {
  const AdaptiveModeration m;
  EXPECT_EQ(m.level().period_us, 8u);
  EXPECT_EQ(m.level().max_count, 128u);
}

// A ping-pong: the longer an event is held, the fewer frames there are.
TEST(AdaptiveModeration, GoesToTheLeastWhereWaitingCostsFrames) {
  Handler h;
  const Load pingpong{[](unsigned us) { return 100'000 / (10 + us); },
                      [](unsigned us) { return 100'000 / (10 + us); }};
  h.run(pingpong, 20);
  EXPECT_EQ(h.moderation.level().period_us, 2u);
}

// A CPU that interrupts keep from its work.
TEST(AdaptiveModeration, GoesToTheMostWhereEventsCostFrames) {
  Handler h;
  const Load bulk{[](unsigned us) { return 20'000 * us / (us + 10); }, few_events};
  h.run(bulk, 20);
  EXPECT_EQ(h.moderation.level().period_us, 64u);
}

// As many frames at any level: fewer events are better.
TEST(AdaptiveModeration, TakesFewerEventsForTheSameFrames) {
  Handler h;
  h.run({[](unsigned) { return 64'000; }, few_events}, 20);
  EXPECT_EQ(h.moderation.level().period_us, 64u);
}

// The best level lies between others: it rests there, and does not look elsewhere while the load stays as it
// is.
TEST(AdaptiveModeration, RestsWhereBothNeighboursAreWorse) {
  Handler h;
  const Load hill{[](unsigned us) { return us == 16              ? 32'000
                                           : us == 8 || us == 32 ? 16'000
                                                                 : 8'000; },
                  few_events};
  h.run(hill, 20);
  EXPECT_EQ(h.moderation.level().period_us, 16u);
  EXPECT_EQ(h.run(hill, 20), 0u);
  // Another load sets it going.
  const Load pingpong{[](unsigned us) { return 100'000 / (10 + us); },
                      [](unsigned us) { return 100'000 / (10 + us); }};
  EXPECT_GT(h.run(pingpong, 30), 0u);
  EXPECT_EQ(h.moderation.level().period_us, 2u);
}

// A load that falls makes each step look wrong, to and fro: after ten it lets be for as long, and tries
// again.
TEST(AdaptiveModeration, TiresOfALoadThatKeepsFalling) {
  Handler h;
  std::uint64_t frames = 1'000'000'000'000;
  const Load falls{[&frames](unsigned) { return frames -= frames / 200; }, few_events};
  EXPECT_EQ(h.run(falls, 11), 10u);
  EXPECT_EQ(h.run(falls, 9), 0u);
  EXPECT_GT(h.run(falls, 3), 0u);
}

TEST(AdaptiveModeration, MeasuresNothingUntilTheCardHasTheLevel) {
  AdaptiveModeration m;
  AdaptiveModeration::Sample s;
  const auto turns = [&](unsigned n) {
    bool changed = false;
    for (unsigned i = 0; i < n && !changed; ++i) {
      s.events += 1, s.frames += 10, s.bytes += 600, s.time += 10'000'000;
      changed = m.note(s);
    }
    return changed;
  };
  ASSERT_TRUE(turns(200));
  const unsigned level = m.level().period_us;
  EXPECT_FALSE(turns(1000));
  EXPECT_EQ(m.level().period_us, level);
  m.taken();
  EXPECT_FALSE(turns(60));
}

}  // namespace
}  // namespace hcasim::timing
