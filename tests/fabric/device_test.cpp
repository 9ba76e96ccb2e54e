// SPDX-License-Identifier: GPL-2.0-or-later
// Our device and link by themselves, with ns-3's packets on both ends.
#include "fabric/device.h"

#include <gtest/gtest.h>
#include <ns3/packet.h>
#include <ns3/simulator.h>

#include <functional>
#include <vector>

#include "fabric/coupling.h"

namespace hcasim::fabric {
namespace {

struct Got {
  Time at;
  std::uint32_t size;
  std::uint16_t protocol;
};

class Devices : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { use_turns(); }
  Devices() : joint_(join(ns3::CreateObject<ns3::Node>(), ns3::CreateObject<ns3::Node>(), 100, 1234567)) {
    joint_.b->SetReceiveCallback(ns3::MakeCallback(&Devices::receive, this));
  }
  bool receive(ns3::Ptr<ns3::NetDevice>, ns3::Ptr<const ns3::Packet> packet, std::uint16_t protocol,
               const ns3::Address&) {
    got_.push_back({now(), packet->GetSize(), protocol});
    return true;
  }
  Joint joint_;
  std::vector<Got> got_;
};

TEST_F(Devices, AFrameTakesItsBytesAndTheDelayToThePicosecond) {
  const Time start = now();
  EXPECT_TRUE(joint_.a->Send(ns3::Create<ns3::Packet>(1000), joint_.b->GetAddress(), 0x0800));
  EXPECT_TRUE(joint_.a->Send(ns3::Create<ns3::Packet>(10), joint_.b->GetAddress(), 0x86dd));
  ns3::Simulator::Run();
  ASSERT_EQ(got_.size(), 2u);
  // Header, FCS, preamble and gap: 38 bytes more; 84 bytes at least.
  EXPECT_EQ(got_[0].at - start, 1038 * 80 + 1234567);
  EXPECT_EQ(got_[1].at - got_[0].at, 84 * 80);
  EXPECT_EQ(got_[0].size, 1000u);
  EXPECT_EQ(got_[1].protocol, 0x86dd);
}

TEST_F(Devices, TakesNothingThatIsTooLongAndIgnoresWhatIsForOthers) {
  EXPECT_FALSE(joint_.a->Send(ns3::Create<ns3::Packet>(1501), joint_.b->GetAddress(), 0x0800));
  EXPECT_TRUE(joint_.a->SetMtu(9000));
  EXPECT_FALSE(joint_.a->SetMtu(20000));
  EXPECT_TRUE(joint_.a->Send(ns3::Create<ns3::Packet>(9000), joint_.a->GetAddress(), 0x0800));
  EXPECT_TRUE(joint_.a->Send(ns3::Create<ns3::Packet>(9000), joint_.a->GetBroadcast(), 0x0800));
  ns3::Simulator::Run();
  ASSERT_EQ(got_.size(), 1u);
  EXPECT_EQ(got_[0].size, 9000u);
}

// What distributed simulation in ns-3 computes its lookahead from.
TEST_F(Devices, IsPointToPointOnAChannelWithADelay) {
  EXPECT_TRUE(joint_.a->IsPointToPoint());
  ns3::TimeValue delay;
  ASSERT_TRUE(joint_.a->GetChannel()->GetAttributeFailSafe("Delay", delay));
  EXPECT_EQ(delay.Get().GetPicoSeconds(), 1234567);
  EXPECT_EQ(joint_.link->GetNDevices(), 2u);
  EXPECT_EQ(joint_.link->GetDevice(1), joint_.b);
  EXPECT_EQ(joint_.link->GetDevice(2), nullptr);
}

// Whoever was scheduled first.
TEST(Turns, WhatHappensInOnePicosecondHasAnOrder) {
  const Time t = now() + 1000;
  std::string order;
  const auto add = [&order](char c) { return std::function<void()>([&order, c] { order += c; }); };
  for (const auto& [turn, name] : {std::pair(Turn::kCards, 'c'), std::pair(Turn::kStart, 'b'),
                                   std::pair(Turn::kSwitch, 's'), std::pair(Turn::kLook, 'l')})
    ns3::Simulator::Schedule(until(t, turn), add(name));
  ns3::Simulator::Schedule(until(t + 1, Turn::kLook), add('L'));
  ns3::Simulator::Schedule(until(t, Turn::kStop), &ns3::Simulator::Stop);
  ns3::Simulator::Run();
  EXPECT_EQ(order, "l");
  EXPECT_EQ(now(), t);
  ns3::Simulator::Schedule(until(t, Turn::kLook), add('p'));  // it has passed
  ns3::Simulator::Run();
  EXPECT_EQ(order, "lpsbcL");
  EXPECT_EQ(now(), t + 1);
}

TEST(Half, ALinkThatLeavesTheProcessHandsItsFramesOverWithTheTimeOfTheirArrival) {
  struct Far final : Outlet {
    void takes(unsigned wire, FramePtr frame, Time arrives) override {
      got.push_back(
          {arrives, static_cast<std::uint32_t>(frame->bytes.size()), static_cast<std::uint16_t>(wire)});
    }
    std::vector<Got> got;
  } far;
  const Joint half = half_joint(ns3::CreateObject<ns3::Node>(), 100, 7654321);
  half.a->leads_out(far, 42);
  const std::array<std::uint8_t, 100> bytes{};
  half.a->leaves(make_frame(bytes.data(), bytes.size()), now() + 1000);
  ASSERT_EQ(far.got.size(), 1u);
  EXPECT_EQ(far.got[0].at, now() + 1000 + 7654321);
  EXPECT_EQ(far.got[0].size, 100u);
  EXPECT_EQ(far.got[0].protocol, 42);
}

// As the switches count theirs: what lets the other end go on is no pause.
TEST(CardPort, CountsThePausesThatStop) {
  // They live as long as ns-3 and the model do.
  auto& coupling = *new Coupling;
  auto& machine = *new bare::Machine(std::size_t{16} << 20, coupling);
  auto& port = *new CardPort(coupling);
  const auto sink = port.sink();
  const Joint joint = join(ns3::CreateObject<ns3::Node>(), ns3::CreateObject<ns3::Node>(), 100, 1000);
  port.join(machine.add_hca("wire=host,link=eth", sink), joint.a);
  PauseRequest stop;
  stop.priorities = 1u << 3 | 1u << 4;
  stop.quanta[3] = 0xffff;
  PauseRequest go;
  go.priorities = stop.priorities;
  go.quanta[5] = 0xffff;  // not of these priorities
  const Time from = now() + 1000;
  for (const auto& [request, pauses] : {std::pair(stop, 1u), std::pair(go, 1u), std::pair(stop, 2u)}) {
    const FramePtr frame = make_pfc(1, request);
    sink(frame->bytes.data(), frame->bytes.size(), from);
    EXPECT_EQ(port.pauses_out(), pauses);
  }
  EXPECT_EQ(port.frames_out(), 3u);
}

}  // namespace
}  // namespace hcasim::fabric
