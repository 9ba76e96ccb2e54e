// SPDX-License-Identifier: BSD-3-Clause
// Datagrams by way of the hosts' network stacks: what each cost adds, and what happens where CPUs or sockets
// are full.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "figures.h"

namespace hcasim::timing {
namespace {

const std::string kLat = "pattern=udp_lat adaptive=off warmup=20 ";
const std::string kRate = "pattern=udp_rate ";

std::uint64_t count(const Result& r, const std::string& name) {
  const auto at = r.counters.find(name);
  return at == r.counters.end() ? 0 : at->second;
}

// One way: a system call and a copy at either end, the sender's work, an interrupt, the receiver's work, a
// wake-up.
TEST(NetworkStack, EachCostIsInTheLatencyAsOftenAsItIsPaid) {
  const struct {
    const char *parameter, *from, *to;
    double kernel, busy_poll, bypass;  // added one way, ns
  } costs[] = {
      {"host.syscall_ns", "150", "1150", 2000, 2000, 0},
      {"host.frame_tx_ns", "500", "1500", 1000, 1000, 0},
      {"host.frame_rx_ns", "210", "1210", 1000, 1000, 0},
      {"host.socket_rx_ns", "300", "1300", 1000, 1000, 0},
      {"host.interrupt_ns", "3000", "4000", 1000, 0, 0},
      {"host.softirq_ns", "1000", "2000", 0, 0, 0},  // that the wake-up is shorter by
      {"host.post_ns", "30", "1030", 0, 0, 1000},
  };
  for (const auto& c : costs) {
    std::vector<std::string> words;
    for (const char* stack : {"kernel", "busy_poll", "bypass"})
      for (const char* value : {c.from, c.to})
        words.push_back(kLat + "stack=" + stack + " " + c.parameter + "=" + value);
    const auto r = measured(words);
    EXPECT_NEAR(ns(r[1]) - ns(r[0]), c.kernel, 30) << c.parameter;
    EXPECT_NEAR(ns(r[3]) - ns(r[2]), c.busy_poll, 30) << c.parameter;
    EXPECT_NEAR(ns(r[5]) - ns(r[4]), c.bypass, 30) << c.parameter;
  }
}

TEST(NetworkStack, BytesAreCopiedTwice) {
  const auto r = measured({kLat + "size=1472 host.copy_gbps=80", kLat + "size=1472 host.copy_gbps=40"});
  EXPECT_NEAR(ns(r[1]) - ns(r[0]), 2 * 1472 * 8 / 80.0, 30);
}

TEST(NetworkStack, LargeFramesArrive) {
  const auto r = measured({kLat + "size=1472", kLat + "size=8972", "pattern=udp_bw stack=bypass size=8972"});
  EXPECT_GT(ns(r[1]), ns(r[0]) + 2 * 7500 * 8 / 100.0) << "a link of 100 Gb/s, and a copy";
  EXPECT_GT(r[2].gbps(), 80);
}

// A CPU's rate is the sum of what a message costs it.
TEST(NetworkStack, ASenderIsAsFastAsItsCpu) {
  const auto r = measured(kRate + "stack=busy_poll host.frame_tx_ns=2000");
  const double each = 150 + 2000 + 155 + 15;  // system call, work, doorbell, CQE
  EXPECT_NEAR(r.rate, 1e9 / each, 1e9 / each * 0.02);
  EXPECT_NEAR(r.cpu_send, 1, 0.02);
  EXPECT_EQ(count(r, "rx.socket_drops"), 0u);
}

// More arrives than the CPU can take: the program still gets its share of it, and what it does not read is
// lost.
TEST(NetworkStack, AFloodLeavesTheProgramItsShare) {
  const auto r = measured(kRate + "host.frame_rx_ns=1500 host.interrupt_ns=1000 host.softirq_ns=500");
  EXPECT_GT(count(r, "rx.socket_drops"), 1000u);
  EXPECT_GT(r.lost, 0.5);
  EXPECT_NEAR(r.cpu_receive, 1, 0.05);
  EXPECT_GT(r.rate, 0.2e6);
  EXPECT_LT(r.rate, 1e9 / (1500 + 300 + 150));
}

// Without moderation there is an interrupt for each datagram that comes alone; with it, fewer, and each
// later.
TEST(NetworkStack, ModerationIsPaidInLatency) {
  const auto r = measured({kLat, kLat + "cq_max_count=64 cq_period=8", kRate + "adaptive=off",
                           kRate + "adaptive=off cq_max_count=64 cq_period=32"});
  EXPECT_NEAR(ns(r[1]) - ns(r[0]), 8000, 30);
  const auto interrupts = [&](std::size_t i) {
    return static_cast<double>(count(r[i], "rx.interrupts")) /
           static_cast<double>(count(r[i], "rx.completions"));
  };
  EXPECT_LT(interrupts(3), 0.5 * interrupts(2));
  EXPECT_LT(r[3].cpu_receive, r[2].cpu_receive);
}

// As Linux does it: a ping-pong ends at the least moderation, a stream at much.
TEST(NetworkStack, AdaptiveModerationFollowsTheLoad) {
  const auto r = measured({kLat, "pattern=udp_lat", kRate, kRate + "adaptive=off"});
  EXPECT_NEAR(ns(r[1]) - ns(r[0]), 2000, 30);
  EXPECT_NEAR(r[1].most - r[1].least, 0, 30) << "it is at rest";
  EXPECT_LT(count(r[2], "rx.interrupts") * 4, count(r[2], "rx.completions"));
  EXPECT_GT(r[2].rate, r[3].rate);
}

TEST(NetworkStack, FlowsAddUpAndShareAReceiver) {
  const auto r = measured(
      {kRate + "stack=bypass", kRate + "stack=bypass qps=4", kRate + "stack=bypass fabric=switch senders=3"});
  EXPECT_NEAR(r[1].rate / r[0].rate, 4, 0.2);
  EXPECT_NEAR(r[2].rate / r[0].rate, 3, 0.2);
  ASSERT_EQ(r[2].shares.size(), 3u);
  for (const double share : r[2].shares) EXPECT_NEAR(share, 1.0 / 3, 0.02);
}

// Virtual functions with each kind of table, and the same again.
TEST(NetworkStack, VirtualFunctionsAndRepetition) {
  const std::string words = "pattern=udp_lat function=virtual eswitch=";
  const auto r = measured({words + "none", words + "legacy", words + "switchdev", words + "switchdev"});
  EXPECT_GT(ns(r[1]), ns(r[0]));
  EXPECT_GT(ns(r[2]), ns(r[1]));
  EXPECT_EQ(r[2].digest, r[3].digest);
  EXPECT_NE(r[1].digest, r[2].digest);
}

}  // namespace
}  // namespace hcasim::timing
