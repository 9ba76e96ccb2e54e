// SPDX-License-Identifier: BSD-3-Clause
// A device that is given nonsense: it may answer what it likes, but it answers, its model stays whole, and a
// function level reset brings back a device that works.
#ifndef HCASIM_TESTS_FUZZ_FUZZ_FIXTURE_H
#define HCASIM_TESTS_FUZZ_FUZZ_FIXTURE_H

#include "dice.h"
#include "tests/device/fixture.h"
#include "worlds.h"

namespace hcasim::bare {

class Fuzz : public DeviceTest {
 protected:
  void SetUp() override;
  void TearDown() override;
  // Health, and no line of the log that tells of a broken invariant.
  void expect_sound(const char* after);
  // What was done may have taken anything away; a reset gives a new start, and that must work.
  void expect_recovers();
};

// On both links.
class LinkFuzz : public Fuzz, public ::testing::WithParamInterface<std::size_t> {
 protected:
  LinkFuzz() { function_ = GetParam(); }
  void TearDown() override;
  // Worlds of all kinds that a plain card of this link has.
  void build();
  void tear_down_worlds();
  // Something happens in each of them, and some time passes.
  void let_work(Dice& dice, std::int64_t ns);

  std::vector<std::unique_ptr<World>> worlds_;
};

constexpr std::size_t kIbFunction = 0;
inline const auto kBothLinks = ::testing::Values(kIbFunction, std::size_t{kEthFunction});
inline std::string link_name(const ::testing::TestParamInfo<std::size_t>& info) {
  return info.param == kEthFunction ? "Eth" : "Ib";
}

}  // namespace hcasim::bare
#endif
