// SPDX-License-Identifier: BSD-3-Clause
// Pause frames: what they stop, for how long, that nothing is lost; when the port sends them.
#include "model/port/pause.h"

#include "bench.h"

namespace hcasim::test {
namespace {

constexpr Mac kOther{0x02, 0, 0, 0, 0, 2};

struct RecordingWire final : Wire {
  void transmit(Time t, const PacketRef& packet) override { sent.emplace_back(t, packet); }
  std::vector<std::pair<Time, PacketRef>> sent;
};

class PauseTest : public BlockTest {
 protected:
  void SetUp() override {
    BlockTest::SetUp();
    b.port.set_link(LinkType::kEthernet);
    b.port.station_mac = {0x02, 0, 0, 0, 0, 1};
    b.port.set_state(PortState::kActive);
    b.port.connect(&wire_);
    b.port.on_resume([this](Time t) { resumed_.push_back(t); });
  }
  void TearDown() override {
    b.port.connect(nullptr);
    b.port.on_resume({});
    b.port.watch_backlog({});
    b.port.set_link(LinkType::kIb);
    b.port.station_mac = Mac{};
    BlockTest::TearDown();
  }
  // A RoCE packet with a tag of this priority; psn tells them apart.
  static PacketRef packet(unsigned priority, std::uint32_t psn = 0) {
    PacketRef p = PacketPool::make();
    p->kind = PacketKind::kRoceV2;
    p->ipv4 = true;
    p->dmac = kOther;
    p->has_vlan = true;
    p->vlan_tci = static_cast<std::uint16_t>(priority << 13 | 5);
    p->opcode = 0x04;
    p->payload_len = 1000;
    p->psn = psn;
    return p;
  }
  static PacketRef pause(std::uint16_t quanta) {
    PauseFrame f;
    f.quanta[0] = quanta;
    return make_pause(kOther, f);
  }
  static PacketRef pfc(std::uint8_t priorities, std::uint16_t quanta) {
    PauseFrame f;
    f.by_priority = true;
    f.priorities = priorities;
    f.quanta.fill(quanta);
    return make_pause(kOther, f);
  }
  void receive(PacketRef p) {
    b.port.wire_receive(sim_now(), std::move(p));
    b.run_ns(1);
  }
  static Time quanta(unsigned n) {
    return static_cast<Time>(n * 512 * 1000.0 / bench().profile.port.rate_gbps);
  }

