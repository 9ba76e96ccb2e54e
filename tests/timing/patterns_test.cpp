// SPDX-License-Identifier: BSD-3-Clause
// Each pattern gives a figure, the same one each time, and what cannot be measured is refused with a reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "figures.h"

namespace hcasim::timing {
namespace {

using ::testing::HasSubstr;

struct Case {
  const char *verb, *transport;
};

class Pattern : public ::testing::TestWithParam<Case> {
 protected:
  std::string words(const char* metric) const {
    return std::string("pattern=") + GetParam().verb + "_" + metric + " transport=" + GetParam().transport;
  }
  // Two runs: the first's figure, and that the second's is the same.
  static Result twice(const std::string& words) {
    const auto r = measured({words, words});
    EXPECT_EQ(r[0].digest, r[1].digest) << words;
    EXPECT_EQ(r[0].median, r[1].median) << words;
    EXPECT_EQ(r[0].rate, r[1].rate) << words;
    EXPECT_EQ(r[0].counters, r[1].counters) << words;
    EXPECT_NE(r[0].digest, 0u);
    return r[0];
  }
};

TEST_P(Pattern, LatencyIsTheSameInEachRun) {
  for (const char* more : {" link=ib", " link=eth", " fabric=loopback", " fabric=switch link=ib"}) {
    const Result r = twice(words("lat") + more);
    EXPECT_GT(us(r), 0.5) << more;
    EXPECT_LT(us(r), 3) << more;
    EXPECT_GT(r.least, 0.9 * r.median) << more;
    EXPECT_LE(r.least, r.median);
    EXPECT_LE(r.median, r.p99);
    EXPECT_LE(r.p99, r.most);
    EXPECT_GT(r.simulated_ns, 199 * r.least);
    EXPECT_EQ(r.counters.count("tx.retransmits"), 0u) << more;
  }
}

TEST_P(Pattern, RateIsTheSameInEachRun) {
  const bool atomic = setup(words("rate")).atomic();
  for (const char* more : {" link=ib", " link=eth fabric=switch", " fabric=loopback qps=3 threads=2",
                           " both=on depth=32", " postlist=8 mrs=3 iterations=3000"}) {
    const Result r = twice(words("rate") + more);
    EXPECT_GT(r.mops(), atomic ? 1 : 2) << more;
    EXPECT_LT(r.mops(), 100) << more;
    EXPECT_NEAR(r.bits, r.rate * 64, 1) << more;
    EXPECT_EQ(r.counters.count("tx.retransmits"), 0u) << more;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Pattern,
                         ::testing::Values(Case{"write", "rc"}, Case{"send", "rc"}, Case{"read", "rc"},
                                           Case{"fetch_add", "rc"}, Case{"cmp_swap", "rc"},
                                           Case{"write", "uc"}, Case{"send", "uc"}, Case{"send", "ud"}),
                         [](const auto& p) { return std::string(p.param.verb) + "_" + p.param.transport; });

// What was measured is what was asked for: as many messages, of the size, went through the HCA.
TEST(Timing, TheCardSawTheMessages) {
  const Result r = measured("pattern=write_lat size=64 warmup=10 iterations=50");
  // One each way for each of 61 posts, and the other end's answers to all but the last.
  EXPECT_GE(r.counters.at("tx.wqes"), 61u);
  EXPECT_LE(r.counters.at("tx.wqes"), 62u);
  EXPECT_EQ(r.counters.at("tx.blueflames"), r.counters.at("tx.wqes"));
  const Result off = measured("pattern=write_lat size=64 warmup=10 iterations=50 blueflame=off");
  EXPECT_EQ(off.counters.count("tx.blueflames"), 0u);
}

// Long lists: a queue that is full must always hold a WQE that brings a CQE.
TEST(Timing, ListsAsLongAsTheQueueComplete) {
  for (const char* more :
       {"postlist=64", "postlist=64 depth=128 cq_mod=65", "postlist=128", "postlist=128 depth=128"}) {
    const Result r = measured(std::string("pattern=write_rate size=8 inline=64 iterations=2000 ") + more);
    EXPECT_GT(r.mops(), 4) << more;
  }
}

TEST(Timing, WhatDoesNotFitIsRefusedWithAReason) {
  const struct {
    const char *words, *message;
  } cases[] = {
      {"pattern=write", "pattern=write: allowed: {write,send,read,fetch_add,cmp_swap,udp}_{lat,bw,rate}"},
      {"size=0", "size=0: allowed: 1 to 64M bytes"},
      {"size=3x", "size=3x: allowed"},
      {"mtu=1000", "mtu=1000: allowed: 256, 512"},
      {"reads=3", "reads=3: allowed: 1, 2, 4, 8, 16"},
      {"colour=red", "there is no colour; there are profile, pattern, link"},
      {"colour", "\"colour\": expected KEY=VALUE"},
      {"pattern=read_lat transport=uc", "transport=uc: only for write and send"},
      {"pattern=write_lat transport=ud", "transport=ud: only for send"},
      {"pattern=send_lat transport=ud size=8K", "transport=ud: a message is one packet"},
      {"pattern=fetch_add_lat size=16", "size: atomics are of 8 bytes"},
      {"pattern=write_bw postlist=9 depth=8", "postlist: up to depth"},
      {"pattern=write_bw cq_mod=9 depth=8", "cq_mod: up to depth"},
      {"pattern=write_rate postlist=64 depth=128 cq_mod=100", "a full queue never completes"},
      {"pattern=write_bw threads=2", "threads: up to qps"},
      {"pattern=write_lat qps=64", "latency is of one message at a time"},
      {"pattern=read_lat qps=2 threads=2",
       "qps, threads, depth, postlist: above 1 for bandwidth and rate only"},
      {"pattern=send_lat depth=2", "latency is of one message at a time"},
      {"pattern=fetch_add_lat postlist=2", "latency is of one message at a time"},
      {"pattern=udp_lat qps=2", "latency is of one message at a time"},
      {"pattern=udp_rate qps=4 threads=2", "threads: of udp there are as many as qps"},
      {"pattern=write_bw senders=2", "senders: with fabric=switch"},
      {"pattern=write_bw span=4 size=8", "span: at least size"},
      {"pattern=udp_lat link=ib", "udp: with link=eth"},
      {"pattern=udp_lat fabric=loopback", "udp: with fabric=cable or switch"},
      {"pattern=udp_bw both=on", "transport, events, both: not of udp"},
      {"pattern=udp_bw size=8973", "udp: size up to 8972"},
      {"pattern=udp_rate qps=65", "qps, which are pairs of queues here, up to 64"},
      {"pattern=udp_rate depth=1025", "udp: depth up to 1024"},
      {"pattern=udp_rate postlist=2", "postlist: of udp with stack=bypass"},
      {"pattern=udp_rate cq_max_count=8 cq_period=8", "of udp with stack=kernel and adaptive=off"},
      {"pattern=write_lat stack=bypass", "stack: of udp"},
      {"pcie.lanes=3", "pcie.lanes: must be a whole number from 1 to 16, a power of two"},
      {"pcie.lane=3", "pcie.lane: unknown; allowed are generation, lanes"},
      {"profile=none-such", "profile none-such: no such file; profiles are connectx"},
  };
  for (const auto& c : cases) {
    try {
      (void)measured(c.words);
      ADD_FAILURE() << c.words << " was taken";
    } catch (const SetupError& e) {
      EXPECT_THAT(e.what(), HasSubstr(c.message)) << c.words;
    }
  }
}

TEST(Timing, ASetupSaysWhatItIs) {
  timing::Setup s = setup("pattern=send_bw transport=ud size=4K pcie.lanes=4 pcie.lanes=8 both=on");
  EXPECT_EQ(s.get("size"), "4096");
  EXPECT_EQ(s.get("pattern"), "send_bw");
  EXPECT_EQ(s.get("both"), "on");
  EXPECT_EQ(s.get("pcie.lanes"), "8");
  EXPECT_EQ(s.get("pcie.tags"), "");
  EXPECT_EQ(s.parameters.size(), 1u);
  for (const SetupKey& key : setup_keys()) {
    if (std::string(key.name) == "inline") continue;  // which has a value of its own for "as is customary"
    EXPECT_NO_THROW(s.set(key.name, s.resolved().get(key.name))) << key.name;
  }
}

}  // namespace
}  // namespace hcasim::timing
