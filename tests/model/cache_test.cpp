// SPDX-License-Identifier: BSD-3-Clause
#include "model/ctx/cache.h"
#include "model/ctx/fetch.h"
#include "model/function/id.h"
#include "model/tpt/mkey.h"

#include <gtest/gtest.h>

namespace hcasim {
namespace {

TEST(ContextCache, FirstTouchMissesThenHits) {
  ContextCache c(64, 4);
  EXPECT_FALSE(c.touch(0));
  EXPECT_TRUE(c.touch(0));
  EXPECT_FALSE(c.touch(~0ULL - 1));
  EXPECT_TRUE(c.touch(~0ULL - 1));
  EXPECT_EQ(c.hits(), 2u);
  EXPECT_EQ(c.misses(), 2u);
}

TEST(ContextCache, TheLeastRecentlyUsedLeaves) {
  ContextCache c(4, 4);  // one set
  for (unsigned id = 0; id < 4; ++id) EXPECT_FALSE(c.touch(id));
  EXPECT_TRUE(c.touch(0));
  EXPECT_FALSE(c.touch(9));  // 1 was used longest ago
  EXPECT_TRUE(c.touch(0));
  EXPECT_TRUE(c.touch(2));
  EXPECT_TRUE(c.touch(3));
  EXPECT_TRUE(c.touch(9));
  EXPECT_FALSE(c.touch(1));
}

TEST(ContextCache, InvalidateTakesOneOut) {
  ContextCache c(4, 4);
  for (unsigned id = 0; id < 4; ++id) c.touch(id);
  c.invalidate(2);
  c.invalidate(77);
  EXPECT_FALSE(c.touch(2));
  for (unsigned id : {0u, 1u, 3u}) EXPECT_TRUE(c.touch(id)) << id;
}

TEST(ContextCache, HoldsAsManyAsItHasEntriesWhenSpread) {
  ContextCache c(4096, 8);
  for (unsigned id = 0; id < 1024; ++id) c.touch(id * 256);
  unsigned hits = 0;
  for (unsigned id = 0; id < 1024; ++id) hits += c.touch(id * 256);
  EXPECT_GT(hits, 1000u);
}

// As many neighbours as there are entries: none is in another's way, but at the borders of stretches.
TEST(ContextCache, HoldsAsManyNeighboursAsItHasEntries) {
  for (const std::uint64_t from : {0ull, 100ull, 0x12345600000007ull}) {
    ContextCache c(4096, 8);
    for (unsigned i = 0; i < 4096; ++i) EXPECT_FALSE(c.touch(from + i));
    unsigned hits = 0;
    for (unsigned i = 0; i < 4096; ++i) hits += c.touch(from + i);
    EXPECT_GE(hits, from == 0 ? 4096u : 3500u) << from;
  }
}

TEST(ContextCache, StridesSpread) {
  for (const unsigned stride : {2u, 64u, 512u, 4096u, 65536u, 1000003u}) {
    ContextCache c(4096, 8);
    for (unsigned i = 0; i < 1024; ++i) c.touch(std::uint64_t{i} * stride);
    unsigned hits = 0;
    for (unsigned i = 0; i < 1024; ++i) hits += c.touch(std::uint64_t{i} * stride);
    EXPECT_GT(hits, 980u) << stride;
  }
}

// The most recent one stands apart from the others of its set.
TEST(ContextCache, TakesOutTheMostRecentOneToo) {
  ContextCache c(4, 4);
  for (unsigned id = 0; id < 4; ++id) c.touch(id);
  c.arrives(3, 30);
  c.arrives(1, 10);
  c.invalidate(3);
  c.arrives(3, 31);  // it is not there
  for (unsigned id : {0u, 1u, 2u}) {
    EXPECT_TRUE(c.touch(id)) << id;
    EXPECT_EQ(c.there(), id == 1 ? 10 : 0);
  }
  EXPECT_FALSE(c.touch(3));
  EXPECT_EQ(c.there(), 0);
  for (unsigned id : {0u, 1u, 2u, 3u}) EXPECT_TRUE(c.touch(id)) << id;
}

TEST(ContextCache, OneWay) {
  ContextCache c(2, 1);
  EXPECT_FALSE(c.touch(0));
  EXPECT_FALSE(c.touch(1));
  EXPECT_TRUE(c.touch(0));
  EXPECT_TRUE(c.touch(1));
  c.invalidate(1);
  EXPECT_TRUE(c.touch(0));
  EXPECT_FALSE(c.touch(1));
}

TEST(ContextCache, SizesThatAreNoPowersOfTwoAreRoundedUp) {
  ContextCache c(3, 0);
  c.touch(1);
  EXPECT_TRUE(c.touch(1));
  c.clear();
  EXPECT_FALSE(c.touch(1));
}

class ContextFetchTest : public ::testing::Test {
 protected:
  static Profile few() {
    Profile p;
    p.cache.outstanding = 4;
    p.pcie.read_latency = kRead;
    return p;
  }
  static constexpr Time kRead = 460;
  Profile profile = few();  // 4 under way at a time
  unsigned reads = 0;
  ContextFetch fetch{profile, [this](Time t, unsigned) {
                       ++reads;
                       return t + kRead;
                     }};
  ContextCache cache{64, 8};
};

TEST_F(ContextFetchTest, OneThatIsUnderWayIsWaitedForAndNotReadAgain) {
  const auto first = fetch.get(100, cache, 7, 64);
  EXPECT_TRUE(first.missed);
  EXPECT_EQ(first.at, 100 + kRead);
  const auto second = fetch.get(200, cache, 7, 64);
  EXPECT_FALSE(second.missed);
  EXPECT_EQ(second.at, 100 + kRead);
  EXPECT_EQ(fetch.get(5000, cache, 7, 64).at, 5000);
  EXPECT_EQ(reads, 1u);
}

TEST_F(ContextFetchTest, TheRateOfMissesIsTheNumberUnderWayOverTheLatency) {
  Time last = 0;
  for (unsigned i = 0; i < 41; ++i) last = std::max(last, fetch.get(0, cache, 1000 + i, 64).at);
  EXPECT_EQ(last, 11 * kRead);  // 40 reads, 4 at a time, before the last
  EXPECT_EQ(fetch.get(50 * kRead, cache, 2000, 64).at, 51 * kRead);
  EXPECT_EQ(fetch.get(0, cache, 2002, 64).at, 41 * kRead / 4 + kRead) << "what comes later holds up nothing";
  fetch.clear();
  EXPECT_EQ(fetch.get(0, cache, 2001, 64).at, kRead);
}

TEST_F(ContextFetchTest, OnlyWhatIsUnderWayIsToldOfItsArrival) {
  cache.touch(1);
  cache.arrives(1, 50);
  cache.arrives(1, 70);  // it is there already
  cache.touch(1);
  EXPECT_EQ(cache.there(), 50);
  cache.arrives(99, 70);  // not in the cache
}

TEST(ContextCache, WhatAFunctionHadIsForgottenWithIt) {
  ContextCache c(64, 4);
  for (std::uint32_t n = 0; n < 8; ++n)
    for (const FunctionId f : {0, 3}) c.touch(context_id(f, n));
  c.invalidate_if([](std::uint64_t id) { return function_of_context(id) == 3; });
  for (std::uint32_t n = 0; n < 8; ++n) EXPECT_TRUE(c.touch(context_id(0, n)));
  for (std::uint32_t n = 0; n < 8; ++n) EXPECT_FALSE(c.touch(context_id(3, n)));
}

TEST(Mkey, ALineOfItsListNamesItsFunction) {
  for (const FunctionId f : {0, 1, 255, 256, 1023}) {
    Mkey m;
    m.index = 0xffffff;
    m.function = f;
    EXPECT_EQ(Mkey::function_of_line(m.line_id((1u << 30) - 1)), f);
  }
}

}  // namespace
}  // namespace hcasim
