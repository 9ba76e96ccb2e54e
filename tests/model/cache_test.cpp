// SPDX-License-Identifier: BSD-3-Clause
#include "model/ctx/cache.h"

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

TEST(ContextCache, SizesThatAreNoPowersOfTwoAreRoundedUp) {
  ContextCache c(3, 0);
  c.touch(1);
  EXPECT_TRUE(c.touch(1));
  c.clear();
  EXPECT_FALSE(c.touch(1));
}

}  // namespace
}  // namespace hcasim
