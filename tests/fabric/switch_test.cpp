// SPDX-License-Identifier: GPL-2.0-or-later
// The switch by itself, with a stand-in for whoever simulates it.
#include "fabric/switch.h"

#include <gtest/gtest.h>

#include <map>

namespace hcasim::fabric {
namespace {

constexpr std::uint64_t kMac = 0x020000000000;
constexpr Time kByte = 80;  // ps at 100 Gb/s
constexpr std::uint8_t kEct = 2;

// An IPv4 UDP frame to that card, of so many bytes without FCS.
FramePtr frame(unsigned to, std::size_t len = 1000, unsigned priority = 0, std::uint8_t ecn = 0,
               std::uint16_t source_port = 0xc000) {
  std::vector<std::uint8_t> b(len);
  b[0] = 2;
  b[5] = static_cast<std::uint8_t>(to);
  b[6] = 2;
  b[12] = 8;
  b[14] = 0x45;
  b[15] = static_cast<std::uint8_t>(priority << 5 | ecn);
  b[23] = 17;
  b[34] = static_cast<std::uint8_t>(source_port >> 8);
  b[35] = static_cast<std::uint8_t>(source_port);
  std::uint32_t sum = 0;
  for (int i = 14; i < 34; i += 2) sum += b[i] << 8 | b[i + 1];
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  b[24] = static_cast<std::uint8_t>(~sum >> 8);
  b[25] = static_cast<std::uint8_t>(~sum);
  return make_frame(b.data(), b.size());
}

struct Left {
  unsigned port;
  Time at;
  FramePtr frame;
};

class Bench : public Switch::Owner {
 public:
  explicit Bench(const SwitchConfig& config, unsigned ports = 4) : sw(config, 7, *this) {
    for (unsigned i = 0; i < ports; ++i) {
      sw.add_port(100);
      sw.add_route(kMac | i, {i});
    }
  }
  void wake_at(Time t) override { wake_ = std::min(wake_, t); }
  void leaves(unsigned port, FramePtr f, Time t) override {
    EXPECT_GT(t, now);
    left.push_back({port, t, std::move(f)});
  }
  void run(Time until = 10 * kMs) {
    while (wake_ <= until) {
      now = wake_;
      wake_ = kNever;
      sw.run(now);
    }
    now = std::max(now, until);
  }
  // Frames that left by a port.
  std::vector<const Left*> by(unsigned port, bool control = false) const {
    std::vector<const Left*> list;
    for (const Left& l : left)
      if (l.port == port && l.frame->mac_control == control) list.push_back(&l);
    return list;
  }
  PortCounters counters(unsigned port) const { return sw.counters(port, now); }

  Time now = 0;
  std::vector<Left> left;
  Switch sw;

 private:
  Time wake_ = kNever;
};

SwitchConfig plain() {
  SwitchConfig c;
  c.latency = 300 * kNs;
  return c;
}

TEST(Switch, CutsThroughOrStores) {
  for (const bool cut : {true, false}) {
    SwitchConfig c = plain();
    c.cut_through = cut;
    Bench b(c);
    const Time lasts = 1024 * kByte;  // with FCS, preamble and gap
    b.sw.arrives(0, frame(1), kUs);
    b.run();
    ASSERT_EQ(b.left.size(), 1u);
    EXPECT_EQ(b.left[0].port, 1u);
    EXPECT_EQ(b.left[0].at, kUs + 300 * kNs + (cut ? 0 : lasts));
  }
}

TEST(Switch, AnOutputSendsOneFrameAfterAnother) {
  Bench b(plain());
  for (unsigned from : {0, 2, 3}) b.sw.arrives(from, frame(1), kUs + from);
  b.run();
  const auto out = b.by(1);
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[1]->at - out[0]->at, 1024 * kByte);
  EXPECT_EQ(out[2]->at - out[1]->at, 1024 * kByte);
  EXPECT_EQ(b.counters(1).busy, 3 * 1024 * kByte);
}

// Whoever is told of first: at one time, ports come in their order.
TEST(Switch, TiesGoByPort) {
  for (const bool forward : {true, false}) {
    Bench b(plain());
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned from = forward ? i : 3 - i;
      if (from != 1) b.sw.arrives(from, frame(1, 100 + from), kUs);
    }
    b.run();
    const auto out = b.by(1);
    ASSERT_EQ(out.size(), 3u);
    EXPECT_EQ(out[0]->frame->bytes.size(), 100u);
    EXPECT_EQ(out[1]->frame->bytes.size(), 102u);
    EXPECT_EQ(out[2]->frame->bytes.size(), 103u);
  }
}

