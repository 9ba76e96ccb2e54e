// SPDX-License-Identifier: BSD-3-Clause
// A card with two functions, each with its own BAR, host port and driver: their drivers use the same numbers
// for other things, reach each other through the port alone, and what befalls one does not befall the other.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "card_rig.h"
#include "driver/bare/cq.h"
#include "driver/bare/device.h"
#include "driver/bare/mr.h"
#include "driver/bare/qp.h"
#include "firmware-stub/card_firmware.h"
#include "model/device.h"

namespace hcasim {
namespace {

fw::Options ethernet() {
  fw::Options o;
  o.link = fw::Link::kEthernet;
  return o;
}

struct TwoFunctions {
  TwoFunctions() {
    for (FunctionId f = 0; f < 2; ++f) {
      hosts[f].function = &machine.add_function(pcie[f]);
      card.function(f).uars().set_blueflame(true);
    }
    sc_core::sc_report_handler::set_actions(sc_core::SC_ID_NO_SC_START_ACTIVITY_, sc_core::SC_DO_NOTHING);
  }
  SystemcClock clock;
  bare::Machine machine{std::size_t{64} << 20, clock};
  Profile profile;
  traces::Tracer tracer;
  FunctionHost hosts[2]{FunctionHost(machine.memory()), FunctionHost(machine.memory())};
  Device card{"card", profile, {&hosts[0], &hosts[1]}, tracer};
  fw::CardFirmware firmware{"firmware", card, ethernet()};
  FunctionPcie pcie[2]{FunctionPcie(card, 0), FunctionPcie(card, 1)};
};

TwoFunctions& two() {
  static auto* made = new TwoFunctions;  // lives as long as the SystemC kernel
  return *made;
}

// A function's driver with a QP and a region of memory.
struct End {
  explicit End(bare::Function& function) : device(function) {
    device.probe();
    pd = std::make_unique<bare::Pd>(device);
    cq = std::make_unique<bare::Cq>(device);
    qp = std::make_unique<bare::Qp>(device, *pd, *cq, *cq);
    buffer = device.memory().allocate(kBytes);
    mr = std::make_unique<bare::Mr>(device, bare::Mr::of(*pd, buffer));
  }
  void connect(End& peer) {
    bare::QpAttr attr;
    attr.remote_qpn = peer.qp->qpn();
    attr.retry_count = 1;
    attr.ack_timeout = 8;
    attr.roce.dgid = peer.device.roce_entry(peer.device.sgid_index()).gid;
    attr.roce.dmac = peer.device.mac();
    qp->connect(attr);
  }
  void fill(std::uint8_t seed) const {
    for (std::uint32_t i = 0; i < kBytes; ++i) buffer.data()[i] = static_cast<std::uint8_t>(seed + i * 7);
  }
  // An RDMA WRITE of the whole buffer into the peer's.
  void post_write(const End& peer, std::uint32_t rkey) const {
    bare::SendWr wr;
    wr.op = bare::WqeOp::kRdmaWrite;
    wr.sges = {{mr->start(), mr->key(), kBytes}};
    wr.raddr = peer.mr->start();
    wr.rkey = rkey;
    qp->post(wr);
  }
  bool write(const End& peer) const {
    post_write(peer, peer.mr->key());
    return !cq->wait_one().error() && std::memcmp(buffer.data(), peer.buffer.data(), kBytes) == 0;
  }
  static constexpr std::uint32_t kBytes = 32 << 10;
  bare::Device device;
  std::unique_ptr<bare::Pd> pd;
  std::unique_ptr<bare::Cq> cq;
  std::unique_ptr<bare::Qp> qp;
  bare::Buffer buffer;
  std::unique_ptr<bare::Mr> mr;
};

class CardWithTwoFunctions : public ::testing::Test {
 protected:
  void SetUp() override {
    for (FunctionHost& host : t.hosts) host.bus_master = true;
    t.card.reset();
  }
  void TearDown() override { EXPECT_EQ(t.machine.memory().stray_writes(), 0u); }
  TwoFunctions& t = two();
};

TEST_F(CardWithTwoFunctions, TheirNamesAreTheirOwn) {
  End a(t.machine.function(0)), b(t.machine.function(1));
  EXPECT_EQ(a.qp->qpn(), b.qp->qpn());
  EXPECT_EQ(a.mr->index(), b.mr->index());
  EXPECT_EQ(a.cq->cqn(), b.cq->cqn());
  EXPECT_NE(a.device.mac(), b.device.mac());
  EXPECT_NE(t.card.function(0).qps().find(a.qp->qpn()), t.card.function(1).qps().find(b.qp->qpn()));
  EXPECT_EQ(t.card.function(1).qps().find(b.qp->qpn())->function, 1);
}

TEST_F(CardWithTwoFunctions, BytesGoBetweenThemBothWaysAtOnce) {
  End a(t.machine.function(0)), b(t.machine.function(1));
  a.connect(b);
  b.connect(a);
  a.fill(1);
  ASSERT_TRUE(a.write(b));
  b.fill(77);
  ASSERT_TRUE(b.write(a));
  bare::SendWr send;
  for (End* end : {&a, &b}) end->qp->post_recv({{end->mr->start(), end->mr->key(), 64}});
  for (End* end : {&a, &b}) {
    send.inline_data.assign(16, end == &a ? 0xaa : 0xbb);
    end->qp->post(send);
  }
  for (End* end : {&a, &b})
    for (int i = 0; i < 2; ++i) EXPECT_FALSE(end->cq->wait_one().error());
  EXPECT_EQ(a.buffer.data()[0], 0xbb);
  EXPECT_EQ(b.buffer.data()[0], 0xaa);
}

TEST_F(CardWithTwoFunctions, EachReachesMemoryThroughItsOwnHostAlone) {
  End a(t.machine.function(0));
  a.connect(a);
  const std::uint64_t accesses = t.hosts[1].accesses, interrupts = t.hosts[1].interrupts;
  a.fill(3);
  EXPECT_TRUE(a.write(a));
  EXPECT_EQ(t.hosts[1].accesses, accesses);
  EXPECT_EQ(t.hosts[1].interrupts, interrupts);
}

TEST_F(CardWithTwoFunctions, AKeyOfTheOtherFunctionIsNoKey) {
  End a(t.machine.function(0)), b(t.machine.function(1));
  bare::Mr second(b.device, bare::Mr::of(*b.pd, b.buffer));  // an index that the first one has not given out
  bare::Cq cq(a.device);
  bare::Qp responder(a.device, *a.pd, cq, cq);
  bare::connect_pair(*a.qp, responder);
  b.buffer.fill(0);
  a.fill(1);
  a.post_write(b, second.key());
  const bare::Completion done = a.cq->wait_one();
  ASSERT_TRUE(done.error());
  EXPECT_EQ(b.buffer.data()[0], 0);
  EXPECT_EQ(done.syndrome, prm::CqeSyndrome::kRemoteAccess);
}

TEST_F(CardWithTwoFunctions, AFunctionLevelResetOfOneLeavesTheOther) {
  End a(t.machine.function(0));
  auto b = std::make_unique<End>(t.machine.function(1));
  a.connect(a);
  b->connect(*b);
  a.fill(5);
  a.post_write(a, a.mr->key());
  b->post_write(*b, b->mr->key());
  b->device.function_reset();  // with both writes under way
  EXPECT_FALSE(a.cq->wait_one().error());
  EXPECT_EQ(t.card.function(1).qps().qp_count(), 0u);
  EXPECT_EQ(t.card.function(1).mkeys().count(), 0u);
  EXPECT_GT(t.card.function(0).qps().qp_count(), 0u);
  b.reset();
  a.fill(6);
  EXPECT_TRUE(a.write(a));
  End again(t.machine.function(1));
  again.connect(again);
  again.fill(7);
  EXPECT_TRUE(again.write(again));
}

TEST_F(CardWithTwoFunctions, BusMasterOffBreaksTheQueuesOfOne) {
  End a(t.machine.function(0)), b(t.machine.function(1));
  a.connect(a);
  b.connect(b);
  t.hosts[1].bus_master = false;
  b.post_write(b, b.mr->key());
  a.fill(9);
  EXPECT_TRUE(a.write(a));
  t.machine.advance(1'000'000);
  EXPECT_EQ(t.card.function(1).qps().find(b.qp->qpn())->state, QpState::kErr);
  EXPECT_EQ(t.card.function(0).qps().find(a.qp->qpn())->state, QpState::kRts);
  a.fill(10);
  EXPECT_TRUE(a.write(a));
  t.hosts[1].bus_master = true;
}

TEST_F(CardWithTwoFunctions, AFatalStateIsOneFunctions) {
  End a(t.machine.function(0)), b(t.machine.function(1));
  a.connect(a);
  b.connect(b);
  t.card.function(1).health().model_fault("test", "asked for");
  constexpr std::uint64_t kSyndrome = offsetof(prm::InitSeg, health) + offsetof(prm::HealthBuffer, synd);
  EXPECT_NE(t.machine.function(1).read8(kSyndrome), 0);
  EXPECT_EQ(t.machine.function(0).read8(kSyndrome), 0);
  b.post_write(b, b.mr->key());
  a.fill(11);
  EXPECT_TRUE(a.write(a));
  EXPECT_TRUE(t.card.function(1).health().fatal());
  EXPECT_FALSE(t.card.function(0).health().fatal());
  t.card.reset(1);
  EXPECT_FALSE(t.card.function(1).health().fatal());
}

TEST_F(CardWithTwoFunctions, TeardownOfOneDropsItsObjectsAlone) {
  End a(t.machine.function(0));
  a.connect(a);
  {
    End b(t.machine.function(1));
    b.connect(a);
    b.qp.reset();
    b.mr.reset();
    b.cq.reset();
    b.pd.reset();
    b.device.teardown();
  }
  EXPECT_EQ(t.card.function(1).qps().qp_count(), 0u);
  a.fill(12);
  EXPECT_TRUE(a.write(a));
}

TEST_F(CardWithTwoFunctions, RecordsNameTheFunction) {
  End a(t.machine.function(0)), b(t.machine.function(1));
  a.connect(a);
  b.connect(b);
  t.tracer.open_memory();
  b.fill(13);
  EXPECT_TRUE(b.write(b));
  for (const traces::Record& r : t.tracer.drain()) EXPECT_EQ(r.function, 1u) << traces::info(r.p()).name;
  a.fill(14);
  EXPECT_TRUE(a.write(a));
  for (const traces::Record& r : t.tracer.drain()) EXPECT_EQ(r.function, 0u) << traces::info(r.p()).name;
  t.tracer.close();
}

TEST_F(CardWithTwoFunctions, AFaultNamesTheFunctionThatItStrikes) {
  End a(t.machine.function(0)), b(t.machine.function(1));
  a.connect(a);
  b.connect(b);
  FaultSpec fault;
  std::string err;
  ASSERT_TRUE(
      parse_fault({{"fault", "qp"}, {"action", "catas"}, {"function", "1"}}, sim_now(), 1, fault, err))
      << err;
  t.card.injector().load({fault});
  a.fill(15);
  EXPECT_TRUE(a.write(a));
  b.post_write(b, b.mr->key());
  EXPECT_TRUE(b.cq->wait_one().error());
  EXPECT_EQ(t.card.function(1).qps().find(b.qp->qpn())->state, QpState::kErr);
  EXPECT_EQ(t.card.function(0).qps().find(a.qp->qpn())->state, QpState::kRts);
  t.card.injector().end_all();
}

}  // namespace
}  // namespace hcasim
