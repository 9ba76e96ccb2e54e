// SPDX-License-Identifier: BSD-3-Clause
// DCQCN of one flow: the paper's equations, and that working them out late changes nothing.
#include "model/cc/flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace hcasim::test {
namespace {

constexpr double kLine = 100000;  // Mb/s
constexpr Time kUs = from_ns(1000);

// The paper's parameters (section 5.2) in the card's units.
ReactionParams paper() {
  ReactionParams p;
  p.dce_tcp_g = 1020;  // g = 1/256
  p.dce_tcp_rtt = 55;
  p.rate_reduce_monitor_period = 50;
  p.time_reset = 55;
  p.byte_reset = 10 * 1000 * 1000;
  p.threshold = 5;
  p.ai_rate = 40;
  p.hai_rate = 400;
  p.initial_alpha_value = 1024;
  return p;
}

TEST(CcFlow, TheFirstCnpHalvesTheRate) {
  const ReactionParams p = paper();
  CcFlow f;
  EXPECT_FALSE(f.limited);
  f.on_cnp(7 * kUs, p, kLine);
  EXPECT_TRUE(f.limited);
  EXPECT_DOUBLE_EQ(f.target, kLine);
  EXPECT_DOUBLE_EQ(f.current, kLine / 2);  // alpha = 1: by alpha / 2
}

TEST(CcFlow, CutsFollowAlpha) {
  const ReactionParams p = paper();
  CcFlow f;
  f.on_cnp(0, p, kLine);
  // No CNP for ten updates but the first: alpha = (1-g)^9 after it was raised from 1 to 1.
  double alpha = 1;
  for (int i = 0; i < 9; ++i) alpha *= 1020 / 1024.0;
  f.advance(10 * 55 * kUs, p, kLine);
  EXPECT_NEAR(f.alpha, alpha * 1024, 1e-6);
  const double before = f.current;
  f.on_cnp(10 * 55 * kUs, p, kLine);
  EXPECT_NEAR(f.current, before * (1 - alpha / 2), 1e-6);
  EXPECT_NEAR(f.target, before, 1e-6);
  // A CNP in the period: alpha = (1-g) alpha + g.
  f.advance(11 * 55 * kUs, p, kLine);
  EXPECT_NEAR(f.alpha, (alpha * 1020 / 1024 + 4 / 1024.0) * 1024, 1e-6);
}

TEST(CcFlow, OneCutAPeriod) {
  const ReactionParams p = paper();
  CcFlow f;
  f.on_cnp(0, p, kLine);
  const double first = f.current;
  for (int us = 1; us < 50; ++us) f.on_cnp(us * kUs, p, kLine);
  EXPECT_DOUBLE_EQ(f.current, first);
  f.advance(50 * kUs, p, kLine);  // the CNPs of the period count once, at its end
  EXPECT_NEAR(f.current, first / 2, 1);
  f.advance(54 * kUs, p, kLine);
  EXPECT_NEAR(f.current, first / 2, 1);
}

TEST(CcFlow, RecoversFastThenByAdditionThenHyper) {
  ReactionParams p = paper();
  p.clamp_tgt_rate = true;
  p.dce_tcp_g = 1024;  // alpha stays
  CcFlow f;
  f.on_cnp(0, p, kLine);
  f.on_cnp(50 * kUs, p, kLine);
  EXPECT_DOUBLE_EQ(f.target, kLine / 2);
  EXPECT_DOUBLE_EQ(f.current, kLine / 4);
  Time t = 50 * kUs;
  double expected = kLine / 4;
  for (int i = 0; i < 5; ++i) {  // fast recovery: half way to the target
    f.advance(t += 55 * kUs, p, kLine);
    expected = (expected + kLine / 2) / 2;
    EXPECT_DOUBLE_EQ(f.target, kLine / 2);
    EXPECT_DOUBLE_EQ(f.current, expected);
  }
  double target = kLine / 2;
  for (int i = 0; i < 3; ++i) {  // the timer alone: additive increase
    f.advance(t += 55 * kUs, p, kLine);
    target += 40;
    expected = (expected + target) / 2;
    EXPECT_DOUBLE_EQ(f.target, target);
    EXPECT_DOUBLE_EQ(f.current, expected);
  }
  for (int i = 0; i < 7; ++i) {  // the byte counter catches up: hyper increase when it is past F as well
    f.on_sent(10 * 1000 * 1000, p, kLine);
    target += i < 5 ? 40 : 400;
    EXPECT_DOUBLE_EQ(f.target, target) << i;
  }
}

TEST(CcFlow, TheTargetFollowsOnlyARaisedRate) {
  ReactionParams p = paper();
  CcFlow f;
  f.on_cnp(0, p, kLine);
  f.on_cnp(50 * kUs, p, kLine);
  EXPECT_DOUBLE_EQ(f.target, kLine);  // nothing was raised in between
  f.advance(105 * kUs, p, kLine);
  const double raised = f.current;
  p.clamp_tgt_rate_after_time_inc = false;
  CcFlow g = f;
  g.on_cnp(105 * kUs, p, kLine);
  EXPECT_DOUBLE_EQ(g.target, kLine);
  p.clamp_tgt_rate_after_time_inc = true;
  f.on_cnp(105 * kUs, p, kLine);
  EXPECT_DOUBLE_EQ(f.target, raised);
}

TEST(CcFlow, Bounds) {
  ReactionParams p = paper();
  p.gd = 10;  // alpha = 1 would stop the flow
  p.min_dec_fac = 80;
  p.min_rate = 30000;
  CcFlow f;
  f.on_cnp(0, p, kLine);
  EXPECT_DOUBLE_EQ(f.current, 0.8 * kLine);
  for (int i = 1; i < 10; ++i) f.on_cnp(i * 50 * kUs, p, kLine);
  EXPECT_DOUBLE_EQ(f.current, 30000);
  p = paper();
  p.rate_to_set_on_first_cnp = 12345;
  p.max_rate = 20000;
  CcFlow g;
  g.on_cnp(0, p, kLine);
  EXPECT_DOUBLE_EQ(g.current, 12345);
  EXPECT_DOUBLE_EQ(g.target, 12345);
  g.advance(1000000 * kUs, p, kLine);
  EXPECT_FALSE(g.limited);  // back at rpg_max_rate
}

TEST(CcFlow, FullRateFreesTheLimiter) {
  const ReactionParams p;  // a card's own
  CcFlow f;
  f.on_cnp(0, p, kLine);
  f.advance(299 * kUs, p, kLine);
  EXPECT_NEAR(f.current, kLine * (1 - 1023 / 2048.0), 1e-6);
  f.advance(900 * kUs, p, kLine);
  EXPECT_NEAR(kLine - f.current, (kLine * 1023 / 2048) / 8, 1e-6);
  EXPECT_TRUE(f.limited);
  f.advance(300 * 30 * kUs, p, kLine);
  EXPECT_FALSE(f.limited);
}

TEST(CcFlow, Pace) {
  ReactionParams p = paper();
  p.byte_reset = 0;
  CcFlow f;
  EXPECT_EQ(f.earliest(5, p, kLine), 5);
  p.rate_to_set_on_first_cnp = 1000;
  f.on_cnp(0, p, kLine);
  EXPECT_EQ(f.earliest(10 * kUs, p, kLine), 10 * kUs);
  f.on_sent(1250, p, kLine);  // 10 us at 1 Gb/s
  EXPECT_EQ(f.earliest(11 * kUs, p, kLine), 20 * kUs);
  EXPECT_EQ(f.earliest(35 * kUs, p, kLine), 35 * kUs);  // what was not used is lost
  f.on_sent(125, p, kLine);
  EXPECT_EQ(f.earliest(35 * kUs, p, kLine), 36 * kUs);
}

// The rate that counts is that of the time between two packets, not that of when the first one left: 4 KiB at
// 1 Mb/s take 33 ms, and the rate recovers within one.
TEST(CcFlow, AGapEndsAsTheRateRises) {
  const ReactionParams p;  // a card's own
  CcFlow f;
  Time t = 0;
  for (; t < 200 * kUs; t += 4 * kUs) {
    f.on_cnp(t, p, kLine);
    f.advance(t, p, kLine);
    if (f.earliest(t, p, kLine) == t) f.on_sent(4096, p, kLine);
  }
  EXPECT_LT(f.current, 2);
  // What is foretold is what comes, however often it is asked.
  const Time foretold = f.earliest(t, p, kLine);
  EXPECT_LT(foretold - t, 400 * kUs);
  for (; t < foretold; t += kUs) {
    f.advance(t, p, kLine);
    ASSERT_NEAR(static_cast<double>(f.earliest(t, p, kLine)), static_cast<double>(foretold), 2);
  }
  f.advance(foretold, p, kLine);
  EXPECT_EQ(f.earliest(foretold + 2, p, kLine), foretold + 2);
}

// A driver may ask for a rate that nothing raises and a timer of 1 us: foretelling costs no more for it.
TEST(CcFlow, ForetellingEnds) {
  ReactionParams p;
  p.ai_rate = p.hai_rate = 0;
  p.time_reset = 1;
  p.byte_reset = 0;
  p.rate_to_set_on_first_cnp = 1;
  CcFlow f;
  f.on_cnp(0, p, kLine);
  ASSERT_EQ(f.earliest(0, p, kLine), 0);
  f.on_sent(1u << 30, p, kLine);  // 2.4 hours
  Time t = 0;
  for (int i = 0; i < 100; ++i) {
    const Time next = f.earliest(t, p, kLine);
    ASSERT_GT(next, t);
    ASSERT_LT(next, t + 100 * kUs);
    f.advance(t = next, p, kLine);
  }
}

// And grows with another cut.
TEST(CcFlow, AGapIsLongerAfterACut) {
  ReactionParams p = paper();
  p.byte_reset = 0;
  p.time_reset = 0;
  CcFlow f;
  f.on_cnp(0, p, kLine);
  f.on_cnp(50 * kUs, p, kLine);
  ASSERT_DOUBLE_EQ(f.current, kLine / 4);
  ASSERT_EQ(f.earliest(50 * kUs, p, kLine), 50 * kUs);
  f.on_sent(312'500, p, kLine);  // 100 us at that rate
  EXPECT_EQ(f.earliest(60 * kUs, p, kLine), 150 * kUs);
  f.on_cnp(100 * kUs, p, kLine);
  const double slower = f.current / (kLine / 4);
  EXPECT_NEAR(static_cast<double>(f.earliest(100 * kUs, p, kLine) - 100 * kUs),
              static_cast<double>(50 * kUs) / slower, 2);
}

// rpg_byte_reset counts bytes.
TEST(CcFlow, TheByteCounterRaisesTheRate) {
  ReactionParams p;
  p.time_reset = 0;
  CcFlow f;
  f.on_cnp(0, p, kLine);
  const double half = f.current;
  f.on_sent(p.byte_reset - 1, p, kLine);
  EXPECT_DOUBLE_EQ(f.current, half);
  f.on_sent(1, p, kLine);
  EXPECT_DOUBLE_EQ(f.current, (half + kLine) / 2);
  f.on_sent(2 * p.byte_reset, p, kLine);
  EXPECT_EQ(f.byte_events, 3u);
}

// What a longer step has counted is no more than one event of a shorter one.
TEST(CcFlow, AShorterStepEndsTheOneBefore) {
  ReactionParams p;
  p.time_reset = 0;
  p.byte_reset = UINT32_MAX;
  p.ai_rate = p.hai_rate = 0;
  CcFlow f;
  f.on_cnp(0, p, kLine);
  f.on_sent(UINT32_MAX - 1, p, kLine);
  EXPECT_EQ(f.byte_events, 0u);
  p.byte_reset = 1000;
  f.on_sent(500, p, kLine);
  EXPECT_EQ(f.byte_events, 1u);
  EXPECT_EQ(f.bytes, 500u);
}

// A limiter that was given up leaves no gap for the next one.
TEST(CcFlow, ANewLimiterBeginsWithoutAGap) {
  ReactionParams p;
  p.byte_reset = 0;
  CcFlow f;
  f.on_cnp(0, p, kLine);
  ASSERT_EQ(f.earliest(0, p, kLine), 0);
  f.on_sent(1u << 30, p, kLine);  // 0.17 s at half the rate
  for (Time t = 0; f.limited; t += 100 * kUs) f.advance(t, p, kLine);
  const Time again = 30'000 * kUs;
  f.on_cnp(again, p, kLine);
  EXPECT_TRUE(f.limited);
  EXPECT_EQ(f.earliest(again, p, kLine), again);
}

TEST(CcFlow, ParametersThatStopItDoNotHangIt) {
  ReactionParams p;
  p.ai_rate = p.hai_rate = 0;
  p.time_reset = 1;
  p.dce_tcp_rtt = 0;
  p.min_dec_fac = 200;
  p.gd = 0xffffffff;
  p.clamp_tgt_rate = true;
  CcFlow f;
  f.on_cnp(0, p, kLine);
  p.min_dec_fac = 0;
  p.gd = 0;
  f.on_cnp(10 * kUs, p, kLine);
  p.rate_reduce_monitor_period = 0xffffffff;
  f.on_cnp(11 * kUs, p, kLine);
  f.advance(from_ns(3600e9), p, kLine);  // an hour later
  EXPECT_TRUE(f.limited || f.current > 0);
  p = ReactionParams{};
  p.time_reset = 1;
  p.threshold = 0xffffffff;
  p.clamp_tgt_rate = true;
  CcFlow h;
  h.on_cnp(0, p, kLine);
  h.on_cnp(10 * kUs, p, kLine);
  const double target = h.target;
  h.advance(from_ns(3600e9), p, kLine);
  EXPECT_DOUBLE_EQ(h.current, target);  // fast recovery without end
  p = ReactionParams{};
  p.time_reset = 0;
  p.byte_reset = 0;
  CcFlow g;
  g.on_cnp(0, p, kLine);
  g.on_sent(4096, p, kLine);
  g.advance(from_ns(3600e9), p, kLine);
  EXPECT_NEAR(g.current, kLine / 2, 100);  // nothing raises it
}

// The same CNPs and packets, asked about every microsecond or hardly ever.
TEST(CcFlow, LateOrEarlyEvaluationIsTheSame) {
  std::mt19937_64 random(3);
  for (int run = 0; run < 50; ++run) {
    ReactionParams p = run % 2 ? paper() : ReactionParams{};
    p.clamp_tgt_rate = run % 3 == 0;
    CcFlow often, seldom;
    for (int us = 0; us < 4000; ++us) {
      const Time t = us * kUs;
      often.advance(t, p, kLine);
      if (random() % 100 == 0) {
        often.on_cnp(t, p, kLine);
        seldom.on_cnp(t, p, kLine);
      }
    }
    seldom.advance(3999 * kUs, p, kLine);
    ASSERT_EQ(often.limited, seldom.limited);
    if (!often.limited) continue;
    ASSERT_NEAR(often.current, seldom.current, 1e-3);
    ASSERT_NEAR(often.target, seldom.target, 1e-3);
    ASSERT_NEAR(often.alpha, seldom.alpha, 1e-6);
  }
}

// Two flows through one link that marks when they are more than it carries: they end near half each.
TEST(CcFlow, TwoFlowsShareALink) {
  const ReactionParams p = paper();
  CcFlow f[2];
  f[1].on_cnp(0, p, kLine);  // one begins far behind
  for (int i = 1; i < 20; ++i) f[1].on_cnp(i * 50 * kUs, p, kLine);
  double queue = 0, share[2] = {};
  std::mt19937_64 random(5);
  constexpr int kRun = 400000;
  for (int us = 1000; us < kRun; ++us) {
    const Time t = us * kUs;
    double rate[2];
    for (int i = 0; i < 2; ++i) {
      f[i].advance(t, p, kLine);
      rate[i] = f[i].limited ? f[i].current : kLine;
      if (f[i].limited) f[i].on_sent(static_cast<std::uint32_t>(rate[i] / 8), p, kLine);
      if (us > kRun / 2) share[i] += rate[i];
    }
    queue = std::max(0.0, queue + (rate[0] + rate[1] - kLine) / 8);  // bytes
    if (us % 50) continue;                                           // CNP interval
    const double chance = std::clamp((queue - 5000) / 195000, 0.0, 1.0);
    for (auto& flow : f) {
      const double packets = (flow.limited ? flow.current : kLine) * 50 / 8 / 1024;
      const double none = std::pow(1 - chance * 0.01, packets);
      if (static_cast<double>(random() % 1000000) / 1e6 > none || queue > 200000) flow.on_cnp(t, p, kLine);
    }
  }
  const double sum = share[0] + share[1];
  EXPECT_NEAR(share[0] / sum, 0.5, 0.1);
  EXPECT_GT(sum / (kRun / 2.0), 0.8 * kLine);
  EXPECT_LT(sum / (kRun / 2.0), 1.1 * kLine);
}

}  // namespace
}  // namespace hcasim::test
