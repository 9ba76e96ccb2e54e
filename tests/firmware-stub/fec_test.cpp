// SPDX-License-Identifier: BSD-3-Clause
// Link modes and forward error correction of each generation.
#include "firmware-stub/fec.h"

#include <gtest/gtest.h>

namespace hcasim::fw {
namespace {

Fec of(const char* generation) { return Fec(*find_generation(generation)); }
LinkMode fastest(const char* generation, double gbps) {
  return link_modes(gbps, *find_generation(generation)).front();
}
std::uint16_t up(const char* generation, double gbps) {
  Fec fec = of(generation);
  fec.link_up(fastest(generation, gbps).fec);
  return fec.active();
}

TEST(Fec, RateChoosesTheFastestMode) {
  EXPECT_EQ(fastest("connectx7", 400).extended, 1u << 16);
  EXPECT_EQ(fastest("connectx7", 400).fec, FecRow::k400g4x);
  EXPECT_EQ(fastest("connectx6", 400).fec, FecRow::k200g4x);  // no faster than its port
  EXPECT_EQ(fastest("connectx7", 198.5).fec, FecRow::k200g4x);
  EXPECT_EQ(fastest("connectx7", 198.5).rate_gbps, 198.5);
  EXPECT_EQ(fastest("connectx7", 100).fec, FecRow::k100g);
  EXPECT_EQ(fastest("connectx7", 50).fec, FecRow::k50g);
  EXPECT_EQ(fastest("connectx7", 40).fec, FecRow::k10g40g);
  EXPECT_EQ(fastest("connectx7", 25).fec, FecRow::k25g);
  EXPECT_EQ(fastest("connectx7", 10).fec, FecRow::k10g40g);
  EXPECT_EQ(fastest("connectx7", 1).fec, FecRow::kNone);
  EXPECT_EQ(fastest("connectx5", 100).extended, 0u);
}

TEST(Fec, TheModeSaysWhatIsAutomatic) {
  EXPECT_EQ(up("connectx7", 400), Fec::kRs544);
  EXPECT_EQ(up("connectx6", 200), Fec::kRs544);
  EXPECT_EQ(up("connectx5", 100), Fec::kRs528);
  EXPECT_EQ(up("connectx4lx", 50), Fec::kRs528);
  EXPECT_EQ(up("connectx4lx", 25), Fec::kRs528);
  EXPECT_EQ(up("connectx4lx", 40), Fec::kOff);
  EXPECT_EQ(up("connectx4lx", 10), Fec::kOff);
  EXPECT_EQ(up("connectx4lx", 1), Fec::kOff);
}

TEST(Fec, LanesAndPortSayWhatIsOffered) {
  const Fec lx = of("connectx4lx"), five = of("connectx5"), six = of("connectx6");
  EXPECT_EQ(lx.offered(FecRow::k100g), 0u);  // a port of 50 Gb/s
  EXPECT_EQ(lx.offered(FecRow::k50g), Fec::kOff | Fec::kFirecode | Fec::kRs528);
  EXPECT_EQ(five.offered(FecRow::k50g1x), 0u);
  EXPECT_EQ(six.offered(FecRow::k50g1x), Fec::kRs544 | Fec::kLlRs272);
  EXPECT_EQ(six.offered(FecRow::k100g1x), 0u);
  EXPECT_EQ(of("connectx7").offered(FecRow::k100g1x), Fec::kRs544);
}

TEST(Fec, AChoiceWaitsForTheLink) {
  Fec fec = of("connectx6");
  EXPECT_EQ(fec.active(), 0u);
  fec.link_up(FecRow::k200g4x);
  EXPECT_EQ(fec.active(), Fec::kRs544);
  fec.want(FecRow::k200g4x, Fec::kLlRs272);
  EXPECT_EQ(fec.active(), Fec::kRs544);
  fec.link_down();
  EXPECT_EQ(fec.active(), 0u);
  fec.link_up(FecRow::k200g4x);
  EXPECT_EQ(fec.active(), Fec::kLlRs272);
  fec.want(FecRow::k200g4x, 0);
  fec.want(FecRow::k100g, Fec::kOff);  // not this link's mode
  fec.link_up(FecRow::k200g4x);
  EXPECT_EQ(fec.active(), Fec::kRs544);
}

TEST(Fec, OneKindThatIsOffered) {
  const Fec fec = of("connectx6");
  EXPECT_TRUE(fec.acceptable(FecRow::k200g4x, 0));
  EXPECT_TRUE(fec.acceptable(FecRow::k200g4x, Fec::kLlRs272));
  EXPECT_FALSE(fec.acceptable(FecRow::k200g4x, Fec::kRs544 | Fec::kLlRs272));
  EXPECT_FALSE(fec.acceptable(FecRow::k200g4x, Fec::kOff));
  EXPECT_FALSE(fec.acceptable(FecRow::k400g4x, Fec::kRs544));
}

}  // namespace
}  // namespace hcasim::fw
