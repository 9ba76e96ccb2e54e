// SPDX-License-Identifier: BSD-3-Clause
// What the manager of a switch lets virtual functions send: largest rates, shares, groups of vports.
#include "eth_vf_rig.h"
#include "prm/qos.h"

namespace hcasim {
namespace {

enum : std::uint32_t { kTsar = 0, kVport = 1, kQueueGroup = 4 };
constexpr std::uint32_t kSwitch = 2, kNic = 3;  // scheduling_hierarchy
constexpr std::uint64_t kShare = 1, kMaxBw = 2;
constexpr std::uint32_t kMtu = 4096;
// A packet's bytes on the wire: Ethernet with preamble and gap, IPv4, UDP, BTH, ICRC.
constexpr double kOverhead = 14 + 4 + 20 + 20 + 8 + 12 + 4;

class EthVfRate : public EthVf {
 protected:
  CommandResult create(std::uint32_t type, std::uint32_t parent, std::uint32_t attributes = 0,
                       std::uint32_t mbps = 0, std::uint32_t share = 0, std::uint32_t hierarchy = kSwitch,
                       bare::Device* by = nullptr) {
    using In = prm::create_scheduling_element_in;
    using C = In::scheduling_context;
    Mailbox in(prm::op::CREATE_SCHEDULING_ELEMENT, In::bytes);
    in.set<In::scheduling_hierarchy>(hierarchy).set<C::element_type>(type).set<C::parent_element_id>(parent);
    in.set<prm::sched_attributes<C>>(attributes).set<C::max_average_bw>(mbps).set<C::bw_share>(share);
    return (by != nullptr ? *by : pf).exec(in, prm::create_scheduling_element_out::bytes);
  }
  std::uint32_t made(const CommandResult& r) {
    return r.must().get<prm::create_scheduling_element_out::scheduling_element_id>();
  }
  CommandResult modify(std::uint32_t id, std::uint64_t select, std::uint32_t mbps, std::uint32_t share = 0) {
    using In = prm::modify_scheduling_element_in;
    using C = In::scheduling_context;
    Mailbox in(prm::op::MODIFY_SCHEDULING_ELEMENT, In::bytes);
    in.set<In::scheduling_hierarchy>(kSwitch).set<In::scheduling_element_id>(id).set<In::modify_bitmask>(
        select);
    in.set<C::max_average_bw>(mbps).set<C::bw_share>(share);
    return pf.exec(in, prm::modify_scheduling_element_out::bytes);
  }
  CommandResult destroy(std::uint32_t id, std::uint32_t hierarchy = kSwitch) {
    using In = prm::destroy_scheduling_element_in;
    Mailbox in(prm::op::DESTROY_SCHEDULING_ELEMENT, In::bytes);
    in.set<In::scheduling_hierarchy>(hierarchy).set<In::scheduling_element_id>(id);
    return pf.exec(in, prm::destroy_scheduling_element_out::bytes);
  }
  std::unique_ptr<bare::Device> with_mac(FunctionId f) {
    EXPECT_TRUE(set_mac(f, kMac + f).ok());
    return probed(f);
  }
  // A function that sends to itself, by way of the port.
  struct Sender {
    explicit Sender(bare::Device& d) : a(d), b(d) {
      a.connect(b);
      b.connect(a);
    }
    void post(unsigned writes) {
      for (unsigned i = 0; i < writes; ++i) a.post_write(b);
    }
    End a, b;
  };
  // Mb/s on the wire while `writes` of End::kBytes go.
  double rate(Sender& s, unsigned writes) {
    const std::int64_t from = c.machine.now();
    s.post(writes);
    for (const auto& done : s.a.cq.wait(writes)) EXPECT_FALSE(done.error()) << done.text();
    return mbps(writes, c.machine.now() - from);
  }
  static double mbps(unsigned writes, std::int64_t ns) {
    const double packets = double{End::kBytes} * writes / kMtu;
    return packets * (kMtu + kOverhead) * 8 * 1000 / static_cast<double>(ns);
  }
  static constexpr unsigned kWrites = 60;
};

TEST_F(EthVfRate, ALargestRateIsKept) {
  auto vf = with_mac(1), other = with_mac(2);
  Sender s(*vf), free(*other);
  const double unlimited = rate(s, kWrites);
  EXPECT_GT(unlimited, 20'000);
  const std::uint32_t root = made(create(kTsar, 0));
  const std::uint32_t vport = made(create(kVport, root, 1, 1000));
  EXPECT_NEAR(rate(s, kWrites), 1000, 30);
  EXPECT_GT(rate(free, kWrites), unlimited * 0.9) << "a vport without an element";
  EXPECT_TRUE(modify(vport, kMaxBw, 5000).ok());
  EXPECT_NEAR(rate(s, kWrites), 5000, 150);
  EXPECT_TRUE(modify(vport, kMaxBw, 0).ok());
  EXPECT_GT(rate(s, kWrites), unlimited * 0.9);
  EXPECT_TRUE(modify(vport, kMaxBw, 1000).ok());
  EXPECT_FALSE(destroy(root).ok()) << "there is a vport below";
  EXPECT_TRUE(destroy(vport).ok());
  EXPECT_GT(rate(s, kWrites), unlimited * 0.9);
  EXPECT_TRUE(destroy(root).ok());
}

// Nor may it be said anew what it is.
TEST_F(EthVfRate, WhatAnElementIsStaysAsItWasMade) {
  using In = prm::modify_scheduling_element_in;
  using C = In::scheduling_context;
  const std::uint32_t root = made(create(kTsar, 0)), vport = made(create(kVport, root, 1, 1000));
  const auto broken = [this] { return c.tracer.rules().count(traces::Rule::kCmdReserved); };
  Mailbox in(prm::op::MODIFY_SCHEDULING_ELEMENT, In::bytes);
  in.set<In::scheduling_hierarchy>(kSwitch).set<In::scheduling_element_id>(vport).set<In::modify_bitmask>(
      kMaxBw);
  const auto before = broken();
  EXPECT_TRUE(pf.exec(in.set<C::max_average_bw>(100), prm::modify_scheduling_element_out::bytes).ok());
  EXPECT_EQ(broken(), before);
  EXPECT_TRUE(pf.exec(in.set<C::element_type>(kVport), prm::modify_scheduling_element_out::bytes).ok());
  EXPECT_EQ(broken(), before + 1);
  EXPECT_TRUE(destroy(vport).ok());
  EXPECT_TRUE(destroy(root).ok());
}

TEST_F(EthVfRate, AllQueuesOfAFunctionTogether) {
  auto vf = with_mac(1);
  Sender s(*vf), t(*vf);
  const std::uint32_t root = made(create(kTsar, 0));
  made(create(kVport, root, 1, 2000));
  const std::int64_t from = c.machine.now();
  t.post(kWrites);
  s.post(kWrites);
  EXPECT_EQ(s.a.cq.wait(kWrites).size(), kWrites);
  EXPECT_EQ(t.a.cq.wait(kWrites).size(), kWrites);
  EXPECT_NEAR(mbps(2 * kWrites, c.machine.now() - from), 2000, 60);
}

TEST_F(EthVfRate, AGroupOfVports) {
  auto one = with_mac(1), two = with_mac(2);
  Sender s(*one), t(*two);
  const std::uint32_t root = made(create(kTsar, 0)), group = made(create(kTsar, root, 0, 4000));
  made(create(kVport, group, 1));
  made(create(kVport, group, 2));
  const std::int64_t from = c.machine.now();
  t.post(kWrites);
  s.post(kWrites);
  EXPECT_EQ(s.a.cq.wait(kWrites).size(), kWrites);
  EXPECT_EQ(t.a.cq.wait(kWrites).size(), kWrites);
  EXPECT_NEAR(mbps(2 * kWrites, c.machine.now() - from), 4000, 120);
  EXPECT_NEAR(rate(s, kWrites), 4000, 120) << "alone it has all of its group's";
}

// min_tx_rate: the driver makes shares of least rates.
TEST_F(EthVfRate, SharesOfTheVports) {
  auto one = with_mac(1), two = with_mac(2);
  Sender s(*one), t(*two);
  const std::uint32_t root = made(create(kTsar, 0, 0, 10'000));
  made(create(kVport, root, 1, 0, 75));
  const std::uint32_t small = made(create(kVport, root, 2, 0, 25));
  // As many writes as its share of the bandwidth is: they end when the others do.
  const auto share = [&](unsigned writes) {
    const std::int64_t from = c.machine.now();
    s.post(kWrites);
    t.post(writes);
    EXPECT_EQ(s.a.cq.wait(kWrites).size(), kWrites);
    EXPECT_NEAR(mbps(kWrites, c.machine.now() - from), 10'000.0 * kWrites / (kWrites + writes),
                300.0 * kWrites / (kWrites + writes));
    unsigned done = 0;
    while (t.a.cq.poll()) ++done;
    EXPECT_EQ(t.a.cq.wait(writes - done).size(), writes - done);
    EXPECT_NEAR(mbps(kWrites + writes, c.machine.now() - from), 10'000, 300);
    return done;
  };
  EXPECT_GE(share(kWrites / 3), kWrites / 3 - 1);
  EXPECT_TRUE(modify(small, kShare, 0, 75).ok());
  EXPECT_GE(share(kWrites), kWrites - 1);
}

// As `devlink port function rate set .. parent` does it: its element is destroyed, and another one made below
// the other group, while its queues wait for the port. Neither those that stay beside nor itself may wait for
// what has gone.
TEST_F(EthVfRate, AVportIsMovedToAnotherGroupWhileItSends) {
  auto one = with_mac(1), two = with_mac(2);
  Sender s(*one), t(*two);
  const std::uint32_t root = made(create(kTsar, 0)), a = made(create(kTsar, root)),
                      b = made(create(kTsar, root));
  std::uint32_t vport = made(create(kVport, a, 1));
  made(create(kVport, a, 2));
  // A few times, as not each time the queue waits for the port just then.
  for (int round = 0; round < 5; ++round) {
    SCOPED_TRACE(round);
    s.post(kWrites);
    t.post(kWrites / 4);
    for (int i = 0; i < 8; ++i) s.a.cq.wait_one();  // it is sending
    EXPECT_TRUE(destroy(vport).ok());
    vport = made(create(kVport, round % 2 == 0 ? b : a, 1));
    ASSERT_EQ(s.a.cq.wait(kWrites - 8, 1'000'000).size(), kWrites - 8);
    ASSERT_EQ(t.a.cq.wait(kWrites / 4, 1'000'000).size(), kWrites / 4);
  }
}

TEST_F(EthVfRate, TheTreeIsTheManagersAlone) {
  auto vf = with_mac(1);
  EXPECT_FALSE(create(kTsar, 0, 0, 0, 0, kSwitch, vf.get()).ok());
  const std::uint32_t root = made(create(kTsar, 0)), queues = made(create(kTsar, 0, 0, 0, 0, kNic));
  EXPECT_FALSE(create(kVport, 0, 1).ok()) << "without a parent";
  EXPECT_FALSE(create(kVport, queues, 1).ok()) << "below the other tree";
  EXPECT_FALSE(create(kQueueGroup, root).ok());
  EXPECT_FALSE(create(kVport, queues, 1, 0, 0, kNic).ok());
  EXPECT_FALSE(create(kVport, root, kVfs + 1).ok());
  EXPECT_FALSE(create(kVport, root, 1, 0, 101).ok());
  const std::uint32_t vport = made(create(kVport, root, 1));
  EXPECT_FALSE(create(kVport, root, 1).ok()) << "it has one";
  EXPECT_FALSE(create(kTsar, vport).ok());
  EXPECT_FALSE(destroy(vport, kNic).ok());
  EXPECT_TRUE(destroy(vport).ok());
  EXPECT_TRUE(destroy(queues, kNic).ok());
  made(create(kVport, root, 1, 1000));
  pf.function_reset();  // and with it what it has settled
  pf.probe();
  auto again = with_mac(2);
  Sender s(*again);
  EXPECT_GT(rate(s, kWrites), 20'000);
}

}  // namespace
}  // namespace hcasim