TEST(Switch, HigherPrioritiesGoFirst) {
  Bench b(plain());
  for (int i = 0; i < 3; ++i) b.sw.arrives(0, frame(1, 1000, 3), kUs + i);
  b.sw.arrives(2, frame(1, 80, 6), kUs + 3);
  b.run();
  const auto out = b.by(1);
  ASSERT_EQ(out.size(), 4u);
  EXPECT_EQ(out[1]->frame->priority, 6u);
}

// As the counter of the longest queue: frames of two priorities wait in two queues.
TEST(Switch, TheLongestQueueIsOfOnePriority) {
  Bench b(plain());
  for (unsigned i = 0; i < 4; ++i) b.sw.arrives(0, frame(1, 1000, i < 3 ? 3 : 6), kUs + i);
  b.run(kUs + 10);
  EXPECT_EQ(b.sw.longest_queue(1), 3u * 1004);
  EXPECT_EQ(b.sw.longest_queue(2), 0u);
  EXPECT_EQ(b.counters(1).most_queued, 3u * 1004);
  b.run();
  EXPECT_EQ(b.sw.longest_queue(1), 0u);
  EXPECT_EQ(b.counters(1).most_queued, 3u * 1004);
}

TEST(Switch, WhatHasNoRouteIsDroppedAndCounted) {
  Bench b(plain());
  b.sw.arrives(0, frame(77), kUs);
  const std::uint8_t runt[5] = {1, 2, 3, 4, 5};
  b.sw.arrives(0, make_frame(runt, sizeof runt), 2 * kUs);
  b.sw.arrives(0, make_frame(runt, 0), 3 * kUs);
  b.run();
  EXPECT_TRUE(b.left.empty());
  EXPECT_EQ(b.counters(0).dropped_unrouted, 3u);
}

// ---- ECN ----

TEST(Switch, MarksByTheLengthOfTheQueue) {
  SwitchConfig c = plain();
  c.kmin = 5'000;
  c.kmax = 10'000;
  c.pmax = 0;
  Bench b(c);
  for (int i = 0; i < 20; ++i) b.sw.arrives(0, frame(1, 1000, 3, kEct), kUs + i);
  b.run();
  // 1004 bytes each, and none has left when the last one comes: with 10 before it, one is marked.
  const auto out = b.by(1);
  ASSERT_EQ(out.size(), 20u);
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i]->frame->ecn == kCe, i >= 10) << i;
  EXPECT_EQ(b.counters(1).marked, 10u);
}

