// SPDX-License-Identifier: BSD-3-Clause
// A switch of InfiniBand and the lanes of its ports: what waits at an output for room in the HCA behind it,
// what does not, and when an input has room again.
#include <gmock/gmock.h>

#include "bench.h"
#include "model/state/state.h"

namespace hcasim::test {
namespace {

using ::testing::ElementsAre;

class SwitchLanes : public BlockTest {
 protected:
  static PacketRef packet(std::uint16_t to, std::uint8_t lane, std::uint32_t number) {
    PacketRef p = PacketPool::make();
    p->opcode = 0x04;  // RC SEND only
    p->dlid = to;
    p->vl = lane;
    p->psn = number;
    p->payload_len = 448;
    return p;
  }
  std::uint32_t bytes() const { return Port::wire_bytes(*packet(1, 0, 0)); }
  // From the first port; those that have arrived at `at` are listed.
  void send(std::initializer_list<PacketRef> packets) {
    for (const PacketRef& p : packets) b.lanes.port(0).transmit(sim_now(), p);
    b.run_ns(2000);
  }
  std::vector<std::uint32_t> arrived(std::size_t at) const {
    std::vector<std::uint32_t> numbers;
    for (const auto& [t, p] : b.stations[at].arrived) numbers.push_back(p->psn);
    return numbers;
  }
  void make_room(std::size_t at, unsigned lane) {
    b.lanes.port(at).make_room(sim_now(), lane, bytes());
    b.run_ns(2000);
  }
  std::size_t rooms() const { return b.stations[0].rooms.size(); }
};

// Eight blocks each: two packets fill a lane's buffer of the second HCA.
TEST_F(SwitchLanes, AFullLaneWaitsAndOthersGo) {
  send({packet(2, 0, 1), packet(2, 0, 2), packet(2, 0, 3), packet(2, 1, 4), packet(3, 0, 5)});
  EXPECT_THAT(arrived(1), ElementsAre(1, 2, 4));
  EXPECT_THAT(arrived(2), ElementsAre(5)) << "of the same lane, to another HCA";
  EXPECT_EQ(rooms(), 4u) << "the third is still in the input's buffer";
  make_room(1, 1);
  EXPECT_THAT(arrived(1), ElementsAre(1, 2, 4)) << "of another lane";
  const Time back = sim_now();
  make_room(1, 0);
  EXPECT_THAT(arrived(1), ElementsAre(1, 2, 4, 3));
  EXPECT_GE(b.stations[1].arrived.back().first, back + from_ns(2 * 10)) << "there and back over the cable";
  ASSERT_EQ(rooms(), 5u);
  EXPECT_EQ(b.stations[0].rooms.back().lane, 0u);
  EXPECT_EQ(b.stations[0].rooms.back().bytes, bytes());
  EXPECT_EQ(b.stations[0].rooms.back().t, b.stations[1].arrived.back().first);
  EXPECT_GE(b.lanes.waited(1), from_ns(1000));
}

// All of them have credits, and come at once.
TEST_F(SwitchLanes, AnOutputTakesThemByTheTablesOfItsHca) {
  b.stations[1].shares.high[0] = {2, 1};
  b.stations[1].shares.high_limit = VirtualLanes::kNoLimit;
  b.stations[2].shares.high[0] = {1, 1};
  b.stations[2].shares.high_limit = VirtualLanes::kNoLimit;
  send({packet(2, 0, 1), packet(2, 0, 2), packet(2, 1, 3), packet(2, 2, 4), packet(2, 2, 5)});
  EXPECT_THAT(arrived(1), ElementsAre(1, 4, 5, 2, 3));
  EXPECT_EQ(rooms(), 5u);
  send({packet(3, 0, 1), packet(3, 0, 2), packet(3, 1, 3), packet(3, 2, 4), packet(3, 2, 5)});
  EXPECT_THAT(arrived(2), ElementsAre(1, 3, 2, 4, 5));
}

TEST_F(SwitchLanes, ALanesOrderStays) {
  send({packet(2, 0, 1), packet(2, 0, 2), packet(2, 0, 3), packet(2, 0, 4), packet(2, 0, 5)});
  for (int i = 0; i < 3; ++i) make_room(1, 0);
  EXPECT_THAT(arrived(1), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(rooms(), 5u);
}

TEST_F(SwitchLanes, ManagementWaitsForNobody) {
  PacketRef management = packet(2, 0, 9);
  management->vl15 = true;
  send({packet(2, 0, 1), packet(2, 0, 2), packet(2, 0, 3), management});
  EXPECT_THAT(arrived(1), ElementsAre(1, 9, 2)) << "past what waits, behind what is under way";
  EXPECT_EQ(rooms(), 2u);
}

// The input's room is taken until the last copy has left.
TEST_F(SwitchLanes, AMulticastLeavesWithItsLastCopy) {
  send({packet(2, 0, 1), packet(2, 0, 2)});
  const std::size_t before = rooms();
  send({packet(0xc001, 0, 3)});
  EXPECT_THAT(arrived(2), ElementsAre(3));
  EXPECT_THAT(arrived(1), ElementsAre(1, 2));
  EXPECT_EQ(rooms(), before);
  make_room(1, 0);
  EXPECT_THAT(arrived(1), ElementsAre(1, 2, 3));
  EXPECT_EQ(rooms(), before + 1);
}

TEST_F(SwitchLanes, AnUnknownLidTakesNoRoom) {
  send({packet(77, 0, 1)});
  EXPECT_EQ(rooms(), 1u);
  EXPECT_EQ(b.lanes.counters().dropped_unknown, 1u);
}

// An HCA that is reset has all its room; what it still says of before counts for nothing.
TEST_F(SwitchLanes, AnHcaThatIsEmptiedHasAllItsRoom) {
  send({packet(2, 0, 1), packet(2, 0, 2), packet(2, 0, 3)});
  b.lanes.port(1).make_room(sim_now() + from_ns(3000), 0, bytes());
  b.lanes.port(1).make_room(sim_now() + from_ns(3000), 0, bytes());
  b.lanes.port(1).emptied();
  b.run_ns(1000);
  EXPECT_THAT(arrived(1), ElementsAre(1, 2, 3));
  EXPECT_EQ(rooms(), 3u);
  send({packet(2, 0, 4), packet(2, 0, 5)});
  EXPECT_THAT(arrived(1), ElementsAre(1, 2, 3, 4)) << "the third has taken half of it";
  b.run_ns(5000);
  EXPECT_THAT(arrived(1), ElementsAre(1, 2, 3, 4));
}

// What waits for an HCA that goes away is dropped, and its sender may go on.
TEST_F(SwitchLanes, AnHcaThatIsGoneHoldsNobodyBack) {
  send({packet(2, 0, 1), packet(2, 0, 2), packet(2, 0, 3), packet(2, 0, 4)});
  b.lanes.detach(1);
  send({packet(2, 0, 5)});
  EXPECT_THAT(arrived(1), ElementsAre(1, 2));
  EXPECT_EQ(rooms(), 5u);
}

TEST_F(SwitchLanes, AStateOfWaitingPacketsIsResetToNone) {
  send({packet(2, 0, 1), packet(2, 0, 2), packet(2, 0, 3)});
  reset_state(b.lanes);
  send({packet(2, 0, 4), packet(2, 0, 5)});
  EXPECT_THAT(arrived(1), ElementsAre(1, 2, 4, 5));
  EXPECT_EQ(rooms(), 4u);
}

}  // namespace
}  // namespace hcasim::test
