// SPDX-License-Identifier: BSD-3-Clause
// HCAs on the modelled switch. (A process each: HCAs are made before time starts.)
#include <gtest/gtest.h>

#include <cstring>

#include "all_to_all.h"

namespace hcasim::bare {
namespace {

class OnASwitch : public ::testing::TestWithParam<bool> {  // Ethernet
 protected:
  static AllToAllOptions options(std::size_t hcas) {
    AllToAllOptions o;
    o.hcas = hcas;
    o.ethernet = GetParam();
    return o;
  }
};

TEST_P(OnASwitch, EachReachesEachOther) {
  AllToAll fabric(options(5));
  fabric.run(2);
  fabric.check();
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(fabric.counter(i, "wire_lost"), 0u);
    EXPECT_EQ(fabric.counter(i, "retransmits"), 0u);
  }
}

// The output to the one that all write to is the narrow place: it is full all the time, and nobody is
// favoured beyond that.
TEST_P(OnASwitch, IncastTakesTheTimeOfOnePort) {
  AllToAll fabric(options(5));
  fabric.run(1, true);
  fabric.clear();
  const std::int64_t start = fabric.now();
  const std::size_t writes = fabric.run(2, true);
  fabric.check(true);
  const double ns = static_cast<double>(fabric.now() - start),
               least = static_cast<double>(writes) * 65536 * 8 / 100;
  EXPECT_GT(ns, least);
  EXPECT_LT(ns, least * 1.15 + 6000);
}

// More than the switch can hold: InfiniBand stops the senders, Ethernet loses packets, which are sent again.
TEST_P(OnASwitch, AFullQueueStopsOrDrops) {
  AllToAll fabric(options(9));
  fabric.run(8, true);
  fabric.check(true);
  std::uint64_t again = 0;
  for (std::size_t i = 1; i < 9; ++i) again += fabric.counter(i, "retransmits");
  if (GetParam()) {
    EXPECT_GT(fabric.counter(0, "wire_lost"), 0u);
    EXPECT_GT(again, 0u);
  } else {
    EXPECT_EQ(fabric.counter(0, "wire_lost"), 0u);
    EXPECT_EQ(again, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Link, OnASwitch, ::testing::Bool(),
                         [](const auto& p) { return p.param ? "Ethernet" : "InfiniBand"; });

// What is wrong is said before time starts.
TEST(Switch, WhatCannotBeJoinedIsRefused) {
  Machine machine(std::size_t{64} << 20);
  for (const char* options :
       {"switch=s,cable=x", "switch=s,wire=unix:/nowhere", "switch=s,link=ib,sm=off", "switch="}) {
    EXPECT_THROW(machine.add_hca(options), BareError) << options;
  }
  machine.add_hca("switch=s,link=eth");
  machine.add_hca("switch=s,link=ib");
  try {
    machine.start();
    FAIL() << "link types cannot be mixed";
  } catch (const BareError&) {
    ASSERT_FALSE(machine.log(0).empty());
    EXPECT_NE(machine.log(0).back().find("different link types"), std::string::npos) << machine.log(0).back();
  }
}

}  // namespace
}  // namespace hcasim::bare