TEST(Switch, MarksAShareBetweenTheThresholdsAndTheSameInEachRun) {
  SwitchConfig c = plain();
  c.kmin = 0;
  c.kmax = 1u << 21;
  c.pmax = 1;
  c.queue = 1u << 22;
  std::vector<unsigned> runs;
  for (const std::uint64_t seed : {1, 1, 2}) {
    c.seed = seed;
    Bench b(c);
    for (int i = 0; i < 1000; ++i) b.sw.arrives(0, frame(1, 1000, 3, kEct), kUs + i);
    b.run();
    unsigned digest = 0;
    for (const Left& l : b.left) digest = digest * 31 + l.frame->ecn;
    runs.push_back(digest);
    // The queue grows to a half of kmax: a quarter of all is to be expected.
    EXPECT_NEAR(static_cast<double>(b.counters(1).marked), 240, 60);
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_NE(runs[0], runs[2]);
}

TEST(Switch, MarksOnlyWhatIsCapableAndKeepsChecksumsRight) {
  SwitchConfig c = plain();
  c.kmin = c.kmax = 1;
  Bench b(c);
  for (int i = 0; i < 3; ++i) b.sw.arrives(0, frame(1, 1000, 3, 0), kUs + i);
  for (std::uint8_t ecn : {1, 2, 3}) b.sw.arrives(0, frame(1, 1000, 5, ecn, 77), kUs + 3 + ecn);
  b.run();
  EXPECT_EQ(b.counters(1).marked, 1u)
      << "the second: nothing waits before the first, the third was marked before";
  for (const Left& l : b.left) {
    EXPECT_TRUE(l.frame->priority != 3 || l.frame->ecn == 0);
    std::uint32_t sum = 0;
    for (int i = 14; i < 34; i += 2) sum += l.frame->bytes[i] << 8 | l.frame->bytes[i + 1];
    while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
    EXPECT_EQ(sum, 0xffffu);
    EXPECT_EQ(l.frame->bytes[15] & kEcnMask, l.frame->ecn);
  }
}

// ---- Buffers ----

TEST(Switch, AFullQueueDrops) {
  SwitchConfig c = plain();
  c.queue = 5 * 1004;
  Bench b(c);
  for (int i = 0; i < 20; ++i) b.sw.arrives(0, frame(1), kUs + i);
  b.run();
  EXPECT_EQ(b.by(1).size(), 5u);
  EXPECT_EQ(b.counters(1).dropped_full, 15u);
  EXPECT_EQ(b.sw.buffered(), 0u);
}

TEST(Switch, AFullBufferDropsForAllOutputs) {
  SwitchConfig c = plain();
  c.buffer = 6 * 1004;
  Bench b(c);
  for (int i = 0; i < 20; ++i) b.sw.arrives(0, frame(1), kUs + i);
  b.sw.arrives(2, frame(3), kUs + 20);
  b.run();
  EXPECT_EQ(b.counters(3).dropped_full, 1u);
  b.sw.arrives(2, frame(3), b.now + kUs);
  b.run(b.now + 10 * kUs);
  EXPECT_EQ(b.by(3).size(), 1u) << "there is room again";
}

// ---- PFC ----

SwitchConfig lossless() {
  SwitchConfig c = plain();
  c.lossless = 1u << 3;
  c.xoff = 10 * 1004;
  c.xon = 5 * 1004;
  c.headroom = 8 * 1004;
  return c;
}

TEST(Switch, PfcStopsTheInputAndLetsItGoOn) {
  Bench b(lossless());
  for (int i = 0; i < 15; ++i) b.sw.arrives(0, frame(1, 1000, 3), kUs + i);
  b.sw.arrives(2, frame(1, 1000, 3), kUs + 50);  // of another input, which has room
  b.run();
  EXPECT_EQ(b.by(1).size(), 16u) << "nothing is lost";
  const auto control = b.by(0, true);
  ASSERT_EQ(control.size(), 2u);
  PauseRequest stop, go;
  ASSERT_TRUE(parse_pause(*control[0]->frame, stop));
  ASSERT_TRUE(parse_pause(*control[1]->frame, go));
  EXPECT_EQ(stop.priorities, 1u << 3);
  EXPECT_EQ(stop.quanta[3], 0xffff);
  EXPECT_EQ(go.quanta[3], 0);
  EXPECT_EQ(b.counters(0).pauses_sent, 1u);
  EXPECT_EQ(b.counters(0).most_headroom, 5u * 1004);
  EXPECT_TRUE(b.by(2, true).empty());
}

TEST(Switch, MoreThanTheHeadroomIsDroppedAndCounted) {
  Bench b(lossless());
  for (int i = 0; i < 30; ++i) b.sw.arrives(0, frame(1, 1000, 3), kUs + i);
  b.run();
  EXPECT_EQ(b.by(1).size(), 18u);  // ten and eight
  EXPECT_EQ(b.counters(0).dropped_headroom, 12u);
  EXPECT_EQ(b.counters(0).most_headroom, 8u * 1004);
  EXPECT_EQ(b.sw.buffered(), 0u);
}

// Where headroom is less than a frame, the one that is over is lost, and stops those that would follow it.
TEST(Switch, PfcStopsTheInputAlsoWithoutHeadroom) {
  SwitchConfig c = lossless();
  c.headroom = 0;
  Bench b(c);
  for (int i = 0; i < 15; ++i) b.sw.arrives(0, frame(1, 1000, 3), kUs + i);
  b.run();
  EXPECT_EQ(b.by(1).size(), 10u);
  EXPECT_EQ(b.counters(0).dropped_headroom, 5u);
  EXPECT_EQ(b.counters(0).pauses_sent, 1u);
  const auto control = b.by(0, true);
  ASSERT_EQ(control.size(), 2u);
  PauseRequest stop, go;
  ASSERT_TRUE(parse_pause(*control[0]->frame, stop));
  ASSERT_TRUE(parse_pause(*control[1]->frame, go));
  EXPECT_EQ(stop.quanta[3], 0xffff);
  EXPECT_EQ(go.quanta[3], 0);
}

// An input that others' frames have kept out has nothing in the switch that could leave and let it go on.
TEST(Switch, WhatOthersKeptOutGoesOnWhenTheStopWouldBeRenewed) {
  SwitchConfig c = lossless();
  c.headroom = 0;
  c.buffer = 6 * 1004;
  Bench b(c);
  for (int i = 0; i < 6; ++i) b.sw.arrives(0, frame(1), kUs + i);
  b.sw.arrives(2, frame(3, 1000, 3), kUs + 20);
  b.run();
  EXPECT_EQ(b.counters(2).dropped_headroom, 1u);
  EXPECT_EQ(b.counters(2).pauses_sent, 1u);
  ASSERT_EQ(b.by(2, true).size(), 2u);
  PauseRequest go;
  ASSERT_TRUE(parse_pause(*b.by(2, true)[1]->frame, go));
  EXPECT_EQ(go.priorities, 1u << 3);
  EXPECT_EQ(go.quanta[3], 0);
  EXPECT_LT(b.by(2, true)[1]->at, 200 * kUs);
}

// A frame that was in the headroom of one switch is not in that of the next.
TEST(Switch, HeadroomIsOfOneSwitch) {
  Bench first(lossless()), second(lossless());
  for (int i = 0; i < 15; ++i) first.sw.arrives(0, frame(1, 1000, 3), kUs + i);
  first.run();
  for (Left& l : first.left)
    if (!l.frame->mac_control) second.sw.arrives(0, std::move(l.frame), l.at);
  second.run(100 * kMs);
  EXPECT_EQ(second.by(1).size(), 15u);
  EXPECT_EQ(second.sw.buffered(), 0u);
  for (int i = 0; i < 15; ++i) second.sw.arrives(0, frame(1, 1000, 3), second.now + kUs + i);
  second.run(second.now + kMs);
  EXPECT_EQ(second.counters(0).most_headroom, 5u * 1004);
}

TEST(Switch, APauseHoldsItsPriorityAlone) {
  Bench b(plain());
  PauseRequest r;
  r.priorities = 1u << 3;
  r.quanta[3] = 1000;  // 5.12 us
  b.sw.arrives(1, make_pfc(kMac | 1, r), kUs);
  b.sw.arrives(0, frame(1, 1000, 3), 2 * kUs);
  b.sw.arrives(0, frame(1, 1000, 4), 3 * kUs);
  b.run();
  const auto out = b.by(1);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0]->frame->priority, 4u);
  EXPECT_EQ(out[1]->at, kUs + 5120 * kNs + 1024 * kByte);
  EXPECT_EQ(b.counters(1).pauses_received, 1u);
  EXPECT_GT(b.counters(1).paused, 2 * kUs);
  EXPECT_LT(b.counters(1).paused, 5 * kUs);
}

