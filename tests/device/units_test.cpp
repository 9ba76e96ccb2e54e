// SPDX-License-Identifier: BSD-3-Clause
// The microarchitecture as a driver sees it: what runs side by side, what waits for what. Each measurement is
// a process of its own (driver/timing).
#include <gtest/gtest.h>

#include "driver/timing/measure.h"

namespace hcasim::timing {
namespace {

using Measurement = Setup;  // a name that is not of ::testing::Test

// CPUs that cost nothing, so that the HCA alone is measured.
Measurement rate(const std::string& pattern, const std::vector<std::string>& more) {
  Measurement s;
  s.set("pattern", pattern);
  for (const char* free : {"host.post_ns=0", "host.doorbell_ns=0", "host.cqe_ns=0", "host.post_recv_ns=0",
                           "link=ib", "profile=connectx5-edr"})
    s.set(free);
  for (const std::string& pair : more) s.set(pair);
  return s;
}

double mops(const Measurement& s) { return measure(s).mops(); }

Measurement many_writes(const std::string& qps, const std::vector<std::string>& more = {}) {
  Measurement s = rate("write_rate", {"size=8", "inline=8", "postlist=32", "depth=256", "qps=" + qps});
  for (const std::string& pair : more) s.set(pair);
  return s;
}

TEST(Units, AQueuePairHasOneAtATime) {
  const double one = mops(many_writes("1", {"engine.tx_wqe_ns=100"}));
  EXPECT_NEAR(one, 10, 0.5);
  EXPECT_NEAR(mops(many_writes("1", {"engine.tx_wqe_ns=100", "engine.tx_units=1"})), one, 0.5);
}

TEST(Units, OtherQueuePairsHaveTheOthers) {
  EXPECT_NEAR(mops(many_writes("16", {"engine.tx_wqe_ns=100", "engine.tx_units=1"})), 10, 0.7);
  EXPECT_NEAR(mops(many_writes("16", {"engine.tx_wqe_ns=100", "engine.tx_units=4"})), 40, 3);
  EXPECT_NEAR(mops(many_writes("16", {"engine.tx_wqe_ns=100", "engine.tx_units=8"})), 80, 6);
}

TEST(Units, TheReceiverHasUnitsToo) {
  EXPECT_NEAR(mops(many_writes("16", {"engine.rx_message_ns=100", "engine.rx_units=2", "depth=32"})), 20,
              1.5);
  EXPECT_NEAR(mops(many_writes("1", {"engine.rx_message_ns=100"})), 10, 0.7);
}

TEST(Units, AllShareThePipelinesPacketRate) {
  EXPECT_NEAR(mops(many_writes("16", {"engine.tx_packet_ns=50"})), 20, 1.5);
  EXPECT_NEAR(mops(many_writes("16", {"engine.rx_packet_ns=50"})), 20, 2);
}

TEST(Contexts, MissesAreBoundedByThoseUnderWay) {
  // With one entry each WQE misses; the receiver's do not count here, as its cache is the same: it waits too.
  const std::vector<std::string> few = {"cache.qpc=8", "cache.ways=1", "depth=4", "postlist=4"};
  const auto with = [&](const char* outstanding) {
    Measurement s = many_writes("128", few);
    s.set(std::string("cache.outstanding=") + outstanding);
    return mops(s);
  };
  const double two = with("2"), four = with("4");
  EXPECT_NEAR(four / two, 2, 0.3);
  EXPECT_LT(four, mops(many_writes("128", {"depth=4", "postlist=4"})));
}

TEST(Contexts, ARegionsMissHoldsUpItsOwnQueuePairAlone) {
  const double hit = mops(many_writes("8"));
  const double miss =
      mops(many_writes("8", {"mrs=64", "cache.mkey=8", "cache.ways=1", "cache.outstanding=1024"}));
  EXPECT_GT(miss, hit / 4) << "misses of different queue pairs overlap";
}

TEST(Atomics, OneAddressIsOneMemoryRoundTripAfterAnother) {
  Measurement s = rate("fetch_add_rate", {"depth=16", "reads=16", "qps=8", "threads=8", "cq_mod=1"});
  const double one = mops(s);
  EXPECT_NEAR(one, 1000.0 / 470, 0.15);
  s.set("addresses=16");
  EXPECT_GT(mops(s), 4 * one);
  s.set("engine.atomic_slots=4");  // eight bytes each: places 64 bytes apart share one
  EXPECT_NEAR(mops(s), one, 0.15);
}

TEST(Pcie, AWholeLinkLimitsLargeMessages) {
  Measurement s = rate("write_bw", {"size=65536", "qps=2"});
  const double wide = measure(s).gbps();
  s.set("pcie.lanes=8");
  const double narrow = measure(s).gbps();
  EXPECT_NEAR(wide, 98, 1.5);
  EXPECT_NEAR(narrow, 63 * 0.97 * 256 / 280, 2);
}

TEST(Pcie, TlpsOfTheirOwnTimeLimitSmallMessages) {
  const double free = mops(many_writes("16"));
  const double slow = mops(many_writes("16", {"pcie.tlp_write_ns=21"}));
  EXPECT_GT(free, 1.5 * slow);
  EXPECT_NEAR(slow, 1000.0 / 21, 4);
}

// Packets of a run too, whether they are whole TLPs or parts of one.
TEST(Pcie, TlpsOfTheirOwnTimeLimitLongMessages) {
  Measurement s = rate("write_bw", {"size=65536", "mtu=1024", "pcie.tlp_write_ns=500"});
  s.set("pcie.max_payload=256");
  EXPECT_NEAR(measure(s).gbps(), 256 * 8 / 500.0, 0.2);
  s.set("pcie.max_payload=4096");
  EXPECT_NEAR(measure(s).gbps(), 1024 * 8 / 500.0, 0.8);
}

}  // namespace
}  // namespace hcasim::timing
