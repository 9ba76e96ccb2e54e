// SPDX-License-Identifier: BSD-3-Clause
// What packets change of an association: numbers, windows, lifetimes, events; and access to it by ACCESS_ASO.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

#include "model/crypto/aso.h"
#include "prm/prm.h"
#include "prm/wqe.h"

namespace hcasim {
namespace {

using Aso = prm::ipsec_aso;

struct Given {
  unsigned mode = 0, window = 0;
  std::uint32_t parameter = 0;
  bool esn_arm = false, soft_arm = false, hard_arm = false, remove = false;
  std::uint32_t left = 0, soft = 0;
  bool wide = false;
};

SaAso made(const Given& g) {
  SaAso::Context c{};
  prm::set<Aso::valid>(c.data(), 1);
  prm::set<Aso::mode>(c.data(), g.mode);
  prm::set<Aso::window_sz>(c.data(), g.window);
  prm::set<Aso::mode_parameter>(c.data(), g.parameter);
  prm::set<Aso::esn_event_arm>(c.data(), g.esn_arm);
  prm::set<Aso::soft_lft_arm>(c.data(), g.soft_arm);
  prm::set<Aso::hard_lft_arm>(c.data(), g.hard_arm);
  prm::set<Aso::remove_flow_enable>(c.data(), g.remove);
  prm::set<Aso::remove_flow_pkt_cnt>(c.data(), g.left);
  prm::set<Aso::remove_flow_soft_lft>(c.data(), g.soft);
  return SaAso(c.data(), 7, 4, g.wide);
}
constexpr unsigned kReplay = prm::k::IPSEC_ASO_REPLAY_PROTECTION, kNumbers = prm::k::IPSEC_ASO_INC_SN;

std::uint32_t parameter(const SaAso& a) { return prm::get<Aso::mode_parameter>(a.context().data()); }

TEST(Aso, NumbersPacketsAndDoesNotBeginAnew) {
  Given g;
  g.mode = kNumbers;
  g.parameter = 0xfffffffe;
  SaAso a = made(g);
  std::uint32_t n = 0;
  EXPECT_EQ(a.send(n), AsoResult::kOk);
  EXPECT_EQ(n, 0xfffffffeu);
  EXPECT_EQ(a.send(n), AsoResult::kOk);
  EXPECT_EQ(n, 0xffffffffu);
  EXPECT_EQ(a.send(n), AsoResult::kSpent);
  EXPECT_EQ(a.send(n), AsoResult::kSpent);
  EXPECT_FALSE(a.take_event()) << "it was not armed";
  g.wide = true;
  a = made(g);
  for (const std::uint32_t want : {0xfffffffeu, 0xffffffffu, 0u, 1u}) {
    EXPECT_EQ(a.send(n), AsoResult::kOk);
    EXPECT_EQ(n, want);
  }
}

TEST(Aso, TellsOnceThatHalfOfTheNumbersOrAllAreOver) {
  for (const std::uint32_t from : {0x7ffffffeu, 0xfffffffeu}) {
    Given g;
    g.mode = kNumbers, g.parameter = from, g.wide = g.esn_arm = true;
    SaAso a = made(g);
    std::uint32_t n = 0;
    a.send(n);
    EXPECT_FALSE(a.take_event());
    a.send(n);
    EXPECT_TRUE(a.take_event());
    EXPECT_EQ(prm::get<Aso::esn_event_arm>(a.context().data()), 0u);
    EXPECT_EQ(parameter(a), from + 2);
    a.send(n);
    EXPECT_FALSE(a.take_event()) << "once";
  }
}

TEST(Aso, AWindowTakesEachNumberOnceInAnyOrder) {
  for (unsigned size = 0; size < 4; ++size) {
    const std::uint32_t window = 32u << size;
    Given g;
    g.mode = kReplay, g.window = size, g.parameter = 1;
    SaAso a = made(g);
    std::set<std::uint32_t> come;
    std::uint32_t top = window;  // the highest that the window reaches
    std::uint32_t seed = 12345;
    for (unsigned i = 0; i < 20000; ++i) {
      seed = seed * 1664525 + 1013904223;
      const std::uint32_t spread = seed >> 16;
      // Mostly about the window's upper end.
      const std::uint32_t number =
          top > window + spread % (2 * window) ? top + 3 - spread % (2 * window) : top;
      const bool fits = number > top - window && come.insert(number).second;
      ASSERT_EQ(a.receive(number) == AsoResult::kOk, fits) << number << " below " << top;
      if (number > top) top = number;
      ASSERT_EQ(parameter(a), top - window + 1);
    }
    EXPECT_EQ(a.receive(0), AsoResult::kReplayed);
    EXPECT_EQ(a.receive(top + 1'000'000), AsoResult::kOk);
    EXPECT_EQ(a.receive(top + 1'000'000), AsoResult::kReplayed);
    EXPECT_EQ(a.receive(top + 999'999), AsoResult::kOk) << "what the window has jumped over may still come";
  }
}

TEST(Aso, AWindowOfNumbersThatGoRound) {
  Given g;
  g.mode = kReplay, g.wide = true, g.parameter = 0xfffffff0, g.esn_arm = true;
  SaAso a = made(g);
  EXPECT_EQ(a.receive(0x8), AsoResult::kOk);
  EXPECT_EQ(a.receive(0xfffffff0), AsoResult::kOk) << "the window's lower end";
  EXPECT_EQ(a.receive(0xffffffef), AsoResult::kReplayed);
  EXPECT_FALSE(a.take_event());
  EXPECT_EQ(a.receive(0x30), AsoResult::kOk);
  EXPECT_TRUE(a.take_event()) << "the window's lower end is behind the wrap";
  EXPECT_EQ(parameter(a), 0x11u);
  EXPECT_EQ(a.receive(0x8), AsoResult::kReplayed);
  EXPECT_EQ(a.receive(0xfffffff5), AsoResult::kReplayed);
}

TEST(Aso, WithoutAWindowWideNumbersAreFollowedAndAllTaken) {
  Given g;
  g.wide = true, g.parameter = 0xfffffff0, g.esn_arm = true;
  SaAso a = made(g);
  EXPECT_EQ(a.receive(0xfffffff9), AsoResult::kOk);
  EXPECT_EQ(a.receive(0xfffffff9), AsoResult::kOk);
  EXPECT_EQ(a.receive(0xfffffff1), AsoResult::kOk);
  EXPECT_EQ(parameter(a), 0xfffffff9u);
  EXPECT_FALSE(a.take_event());
  EXPECT_EQ(a.receive(3), AsoResult::kOk);
  EXPECT_TRUE(a.take_event());
}

TEST(Aso, LifetimesAreToldAndEndIt) {
  Given g;
  g.mode = kNumbers, g.parameter = 1, g.remove = g.soft_arm = g.hard_arm = true, g.left = 5, g.soft = 2;
  SaAso a = made(g);
  std::uint32_t n = 0;
  for (unsigned i = 1; i <= 5; ++i) {
    EXPECT_EQ(a.send(n), AsoResult::kOk);
    EXPECT_EQ(a.take_event(), i == 3 || i == 5) << i;
  }
  EXPECT_EQ(prm::get<Aso::soft_lft_arm>(a.context().data()), 0u);
  EXPECT_EQ(prm::get<Aso::hard_lft_arm>(a.context().data()), 0u);
  EXPECT_EQ(a.send(n), AsoResult::kSpent);
  EXPECT_FALSE(a.take_event());
  a = made(g);
  g.mode = kReplay;
  SaAso b = made(g);
  for (unsigned i = 1; i <= 5; ++i) EXPECT_EQ(b.receive(i), AsoResult::kOk);
  EXPECT_EQ(b.receive(6), AsoResult::kSpent);
}

// ---- ACCESS_ASO

std::vector<std::uint8_t> control(unsigned operands, unsigned at, std::uint64_t data, std::uint64_t mask,
                                  unsigned mode = 0) {
  prm::AsoCtrlSeg s{};
  s.condition_operands = static_cast<std::uint8_t>(operands);
  s.condition_combination = static_cast<std::uint8_t>(at);
  s.data_mask_mode = static_cast<std::uint8_t>(mode << 6);
  s.bitwise_data = data;
  s.data_mask = mask;
  std::vector<std::uint8_t> bytes(sizeof s);
  std::memcpy(bytes.data(), &s, sizeof s);
  return bytes;
}
constexpr std::uint64_t bit(unsigned n) { return std::uint64_t{1} << n; }

TEST(Aso, BitsAreSetAsTheDriverDoesAndTheRestStays) {
  Given g;
  g.mode = kNumbers, g.parameter = 0x1234, g.left = 9;
  SaAso a = made(g);
  const SaAso::Context first = a.context();
  SaAso::Context before{};
  auto wqe = control(0, 0, 0, 0);
  ASSERT_TRUE(a.access(wqe.data(), wqe.size(), before)) << "read alone";
  EXPECT_EQ(before, first);
  EXPECT_EQ(a.context(), first);
  wqe = control(0x11, 0, bit(54), bit(54));
  ASSERT_TRUE(a.access(wqe.data(), wqe.size(), before));
  EXPECT_EQ(before, first);
  EXPECT_EQ(prm::get<Aso::esn_event_arm>(a.context().data()), 1u);
  wqe = control(0x11, 0, bit(57) | bit(31), bit(57) | bit(31));
  ASSERT_TRUE(a.access(wqe.data(), wqe.size(), before));
  EXPECT_EQ(prm::get<Aso::soft_lft_arm>(a.context().data()), 1u);
  EXPECT_EQ(prm::get<Aso::remove_flow_pkt_cnt>(a.context().data()), 0x80000009u);
  wqe = control(0x11, 1, 0xfeed, 0xffffffff);
  ASSERT_TRUE(a.access(wqe.data(), wqe.size(), before));
  EXPECT_EQ(prm::get<Aso::remove_flow_soft_lft>(a.context().data()), 0xfeedu);
  EXPECT_EQ(prm::get<Aso::remove_flow_pkt_cnt>(a.context().data()), 0x80000009u);
  EXPECT_EQ(parameter(a), 0x1234u);
  EXPECT_EQ(prm::get<Aso::mode>(a.context().data()), kNumbers);
}

TEST(Aso, WhatIsNotToBeDoneThatWay) {
  SaAso a = made({});
  const SaAso::Context first = a.context();
  SaAso::Context before{};
  const auto refused = [&](const std::vector<std::uint8_t>& w) {
    EXPECT_FALSE(a.access(w.data(), w.size(), before));
    EXPECT_EQ(a.context(), first);
  };
  refused(control(0x12, 0, 1, 1));
  refused(control(0x21, 0, 1, 1));
  refused(control(0x11, 0, 1, 1, 1));
  refused(control(0x11, 15, 1, 1));
  refused(std::vector<std::uint8_t>(47));
  const auto never = control(0x01, 0, ~0ull, ~0ull);
  EXPECT_TRUE(a.access(never.data(), never.size(), before)) << "one of two does not hold";
  EXPECT_EQ(a.context(), first);
}

}  // namespace
}  // namespace hcasim