TEST(Switch, APauseEndsWhenItIsSaid) {
  Bench b(plain());
  PauseRequest r;
  r.priorities = 0xff;
  r.quanta.fill(0xffff);
  b.sw.arrives(1, make_pfc(kMac | 1, r), kUs);
  b.sw.arrives(0, frame(1, 1000, 3), 2 * kUs);
  r.quanta.fill(0);
  b.sw.arrives(1, make_pfc(kMac | 1, r), 9 * kUs);
  b.run();
  ASSERT_EQ(b.by(1).size(), 1u);
  EXPECT_EQ(b.by(1)[0]->at, 9 * kUs + 1024 * kByte);
}

// While the far end is stopped for long, it is told again before the time is over.
TEST(Switch, AStopIsRenewed) {
  Bench b(lossless());
  PauseRequest r;
  r.priorities = 1u << 3;
  r.quanta[3] = 0xffff;  // 335 us
  b.sw.arrives(1, make_pfc(kMac | 1, r), kUs);
  for (int i = 0; i < 15; ++i) b.sw.arrives(0, frame(1, 1000, 3), 2 * kUs + i);
  b.run(330 * kUs);
  EXPECT_EQ(b.counters(0).pauses_sent, 2u);
  b.run();
  EXPECT_EQ(b.by(1).size(), 15u);
}

