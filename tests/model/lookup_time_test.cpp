// SPDX-License-Identifier: BSD-3-Clause
// What the tables of the E-Switch take of time: one look-up and many, entries that are not on the chip; the
// order of frames behind the switch.
#include "model/steer/lookup_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "model/ctx/fetch.h"
#include "model/eswitch/eswitch.h"
#include "model/steer/flow.h"

namespace hcasim {
namespace {

constexpr Time kRead = from_ns(500), kLookUp = from_ns(10), kEvery = from_ns(2);

Profile small() {
  Profile p;
  p.cache.ste = 4;
  p.cache.ways = 4;
  p.steering.look_up = kLookUp;
  p.steering.look_up_every = kEvery;
  return p;
}

class LookupTimeTest : public ::testing::Test {
 protected:
  const Profile profile = small();
  unsigned reads = 0;
  ContextFetch contexts{profile, [this](Time t, unsigned bytes) {
                          EXPECT_EQ(bytes, 64u);
                          ++reads;
                          return t + kRead;
                        }};
  LookupTime time{{profile, contexts}};
};

TEST_F(LookupTimeTest, AnEntryIsReadOnceAndThenOnTheChip) {
  EXPECT_EQ(time.look_up(1000, 1), 1000 + kRead + kLookUp);
  const Time later = from_ns(10000);
  EXPECT_EQ(time.look_up(later, 1), later + kLookUp);
  EXPECT_EQ(reads, 1u);
  EXPECT_EQ(time.misses(), 1u);
  EXPECT_EQ(time.hits(), 1u);
}

TEST_F(LookupTimeTest, OneThatWasWrittenIsReadAgain) {
  time.look_up(0, LookupTime::entry_line(1, 2));
  time.changed(LookupTime::entry_line(1, 3));
  time.look_up(from_ns(1000), LookupTime::entry_line(1, 2));
  EXPECT_EQ(reads, 1u);
  time.changed(LookupTime::entry_line(1, 2));
  time.look_up(from_ns(2000), LookupTime::entry_line(1, 2));
  EXPECT_EQ(reads, 2u);
}

TEST_F(LookupTimeTest, LookUpsFollowEachOtherAtTheirRate) {
  time.look_up(0, 1);
  const Time t = from_ns(5000);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(time.look_up(t, 1), t + i * kEvery + kLookUp);
}

TEST_F(LookupTimeTest, MoreEntriesThanThereIsRoomForDriveEachOtherOut) {
  for (int round = 0; round < 3; ++round)
    for (std::uint64_t line = 0; line < 5; ++line) time.look_up(from_ns(10000) * (round * 5 + 1), line * 4);
  EXPECT_GT(reads, 5u);
}

TEST_F(LookupTimeTest, LinesOfDifferentKindsAreDifferent) {
  EXPECT_NE(LookupTime::entry_line(1, 0), LookupTime::group_line(1, 0));
  EXPECT_NE(LookupTime::entry_line(1, 0), LookupTime::entry_line(2, 0));
  EXPECT_NE(LookupTime::software_line(64), LookupTime::software_line(128));
}

// A frame whose entry must be read is not overtaken by the next of the same vport; others do not wait.
TEST_F(LookupTimeTest, WhatComesInAtOneVportComesOutInOrder) {
  Vport v0{0}, v1{1}, v2{2};
  Vports vports{PerFunction<Vport>(std::vector<Vport*>{&v0, &v1, &v2})};
  FlowSteering flows;
  flows.attach(time);
  ESwitch eswitch{{vports, flows}};
  eswitch.set_present(true);
  FlowTable& fdb = *flows.create_table(1, FlowTableType::kFdb);
  fdb.log_size = 4;
  FlowGroup macs;
  macs.id = 1;
  macs.last = 7;
  macs.criteria = 1;
  prm::set<prm::fte_match_set_lyr_2_4::dmac_15_0>(macs.mask.data(), 0xffff);
  ASSERT_TRUE(flows.create_group(fdb, macs));
  for (std::uint32_t to : {1u, 2u}) {
    FlowEntry e;
    e.group = 1;
    e.action = kFlowForward;
    e.destinations = {{FlowDestination::kVport, to}};
    prm::set<prm::fte_match_set_lyr_2_4::dmac_15_0>(e.value.data(), to);
    ASSERT_TRUE(flows.set_entry(fdb, to, e));
  }
  ASSERT_TRUE(flows.set_root(FlowTableType::kFdb, 1));
  const auto out = [&](Time t, FunctionId from, std::uint8_t to) {
    PacketRef p = PacketPool::make();
    p->kind = PacketKind::kEthernet;
    p->function = from;
    p->frame_len = 64;
    std::fill_n(p->frame(), 64, std::uint8_t{0});
    p->frame()[5] = to;
    EmbeddedSwitch::Copies copies;
    eswitch.from_function(t, p, copies);
    EXPECT_EQ(copies.size(), 1u);
    return copies.empty() ? 0 : copies.front().at;
  };
  out(0, 0, 1);  // brings that entry in
  const Time t = from_ns(10000);
  const Time waits = out(t, 0, 2);
  EXPECT_EQ(waits, t + kRead + kLookUp);
  EXPECT_EQ(out(t + from_ns(100), 0, 1), waits) << "behind the one before";
  EXPECT_EQ(out(t + from_ns(100), 2, 1), t + from_ns(100) + kEvery + kLookUp) << "of another vport";
}

}  // namespace
}  // namespace hcasim
