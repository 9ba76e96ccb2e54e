// SPDX-License-Identifier: BSD-3-Clause
// Link modes and forward error correction of each generation.
#include "firmware-stub/fec.h"

#include <gtest/gtest.h>

namespace hcasim::fw {
namespace {

Fec of(const char* generation, double gbps) { return {gbps, *find_generation(generation)}; }
std::uint16_t up(Fec fec) {
  fec.link_up();
  return fec.active();
}

TEST(Fec, RateChoosesTheMode) {
  const Generation& seven = *find_generation("connectx7");
  EXPECT_EQ(link_mode(400, seven).extended, 1u << 16);
  EXPECT_EQ(link_mode(400, seven).fec, FecRow::k400g4x);
  EXPECT_EQ(link_mode(400, *find_generation("connectx6")).fec, FecRow::k200g4x);  // no faster than its port
  EXPECT_EQ(link_mode(198.5, seven).fec, FecRow::k200g4x);
  EXPECT_EQ(link_mode(100, seven).fec, FecRow::k100g);
  EXPECT_EQ(link_mode(50, seven).fec, FecRow::k50g);
  EXPECT_EQ(link_mode(40, seven).fec, FecRow::k10g40g);
  EXPECT_EQ(link_mode(25, seven).fec, FecRow::k25g);
  EXPECT_EQ(link_mode(10, seven).fec, FecRow::k10g40g);
  EXPECT_EQ(link_mode(1, seven).fec, FecRow::kNone);
  EXPECT_EQ(link_mode(100, *find_generation("connectx5")).extended, 0u);
}

TEST(Fec, TheModeSaysWhatIsAutomatic) {
  EXPECT_EQ(up(of("connectx7", 400)), Fec::kRs544);
  EXPECT_EQ(up(of("connectx6", 200)), Fec::kRs544);
  EXPECT_EQ(up(of("connectx5", 100)), Fec::kRs528);
  EXPECT_EQ(up(of("connectx4lx", 50)), Fec::kRs528);
  EXPECT_EQ(up(of("connectx4lx", 25)), Fec::kRs528);
  EXPECT_EQ(up(of("connectx4lx", 40)), Fec::kOff);
  EXPECT_EQ(up(of("connectx4lx", 10)), Fec::kOff);
  EXPECT_EQ(up(of("connectx4lx", 1)), Fec::kOff);
}

TEST(Fec, LanesAndPortSayWhatIsOffered) {
  const Fec lx = of("connectx4lx", 25), five = of("connectx5", 100), six = of("connectx6", 200);
  EXPECT_EQ(lx.offered(FecRow::k100g), 0u);  // a port of 50 Gb/s
  EXPECT_EQ(lx.offered(FecRow::k50g), Fec::kOff | Fec::kFirecode | Fec::kRs528);
  EXPECT_EQ(five.offered(FecRow::k50g1x), 0u);
  EXPECT_EQ(six.offered(FecRow::k50g1x), Fec::kRs544 | Fec::kLlRs272);
  EXPECT_EQ(six.offered(FecRow::k100g1x), 0u);
  EXPECT_EQ(of("connectx7", 400).offered(FecRow::k100g1x), Fec::kRs544);
}

TEST(Fec, AChoiceWaitsForTheLink) {
  Fec fec = of("connectx6", 200);
  EXPECT_EQ(fec.active(), 0u);
  fec.link_up();
  EXPECT_EQ(fec.active(), Fec::kRs544);
  fec.want(FecRow::k200g4x, Fec::kLlRs272);
  EXPECT_EQ(fec.active(), Fec::kRs544);
  fec.link_down();
  EXPECT_EQ(fec.active(), 0u);
  fec.link_up();
  EXPECT_EQ(fec.active(), Fec::kLlRs272);
  fec.want(FecRow::k200g4x, 0);
  fec.want(FecRow::k100g, Fec::kOff);  // not this link's mode
  fec.link_up();
  EXPECT_EQ(fec.active(), Fec::kRs544);
}

TEST(Fec, OneKindThatIsOffered) {
  const Fec fec = of("connectx6", 200);
  EXPECT_TRUE(fec.acceptable(FecRow::k200g4x, 0));
  EXPECT_TRUE(fec.acceptable(FecRow::k200g4x, Fec::kLlRs272));
  EXPECT_FALSE(fec.acceptable(FecRow::k200g4x, Fec::kRs544 | Fec::kLlRs272));
  EXPECT_FALSE(fec.acceptable(FecRow::k200g4x, Fec::kOff));
  EXPECT_FALSE(fec.acceptable(FecRow::k400g4x, Fec::kRs544));
}

}  // namespace
}  // namespace hcasim::fw
