// SPDX-License-Identifier: BSD-3-Clause
// State as data (model/state/state.h): what one list of fields gives to reset, digests and listings.
#include "model/state/state.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <vector>

namespace hcasim {
namespace {

enum class Colour : std::uint8_t { kRed, kGreen };

struct Inner {
  std::uint32_t a = 7;
  std::vector<std::uint16_t> numbers;

  template <class Archive>
  void list_state(Archive& s) {
    s("a", a, 7);
    s("numbers", numbers);
  }
};

struct Outer {
  bool flag = false;
  double rate = 0;
  Colour colour = Colour::kRed;
  std::array<std::int64_t, 3> times{};
  std::vector<std::int64_t> slots = std::vector<std::int64_t>(4);
  std::deque<Inner> inner;
  std::map<std::uint32_t, Inner> by_number;
  std::unique_ptr<Inner> owned;
  std::optional<std::uint8_t> maybe;
  std::bitset<70> bits;
  std::vector<bool> used;
  std::string text;
  unsigned scratch = 0;  // not state

  template <class Archive>
  void list_state(Archive& s) {
    HCASIM_FIELDS(s, flag, rate, colour, times);
    s.kept("slots", slots);
    s("inner", inner);
    s("by_number", by_number);
    s("owned", owned);
    s("maybe", maybe);
    s("bits", bits);
    s("used", used);
    s("text", text);
  }
};

Outer busy() {
  Outer o;
  o.flag = true;
  o.rate = 2.5;
  o.colour = Colour::kGreen;
  o.times = {1, 2, 3};
  o.slots = {5, 6, 7, 8};
  o.inner.push_back(Inner{1, {2, 3}});
  o.by_number[9] = Inner{4, {}};
  o.owned = std::make_unique<Inner>();
  o.maybe = 3;
  o.bits.set(69);
  o.used = {true, false};
  o.text = "text";
  return o;
}

TEST(State, ResetTakesEveryFieldBackToItsInitialValue) {
  Outer fresh, o = busy();
  ASSERT_NE(digest_state(o), digest_state(fresh));
  reset_state(o);
  EXPECT_EQ(digest_state(o), digest_state(fresh));
  EXPECT_EQ(o.slots.size(), 4u) << "kept() keeps the number of elements";
  EXPECT_EQ(o.owned, nullptr);
}

class Block {
 public:
  std::int64_t since = 5;
  Inner inner{1, {2}};

  Block() = default;
  template <class Archive>
  void list_state(Archive& s) {
    s("since", since, -1);
    s("inner", inner);
  }
};

TEST(State, AnInitialValueOtherThanZeroIsTheListsOrThePlainStructsOwn) {
  Block b;
  reset_state(b);
  EXPECT_EQ(b.since, -1);
  EXPECT_EQ(b.inner.a, 7u);
  EXPECT_TRUE(b.inner.numbers.empty());
}

TEST(State, EqualStateHasEqualDigestsWhereverItLies) {
  Outer a = busy(), b = busy();
  a.scratch = 1;
  EXPECT_EQ(digest_state(a), digest_state(b));
}

TEST(State, EachFieldTellsInTheDigest) {
  Outer fresh;
  const std::uint64_t none = digest_state(fresh);
  const auto changed = [&](auto change) {
    Outer o;
    change(o);
    return digest_state(o) != none;
  };
  EXPECT_TRUE(changed([](Outer& o) { o.flag = true; }));
  EXPECT_TRUE(changed([](Outer& o) { o.rate = 1; }));
  EXPECT_TRUE(changed([](Outer& o) { o.colour = Colour::kGreen; }));
  EXPECT_TRUE(changed([](Outer& o) { o.times[2] = 1; }));
  EXPECT_TRUE(changed([](Outer& o) { o.slots[3] = 1; }));
  EXPECT_TRUE(changed([](Outer& o) { o.inner.emplace_back(); }));
  EXPECT_TRUE(changed([](Outer& o) { o.by_number[0]; }));
  EXPECT_TRUE(changed([](Outer& o) { o.owned = std::make_unique<Inner>(); }));
  EXPECT_TRUE(changed([](Outer& o) { o.maybe = 0; }));
  EXPECT_TRUE(changed([](Outer& o) { o.bits.set(0); }));
  EXPECT_TRUE(changed([](Outer& o) { o.used.push_back(false); }));
  EXPECT_TRUE(changed([](Outer& o) { o.text = "x"; }));
}

TEST(State, WhatLiesInOneListIsNotTakenForAnothers) {
  Inner a{7, {1}}, b{7, {}};
  Outer x, y;
  x.inner = {a, b};
  y.inner = {b, a};
  EXPECT_NE(digest_state(x), digest_state(y));
}

TEST(State, AListingNamesEachNumberByItsPath) {
  Outer o = busy();
  std::map<std::string, std::string> found;
  print_state(o, [&](const std::string& path, const std::string& value) { found[path] = value; });
  EXPECT_EQ(found["flag"], "1");
  EXPECT_EQ(found["colour"], "1");
  EXPECT_EQ(found["slots"],
            "05000000000000000600000000000000"
            "07000000000000000800000000000000");
  EXPECT_EQ(found["inner.0.a"], "1");
  EXPECT_EQ(found["by_number.0.key"], "9");
  EXPECT_EQ(found["by_number.0.value.a"], "4");
  EXPECT_EQ(found["owned.a"], "7");
  EXPECT_EQ(found["bits.69"], "1");
  EXPECT_EQ(found["used.1"], "0");
  EXPECT_EQ(found["text"], "text");
  EXPECT_EQ(found.count("scratch"), 0u);
}

}  // namespace
}  // namespace hcasim