// ---- ECMP ----

TEST(Switch, FlowsSpreadOverWaysAndEachKeepsToOne) {
  SwitchConfig c = plain();
  Bench b(c, 6);
  b.sw.add_route(kMac | 99, {2, 3, 4, 5});
  for (int flow = 0; flow < 400; ++flow)
    for (int i = 0; i < 2; ++i)
      b.sw.arrives(0, frame(99, 100, 0, 0, static_cast<std::uint16_t>(0xc000 + flow)),
                   (1 + flow * 2 + i) * kUs);
  b.run();
  std::map<std::uint64_t, unsigned> port_of;
  for (const Left& l : b.left) {
    const auto [at, fresh] = port_of.emplace(l.frame->flow, l.port);
    EXPECT_EQ(at->second, l.port);
  }
  EXPECT_EQ(port_of.size(), 400u);
  for (unsigned p = 2; p < 6; ++p) {
    EXPECT_GT(b.by(p).size(), 2 * 70u);
    EXPECT_LT(b.by(p).size(), 2 * 130u);
  }
}

// Switches in a row do not all choose alike.
TEST(Switch, ChoosesOtherwiseThanItsNeighbour) {
  Bench b(plain(), 4);
  Switch other(plain(), 8, b);
  for (unsigned i = 0; i < 4; ++i) other.add_port(100);
  for (Switch* s : {&b.sw, &other}) s->add_route(kMac | 99, {2, 3});
  unsigned differ = 0;
  for (int flow = 0; flow < 100; ++flow) {
    b.left.clear();
    const Time t = (1 + flow) * kUs;
    b.sw.arrives(0, frame(99, 100, 0, 0, static_cast<std::uint16_t>(0xc000 + flow)), t);
    other.arrives(0, frame(99, 100, 0, 0, static_cast<std::uint16_t>(0xc000 + flow)), t);
    b.now = t - 1;
    b.sw.run(t);
    other.run(t);
    b.sw.run(t + kUs / 2);
    other.run(t + kUs / 2);
    ASSERT_EQ(b.left.size(), 2u);
    differ += b.left[0].port != b.left[1].port;
  }
  EXPECT_GT(differ, 25u);
  EXPECT_LT(differ, 75u);
}

}  // namespace
}  // namespace hcasim::fabric
