// SPDX-License-Identifier: BSD-3-Clause
// Doubling one parameter of a profile moves the figures that it should move, by what it should, and no other.
#include <gtest/gtest.h>

#include <map>

#include "figures.h"

namespace hcasim::timing {
namespace {

constexpr double kStill = 0.03;  // a figure that moves less stands still

// The figures that are watched: latencies in ns, the others as throughput.
const std::map<std::string, std::string> kWatched{
    {"write_lat", "pattern=write_lat size=8"},
    {"read_lat", "pattern=read_lat size=8"},
    {"atomic_lat", "pattern=fetch_add_lat"},
    {"write_bw", "pattern=write_bw size=64K depth=16"},
    {"read_bw", "pattern=read_bw size=64K depth=16"},
    // Of the whole card: CPUs enough.
    {"card_rate", "pattern=write_rate inline=64 qps=16 threads=16 postlist=16 depth=64"},
    // Of one QP, the CPU beside it.
    {"qp_rate", "pattern=write_rate inline=64"},
    {"one_address", "pattern=fetch_add_rate depth=16"},
};

// How a figure is to move: by so many ns, or by a factor.
struct Move {
  double ns_least = 0, ns_most = 0, least = 0, most = 0;
};
Move by(double ns) { return {ns * 0.93 - 5, ns * 1.07 + 5, 0, 0}; }
Move times(double least, double most) { return {0, 0, least, most}; }

class Doubling : public ::testing::Test {
 protected:
  // parameter=single against parameter=2*single, on top of `base`.
  static void check(const std::string& parameter, double single, const std::map<std::string, Move>& moves,
                    const std::string& base = "") {
    std::vector<std::string> words;
    const auto value = [&](double v) {
      std::string text = std::to_string(v);
      text.erase(text.find_last_not_of('0') + 1);
      if (text.back() == '.') text.pop_back();
      return " " + parameter + "=" + text;
    };
    for (const auto& [name, what] : kWatched) {
      const std::string all = "profile=connectx5-100g-roce " + base + " " + what;
      words.push_back(all + value(single));
      words.push_back(all + value(2 * single));
    }
    const auto results = measured(words);
    std::size_t i = 0;
    for (const auto& [name, what] : kWatched) {
      const Result &once = results[i++], &twice = results[i++];
      const bool latency = once.median > 0;
      const double a = latency ? once.median : once.rate, b = latency ? twice.median : twice.rate;
      const auto move = moves.find(name);
      const std::string said =
          parameter + " doubled: " + name + " " + std::to_string(a) + " -> " + std::to_string(b);
      if (move == moves.end()) {
        EXPECT_NEAR(b / a, 1, kStill) << said;
      } else if (move->second.most != 0) {
        EXPECT_GE(b / a, move->second.least) << said;
        EXPECT_LE(b / a, move->second.most) << said;
      } else {
        EXPECT_GE(b - a, move->second.ns_least) << said;
        EXPECT_LE(b - a, move->second.ns_most) << said;
      }
    }
  }
};

// One host read is in a read's and in an atomic's way; atomics on one address wait for it one after the
// other. A write that is inline and comes with its doorbell reads nothing.
TEST_F(Doubling, HostReadLatency) {
  check("pcie.read_latency_ns", 460,
        {{"read_lat", by(460)}, {"atomic_lat", by(460)}, {"one_address", times(0.4, 0.55)}});
}

// A completion's interrupt is in the way of a read's and of an atomic's; a write that is polled for has none.
TEST_F(Doubling, InterruptLatency) {
  const auto lat = [](const char* pattern, const char* ns) {
    return std::string("profile=connectx5-100g-roce events=on pattern=") + pattern +
           " host.interrupt_ns=" + ns;
  };
  const auto results =
      measured({lat("read_lat", "2000"), lat("read_lat", "4000"), lat("send_lat", "2000"),
                lat("send_lat", "4000"), lat("fetch_add_lat", "2000"), lat("fetch_add_lat", "4000")});
  for (std::size_t i = 0; i < results.size(); i += 2)
    EXPECT_NEAR(ns(results[i + 1]) - ns(results[i]), 2000, 30) << i;
  check("host.interrupt_ns", 3000, {});  // of who polls
}

// What the kernel does with datagrams is none of verbs' business.
TEST_F(Doubling, TheKernelsWorkOnFrames) {
  check("host.syscall_ns", 150, {});
  check("host.frame_rx_ns", 210, {});
}

// Where data or a completion come to memory.
TEST_F(Doubling, HostWriteLatency) {
  check("pcie.write_latency_ns", 240,
        {{"write_lat", by(240)}, {"read_lat", by(240)}, {"atomic_lat", by(240)}});
}

TEST_F(Doubling, StoreLatency) {
  check("pcie.mmio_latency_ns", 230,
        {{"write_lat", by(230)}, {"read_lat", by(230)}, {"atomic_lat", by(230)}});
}

// Bandwidth of the link is what it is of large messages, and of the card's rate of small ones; nothing else
// shall be narrower.
TEST_F(Doubling, LinkRate) {
  check("port.rate_gbps", 25,
        {{"write_bw", times(1.7, 2)}, {"read_bw", times(1.7, 2)}, {"card_rate", times(1.7, 2.01)}});
}

TEST_F(Doubling, PcieWidth) {
  check("pcie.lanes", 4,
        {{"write_bw", times(1.7, 2.01)},
         {"read_bw", times(1.7, 2.01)},
         {"card_rate", times(1.5, 2.01)},
         {"one_address", times(1, 1.2)}},
        "port.rate_gbps=400");
}

// Once on the way of a write, on that of a read's request and of its response.
TEST_F(Doubling, TransmitPipeline) {
  check("engine.tx_pipeline_ns", 87, {{"write_lat", by(87)}, {"read_lat", by(174)}, {"atomic_lat", by(174)}});
}

TEST_F(Doubling, ReceivePipeline) {
  check("engine.rx_pipeline_ns", 111,
        {{"write_lat", by(111)}, {"read_lat", by(222)}, {"atomic_lat", by(222)}});
}

TEST_F(Doubling, CableLatency) {
  check("port.wire_latency_ns", 150,
        {{"write_lat", by(150)}, {"read_lat", by(300)}, {"atomic_lat", by(300)}});
}

// Engines: units that work side by side. As many QPs as there are units are needed to keep them busy.
TEST_F(Doubling, TransmitUnits) { check("engine.tx_units", 2, {{"card_rate", times(1.9, 2.05)}}); }

TEST_F(Doubling, ReceiveUnits) { check("engine.rx_units", 2, {{"card_rate", times(1.8, 2.05)}}); }

// How long a unit takes; a lone message pays it too where it waits for the unit only.
TEST_F(Doubling, TransmitUnitTime) {
  check("engine.tx_wqe_ns", 55, {{"card_rate", times(0.48, 0.55)}}, "engine.tx_units=2");
}

TEST_F(Doubling, CpuTimeToPost) {
  check("host.post_ns", 50,
        {{"write_lat", by(50)}, {"read_lat", by(50)}, {"atomic_lat", by(50)}, {"qp_rate", times(0.7, 0.85)}});
}

// After the store the CPU is kept, the message is not.
TEST_F(Doubling, CpuTimeOfADoorbell) { check("host.doorbell_ns", 140, {{"qp_rate", times(0.5, 0.75)}}); }

// A page of payload that an engine reads: once in a lone message of that size, whatever its packets are.
TEST_F(Doubling, PageOfPayload) {
  check("engine.gather_page_ns", 860, {});
  for (const char* mtu : {"256", "4096"}) {
    const std::string page =
        std::string("profile=connectx5-100g-roce pattern=write_lat size=4096 mtu=") + mtu;
    const auto r = measured({page + " engine.gather_page_ns=860", page + " engine.gather_page_ns=1720"});
    EXPECT_NEAR(r[1].median - r[0].median, 860, 60) << mtu;
  }
}

// Parts of a packet that go on by themselves: a part more is waited for on either side of the cable.
TEST_F(Doubling, PartsOfPackets) {
  check("engine.stream_bytes", 512, {});
  const std::string large = "profile=connectx5-100g-roce pattern=write_lat size=4096 engine.stream_bytes=";
  const auto r = measured({large + "512", large + "1024", large + "0"});
  EXPECT_GT(r[1].median, r[0].median + 30);
  EXPECT_GT(r[2].median, r[1].median + 200);
}

// Caches: what did not fit does; with what fits anyhow nothing changes.
TEST_F(Doubling, CacheOfMemoryKeys) {
  check("cache.mkey", 64, {});
  const std::string lanes =
      "profile=connectx5-100g-roce pattern=write_rate inline=64 qps=16 threads=16 postlist=4 mrs=1000";
  const auto r = measured({lanes + " cache.mkey=64", lanes + " cache.mkey=1024", lanes + " cache.mkey=2048"});
  EXPECT_GT(r[1].rate, 1.5 * r[0].rate);
  EXPECT_NEAR(r[2].rate / r[1].rate, 1, kStill);
}

TEST_F(Doubling, CacheOfQueuePairs) {
  check("cache.qpc", 64, {});
  const std::string lanes =
      "profile=connectx5-100g-roce pattern=write_rate inline=64 qps=120 threads=32 depth=1";
  const auto r = measured({lanes + " cache.qpc=64", lanes + " cache.qpc=128", lanes + " cache.qpc=256"});
  EXPECT_GT(r[1].rate, 1.5 * r[0].rate);
  EXPECT_NEAR(r[2].rate / r[1].rate, 1, kStill);
}

TEST_F(Doubling, CacheOfTranslations) {
  check("cache.mtt", 512, {});
  const std::string pages =
      "profile=connectx5-100g-roce pattern=write_rate size=64 qps=16 threads=16 postlist=4 span=1M";
  const auto r = measured({pages + " cache.mtt=64", pages + " cache.mtt=4096", pages + " cache.mtt=8192"});
  EXPECT_GT(r[1].rate, 1.5 * r[0].rate);
  EXPECT_NEAR(r[2].rate / r[1].rate, 1, kStill);
}

// READs under way: 16 of each QP, at the end that asks and at the one that answers.
// READs whose packets are small and many come at its pace, and nothing else does.
TEST_F(Doubling, PacketsOfResponses) {
  check("engine.tx_response_more_ns", 94, {});
  const std::string reads =
      "profile=connectx5-100g-roce pattern=read_bw size=64K engine.tx_response_more_ns=";
  const auto r = measured({reads + "200 mtu=1024", reads + "400 mtu=1024", reads + "94 mtu=4096",
                           reads + "188 mtu=4096", reads + "0 mtu=1024", reads + "16 mtu=1024"});
  EXPECT_NEAR(r[0].rate / r[1].rate, 2, 0.05);
  EXPECT_NEAR(r[2].rate / r[3].rate, 1, kStill);
  EXPECT_NEAR(r[4].rate / r[5].rate, 1, kStill) << "0: as of other messages";
}

TEST_F(Doubling, CacheOfReads) {
  check("cache.reads", 512, {});
  const std::string reads =
      "profile=connectx5-100g-roce pattern=read_rate size=8 qps=64 threads=16 cache.reads_outstanding=4";
  const auto r = measured({reads + " cache.reads=256", reads + " cache.reads=2048",
                           reads + " cache.reads=4096", reads + " cache.reads=0"});
  EXPECT_GT(r[1].rate, 1.5 * r[0].rate);
  EXPECT_NEAR(r[2].rate / r[1].rate, 1, kStill);
  EXPECT_NEAR(r[3].rate / r[2].rate, 1, 2 * kStill);
}

// Beyond the caches, the rate is that of the reads that may be under way.
TEST_F(Doubling, OutstandingCacheReads) {
  check("cache.outstanding", 4, {});
  const std::string misses =
      "profile=connectx5-100g-roce pattern=write_rate inline=64 qps=16 threads=16 postlist=4 mrs=4096 "
      "cache.mkey=16";
  const auto r = measured({misses + " cache.outstanding=2", misses + " cache.outstanding=4"});
  EXPECT_GT(r[1].rate / r[0].rate, 1.7);
  EXPECT_LT(r[1].rate / r[0].rate, 2.1);
}

}  // namespace
}  // namespace hcasim::timing
