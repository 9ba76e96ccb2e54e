// SPDX-License-Identifier: BSD-3-Clause
#include "model/port/port.h"

#include "bench.h"

namespace hcasim::test {
namespace {

class PortTest : public BlockTest {
 protected:
  void SetUp() override {
    BlockTest::SetUp();
    b.port.set_lid(0x12);
    b.port.set_state(PortState::kActive);
  }
  static PacketRef packet(std::uint32_t len = 1024, std::uint16_t dlid = 0x12) {
    PacketRef p = PacketPool::make();
    p->opcode = 0x04;  // RC SEND only
    p->dlid = dlid;
    p->payload_len = len;
    return p;
  }
  static Time wire(std::uint32_t bytes) {
    const Profile::Port& port = bench().profile.port;
    return static_cast<Time>(bytes * 8000.0 / port.packets_gbps(port.rate_gbps, true));
  }
};

// Flow control and skip ordered sets have their part of an InfiniBand link.
TEST(PacketsRate, LessThanTheLinksOnInfiniBandAlone) {
  Profile::Port port;
  port.rate_gbps = 200;
  port.infiniband_overhead_percent = 0.75;
  EXPECT_EQ(port.packets_gbps(port.rate_gbps, true), 198.5);
  EXPECT_EQ(port.packets_gbps(port.rate_gbps, false), 200);
}

TEST_F(PortTest, SizesOnTheWire) {
  PacketRef p = packet(5);
  EXPECT_EQ(Port::wire_bytes(*p), 8u + 12 + 8 + 6);  // LRH, BTH, payload and pad, CRCs
  p->opcode = 0x0a;                                  // WRITE only: RETH
  EXPECT_EQ(Port::wire_bytes(*p), 8u + 12 + 16 + 8 + 6);
  p->opcode = 0x64;  // UD SEND only: DETH
  p->has_grh = true;
  EXPECT_EQ(Port::wire_bytes(*p), 8u + 40 + 12 + 8 + 8 + 6);
}

TEST_F(PortTest, PacketsLeaveOneAfterTheOther) {
  const Time t = sim_now();
  const Time first = b.port.transmit(t, packet());
  const Time second = b.port.transmit(t, packet());
  EXPECT_NEAR(first - t, wire(1050), 10);
  EXPECT_NEAR(second - first, wire(1050), 10);
  b.run_ns(10000);
  ASSERT_EQ(b.received.size(), 2u);
  EXPECT_EQ(b.received[0].first, first + b.profile.port.loopback);
  EXPECT_EQ(b.received[1].first, second + b.profile.port.loopback);
}

TEST_F(PortTest, OnlyOurLidAndMulticastComeBack) {
  b.port.lmc = 1;
  b.port.transmit(sim_now(), packet(64, 0x13));
  b.port.transmit(sim_now(), packet(64, 0x14));
  b.port.transmit(sim_now(), packet(64, 0xc001));
  b.port.transmit(sim_now(), packet(64, 0xffff));
  b.run_ns(10000);
  EXPECT_EQ(b.received.size(), 2u);
  EXPECT_EQ(b.port.counters().tx_discards, 2u);
  EXPECT_EQ(b.port.counters().tx_multicast, 1u);
}

TEST_F(PortTest, NothingLeavesOrArrivesUnlessActive) {
  b.port.transmit(sim_now(), packet());
  b.port.set_state(PortState::kDown);
  b.port.transmit(sim_now(), packet());
  b.run_ns(10000);
  EXPECT_TRUE(b.received.empty());
  EXPECT_EQ(b.port.counters().tx_packets, 1u);
  EXPECT_EQ(b.port.counters().tx_discards, 1u) << "the second one";
  EXPECT_EQ(b.port.counters().rx_dropped, 1u) << "the first one, as it came back";
}

TEST_F(PortTest, CountersAreWithoutVcrc) {
  b.port.transmit(sim_now(), packet());
  b.run_ns(10000);
  ASSERT_EQ(b.received.size(), 1u);
  const std::uint32_t counted = Port::wire_bytes(*packet()) - prm::kVcrcBytes;
  EXPECT_EQ(counted % 4, 0u);
  EXPECT_EQ(b.port.counters().tx_bytes, counted);
  EXPECT_EQ(b.port.counters().rx_bytes, counted);
}

TEST_F(PortTest, FaultsComeAsOftenAsAskedFor) {
  b.port.faults().drop = 0.25;
  b.port.faults().duplicate = 0.5;
  b.port.faults().corrupt = 0.1;
  for (int i = 0; i < 4000; ++i) {
    b.port.transmit(sim_now(), packet(64));
    b.run_ns(10);
  }
  b.run_ns(100000);
  const PortCounters& c = b.port.counters();
  EXPECT_NEAR(static_cast<double>(c.injected_drop), 1000, 100);
  EXPECT_NEAR(static_cast<double>(c.injected_dup), 1500, 120);
  EXPECT_NEAR(static_cast<double>(c.injected_corrupt), 300, 60);
  EXPECT_EQ(c.rx_packets, 4000 - c.injected_drop + c.injected_dup);
  EXPECT_EQ(b.received.size(), c.rx_packets - c.rx_errors);
}

TEST_F(PortTest, GarbledPacketsDifferAndAreWhole) {
  b.port.faults().garble = 1;
  unsigned other = 0, longest = 0;
  for (int i = 0; i < 1000; ++i) {
    b.port.transmit(sim_now(), packet(64));
    b.run_ns(100);
  }
  b.run_ns(100000);
  const PortCounters& c = b.port.counters();
  EXPECT_EQ(c.injected_garble, 1000u);
  for (const auto& [t, p] : b.received) {
    other += p->opcode != 0x04 || p->psn != 0 || p->dest_qpn != 0 || p->payload_len != 64;
    longest = std::max(longest, p->payload_len);
    ASSERT_LE(p->payload_len, p->room());
  }
  EXPECT_GT(b.received.size(), 300u) << "most are packets still";
  EXPECT_GT(c.rx_errors, 30u) << "and some are none";
  EXPECT_GT(other, 200u);
  EXPECT_GT(longest, 1000u);
}

TEST_F(PortTest, AHeldBackPacketIsOvertaken) {
  PacketRef late = packet();
  late->psn = 1;
  b.port.faults().reorder = 1;
  b.port.transmit(sim_now(), late);
  b.port.faults().reorder = 0;
  b.port.transmit(sim_now(), packet());
  b.run_ns(20000);
  ASSERT_EQ(b.received.size(), 2u);
  EXPECT_EQ(b.received[1].second->psn, 1u);
}

TEST_F(PortTest, TheSameSeedGivesTheSameFaults) {
  std::vector<std::uint64_t> drops;
  for (int run = 0; run < 2; ++run) {
    b.port.faults().drop = 0.5;
    b.port.faults().seed = 77;
    b.port.reseed();
    std::uint64_t pattern = 0;
    for (int i = 0; i < 60; ++i) {
      const std::uint64_t before = b.port.counters().injected_drop;
      b.port.transmit(sim_now(), packet(0));
      pattern = pattern << 1 | (b.port.counters().injected_drop - before);
    }
    drops.push_back(pattern);
  }
  EXPECT_EQ(drops[0], drops[1]);
}

TEST_F(PortTest, PartitionKeys) {
  b.vport.pkeys[0] = 0x7fff;  // limited member
  b.vport.pkeys[3] = 0x8005;
  EXPECT_TRUE(b.vport.pkey_valid(0xffff));
  EXPECT_FALSE(b.vport.pkey_valid(0x7fff));  // two limited members
  EXPECT_TRUE(b.vport.pkey_valid(0x0005));
  EXPECT_FALSE(b.vport.pkey_valid(0x8006));
  EXPECT_FALSE(b.vport.pkey_valid(0x0000));
}

TEST_F(PortTest, PooledPacketsComeWithCleanHeaders) {
  {
    PacketRef p = packet();
    p->has_grh = p->corrupt = true;
    p->psn = 5;
  }
  PacketRef p = PacketPool::make();
  EXPECT_FALSE(p->has_grh || p->corrupt);
  EXPECT_EQ(p->psn, 0u);
  EXPECT_EQ(p->pkey, 0xffff);
}

struct RecordingWire final : Wire {
  void transmit(Time t, const PacketRef& packet) override { sent.emplace_back(t, packet); }
  std::vector<std::pair<Time, PacketRef>> sent;
};

class WiredPortTest : public PortTest {
 protected:
  void SetUp() override {
    PortTest::SetUp();
    b.port.connect(&wire_);
  }
  void TearDown() override {
    b.port.connect(nullptr);
    PortTest::TearDown();
  }
  RecordingWire wire_;
};

TEST_F(WiredPortTest, ForeignLidsLeaveOwnOnesComeBackMulticastDoesBoth) {
  const Time end = b.port.transmit(sim_now(), packet(64, 0x14));
  b.port.transmit(sim_now(), packet(64, 0x12));
  b.port.transmit(sim_now(), packet(64, 0xc001));
  b.run_ns(10000);
  ASSERT_EQ(wire_.sent.size(), 2u);
  EXPECT_EQ(wire_.sent[0].first, end);
  EXPECT_EQ(wire_.sent[0].second->dlid, 0x14);
  EXPECT_EQ(wire_.sent[1].second->dlid, 0xc001);
  ASSERT_EQ(b.received.size(), 2u);
  EXPECT_EQ(b.port.counters().tx_discards, 0u);
}

TEST_F(WiredPortTest, WhatArrivesIsForUsOrDropped) {
  const Time t = sim_now();
  b.port.wire_receive(t + from_ns(5), packet(64, 0x12));
  b.port.wire_receive(t + from_ns(7), packet(64, 0x14));
  b.run_ns(100);
  ASSERT_EQ(b.received.size(), 1u);
  EXPECT_EQ(b.received[0].first, t + from_ns(5));
  EXPECT_EQ(b.port.counters().rx_dropped, 1u);
}

TEST_F(WiredPortTest, FaultsActOnTheWire) {
  b.port.faults().drop = 1;
  b.port.transmit(sim_now(), packet(64, 0x14));
  EXPECT_TRUE(wire_.sent.empty());
  b.port.faults() = PortFaults{};
  b.port.faults().duplicate = 1;
  b.port.transmit(sim_now(), packet(64, 0x14));
  EXPECT_EQ(wire_.sent.size(), 2u);
  b.port.faults() = PortFaults{};
  b.port.faults().reorder = 1;
  b.port.transmit(sim_now(), packet(64, 0x15));
  b.port.faults() = PortFaults{};
  b.port.transmit(sim_now(), packet(64, 0x16));
  b.run_ns(10000);
  ASSERT_EQ(wire_.sent.size(), 4u);
  EXPECT_EQ(wire_.sent[2].second->dlid, 0x16);  // overtook
  EXPECT_EQ(wire_.sent[3].second->dlid, 0x15);
}

TEST_F(WiredPortTest, APausedTransmitterWaits) {
  const Time t = sim_now();
  b.port.pause(t + from_ns(3000));
  EXPECT_EQ(b.port.tx_free(), t + from_ns(3000));
  EXPECT_NEAR(b.port.transmit(t, packet(1024, 0x14)) - t, from_ns(3000) + wire(1050), 10);
}

}  // namespace
}  // namespace hcasim::test
