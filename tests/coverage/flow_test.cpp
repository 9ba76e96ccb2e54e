// SPDX-License-Identifier: BSD-3-Clause
#include "coverage/flow.h"

#include <gtest/gtest.h>

namespace hcasim::coverage {
namespace {

Place at(std::uint64_t offset) { return {0, offset}; }
Step plain(std::uint64_t count) { return {count, 1, Kind::kPlain, {}}; }
Step conditional(std::uint64_t count, std::uint64_t target) {
  return {count, 1, Kind::kConditional, at(target)};
}
Step jump(std::uint64_t count, std::uint64_t target) { return {count, 1, Kind::kJump, at(target)}; }
Step leave(std::uint64_t count) { return {count, 1, Kind::kReturn, {}}; }

Kind kind(std::initializer_list<std::uint8_t> bytes) { return decode(bytes.begin(), bytes.size()).kind; }

TEST(Decode, KnowsWhatLeadsElsewhere) {
  EXPECT_EQ(kind({0x74, 0x05}), Kind::kConditional);
  EXPECT_EQ(kind({0x0f, 0x84, 1, 0, 0, 0}), Kind::kConditional);
  EXPECT_EQ(kind({0x2e, 0x75, 0x05}), Kind::kConditional);
  EXPECT_EQ(kind({0xe3, 0x05}), Kind::kConditional);
  EXPECT_EQ(kind({0xeb, 0x05}), Kind::kJump);
  EXPECT_EQ(kind({0xe9, 1, 0, 0, 0}), Kind::kJump);
  EXPECT_EQ(kind({0xc3}), Kind::kReturn);
  EXPECT_EQ(kind({0xff, 0xe0}), Kind::kIndirectJump);
  EXPECT_EQ(kind({0x3e, 0xff, 0xe0}), Kind::kIndirectJump);
  EXPECT_EQ(kind({0xf3, 0x48, 0xa5}), Kind::kRepeated);
  EXPECT_EQ(kind({0xe8, 1, 0, 0, 0}), Kind::kPlain);
  EXPECT_EQ(kind({0xff, 0xd0}), Kind::kPlain);
  EXPECT_EQ(kind({0x0f, 0x1f, 0x44, 0, 0}), Kind::kPlain);
  EXPECT_EQ(kind({0x48, 0x89, 0xe5}), Kind::kPlain);
}

TEST(Decode, TargetsAreSignedAndFromTheEnd) {
  const std::uint8_t back[] = {0x75, 0xfe}, far_back[] = {0xe9, 0xf0, 0xff, 0xff, 0xff};
  EXPECT_EQ(decode(back, 2).target, -2);
  EXPECT_EQ(decode(far_back, 5).target, -16);
}

TEST(Decode, PrefixesAloneAreNothing) {
  const std::uint8_t prefixes[] = {0x66, 0x66, 0xf3};
  EXPECT_EQ(decode(prefixes, 3).kind, Kind::kPlain);
}

// 0: jcc 2; 1: (then); 2: (join)
TEST(Solve, IfWithoutElse) {
  const Steps steps = {{at(0), conditional(10, 2)}, {at(1), plain(3)}, {at(2), leave(10)}};
  const auto ways = solve(steps, {at(0)});
  EXPECT_EQ(ways.at(at(0)).straight, 3u);
  EXPECT_EQ(ways.at(at(0)).jumped, 7u);
}

TEST(Solve, WhatDidNotRunWasNotEntered) {
  const Steps steps = {{at(0), conditional(10, 5)}, {at(1), leave(10)}};
  const auto ways = solve(steps, {at(0)});
  EXPECT_EQ(ways.at(at(0)).straight, 10u);
  EXPECT_EQ(ways.at(at(0)).jumped, 0u);
}

// 0; 1 (body); 2: jcc 1; 3
TEST(Solve, Loop) {
  const Steps steps = {{at(0), plain(2)}, {at(1), plain(20)}, {at(2), conditional(20, 1)}, {at(3), leave(2)}};
  const auto ways = solve(steps, {at(0)});
  EXPECT_EQ(ways.at(at(2)).straight, 2u);
  EXPECT_EQ(ways.at(at(2)).jumped, 18u);
}

// Two conditions lead to one place that also follows: known by going through the other places first.
TEST(Solve, TwoConditionsToOnePlace) {
  const Steps steps = {{at(0), conditional(10, 4)},
                       {at(1), plain(8)},
                       {at(2), conditional(8, 4)},
                       {at(3), plain(5)},
                       {at(4), leave(10)}};
  const auto ways = solve(steps, {at(0)});
  EXPECT_EQ(ways.at(at(0)).straight, 8u);
  EXPECT_EQ(ways.at(at(0)).jumped, 2u);
  EXPECT_EQ(ways.at(at(2)).straight, 5u);
  EXPECT_EQ(ways.at(at(2)).jumped, 3u);
}

TEST(Solve, FunctionsAreEnteredByCallsThatNobodyCounts) {
  // The way straight on leads into the next function, as behind a call that does not return; it is entered
  // otherwise, too.
  const Steps steps = {{at(0), conditional(10, 2)}, {at(1), plain(100)}, {at(2), leave(100)}};
  const auto ways = solve(steps, {at(0), at(1), at(2)});
  EXPECT_FALSE(ways.at(at(0)).straight);
  EXPECT_FALSE(ways.at(at(0)).jumped);
}

TEST(Solve, ComputedJumpsMakeAFunctionUnknown) {
  Steps steps = {{at(0), conditional(10, 2)}, {at(1), plain(7)}, {at(2), leave(10)}};
  steps[at(3)] = {4, 2, Kind::kIndirectJump, {}};
  EXPECT_FALSE(solve(steps, {at(0)}).at(at(0)).straight);
  // Of another function it says nothing.
  EXPECT_TRUE(solve(steps, {at(0), at(3)}).at(at(0)).straight);
}

TEST(Solve, JumpsOfOtherPlacesAreTakenAway) {
  // 0: jcc 3; 1: plain; 2: jmp 3; 3: join; so that 3 has two ways in.
  const Steps steps = {
      {at(0), conditional(10, 3)}, {at(1), plain(4)}, {at(2), jump(4, 3)}, {at(3), leave(10)}};
  const auto ways = solve(steps, {at(0)});
  EXPECT_EQ(ways.at(at(0)).jumped, 6u);
}

TEST(Solve, LostCountsGiveNothingNegative) {
  const Steps steps = {{at(0), conditional(10, 2)}, {at(1), plain(12)}, {at(2), leave(10)}};
  const auto ways = solve(steps, {at(0)});
  EXPECT_EQ(ways.at(at(0)).straight, 12u);
  EXPECT_EQ(ways.at(at(0)).jumped, 0u);
}

TEST(SettleRepeated, TurnsAreOne) {
  Steps steps = {{at(0), {500, 3, Kind::kRepeated, {}}}, {at(3), leave(5)}};
  settle_repeated(steps);
  EXPECT_EQ(steps.at(at(0)).count, 5u);
}

}  // namespace
}  // namespace hcasim::coverage
