// SPDX-License-Identifier: BSD-3-Clause
// The port on an Ethernet link.
#include "bench.h"
#include "model/port/codec.h"
#include "model/port/path.h"

namespace hcasim::test {
namespace {

constexpr Mac kOwn{0x02, 0, 0, 0, 0, 1}, kOther{0x02, 0, 0, 0, 0, 2}, kRoce{0x02, 0, 0, 0, 0, 3};
constexpr Mac kGroup{0x01, 0, 0x5e, 0, 0, 9}, kAll{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

struct RecordingWire final : Wire {
  void transmit(Time t, const PacketRef& packet) override { sent.emplace_back(t, packet); }
  std::vector<std::pair<Time, PacketRef>> sent;
};

class EthPortTest : public BlockTest {
 protected:
  void SetUp() override {
    BlockTest::SetUp();
    b.port.set_link(LinkType::kEthernet);
    b.vport.mac = kOwn;
    b.port.set_state(PortState::kActive);
  }
  void TearDown() override {
    b.port.connect(nullptr);
    b.port.set_link(LinkType::kIb);
    b.vport.mac = Mac{};
    BlockTest::TearDown();
  }
  static PacketRef frame(const Mac& to, std::uint16_t len = 100, std::uint16_t type = 0x0806) {
    PacketRef p = PacketPool::make();
    p->kind = PacketKind::kEthernet;
    p->frame_len = len;
    std::memset(p->frame(), 0, len);
    std::copy(to.begin(), to.end(), p->frame());
    p->frame()[12] = static_cast<std::uint8_t>(type >> 8);
    p->frame()[13] = static_cast<std::uint8_t>(type);
    return p;
  }
  static PacketRef roce(const Mac& to, std::uint32_t len = 1024) {
    PacketRef p = PacketPool::make();
    p->kind = PacketKind::kRoceV2;
    p->ipv4 = true;
    p->dmac = to;
    p->opcode = 0x04;
    p->payload_len = len;
    std::memset(p->data(), 0x5a, len);
    return p;
  }
  static Time wire(std::uint32_t bytes) {
    return static_cast<Time>(bytes * 8000.0 / bench().profile.port.rate_gbps);
  }
  RecordingWire wire_;
};

TEST_F(EthPortTest, SizesOnTheWire) {
  EXPECT_EQ(Port::wire_bytes(*frame(kOther, 20)), 64u) << "padded, with FCS";
  EXPECT_EQ(Port::wire_bytes(*frame(kOther, 1514)), 1518u);
  PacketRef p = roce(kOther, 5);
  EXPECT_EQ(Port::wire_bytes(*p), 14u + 20 + 8 + 12 + 8 + 4 + 4);
  p->ipv4 = false;
  p->has_vlan = true;
  EXPECT_EQ(Port::wire_bytes(*p), 18u + 40 + 8 + 12 + 8 + 4 + 4);
  p->kind = PacketKind::kRoceV1;
  EXPECT_EQ(Port::wire_bytes(*p), 18u + 40 + 12 + 8 + 4 + 4);
  const Time t = sim_now();
  EXPECT_NEAR(b.port.transmit(t, frame(kOther, 1514)) - t, wire(1518 + 20), 10) << "preamble and gap";
}

TEST_F(EthPortTest, WithoutAWireEverythingComesBack) {
  for (const Mac& to : {kOwn, kOther, kGroup, kAll}) b.port.transmit(sim_now(), frame(to));
  b.run_ns(10000);
  ASSERT_EQ(b.received.size(), 4u);
  for (const auto& [t, p] : b.received) EXPECT_TRUE(p->looped);
  const MacCounters& m = b.port.counters().mac;
  EXPECT_EQ(m.tx.frames, 4u);
  EXPECT_EQ(m.rx.frames, 4u);
  EXPECT_EQ(m.tx.octets, 4 * 104u);
  EXPECT_EQ(m.rx.multicast, 1u);
  EXPECT_EQ(m.rx.broadcast, 1u);
  EXPECT_EQ(m.rx_sizes[1], 4u);
}

TEST_F(EthPortTest, OwnAddressesStayInsideMulticastDoesBoth) {
  b.port.connect(&wire_);
  RoceAddress a;
  a.valid = true;
  a.mac = kRoce;
  b.vport.set_roce_address(7, a);
  for (const Mac& to : {kOwn, kRoce, kOther, kGroup, kAll}) b.port.transmit(sim_now(), roce(to));
  b.run_ns(10000);
  ASSERT_EQ(wire_.sent.size(), 3u);
  EXPECT_EQ(wire_.sent[0].second->dmac, kOther);
  EXPECT_EQ(wire_.sent[1].second->dmac, kGroup);
  EXPECT_EQ(wire_.sent[2].second->dmac, kAll);
  for (const auto& [t, p] : wire_.sent) EXPECT_FALSE(p->looped);
  ASSERT_EQ(b.received.size(), 4u);
  for (const auto& [t, p] : b.received) {
    EXPECT_TRUE(p->looped);
    EXPECT_EQ(p->payload_len, 1024u);
    EXPECT_EQ(p->data()[1023], 0x5a);
  }
  EXPECT_EQ(b.port.counters().mac.tx.frames, 3u);
  EXPECT_EQ(b.port.counters().mac.rx.frames, 0u);
  EXPECT_EQ(b.port.counters().vport.tx_rdma[VportTraffic::kUnicast].packets, 3u);
  EXPECT_EQ(b.port.counters().vport.tx_rdma[VportTraffic::kMulticast].packets, 1u);
  b.vport.set_roce_address(7, RoceAddress{});
  EXPECT_FALSE(b.vport.own_mac(kRoce));
}

TEST_F(EthPortTest, NoMacIsNotOurs) {
  b.vport.mac = Mac{};
  EXPECT_FALSE(b.vport.own_mac(Mac{}));
}

TEST_F(EthPortTest, ARoceQpWithoutASourceSendsNothing) {
  Qp qp;
  PacketRef p = PacketPool::make();
  fill_path(*p, qp, b.port, b.vport);
  b.port.transmit(sim_now(), p);
  b.run_ns(10000);
  EXPECT_TRUE(b.received.empty());
  EXPECT_EQ(b.port.counters().tx_discards, 1u);
}

TEST_F(EthPortTest, FramesLongerThanTheMtuAreErrors) {
  const std::uint32_t largest = b.port.max_frame - prm::kFcsBytes;
  b.port.connect(&wire_);
  for (const std::uint32_t len : {largest + 1, largest})
    b.port.wire_receive(sim_now(), frame(kOwn, static_cast<std::uint16_t>(len)));
  b.run_ns(1000);
  ASSERT_EQ(b.received.size(), 1u);
  EXPECT_EQ(b.received[0].second->frame_len, largest);
  const MacCounters& m = b.port.counters().mac;
  EXPECT_EQ(m.rx.frames, 1u);
  EXPECT_EQ(m.rx.octets, b.port.max_frame);
  EXPECT_EQ(m.rx_too_long, 1u);
  EXPECT_EQ(b.port.counters().rx_dropped, 1u);
  PacketRef bytes = PacketPool::make();
  bytes->kind = PacketKind::kEthernet;
  bytes->frame_len = static_cast<std::uint16_t>(encode(*roce(kOwn, 4096), bytes->frame(), kMaxFrame));
  ASSERT_GT(bytes->frame_len, largest);
  b.port.wire_receive(sim_now(), bytes);
  b.run_ns(1000);
  EXPECT_EQ(b.received.size(), 2u) << "RoCE goes by its path's MTU";
  EXPECT_EQ(m.rx_too_long, 1u);
  b.port.drop(sim_now(), *frame(kOther), DropReason::kTooLong);
  EXPECT_EQ(b.port.counters().tx_errors, 1u);
  EXPECT_EQ(b.port.counters().tx_discards, 0u);
}

TEST_F(EthPortTest, CorruptPacketsCountByWhatFindsThem) {
  b.port.faults().corrupt = 1;
  b.port.transmit(sim_now(), frame(kOther));
  b.port.transmit(sim_now(), roce(kOther));
  b.run_ns(10000);
  EXPECT_TRUE(b.received.empty());
  EXPECT_EQ(b.port.counters().mac.rx_fcs_errors, 1u);
  EXPECT_EQ(b.port.counters().mac.rx.frames, 0u);
  EXPECT_EQ(b.port.counters().rx_icrc_errors, 1u);
  EXPECT_EQ(b.port.counters().rx_errors, 2u);
  // Over a wire out of the process, the bytes are wrong.
  b.port.connect(&wire_);
  b.port.transmit(sim_now(), roce(kOther));
  ASSERT_EQ(wire_.sent.size(), 1u);
  PacketRef far = PacketPool::make();
  far->kind = PacketKind::kEthernet;
  far->frame_len = static_cast<std::uint16_t>(encode(*wire_.sent[0].second, far->frame(), kMaxFrame));
  EXPECT_EQ(decode_roce(*far), Decoded::kBadCrc);
}

TEST_F(EthPortTest, GarbledRoceHasTheIcrcOfWhatItIs) {
  b.port.connect(&wire_);
  b.port.faults().garble = 1;
  unsigned whole = 0, other = 0;
  for (int i = 0; i < 500; ++i) {
    b.port.transmit(sim_now(), roce(kOther));
    b.run_ns(1000);
  }
  for (const auto& [t, p] : wire_.sent) {
    ASSERT_EQ(p->kind, PacketKind::kEthernet);
    const PacketRef back = PacketPool::copy(*p);
    const Decoded d = decode_roce(*back);
    EXPECT_NE(d, Decoded::kBadCrc);
    whole += d == Decoded::kOk;
    other += d == Decoded::kOk && (back->opcode != 0x04 || back->psn != 0 || back->qkey != 0);
  }
  EXPECT_EQ(wire_.sent.size(), 500u);
  EXPECT_GT(whole, 200u);
  EXPECT_GT(other, 50u);
}

TEST_F(EthPortTest, CongestionIsMarkedOnCapablePacketsOnly) {
  b.port.faults().ecn = 1;
  for (const std::uint8_t tclass : {0xa0, 0xa1, 0xa2, 0xa3}) {
    PacketRef p = roce(kOther);
    p->tclass = tclass;
    b.port.transmit(sim_now(), p);
  }
  b.run_ns(10000);
  ASSERT_EQ(b.received.size(), 4u);
  EXPECT_EQ(b.received[0].second->tclass, 0xa0);
  for (int i = 1; i < 4; ++i) EXPECT_EQ(b.received[i].second->tclass, 0xa3);
  EXPECT_EQ(b.port.counters().injected_ecn, 2u);
}

TEST_F(EthPortTest, AQueueMarksAsASwitchDoes) {
  const auto burst = [&](std::uint32_t packets) {
    for (std::uint32_t i = 0; i < packets; ++i) {
      PacketRef p = roce(kOther, 1000);
      p->tclass = 2;
      b.port.transmit(sim_now(), p);
    }
    b.run_ns(1e6);
  };
  b.port.faults().ecn_kmin = 2000;
  b.port.faults().ecn_kmax = 5000;
  b.port.faults().ecn_pmax = 0;
  burst(10);
  ASSERT_EQ(b.received.size(), 10u);
  EXPECT_EQ(b.received[4].second->tclass, 2);  // 4 packets of 1082 bytes before it
  EXPECT_EQ(b.received[5].second->tclass, 3);
  EXPECT_EQ(b.port.counters().ecn_marked, 5u);
  b.port.faults().ecn_pmax = 1;  // in between: (4328 - 2000) / 3000 of the fifth packets
  for (int i = 0; i < 1000; ++i) burst(5);
  std::uint64_t fourth = 0, fifth = 0;
  for (std::size_t i = 10; i < b.received.size(); ++i) {
    if (i % 5 < 2) {
      EXPECT_EQ(b.received[i].second->tclass, 2);
    }
    if (i % 5 == 3) fourth += b.received[i].second->tclass == 3;
    if (i % 5 == 4) fifth += b.received[i].second->tclass == 3;
  }
  EXPECT_NEAR(static_cast<double>(fourth), 1000 * (3 * 1082 - 2000) / 3000.0, 60);
  EXPECT_NEAR(static_cast<double>(fifth), 1000 * (4 * 1082 - 2000) / 3000.0, 60);
}

TEST_F(EthPortTest, PacketsOfTheOtherLinkAreNone) {
  b.port.connect(&wire_);
  PacketRef ib = PacketPool::make();
  ib->opcode = 4;
  b.port.wire_receive(sim_now(), ib);
  b.port.wire_receive(sim_now(), frame(kOwn, 13));
  b.run_ns(10);
  EXPECT_TRUE(b.received.empty());
  EXPECT_EQ(b.port.counters().rx_dropped, 2u);
}

}  // namespace
}  // namespace hcasim::test
