// SPDX-License-Identifier: BSD-3-Clause
// Whose turn it is at an output of an InfiniBand switch.
#include "model/port/output_lanes.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "bench.h"

namespace hcasim::test {
namespace {

using ::testing::ElementsAre;

constexpr std::uint32_t kBytes = 1024;

class OutputLanesTest : public BlockTest {
 protected:
  // It has come in, and may leave at once.
  void push(std::uint8_t lane, std::uint32_t number, std::uint32_t bytes = kBytes) {
    b.output.push(sim_now(), sim_now(), packet(lane, bytes), number);
  }
  static PacketRef packet(std::uint8_t lane, std::uint32_t bytes) {
    PacketRef p = PacketPool::make();
    p->vl = lane;
    p->payload_len = bytes;
    return p;
  }
  void push_many(unsigned count, std::initializer_list<std::uint8_t> lanes) {
    for (unsigned i = 0; i < count; ++i)
      for (const std::uint8_t lane : lanes) push(lane, lane);
  }
  std::vector<std::uint32_t> gone() const {
    std::vector<std::uint32_t> numbers;
    for (const OutputCable::Gone& g : b.cable.gone) numbers.push_back(g.tag);
    return numbers;
  }
  // Packets of a lane among the first ones, where each packet's number is its lane's.
  long among(std::size_t first, unsigned lane) const {
    const std::vector<std::uint32_t> all = gone();
    return std::count(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(first, all.size())),
                      lane);
  }
  VirtualLanes& shares() { return b.cable.shares; }
};

TEST_F(OutputLanesTest, AFreeCableIsTakenAtOnce) {
  const Time t = sim_now();
  push(0, 1);
  b.output.push(t, t + 5000, packet(3, kBytes), 2);  // its first bit may leave later
  b.run(4000);
  EXPECT_THAT(gone(), ElementsAre(1));
  EXPECT_EQ(b.cable.gone[0].start, t);
  b.run(2000);
  EXPECT_THAT(gone(), ElementsAre(1, 2));
  EXPECT_EQ(b.cable.gone[1].start, t + 5000);
  EXPECT_EQ(b.output.waiting(), 0u);
}

TEST_F(OutputLanesTest, OneBehindTheOtherWithoutAGap) {
  const Time t = sim_now();
  push_many(50, {0, 1, 2, 3});
  b.run(200 * kBytes);
  ASSERT_EQ(b.cable.gone.size(), 200u);
  for (std::size_t i = 0; i < 200; ++i) EXPECT_EQ(b.cable.gone[i].start, t + static_cast<Time>(i) * kBytes);
}

TEST_F(OutputLanesTest, LanesShareByWeight) {
  shares().low = {};
  shares().low[0] = {0, 30};
  shares().low[1] = {1, 10};
  push_many(100, {0, 1});
  b.run(200 * kBytes);
  EXPECT_NEAR(among(80, 0), 60, 2);
  EXPECT_EQ(gone().size(), 200u);
}

// By bytes, not by packets.
TEST_F(OutputLanesTest, SmallPacketsHaveNoLessOfTheCable) {
  for (unsigned i = 0; i < 400; ++i) push(0, 0, 64);
  for (unsigned i = 0; i < 100; ++i) push(1, 1, 1024);
  b.run(25600);
  EXPECT_NEAR(among(gone().size(), 0) * 64., 12800, 1100);
}

TEST_F(OutputLanesTest, ALanesOrderStays) {
  for (std::uint32_t i = 0; i < 20; ++i) push(i % 2 == 0 ? 0 : 2, i);
  b.run(20 * kBytes);
  std::vector<std::uint32_t> even, odd;
  for (const std::uint32_t number : gone()) (number % 2 == 0 ? even : odd).push_back(number);
  EXPECT_EQ(even.size(), 10u);
  EXPECT_TRUE(std::is_sorted(even.begin(), even.end()));
  EXPECT_TRUE(std::is_sorted(odd.begin(), odd.end()));
}

TEST_F(OutputLanesTest, HighPriorityGoesFirst) {
  shares().high[0] = {2, 1};
  shares().high_limit = VirtualLanes::kNoLimit;
  push_many(20, {0, 2});
  b.run(40 * kBytes);
  EXPECT_EQ(gone()[0], 0u) << "the cable was free when it came";
  EXPECT_EQ(among(21, 2), 20);
}

// IBTA 7.6.9.2: after so much of high priority one of low priority has its turn.
TEST_F(OutputLanesTest, HighPriorityHasItsLimit) {
  shares().high[0] = {2, 1};
  shares().high_limit = 2;  // 8192 bytes
  push_many(40, {0, 2});
  b.run(80 * kBytes);
  EXPECT_NEAR(among(46, 0), 5, 1);
}

TEST_F(OutputLanesTest, SettingsCountAtOnce) {
  push_many(20, {0, 1});
  b.run(10 * kBytes - 10);
  EXPECT_NEAR(among(10, 0), 5, 1);
  b.cable.gone.clear();
  shares().high[0] = {1, 1};
  shares().high_limit = VirtualLanes::kNoLimit;
  b.run(30 * kBytes);
  EXPECT_GE(among(15, 1), 14);
  EXPECT_EQ(gone().size(), 30u);
}

// A lane that has had the cable for itself for long has its share none the less when others come.
TEST_F(OutputLanesTest, WhatWentWithoutOthersWaitingDoesNotCount) {
  for (unsigned i = 0; i < 200; ++i) {
    push(0, 0);
    b.run(kBytes + 10);
  }
  ASSERT_EQ(gone().size(), 200u);
  b.cable.gone.clear();
  push_many(40, {1, 0});
  b.run(80 * kBytes);
  EXPECT_NEAR(among(40, 0), 20, 2);
}

// Behind what is under way.
TEST_F(OutputLanesTest, ManagementGoesPastAllLanes) {
  shares().high[0] = {1, 1};
  for (std::uint32_t i = 0; i < 3; ++i) push(1, i);
  PacketRef management = packet(0, 256);
  management->vl15 = true;
  b.output.push(sim_now(), sim_now(), management, 9);
  b.run(10 * kBytes);
  EXPECT_THAT(gone(), ElementsAre(0, 9, 1, 2));
}

TEST_F(OutputLanesTest, NothingIsLeftOfWhatWasReset) {
  push_many(10, {0, 1, 3});
  b.run(10);
  reset_state(b.output);
  b.run(100 * kBytes);
  EXPECT_EQ(gone().size(), 1u);
  EXPECT_EQ(b.output.waiting(), 0u);
  push_many(2, {0});
  b.run(10 * kBytes);
  EXPECT_EQ(gone().size(), 3u);
}

}  // namespace
}  // namespace hcasim::test
