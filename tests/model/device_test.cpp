// SPDX-License-Identifier: BSD-3-Clause
// The top module at its boundary: BAR0 by calls and by TLM-2.0, doorbell decoding, finding a packet's
// receiver.
#include "model/device.h"

#include <gmock/gmock.h>

#include "bench.h"
#include "platform.h"

namespace hcasim::test {
namespace {

using ::testing::ElementsAre;

class HcaTest : public BlockTest {
 protected:
  void SetUp() override {
    BlockTest::SetUp();
    p.hca.reset();
    p.hca.dma().set_enabled(0, true);
    p.firmware.writes.clear();
    p.memory.fill(0);
    p.interrupts.clear();
    p.hca.function(0).uars().set_allocated(kPage, true);
  }
  void store(std::uint64_t offset, const std::vector<std::uint8_t>& bytes) {
    p.hca.bar_write(0, offset, bytes.data(), static_cast<unsigned>(bytes.size()));
  }
  static constexpr std::uint32_t kPage = 5;
  static constexpr std::uint64_t kUar = kPage * kUarPageSize;
  Platform& p = *b.platform;
};

TEST_F(HcaTest, TheInitSegmentIsReadInAnySize) {
  std::uint8_t bytes[8];
  p.hca.bar_read(0, 0x14, bytes, 4);  // the fake answers 0xa0000000 + offset
  EXPECT_THAT(std::vector<int>(bytes, bytes + 4), ElementsAre(0xa0, 0, 0, 0x14));
  p.hca.bar_read(0, 0x17, bytes, 1);
  EXPECT_EQ(bytes[0], 0x14);
  p.hca.bar_read(0, 0x1000, bytes, 8);
  EXPECT_THAT(std::vector<int>(bytes, bytes + 8), ElementsAre(0xa0, 0, 0x10, 0, 0xa0, 0, 0x10, 4));
  p.hca.bar_read(0, kInitSegSize - 2, bytes, 4);  // runs into the UAR pages
  EXPECT_THAT(std::vector<int>(bytes, bytes + 4), ElementsAre(0x2f, 0xfc, 0xff, 0xff));
}

TEST_F(HcaTest, TheInitSegmentIsWrittenInAlignedWords) {
  store(0x10, {1, 2, 3, 4, 5, 6, 7, 8});
  store(0x18, {0x80, 0, 0, 0});
  using W = std::pair<std::uint32_t, std::uint32_t>;
  EXPECT_THAT(p.firmware.writes, ElementsAre(W(0x10, 0x01020304), W(0x14, 0x05060708), W(0x18, 0x80000000)));
  store(0x11, {1, 2, 3, 4});
  store(0x10, {1});
  EXPECT_EQ(p.firmware.writes.size(), 3u);
  EXPECT_EQ(p.hca.bad_accesses(), 2u);
}

TEST_F(HcaTest, BeyondTheBarThereIsNothing) {
  std::uint8_t bytes[8] = {};
  p.hca.bar_read(0, kBarSize - 4, bytes, 8);
  EXPECT_EQ(bytes[0], 0xff);
  p.hca.bar_read(0, ~0ULL, bytes, 4);
  store(kBarSize, {1, 2, 3, 4});
  EXPECT_EQ(p.hca.bad_accesses(), 3u);
  p.hca.bar_read(0, kUar, bytes, 8);  // UAR pages are write-only
  EXPECT_EQ(bytes[0], 0);
}

TEST_F(HcaTest, EqDoorbells) {
  Eq* eq = p.hca.function(0).eqs().create(3);
  store(kUar + 0x48, {3, 0, 0, 0});
  EXPECT_FALSE(eq->armed);
  store(kUar + 0x40, {3, 0, 0, 0});
  EXPECT_TRUE(eq->armed);
  store(kUar + 0x40, {4, 0, 0, 0});
  EXPECT_EQ(p.hca.bad_doorbells(), 1u);
}

TEST_F(HcaTest, CqIsArmedByOneStoreOrTwo) {
  Cq* cq = p.hca.function(0).cqs().create(0x123);
  store(kUar + 0x20, {0x20, 0, 0, 0, 0, 0, 1, 0x23});
  EXPECT_TRUE(cq->armed);
  cq->armed = false;
  store(kUar + 0x20, {0x21, 0, 0, 0});
  EXPECT_FALSE(cq->armed);
  store(kUar + 0x24, {0, 0, 1, 0x23});
  EXPECT_TRUE(cq->armed);
  EXPECT_TRUE(cq->armed_solicited);
  store(kUar + 0x20, {0x20, 0, 0, 0, 0, 0, 9, 9});
  EXPECT_EQ(p.hca.bad_doorbells(), 1u);
}

TEST_F(HcaTest, StoresToNothingAreCounted) {
  store(kUar + kUarPageSize + 0x40, {3, 0, 0, 0});           // page not allocated
  store(kUar + 0x10, {1, 2, 3, 4});                          // no register
  store(kUar + 0x20, {1});                                   // not its size
  store(kUar + 0x800, {0, 0, 0, 0xa, 0, 0x77, 0x77, 0x04});  // no such QP
  EXPECT_EQ(p.hca.bad_doorbells(), 4u);
  // The rest of a BlueFlame burst that comes in pieces is none of them.
  store(kUar + 0x808, {1, 2, 3, 4, 5, 6, 7, 8});
  store(kUar + 0x8f8, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(p.hca.bad_doorbells(), 4u);
}

TEST_F(HcaTest, BarByTlm) {
  std::uint8_t bytes[8] = {};
  EXPECT_EQ(p.access(tlm::TLM_READ_COMMAND, 0x14, bytes, 4), tlm::TLM_OK_RESPONSE);
  EXPECT_EQ(bytes[3], 0x14);
  bytes[0] = 0x80;
  EXPECT_EQ(p.access(tlm::TLM_WRITE_COMMAND, 0x18, bytes, 4), tlm::TLM_OK_RESPONSE);
  EXPECT_EQ(p.firmware.writes.size(), 1u);
  EXPECT_EQ(p.access(tlm::TLM_READ_COMMAND, kBarSize - 4, bytes, 8), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  std::uint8_t burst[512] = {};
  EXPECT_EQ(p.access(tlm::TLM_WRITE_COMMAND, kUar + 0x800, burst, 64), tlm::TLM_OK_RESPONSE);
  EXPECT_EQ(p.access(tlm::TLM_WRITE_COMMAND, kUar + 0x800, burst, 512), tlm::TLM_BURST_ERROR_RESPONSE);
  EXPECT_EQ(p.access(tlm::TLM_READ_COMMAND, 0, burst, 64), tlm::TLM_BURST_ERROR_RESPONSE);
}

TEST_F(HcaTest, HostMemoryByTlm) {
  const std::uint8_t out[4] = {1, 2, 3, 4};
  p.hca.dma().post_write(sim_now(), 0x100, out, 4, {});
  p.hca.dma().post_msix(sim_now(), 0, 9);
  b.run_ns(1000);
  EXPECT_EQ(p.memory.bytes[0x102], 3);
  EXPECT_THAT(p.interrupts, ElementsAre(9u));
  std::uint8_t in[4] = {};
  EXPECT_TRUE(p.hca.dma().read(sim_now(), 0x100, in, 4, Space::kHost, WriteOwner(0)).ok);
  EXPECT_EQ(in[3], 4);
  EXPECT_FALSE(p.hca.dma().read(sim_now(), p.memory.bytes.size(), in, 4, Space::kHost, WriteOwner(0)).ok);
}

TEST_F(HcaTest, ARefusedCqeBreaksItsCq) {
  Cq* cq = p.hca.function(0).cqs().create(1);
  cq->ring.pages = {std::uint64_t{1} << 40};
  cq->log_size = 4;
  p.hca.cqs().post(sim_now(), *cq, Completion());
  b.run_ns(5000);
  EXPECT_TRUE(cq->error);
}

TEST_F(HcaTest, AFaultOfTheModelIsToldToFirmwareOnceAndEndsWithReset) {
  p.hca.model_fault("test", "one");
  p.hca.model_fault("test", "two");
  EXPECT_TRUE(p.hca.dead());
  EXPECT_EQ(p.firmware.fatals, 1u);
  p.hca.reset();
  EXPECT_FALSE(p.hca.dead());
}

class SteeringTest : public HcaTest {
 protected:
  void SetUp() override {
    HcaTest::SetUp();
    Port& port = p.hca.port();
    port.set_lid(1);
    port.set_state(PortState::kActive);
    p.hca.function(0).vport().pkeys[0] = 0xffff;
    p.hca.function(0).vport().pkeys[1] = 0x8001;
    qp = p.hca.function(0).qps().create(0x50);
    qp->type = QpType::kUc;
    qp->state = QpState::kRtr;
  }
  std::uint64_t dropped(std::uint8_t opcode, std::uint32_t qpn, std::uint16_t pkey = 0xffff) {
    const std::uint64_t before = p.hca.port().counters().rx_dropped;
    PacketRef packet = PacketPool::make();
    packet->dlid = 1;
    packet->opcode = opcode;
    packet->dest_qpn = qpn;
    packet->pkey = pkey;
    p.hca.port().transmit(sim_now(), packet);
    b.run_ns(2000);
    return p.hca.port().counters().rx_dropped - before;
  }
  Qp* qp = nullptr;
};

TEST_F(SteeringTest, PacketsWithoutAReceiverAreDropped) {
  constexpr std::uint8_t kUcMiddle = 0x21;
  EXPECT_EQ(dropped(kUcMiddle, 0x51), 1u);          // no such QP
  EXPECT_EQ(dropped(0x01, 0x50), 1u);               // RC to a UC QP
  EXPECT_EQ(dropped(0x2c, 0x50), 1u);               // no opcode of UC
  EXPECT_EQ(dropped(0xff, 0x50), 1u);               // none at all
  EXPECT_EQ(dropped(0x64, 0), 1u);                  // no special QP set
  EXPECT_EQ(dropped(0x64, 0xffffff), 1u);           // multicast without a group
  EXPECT_EQ(dropped(kUcMiddle, 0x50, 0x8001), 1u);  // another partition than the QP's
  qp->path.pkey_index = 1;
  EXPECT_EQ(dropped(kUcMiddle, 0x50, 0x8001), 0u);
  qp->path.pkey_index = 2000;
  EXPECT_EQ(dropped(kUcMiddle, 0x50, 0x8001), 1u);
  qp->path.pkey_index = 0;
  qp->state = QpState::kInit;
  EXPECT_EQ(dropped(kUcMiddle, 0x50), 1u);
}

TEST_F(SteeringTest, SpecialQps) {
  Steering& s = p.hca.function(0).steering();
  EXPECT_EQ(s.unicast(1), nullptr);
  s.set_special(1, 0x50);
  EXPECT_EQ(s.unicast(1), qp);
  EXPECT_EQ(s.unicast(0x50), qp);
  EXPECT_EQ(s.unicast(0xffffff), nullptr);
}

TEST_F(SteeringTest, MulticastGroups) {
  Steering& s = p.hca.function(0).steering();
  Gid group{};
  group[0] = 0xff;
  EXPECT_EQ(s.multicast(group), nullptr);
  EXPECT_FALSE(s.detach(group, 1));
  for (std::uint32_t qpn = 0; qpn < 240; ++qpn) EXPECT_TRUE(s.attach(group, qpn));
  EXPECT_FALSE(s.attach(group, 240));
  EXPECT_TRUE(s.attach(group, 7));  // is a member already
  EXPECT_EQ(s.multicast(group)->size(), 240u);
  EXPECT_EQ(s.memberships(7), 1u);
  EXPECT_TRUE(s.detach(group, 7));
  EXPECT_EQ(s.memberships(7), 0u);
  s.clear();
  EXPECT_EQ(s.multicast(group), nullptr);
}

// Lengths of a peer that is not one of ours: refused before a key is looked up, as one that is right is not.
TEST_F(SteeringTest, MaskedAtomicsOfWrongLength) {
  struct {
    std::uint8_t opcode;
    std::uint32_t size, payload;
    bool good;
  } const cases[] = {{0x19, 8, 32, true},       {0x1a, 8, 16, true},    {0x19, 32, 128, true},
                     {0x1a, 4, 8, true},        {0x19, 8, 16, false},   {0x1a, 8, 32, false},
                     {0x19, 8, 0, false},       {0x19, 0, 0, false},    {0x1a, 2, 4, false},
                     {0x19, 12, 48, false},     {0x19, 64, 256, false}, {0x1a, ~0u, 0, false},
                     {0x1a, 1u << 31, 0, false}};
  std::uint32_t qpn = 0x60;
  for (const auto& c : cases) {
    Qp& rc = *p.hca.function(0).qps().create(++qpn);
    rc.type = QpType::kRc;
    rc.state = QpState::kRts;
    rc.rae = true;
    rc.atomic_mode = 5;
    rc.log_rra_max = 2;
    const std::uint64_t key_errors = p.hca.function(0).q_counters()[0].resp_remote_access_errors;
    PacketRef packet = PacketPool::make();
    packet->dlid = 1;
    packet->opcode = c.opcode;
    packet->dest_qpn = qpn;
    packet->dma_len = c.size;
    packet->payload_len = c.payload;
    p.hca.port().transmit(sim_now(), packet);
    b.run_ns(20'000);
    EXPECT_EQ(rc.state, QpState::kErr);
    EXPECT_EQ(p.hca.function(0).q_counters()[0].resp_remote_access_errors - key_errors, c.good ? 1u : 0u)
        << unsigned{c.opcode} << " " << c.size << " " << c.payload;
  }
}

// FLUSH and ATOMIC WRITE of IBTA 1.7, and reserved ones, from the wire to the responder's refusal.
TEST_F(SteeringTest, RequestsThatAreNotSupportedAreNoAnswers) {
  std::uint32_t qpn = 0x70;
  for (const std::uint8_t opcode : {0x15, 0x1c, 0x1d, 0xbc}) {
    Qp& rc = *p.hca.function(0).qps().create(++qpn);
    rc.type = opcode >> 5 == 5 ? QpType::kXrc : QpType::kRc;
    rc.state = QpState::kRts;
    PacketRef packet = PacketPool::make();
    packet->dlid = 1;
    packet->opcode = opcode;
    packet->dest_qpn = qpn;
    p.hca.port().transmit(sim_now(), packet);
    b.run_ns(20'000);
    EXPECT_EQ(rc.state, QpState::kErr) << unsigned{opcode};
  }
}

TEST_F(SteeringTest, NumbersAreTakenOnce) {
  QpTable& t = p.hca.function(0).qps();
  EXPECT_EQ(t.create(0x50), nullptr);
  EXPECT_EQ(t.create(1 << 24), nullptr);
  EXPECT_NE(t.create_srq(0x50), nullptr);
  EXPECT_EQ(t.qp_count(), 1u);
  EXPECT_EQ(t.srq_count(), 1u);
  EXPECT_TRUE(t.destroy(0x50));
  EXPECT_FALSE(t.destroy(0x50));
  EXPECT_EQ(t.find(0x50), nullptr);
}

}  // namespace
}  // namespace hcasim::test
