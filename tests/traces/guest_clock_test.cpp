// SPDX-License-Identifier: BSD-3-Clause
// The offset of a guest's trace clock, from causes and effects: right, within the interval that is stated, or
// refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "prm/prm.h"
#include "traces/timeline.h"

namespace hcasim::traces {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kOffset = -3'141'592'653;  // ns, simulated minus guest's

// An HCA, and the guest beside it. Times are simulated ns.
class Clock : public ::testing::Test {
 protected:
  Clock() { tracer_.open_memory(); }

  void doorbell(std::int64_t at) { tracer_.record(Point::kDoorbell, at * 1000, 0x42, serial_++, 0); }
  void msix(std::int64_t at) { tracer_.record(Point::kMsix, at * 1000, 2, 0, 3); }
  void command(std::int64_t at, std::int64_t done) {
    tracer_.record(Point::kCmdStart, at * 1000, 1, serial_, prm::op::CREATE_CQ);
    tracer_.record(Point::kCmdDone, done * 1000, 1, serial_++, prm::op::CREATE_CQ);
  }
  void guest(std::int64_t at, const std::string& what) {
    const std::int64_t t = at - kOffset;
    char s[200];
    std::snprintf(s, sizeof s, "  app-7 [000] .... %lld.%09lld: %s", static_cast<long long>(t / 1000000000),
                  static_cast<long long>(t % 1000000000), what.c_str());
    guest_.add_line(s);
  }
  void handler(std::int64_t at) { guest(at, "irq_int_handler <-__handle_irq_event_percpu"); }
  // A command as the driver gives it: a function, the HCA's record, an interrupt, its handler. `seen`: the
  // guest's trace has it.
  void driver_command(std::int64_t at, bool seen) {
    if (seen) guest(at - about(9000), "cmd_work_handler <-process_one_work");
    command(at, at + 2500);
    msix(at + 3000);
    if (seen) handler(at + 3000 + about(8000));
  }
  std::int64_t about(std::int64_t ns) { return ns + static_cast<std::int64_t>(random_() % 700); }
  std::int64_t random(std::int64_t below) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(below));
  }

  ClockOffset find() {
    Timeline t;
    std::vector<std::vector<std::uint8_t>> blobs;
    const auto records = tracer_.drain(&blobs);
    for (std::size_t i = 0; i < records.size(); i++) t.add(records[i], blobs[i]);
    t.finish();
    return find_offset(t, guest_);
  }
  static void expect_within(const ClockOffset& found, std::int64_t width) {
    ASSERT_TRUE(found.known) << found.why_not;
    EXPECT_LE(found.least, kOffset);
    EXPECT_GE(found.most, kOffset);
    EXPECT_LE(found.most - found.least, width);
    EXPECT_GE(found.ns, found.least);
    EXPECT_LE(found.ns, found.most);
  }

  Tracer tracer_{0};
  GuestTrace guest_;
  std::mt19937_64 random_{7};
  std::uint32_t serial_ = 0;
};

// Shifted by one they fit as well: there is no answer, and none is given.
TEST_F(Clock, EvenlySpacedCommandsAreRefused) {
  for (int i = 0; i < 551; ++i) driver_command(5'000'000'000 + i * 107'000, i >= 100 && i < 400);
  const ClockOffset found = find();
  EXPECT_FALSE(found.known) << found.ns - kOffset << " ns off";
  EXPECT_THAT(found.why_not, HasSubstr("fit as well under an offset of"));
}

// As the guest's trace says nothing of what came before and behind it, the ends do not help either.
TEST_F(Clock, EvenlySpacedCommandsOfTheWholeRunAreRefused) {
  for (int i = 0; i < 551; ++i) driver_command(5'000'000'000 + i * 107'000, true);
  EXPECT_FALSE(find().known);
}

