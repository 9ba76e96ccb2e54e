// SPDX-License-Identifier: BSD-3-Clause
// HCAs on the modelled switch. (A process each: HCAs are made before time starts.)
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "all_to_all.h"
#include "subnet_management.h"

namespace hcasim::bare {
namespace {

class OnASwitch : public ::testing::TestWithParam<bool> {  // Ethernet
 protected:
  static AllToAllOptions options(std::size_t hcas) {
    AllToAllOptions o;
    o.hcas = hcas;
    o.ethernet = GetParam();
    return o;
  }
};

TEST_P(OnASwitch, EachReachesEachOther) {
  AllToAll fabric(options(5));
  fabric.run(2);
  fabric.check();
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(fabric.counter(i, "wire_lost"), 0u);
    EXPECT_EQ(fabric.counter(i, "retransmits"), 0u);
  }
}

// The output to the one that all write to is the narrow place: it is full all the time, and nobody is
// favoured beyond that.
TEST_P(OnASwitch, IncastTakesTheTimeOfOnePort) {
  AllToAll fabric(options(5));
  fabric.run(1, true);
  fabric.clear();
  const std::int64_t start = fabric.now();
  const std::size_t writes = fabric.run(2, true);
  fabric.check(true);
  const double ns = static_cast<double>(fabric.now() - start),
               least = static_cast<double>(writes) * 65536 * 8 / 100;
  EXPECT_GT(ns, least);
  EXPECT_LT(ns, least * 1.15 + 6000);
}

// More than the switch can hold: InfiniBand stops the senders, Ethernet loses packets, which are sent again.
TEST_P(OnASwitch, AFullQueueStopsOrDrops) {
  AllToAll fabric(options(9));
  fabric.run(8, true);
  fabric.check(true);
  std::uint64_t again = 0;
  for (std::size_t i = 1; i < 9; ++i) again += fabric.counter(i, "retransmits");
  if (GetParam()) {
    EXPECT_GT(fabric.counter(0, "wire_lost"), 0u);
    EXPECT_GT(again, 0u);
  } else {
    EXPECT_EQ(fabric.counter(0, "wire_lost"), 0u);
    EXPECT_EQ(again, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Link, OnASwitch, ::testing::Bool(),
                         [](const auto& p) { return p.param ? "Ethernet" : "InfiniBand"; });

// As many as docs/features.md has.
class FullFabric : public ::testing::TestWithParam<bool> {};  // Ethernet

TEST_P(FullFabric, EachReachesEachOther) {
  AllToAllOptions o;
  o.hcas = 64;
  o.ethernet = GetParam();
  o.bytes = 4096;
  AllToAll fabric(o);
  fabric.run(1);
  fabric.check();
}

INSTANTIATE_TEST_SUITE_P(Link, FullFabric, ::testing::Bool(),
                         [](const auto& p) { return p.param ? "Ethernet" : "InfiniBand"; });

// Two QPs of one HCA, by two lanes: one to where everybody writes, one to where nobody else does. With a
// buffer for each lane at the switch the second one goes on; without, the HCA is stopped as a whole.
class LanesOnASwitch : public ::testing::Test {
 protected:
  static constexpr std::size_t kHcas = 6, kFull = 4, kFree = 5;  // the first ones write to kFull
  static constexpr std::uint32_t kBytes = 65536;
  static constexpr unsigned kWrites = 64;
  struct Node {
    explicit Node(Machine& machine, std::size_t i)
        : dev(probed(machine.function(i))),
          pd(*dev),
          memory(dev->memory().allocate(kBytes)),
          mr(*dev, Mr::of(pd, memory, kAllAccess)) {}
    static std::unique_ptr<Device> probed(Function& function) {
      DeviceOptions o;
      o.wait_active = false;
      auto device = std::make_unique<Device>(function, o);
      device->probe();
      return device;
    }
    std::unique_ptr<Device> dev;
    Pd pd;
    Buffer memory;
    Mr mr;
  };
  struct Flow {
    Flow(Node& from, Node& to, std::uint8_t sl)
        : source(from),
          sink(to),
          cq(*from.dev),
          far_cq(*to.dev),
          qp(*from.dev, from.pd, cq, cq),
          far(*to.dev, to.pd, far_cq, far_cq) {
      QpAttr attr;
      attr.sl = sl;
      attr.remote_qpn = far.qpn();
      attr.dlid = to.dev->lid();
      qp.connect(attr);
      attr.remote_qpn = qp.qpn();
      attr.dlid = from.dev->lid();
      far.connect(attr);
    }
    void post() {
      SendWr w;
      w.op = WqeOp::kRdmaWrite;
      w.sges = {{source.mr.start(), source.mr.key(), kBytes}};
      w.raddr = sink.mr.start();
      w.rkey = sink.mr.key();
      qp.post(w);
    }
    unsigned done() {
      unsigned n = 0;
      while (const auto c = cq.poll()) n += !c->error();
      return n;
    }
    Node &source, &sink;
    Cq cq, far_cq;
    Qp qp, far;
  };
  static std::vector<std::unique_ptr<Node>> nodes_of(Machine& machine, const std::string& more) {
    for (std::size_t i = 0; i < kHcas; ++i) machine.add_hca("switch=s,link=ib" + more);
    machine.start();
    std::vector<std::unique_ptr<Node>> nodes;
    for (std::size_t i = 0; i < kHcas; ++i) nodes.push_back(std::make_unique<Node>(machine, i));
    EXPECT_TRUE(machine.run_until([&] {
      return std::all_of(nodes.begin(), nodes.end(), [](const auto& n) { return n->dev->port_state() == 4; });
    }));
    return nodes;
  }
  // Writes that the second lane's QP has done in the time of 40 at the full port's rate.
  static unsigned beside(const std::string& more) {
    Machine machine(std::size_t{256} << 20);
    const std::vector<std::unique_ptr<Node>> nodes = nodes_of(machine, more);
    std::vector<std::unique_ptr<Flow>> crowd;
    for (std::size_t i = 0; i < kFull; ++i)
      crowd.push_back(std::make_unique<Flow>(*nodes[i], *nodes[kFull], 0));
    Flow other(*nodes[0], *nodes[kFree], 1);
    for (unsigned i = 0; i < kWrites; ++i) {
      for (const auto& flow : crowd) flow->post();
      other.post();
    }
    machine.advance(static_cast<std::int64_t>(40 * kBytes * 8 / 98.75));
    const unsigned done = other.done();
    machine.advance(3'000'000);
    for (const auto& flow : crowd) EXPECT_EQ(flow->done(), kWrites);
    EXPECT_EQ(done + other.done(), kWrites);
    EXPECT_EQ(machine.function(0).counter("retransmits"), 0u);
    return done;
  }
};

TEST_F(LanesOnASwitch, AreHeldBackTogetherWithoutBuffersOfTheirOwn) { EXPECT_LT(beside(""), 20u); }
TEST_F(LanesOnASwitch, AreHeldBackEachByItselfWithBuffers) {
  EXPECT_GT(beside(",port.lane_buffer=65536"), 26u);
}

// Two HCAs by each of two lanes write to one: how its lanes share the cable is what the subnet manager has
// set of it.
TEST_F(LanesOnASwitch, OutputsGoByTheTablesOfTheHcaBehind) {
  Machine machine(std::size_t{256} << 20);
  const std::vector<std::unique_ptr<Node>> nodes = nodes_of(machine, ",port.lane_buffer=65536");
  std::vector<std::unique_ptr<Flow>> flows;
  for (std::size_t i = 0; i < kFull; ++i)
    flows.push_back(std::make_unique<Flow>(*nodes[i], *nodes[kFull], static_cast<std::uint8_t>(i % 2)));
  // Writes of lanes 0 and 1 in the time of 60.
  const auto share = [&] {
    std::array<unsigned, 2> done{};
    for (unsigned i = 0; i < kWrites; ++i)
      for (const auto& flow : flows) flow->post();
    machine.advance(static_cast<std::int64_t>(60 * kBytes * 8 / 98.75));
    for (std::size_t i = 0; i < kFull; ++i) done[i % 2] += flows[i]->done();
    machine.advance(3'000'000);
    unsigned all = done[0] + done[1];
    for (const auto& flow : flows) all += flow->done();
    EXPECT_EQ(all, kFull * kWrites);
    EXPECT_EQ(machine.function(0).counter("retransmits"), 0u);
    return done;
  };
  const auto equal = share();
  EXPECT_NEAR(equal[0], equal[1], 4);
  EXPECT_GT(equal[0] + equal[1], 50u);
  arbitrate(*nodes[kFull]->dev, kVlLow, {{0, 192}, {1, 64}});
  const auto weighted = share();
  EXPECT_NEAR(weighted[0], 3 * weighted[1], 12);
  EXPECT_GT(weighted[0] + weighted[1], 50u);
  arbitrate(*nodes[kFull]->dev, kVlHigh, {{1, 1}});
  limit_high_lanes(*nodes[kFull]->dev, 255);
  const auto strict = share();
  EXPECT_LT(strict[0], 6u);
  EXPECT_GT(strict[1], 50u);
}

// What is wrong is said before time starts.
TEST(Switch, WhatCannotBeJoinedIsRefused) {
  Machine machine(std::size_t{64} << 20);
  for (const char* options :
       {"switch=s,cable=x", "switch=s,wire=unix:/nowhere", "switch=s,link=ib,sm=off", "switch="}) {
    EXPECT_THROW(machine.add_hca(options), BareError) << options;
  }
  machine.add_hca("switch=s,link=eth");
  machine.add_hca("switch=s,link=ib");
  try {
    machine.start();
    FAIL() << "link types cannot be mixed";
  } catch (const BareError&) {
    ASSERT_FALSE(machine.log(0).empty());
    EXPECT_NE(machine.log(0).back().find("different link types"), std::string::npos) << machine.log(0).back();
  }
}

}  // namespace
}  // namespace hcasim::bare