  RecordingWire wire_;
  std::vector<Time> resumed_;
};

TEST_F(PauseTest, FramesAreWhatTheStandardSays) {
  PacketRef p = pause(0x1234);
  EXPECT_EQ(p->frame_len, 60);
  const std::uint8_t head[] = {0x01, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0x08, 0, 1, 0x12, 0x34, 0};
  EXPECT_EQ(std::memcmp(p->frame(), head, sizeof head), 0);
  p = pfc(0x81, 0xabcd);
  const std::uint8_t class_head[] = {0x88, 0x08, 1, 1, 0, 0x81, 0xab, 0xcd};
  EXPECT_EQ(std::memcmp(p->frame() + 12, class_head, sizeof class_head), 0);
  PauseFrame back;
  ASSERT_TRUE(parse_pause(*p, back));
  EXPECT_TRUE(back.by_priority);
  EXPECT_EQ(back.priorities, 0x81);
  EXPECT_EQ(back.quanta[7], 0xabcd);
  p->frame_len = 33;
  EXPECT_FALSE(parse_pause(*p, back));
  p = pause(1);
  p->frame()[15] = 2;  // another MAC control opcode
  EXPECT_FALSE(parse_pause(*p, back));
  p->frame_len = 17;
  EXPECT_FALSE(parse_pause(*p, back));
}

TEST_F(PauseTest, AllStopsForTheTimeAndNothingIsLost) {
  b.port.pause_rx = true;
  const Time t = sim_now();
  receive(pause(1000));
  EXPECT_TRUE(b.received.empty()) << "for the MAC alone";
  EXPECT_EQ(b.port.counters().mac.rx.pause, 1u);
  EXPECT_NEAR(static_cast<double>(b.port.tx_free() - t), static_cast<double>(quanta(1000)), 10);
  for (std::uint32_t i = 0; i < 20; ++i) b.port.transmit(sim_now(), packet(i % 8, i));
  b.run(quanta(1000) - from_ns(10));
  EXPECT_TRUE(wire_.sent.empty());
  b.run_ns(10000);
  ASSERT_EQ(wire_.sent.size(), 20u);
  for (const auto& [at, p] : wire_.sent) EXPECT_GT(at, t + quanta(1000));
  for (std::size_t i = 1; i < wire_.sent.size(); ++i) EXPECT_GT(wire_.sent[i].first, wire_.sent[i - 1].first);
  EXPECT_EQ(b.port.counters().tx_discards, 0u);
}

TEST_F(PauseTest, AnotherMacControlFrameIsCounted) {
  b.port.pause_rx = true;
  PacketRef p = pause(1000);
  p->frame()[15] = 2;
  receive(std::move(p));
  EXPECT_EQ(b.port.counters().mac.rx_unsupported, 1u);
  EXPECT_EQ(b.port.counters().mac.rx.control, 1u);
  EXPECT_EQ(b.port.counters().mac.rx.pause, 0u);
  EXPECT_LE(b.port.tx_free(), sim_now());
}

TEST_F(PauseTest, TheOtherSideMayEndIt) {
  b.port.pause_rx = true;
  receive(pause(0xffff));
  b.port.transmit(sim_now(), packet(0));
  b.run_ns(1000);
  EXPECT_TRUE(wire_.sent.empty());
  receive(pause(0));
  b.run_ns(200);
  EXPECT_EQ(wire_.sent.size(), 1u);
  EXPECT_EQ(resumed_.size(), 1u);
  EXPECT_LE(b.port.tx_free(), sim_now());
}

TEST_F(PauseTest, AnotherFrameProlongsIt) {
  b.port.pause_rx = true;
  receive(pause(100));
  b.port.transmit(sim_now(), packet(0));
  b.run(quanta(90));
  receive(pause(100));
  b.run(quanta(90));
  EXPECT_TRUE(wire_.sent.empty());
  b.run(quanta(50));
  EXPECT_EQ(wire_.sent.size(), 1u);
  EXPECT_TRUE(resumed_.empty());
}

TEST_F(PauseTest, OnlyIfSwitchedOn) {
  receive(pause(1000));
  receive(pfc(0xff, 1000));
  EXPECT_LE(b.port.tx_free(), sim_now());
  b.port.transmit(sim_now(), packet(0));
  b.run_ns(500);
  EXPECT_EQ(wire_.sent.size(), 1u);
  EXPECT_TRUE(b.received.empty());
  b.port.pause_rx = true;
  b.port.pfc_rx = 0x01;  // the one kind or the other
  receive(pause(1000));
  EXPECT_FALSE(b.port.stopped(sim_now()));
}

TEST_F(PauseTest, APriorityStopsAlone) {
  b.port.pfc_rx = 0x08;
  receive(pfc(0xf7, 1000));
  EXPECT_FALSE(b.port.stopped(sim_now()));
  const Time t = sim_now();
  receive(pfc(0x0c, 1000));
  EXPECT_EQ(b.port.counters().mac.rx.prio_pause[3], 1u);
  EXPECT_EQ(b.port.counters().mac.rx.prio_pause[0], 1u);
  EXPECT_EQ(b.port.open_at(sim_now(), 2), sim_now());
  EXPECT_NEAR(static_cast<double>(b.port.open_at(sim_now(), 3) - t), static_cast<double>(quanta(1000)), 10);
  EXPECT_LE(b.port.tx_free(), sim_now()) << "others go on";
  for (std::uint32_t i = 0; i < 4; ++i) b.port.transmit(sim_now(), packet(3, i));
  b.port.transmit(sim_now(), packet(2, 9));
  b.run_ns(1000);
  ASSERT_EQ(wire_.sent.size(), 1u);
  EXPECT_EQ(wire_.sent[0].second->psn, 9u);
  b.run(quanta(1000));
  ASSERT_EQ(wire_.sent.size(), 5u);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(wire_.sent[i + 1].second->psn, i);
}

TEST_F(PauseTest, TimesStoppedAreCounted) {
  constexpr double kPs = 100;
  b.port.pause_rx = true;
  const auto lasted = [](const PauseTime& time) { return static_cast<double>(time.lasted(sim_now())); };
  receive(pause(1000));
  EXPECT_EQ(b.port.counters().mac.rx.prio_pause[0], 1u);
  b.run(quanta(500));
  EXPECT_NEAR(lasted(b.port.pause_received(0)), static_cast<double>(quanta(500)), 2000 + kPs);
  EXPECT_EQ(b.port.pause_received(0).ended(sim_now()), 0u);
  receive(pause(1000));  // prolonged
  b.run(quanta(2000));
  const double both = lasted(b.port.pause_received(0));
  EXPECT_NEAR(both, static_cast<double>(quanta(1500)), 4000 + kPs);
  EXPECT_EQ(b.port.pause_received(0).ended(sim_now()), 1u);
  EXPECT_EQ(b.port.pause_received(1).lasted(sim_now()), 0) << "the whole port counts as priority 0";
  receive(pause(1000));
  b.run(quanta(100));
  b.port.clear_pause_times(0);
  EXPECT_EQ(b.port.pause_received(0).lasted(sim_now()), 0);
  receive(pause(0));
  EXPECT_EQ(b.port.pause_received(0).ended(sim_now()), 1u);
  EXPECT_LT(lasted(b.port.pause_received(0)), 2000 + kPs);

  b.port.pause_rx = false;
  b.port.pfc_rx = 0x08;
  receive(pfc(0x0c, 100));
  b.run(quanta(200));
  EXPECT_NEAR(lasted(b.port.pause_received(3)), static_cast<double>(quanta(100)), kPs);
  EXPECT_EQ(b.port.pause_received(2).lasted(sim_now()), 0) << "it is not obeyed";
}

TEST_F(PauseTest, TooManyWaitingOfOnePriorityStopAll) {
  b.port.pfc_rx = 0x08;
  receive(pfc(0x08, 0xffff));
  for (std::size_t i = 0; i < Pause::kMostWaiting; ++i) {
    EXPECT_LE(b.port.tx_free(), sim_now());
    b.port.transmit(sim_now(), packet(3));
  }
  EXPECT_GT(b.port.tx_free(), sim_now() + quanta(0x8000));
}

TEST_F(PauseTest, AResetForgetsWhatWaits) {
  b.port.pause_rx = true;
  receive(pause(100));
  b.port.transmit(sim_now(), packet(0));
  b.port.reset();
  b.port.set_state(PortState::kActive);
  b.run(quanta(200));
  EXPECT_TRUE(wire_.sent.empty());
  b.port.transmit(sim_now(), packet(0));
  b.run_ns(500);
  EXPECT_EQ(wire_.sent.size(), 1u);
}

TEST_F(PauseTest, ACongestedReceiverAsksForAPause) {
  b.port.pause_tx = true;
  Time busy = sim_now() + b.profile.port.rx_xoff - from_ns(100);
  b.port.watch_backlog([&] { return busy; });
  receive(packet(0));
  EXPECT_TRUE(wire_.sent.empty());
  busy = sim_now() + b.profile.port.rx_xoff + from_ns(3000);
  const Time relieved = busy - b.profile.port.rx_xon, asked = sim_now();
  receive(packet(0));
  receive(packet(0));
  ASSERT_EQ(wire_.sent.size(), 1u) << "asked once";
  PauseFrame f;
  ASSERT_TRUE(parse_pause(*wire_.sent[0].second, f));
  EXPECT_FALSE(f.by_priority);
  EXPECT_EQ(f.quanta[0], 0xffff);
  EXPECT_EQ(b.port.counters().mac.tx.pause, 1u);
  EXPECT_EQ(b.port.counters().mac.tx.prio_pause[0], 1u);
  EXPECT_EQ(b.port.counters().tx_packets, 0u);
  b.run(relieved - sim_now() - from_ns(10));
  EXPECT_EQ(wire_.sent.size(), 1u);
  b.run_ns(20);
  ASSERT_EQ(wire_.sent.size(), 2u);
  ASSERT_TRUE(parse_pause(*wire_.sent[1].second, f));
  EXPECT_EQ(f.quanta[0], 0u) << "and told when it may go on";
  b.run_ns(1000000);
  EXPECT_EQ(wire_.sent.size(), 2u);
  EXPECT_NEAR(static_cast<double>(b.port.pause_asked(0).lasted(sim_now())),
              static_cast<double>(relieved - asked), 1000);
  EXPECT_EQ(b.port.pause_asked(1).lasted(sim_now()), 0);
}

TEST_F(PauseTest, ABufferSaysWhenItIsFull) {
  b.port.pfc_tx = 0x18;
  PortBuffers buffers;
  buffers.of_priority[3] = 2;
  buffers.buffers[2] = {false, 400, 100, 50};
  b.port.set_buffers(buffers);
  // Twice what that takes to come in, and less than the profile says.
  const Time fill = static_cast<Time>(100 * PortBuffers::kCell * 8000.0 / bench().profile.port.rate_gbps);
  ASSERT_LT(2 * fill, bench().profile.port.rx_xoff);
  const Time relieved = sim_now() + 2 * fill;
  b.port.watch_backlog([relieved] { return relieved; });
  receive(packet(4));
  EXPECT_TRUE(wire_.sent.empty());
  receive(packet(3));
  ASSERT_EQ(wire_.sent.size(), 1u);
  PauseFrame f;
  ASSERT_TRUE(parse_pause(*wire_.sent[0].second, f));
  EXPECT_EQ(f.priorities, 0x08);
  b.run(relieved - fill / 2 - sim_now() - from_ns(200));
  EXPECT_EQ(wire_.sent.size(), 1u);
  b.run_ns(400);
  ASSERT_EQ(wire_.sent.size(), 2u);
  ASSERT_TRUE(parse_pause(*wire_.sent[1].second, f));
  EXPECT_EQ(f.quanta[3], 0u);
}

// At a tenth of the speed the same cells hold what comes in ten times as long.
TEST_F(PauseTest, ABufferHoldsItsCellsWhateverTheSpeed) {
  const double gbps = bench().profile.port.rate_gbps;
  b.port.pfc_tx = 0x08;
  PortBuffers buffers;
  buffers.of_priority[3] = 2;
  buffers.buffers[2] = {false, 400, 100, 50};
  b.port.set_buffers(buffers);
  b.port.set_rate(gbps / 10);
  const Time fill = static_cast<Time>(100 * PortBuffers::kCell * 8000.0 / gbps);
  Time late = 9 * fill;
  b.port.watch_backlog([&late] { return sim_now() + late; });
  receive(packet(3));
  EXPECT_TRUE(wire_.sent.empty());
  late = 11 * fill;
  receive(packet(3));
  EXPECT_EQ(wire_.sent.size(), 1u);
  b.port.set_rate(gbps);
}

TEST_F(PauseTest, ItAsksAgainWhileItIsCongested) {
  b.port.pfc_tx = 0x20;
  b.port.watch_backlog([] { return sim_now() + from_ns(1e6); });  // never gets less
  receive(packet(4));
  EXPECT_TRUE(wire_.sent.empty());
  receive(packet(5));
  b.run(3 * quanta(0x8000));
  ASSERT_GE(wire_.sent.size(), 3u);
  ASSERT_LE(wire_.sent.size(), 5u);
  for (const auto& [t, p] : wire_.sent) {
    PauseFrame f;
    ASSERT_TRUE(parse_pause(*p, f));
    EXPECT_TRUE(f.by_priority);
    EXPECT_EQ(f.priorities, 0x20);
    EXPECT_EQ(f.quanta[5], 0xffff);
  }
  EXPECT_EQ(b.port.counters().mac.tx.prio_pause[5], wire_.sent.size());
}

}  // namespace
}  // namespace hcasim::test
