// SPDX-License-Identifier: BSD-3-Clause
// The matching list by itself: places, order, phases.
#include "model/tm/tag_list.h"

#include <gtest/gtest.h>

namespace hcasim {
namespace {

TagEntry entry(std::uint64_t tag, std::uint64_t mask = ~std::uint64_t{0}) {
  TagEntry e;
  e.tag = tag;
  e.mask = mask;
  return e;
}

TEST(TagList, PlacesAreAnnouncedOneAhead) {
  TagList list(2);
  EXPECT_TRUE(list.append(entry(10), 3));
  EXPECT_TRUE(list.append(entry(11), 1));
  EXPECT_TRUE(list.append(entry(12), 2));
  EXPECT_EQ(list.next_index(), 2u);
  EXPECT_EQ(list.match(10)->index, 0u);
  EXPECT_EQ(list.match(11)->index, 3u);
  EXPECT_EQ(list.match(12)->index, 1u);
  EXPECT_EQ(list.size(), 0u);
}

TEST(TagList, OutOfTheListOrTaken) {
  TagList list(1);
  EXPECT_FALSE(list.append(entry(1), 2)) << "there are 0 and 1";
  EXPECT_TRUE(list.append(entry(1), 1));
  EXPECT_TRUE(list.append(entry(2), 0));
  EXPECT_FALSE(list.append(entry(3), 1)) << "0 is taken";
  EXPECT_TRUE(list.remove(0));
  EXPECT_TRUE(list.append(entry(3), 1));
  EXPECT_FALSE(list.remove(2));
  EXPECT_FALSE(list.remove(0xffff));
}

TEST(TagList, TheOldestThatMatches) {
  TagList list(3);
  list.append(entry(0x1200, 0xff00), 1);
  list.append(entry(0x1234), 2);
  EXPECT_EQ(list.match(0x1234)->index, 0u);
  EXPECT_EQ(list.match(0x1234)->index, 1u);
  EXPECT_FALSE(list.match(0x1234));
}

TEST(TagList, NotReadyBeforeTheSoftwareHasCaughtUp) {
  TagList list(3);
  list.append(entry(1), 1);
  list.unexpected();
  list.append(entry(2), 2);
  EXPECT_FALSE(list.match(2));
  list.synchronize(0);
  EXPECT_FALSE(list.match(2));
  EXPECT_EQ(list.match(1)->index, 0u);
  list.synchronize(1);
  EXPECT_EQ(list.match(2)->index, 1u);
}

TEST(TagList, PhasesWrap) {
  TagList list(3);
  for (unsigned i = 0; i < 0x10000; ++i) list.unexpected();
  EXPECT_EQ(list.hw_phase(), 0u);
  list.synchronize(0);
  list.append(entry(2), 1);
  EXPECT_TRUE(list.match(2));
}

}  // namespace
}  // namespace hcasim