// The same with a few posts whose gaps differ: under a shift, these have no doorbells.
TEST_F(Clock, AFewUnevenEventsTellShiftsApart) {
  std::int64_t at = 5'000'000'000;
  for (int i = 0; i < 551; ++i) driver_command(at += 107'000, i >= 100 && i < 400);
  at = 5'011'000'000;
  for (int i = 0; i < 6; ++i) {
    at += 2'000'000 + i * i * 333'333;
    guest(at - 3000, "mlx5_ib_post_send <-ib_uverbs_post_send");
    doorbell(at);
  }
  const ClockOffset found = find();
  expect_within(found, 11'100);
  EXPECT_EQ(found.of, 606u);
  EXPECT_EQ(found.matched, 606u);
}

TEST_F(Clock, UnevenGapsTellShiftsApart) {
  std::int64_t at = 5'000'000'000;
  for (int i = 0; i < 551; ++i) driver_command(at += 90'000 + random(40'000), i >= 100 && i < 400);
  const ClockOffset found = find();
  expect_within(found, 17'100);
  // From both sides: the middle is nearer than either.
  EXPECT_LT(std::abs(found.ns - kOffset), 1500);
}

// A function and its return bracket its doorbell; probes have names of their own.
TEST_F(Clock, ProbesOfTheirBeginAndReturn) {
  std::int64_t at = 5'000'000'000;
  for (int i = 0; i < 40; ++i) {
    at += 50'000 + random(20'000);
    guest(at - about(3000), "my_probe: (mlx5r_ring_db+0x0/0x60 [mlx5_ib])");
    doorbell(at);
    guest(at + about(2000), "its_end: (mlx5r_umr_post_send+0x210/0x280 [mlx5_ib] <- mlx5r_ring_db)");
  }
  const ClockOffset found = find();
  expect_within(found, 5100);
  EXPECT_EQ(found.of, 80u);
}

// Some of either side is not in the other's trace: fewer fit, and the interval holds all the same.
TEST_F(Clock, WhatIsMissingOnEitherSide) {
  std::int64_t at = 5'000'000'000;
  for (int i = 0; i < 600; ++i) {
    at += 90'000 + random(40'000);
    if (random(20) == 0) {
      handler(at);  // of an interrupt that the HCA's trace does not have
    } else {
      driver_command(at, random(10) != 0);
    }
  }
  const ClockOffset found = find();
  expect_within(found, 20'000);
  EXPECT_LT(found.matched, found.of);
}

// With time=eager a handler may run before its interrupt is due in simulated time.
TEST_F(Clock, HandlersAheadOfTheirInterrupts) {
  std::int64_t at = 5'000'000'000;
  for (int i = 0; i < 300; ++i) {
    at += 200'000 + random(100'000);
    guest(at - about(2000), "mlx5_ib_post_send <-ib_uverbs_post_send");
    doorbell(at);
    msix(at + 6000);
    handler(at + 500 + random(9000));  // up to 5.5 us ahead
  }
  const ClockOffset found = find();
  ASSERT_TRUE(found.known) << found.why_not;
  expect_within(found, 20'000);
  EXPECT_LT(std::abs(found.ns - kOffset), 10'000);
}

// One side alone: said to be a bound.
TEST_F(Clock, BoundedFromOneSide) {
  std::int64_t at = 5'000'000'000;
  for (int i = 0; i < 100; ++i) {
    at += 50'000 + random(50'000);
    guest(at - about(1000), "mlx5e_xmit <-dev_hard_start_xmit");
    doorbell(at);
  }
  const ClockOffset found = find();
  ASSERT_TRUE(found.known) << found.why_not;
  EXPECT_TRUE(found.above);
  EXPECT_FALSE(found.below);
  EXPECT_EQ(found.ns, found.most);
  EXPECT_GE(found.ns, kOffset + 1000);
  EXPECT_LE(found.ns, kOffset + 1100);
}

// Many: it takes seconds at most, and all of them bound it.
TEST_F(Clock, ManyEvents) {
  std::int64_t at = 5'000'000'000;
  for (int i = 0; i < 60'000; ++i) driver_command(at += 30'000 + random(100'000), i > 3000);
  const ClockOffset found = find();
  expect_within(found, 17'100);
  EXPECT_EQ(found.of, 2u * 56'999);
}

// Three events fit somewhere in a long trace.
TEST_F(Clock, AHandfulIsRefusedWhereItFitsOftener) {
  std::int64_t at = 5'000'000'000;
  for (int i = 0; i < 3000; ++i) driver_command(at += 60'000 + random(300), i >= 1000 && i < 1003);
  EXPECT_FALSE(find().known);
}

TEST_F(Clock, NothingOfTheHcas) {
  doorbell(5'000'000'000);
  guest(5'000'000'000, "schedule <-x");
  const ClockOffset found = find();
  EXPECT_FALSE(found.known);
  EXPECT_THAT(found.why_not, HasSubstr("none of its events"));
}

}  // namespace
}  // namespace hcasim::traces
