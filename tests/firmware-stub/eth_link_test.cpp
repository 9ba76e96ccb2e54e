// SPDX-License-Identifier: BSD-3-Clause
// What the two ends of an Ethernet cable come to.
#include "firmware-stub/eth_link.h"

#include <gtest/gtest.h>

namespace hcasim::fw {
namespace {

constexpr std::uint32_t kPlain100 = 1u << 21, kPlain50 = 1u << 18, kPlain40 = 1u << 15, kPlain25 = 1u << 29;
constexpr std::uint32_t kExtended100x4 = 1u << 9, kExtended100x2 = 1u << 10, kExtended50x1 = 1u << 8;

EthLink of(const char* generation, double gbps) { return {gbps, *find_generation(generation)}; }

// Two ends of one cable, as they come up.
const LinkMode* joined(EthLink& a, EthLink& b) {
  a.renew_offer();
  b.renew_offer();
  a.set_partner(b.offer());
  b.set_partner(a.offer());
  const LinkMode *here = a.agreed(), *there = b.agreed();
  EXPECT_EQ(here != nullptr, there != nullptr);
  if (here && there) {
    EXPECT_EQ(here->kind, there->kind);
  }
  return here;
}

TEST(EthLink, ThePortHasAllModesOfItsLanesUpToItsRate) {
  EXPECT_EQ(of("connectx5", 100).modes().size(), 6u);  // 100, 50, 40, 25, 10, 1 Gb/s
  EXPECT_EQ(of("connectx5", 100).extended(), 0u);
  EXPECT_EQ(of("connectx6", 100).modes().size(), 8u);  // and two of 50 Gb/s lanes
  EXPECT_EQ(of("connectx7", 400).modes().size(), 12u);
  EXPECT_EQ(of("connectx4lx", 25).modes().size(), 3u);
}

TEST(EthLink, TheFastestModeOfBothIsTaken) {
  EthLink five = of("connectx5", 100), six = of("connectx6", 200), lx = of("connectx4lx", 25);
  ASSERT_NE(joined(five, six), nullptr);
  EXPECT_EQ(five.agreed()->kind, LinkKind::k100g4x);
  EXPECT_EQ(six.agreed()->rate_gbps, 100);
  ASSERT_NE(joined(six, lx), nullptr);
  EXPECT_EQ(six.agreed()->kind, LinkKind::k25g);
  EXPECT_EQ(six.agreed()->rate_gbps, 25);
}

TEST(EthLink, AnEndThatInsistsIsFollowed) {
  EthLink a = of("connectx5", 100), b = of("connectx5", 100);
  ASSERT_TRUE(a.ask({kPlain25, 0, true}));
  ASSERT_NE(joined(a, b), nullptr);
  EXPECT_EQ(b.agreed()->kind, LinkKind::k25g);
  ASSERT_TRUE(b.ask({kPlain40, 0, true}));
  EXPECT_EQ(joined(a, b), nullptr);
  ASSERT_TRUE(b.ask({kPlain40 | kPlain25, 0, false}));
  ASSERT_NE(joined(a, b), nullptr);
  EXPECT_EQ(a.agreed()->kind, LinkKind::k25g);
}

TEST(EthLink, WhatIsAskedForWaitsForTheNextLink) {
  EthLink a = of("connectx5", 100);
  a.renew_offer();
  a.link_up(*a.agreed());
  ASSERT_TRUE(a.ask({kPlain50, 0, false}));
  EXPECT_EQ(a.agreed()->kind, LinkKind::k100g4x);
  a.renew_offer();
  EXPECT_EQ(a.agreed()->kind, LinkKind::k50g2x);
}

TEST(EthLink, ExtendedBitsGoBeforePlainOnes) {
  EthLink a = of("connectx6", 100);
  EXPECT_EQ(a.admin().extended, a.extended());
  EXPECT_EQ(a.admin().plain, 0u);
  ASSERT_TRUE(a.ask({kPlain100, kExtended100x2 | kExtended50x1, false}));
  EXPECT_EQ(a.admin().plain, 0u);
  a.renew_offer();
  EXPECT_EQ(a.offer().kinds, link_bit(LinkKind::k100g2x) | link_bit(LinkKind::k50g1x));
  ASSERT_TRUE(a.ask({kPlain100, 0, false}));
  EXPECT_EQ(a.admin().extended, 0u);
  a.renew_offer();
  EXPECT_EQ(a.offer().kinds, link_bit(LinkKind::k100g4x));
}

TEST(EthLink, NothingOfThePortIsNothing) {
  EthLink a = of("connectx5", 50);
  EXPECT_FALSE(a.ask({kPlain100, kExtended100x4, false}));
  EXPECT_FALSE(a.ask({0, 0, true}));
  EXPECT_EQ(a.admin().plain, a.plain());
}

TEST(EthLink, NobodyThereNoLink) {
  EthLink a = of("connectx5", 100);
  a.renew_offer();
  EXPECT_TRUE(a.set_partner(std::nullopt));
  EXPECT_FALSE(a.set_partner(std::nullopt));
  EXPECT_EQ(a.agreed(), nullptr);
  EXPECT_TRUE(a.set_partner(LinkOffer{}));
  ASSERT_NE(a.agreed(), nullptr);
  a.link_up(*a.agreed());
  EXPECT_FALSE(a.negotiated());  // whoever takes anything has said nothing
  a.set_partner(LinkOffer{link_bit(LinkKind::k100g4x), true});
  EXPECT_TRUE(a.negotiated());
}

}  // namespace
}  // namespace hcasim::fw
