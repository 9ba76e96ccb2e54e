// SPDX-License-Identifier: BSD-3-Clause
// Credits of an InfiniBand port's lanes: what waits for them, what does not, who hears of room.
#include "model/port/lane_credits.h"

#include <utility>
#include <vector>

#include "bench.h"

namespace hcasim::test {
namespace {

constexpr std::uint32_t kRoom = 1024;

struct CreditedWire final : Wire {
  struct Room {
    Time t;
    unsigned lane;
    std::uint32_t bytes;
  };
  void transmit(Time t, const PacketRef& packet) override { sent.emplace_back(t, packet); }
  std::uint32_t room_of_lanes() const override { return kRoom; }
  void make_room(Time t, unsigned lane, std::uint32_t bytes) override { rooms.push_back({t, lane, bytes}); }
  std::vector<std::pair<Time, PacketRef>> sent;
  std::vector<Room> rooms;
};

class LaneCreditsTest : public BlockTest {
 protected:
  void SetUp() override {
    BlockTest::SetUp();
    b.port.set_lid(0x12);
    b.port.set_state(PortState::kActive);
    b.port.connect(&wire_);
    b.port.on_resume([this](Time t) { resumed_.push_back(t); });
  }
  void TearDown() override {
    b.port.connect(nullptr);
    b.port.on_resume({});
    b.port.watch_buffers({});
  }
  static PacketRef packet(std::uint8_t lane, std::uint32_t len = 448) {
    PacketRef p = PacketPool::make();
    p->opcode = 0x04;  // RC SEND only
    p->dlid = 0x34;
    p->vl = lane;
    p->payload_len = len;
    return p;
  }
  // How many have left by then.
  std::size_t send(const std::vector<PacketRef>& packets) {
    for (const PacketRef& p : packets) b.port.transmit(sim_now(), p);
    b.run_ns(1000);
    return wire_.sent.size();
  }
  CreditedWire wire_;
  std::vector<Time> resumed_;
};

TEST_F(LaneCreditsTest, APacketWithoutCreditsWaitsAndOtherLanesDoNot) {
  EXPECT_EQ(send({packet(0), packet(0), packet(0), packet(1)}), 3u) << "eight blocks each, of sixteen";
  EXPECT_EQ(wire_.sent[2].second->vl, 1u);
  EXPECT_TRUE(b.port.credits().stopped(0));
  EXPECT_FALSE(b.port.credits().stopped(1));
  EXPECT_GT(b.port.lane_open_at(sim_now(), 0), sim_now());
  EXPECT_EQ(b.port.lane_open_at(sim_now(), 1), sim_now());
  const Time back = sim_now() + from_ns(500);
  b.port.made_room(back, 0, Port::wire_bytes(*packet(0)));
  b.run_ns(400);
  EXPECT_EQ(wire_.sent.size(), 3u);
  b.run_ns(600);
  ASSERT_EQ(wire_.sent.size(), 4u);
  EXPECT_GE(wire_.sent[3].first, back);
  EXPECT_LT(wire_.sent[3].first, back + from_ns(100));
  EXPECT_TRUE(resumed_.empty()) << "all room is taken again";
  for (const std::size_t told : {0u, 1u}) {
    b.port.made_room(sim_now(), 0, Port::wire_bytes(*packet(0)));
    b.run_ns(10);
    EXPECT_EQ(resumed_.size(), told) << "when the largest packet that there can be would have room";
  }
  EXPECT_FALSE(b.port.credits().stopped());
  EXPECT_GT(b.port.xmit_wait(), 0u);
  b.port.clear_xmit_wait();
  EXPECT_EQ(b.port.xmit_wait(), 0u);
}

TEST_F(LaneCreditsTest, WhatIsLargerThanAllRoomGoesAlone) {
  EXPECT_EQ(send({packet(2, 2048), packet(2, 64)}), 1u);
  b.port.made_room(sim_now(), 2, Port::wire_bytes(*packet(2, 2048)));
  b.run_ns(1000);
  EXPECT_EQ(wire_.sent.size(), 2u);
}

TEST_F(LaneCreditsTest, ManagementNeedsNone) {
  PacketRef management = packet(0, 256);
  management->vl15 = true;
  management->dest_qpn = 0;
  EXPECT_EQ(send({packet(0), packet(0), packet(0), management}), 3u);
  EXPECT_TRUE(wire_.sent[2].second->vl15);
}

TEST_F(LaneCreditsTest, ALinkThatComesUpAgainHasThemAll) {
  EXPECT_EQ(send({packet(0), packet(0), packet(0)}), 2u);
  const Time late = sim_now() + from_ns(5000);
  b.port.made_room(late, 0, kRoom);  // of what was sent before
  b.port.set_state(PortState::kDown);
  EXPECT_EQ(b.port.counters().tx_discards, 1u) << "what has waited is lost";
  b.port.set_state(PortState::kActive);
  EXPECT_EQ(send({packet(0), packet(0), packet(0)}), 4u);
  b.run_ns(10'000);
  EXPECT_EQ(wire_.sent.size(), 4u) << "credits of before count for nothing";
  EXPECT_EQ(resumed_.size(), 1u);
}

TEST_F(LaneCreditsTest, WhatIsLostOnTheWayGivesItsCreditsBack) {
  b.port.faults().drop = 1;
  EXPECT_EQ(send({packet(0), packet(0), packet(0), packet(0), packet(0)}), 0u);
  b.run_ns(1000);
  EXPECT_EQ(b.port.counters().injected_drop, 5u);
  EXPECT_FALSE(b.port.credits().stopped());
  b.port.faults().drop = 0;
  EXPECT_EQ(send({packet(0), packet(0)}), 2u);
}

// Packets that wait are not without end: the transmitter is stopped before, and told when it may go on.
TEST_F(LaneCreditsTest, TooManyThatWaitStopThePort) {
  std::vector<PacketRef> many;
  for (std::size_t i = 0; i < LaneCredits::kMostWaiting + 2; ++i) many.push_back(packet(3));
  send(many);
  EXPECT_TRUE(b.port.credits().full());
  EXPECT_GT(b.port.tx_free(), sim_now() + from_ns(10'000));
  for (std::size_t i = 0; i < many.size(); ++i)
    b.port.made_room(sim_now() + static_cast<Time>(i) * from_ns(50), 3, Port::wire_bytes(*many[i]));
  b.run_ns(10'000);
  EXPECT_EQ(wire_.sent.size(), many.size());
  EXPECT_EQ(resumed_.size(), 1u);
  EXPECT_LE(b.port.tx_free(), sim_now());
}

TEST_F(LaneCreditsTest, AStateOfWaitingPacketsIsResetToNone) {
  send({packet(0), packet(0), packet(0)});
  b.port.reset();
  EXPECT_FALSE(b.port.credits().stopped());
  b.port.set_lid(0x12);
  b.port.set_state(PortState::kActive);
  EXPECT_EQ(send({packet(0), packet(0)}), 4u);
}

}  // namespace
}  // namespace hcasim::test
