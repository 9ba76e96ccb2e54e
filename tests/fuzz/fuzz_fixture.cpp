// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz_fixture.h"

#include "prm/init_seg.h"

namespace hcasim::bare {

void Fuzz::SetUp() {
  DeviceTest::SetUp();
  expect_strays_ = true;
  breaks_any_rule();
}

void Fuzz::TearDown() {
  fn().set_dma_tamper({});
  if (dev_) {
    dev().cmd().set_observer({});
    dev().clear_failed_destroys();
  }
  expect_sound("the end");
  DeviceTest::TearDown();
}

void Fuzz::expect_sound(const char* after) {
  const std::uint32_t health =
      fn().read32(offsetof(prm::InitSeg, health) + offsetof(prm::HealthBuffer, irisc_index));
  EXPECT_EQ(health, 0u) << "the device is in its fatal state after " << after;
  for (const std::string& line : machine().log(0))
    EXPECT_EQ(line.find("fault in the model"), std::string::npos) << line << " after " << after;
}

void Fuzz::expect_recovers() {
  dev().function_reset();
  dev().clear_failed_destroys();
  dev().probe();
  expect_serves_on();
}

void LinkFuzz::TearDown() {
  tear_down_worlds();
  Fuzz::TearDown();
}

void LinkFuzz::build() {
  for (const WorldKind& kind : world_kinds())
    if (kind.card == WorldKind::kPlain &&
        (kind.link == WorldKind::kBoth || (kind.link == WorldKind::kEth) == dev().ethernet()))
      worlds_.push_back(kind.make(dev(), {}));
}

void LinkFuzz::tear_down_worlds() {
  while (!worlds_.empty()) worlds_.pop_back();
}

void LinkFuzz::let_work(Dice& dice, std::int64_t ns) {
  for (auto& w : worlds_) {
    try {
      w->work(dice);
    } catch (const BareError&) {  // refused, or nothing came
    }
  }
  machine().advance(ns);
}

}  // namespace hcasim::bare
