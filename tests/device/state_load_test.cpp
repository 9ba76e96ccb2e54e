// SPDX-License-Identifier: BSD-3-Clause
// What StateLoad refuses of numbers, of an object by itself.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include "card/state/load.h"
#include "model/clock.h"
#include "model/state/fields.h"

namespace hcasim::saved {
namespace {

struct Timed {
  Time due_ = 0;
  std::array<Time, 2> parts_{};

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, due_, parts_);
  }
};

std::string state_with(std::int64_t due, std::array<std::int64_t, 2> parts) {
  TaggedWriter out(1);
  out.open("timed", Type::kGroup);
  out.number("due", static_cast<std::uint64_t>(due));
  out.bytes("parts", parts.data(), sizeof parts);
  out.close();
  return std::move(out).finish();
}

// Empty: it was taken.
std::string refusal(const std::string& state) {
  TaggedReader from(state);
  StateLoad load(from);
  Timed timed;
  try {
    load("timed", timed);
    load.finish();
  } catch (const StateError& e) {
    return e.what();
  }
  return "";
}

TEST(StateLoad, TimesBeyondAnyClockAreRefused) {
  constexpr Time day = Time{86'400} * 1'000'000'000'000;
  EXPECT_EQ(refusal(state_with(5, {1, 2})), "");
  EXPECT_EQ(refusal(state_with(kNever, {kNever, -1})), "");
  EXPECT_EQ(refusal(state_with(90 * day, {0, 0})), "");
  EXPECT_NE(refusal(state_with(100 * day, {0, 0})).find("timed.due: this is further away than any time"),
            std::string::npos);
  EXPECT_NE(refusal(state_with(INT64_MIN, {0, 0})), "");
  EXPECT_NE(refusal(state_with(0, {0, 100 * day})).find("timed.parts"), std::string::npos);
}

}  // namespace
}  // namespace hcasim::saved
