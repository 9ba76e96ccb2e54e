// SPDX-License-Identifier: BSD-3-Clause
// The shapes that measured cards show, whatever their figures: what is faster than what, where curves bend
// and where they are flat.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "figures.h"

namespace hcasim::timing {
namespace {

const std::string kRead = "pcie.read_latency_ns=460 ";  // named, because it is what the shapes are made of
constexpr double kReadNs = 460;

// base, with each of the values after it.
std::vector<Result> over(const std::string& base, const std::vector<std::string>& more) {
  std::vector<std::string> all;
  for (const std::string& m : more) all.push_back(base + " " + m);
  return measured(all);
}

// Each at least `least` of the one before it.
void never_falls(const std::vector<double>& values, double least = 0.97) {
  for (std::size_t i = 1; i < values.size(); ++i)
    EXPECT_GE(values[i], least * values[i - 1]) << "at place " << i;
}

std::vector<double> each(const std::vector<Result>& results, double (*figure)(const Result&)) {
  std::vector<double> list;
  for (const Result& r : results) list.push_back(figure(r));
  return list;
}
double rate(const Result& r) { return r.rate; }
double bits(const Result& r) { return r.bits; }

// Each host read that the card must make first costs one round trip.
TEST(Shape, InlineAndBlueFlameSaveOneHostReadEach) {
  const auto r = over(kRead + "pattern=write_lat size=64",
                      {"inline=64", "inline=64 blueflame=off", "inline=0", "inline=0 blueflame=off"});
  EXPECT_NEAR(ns(r[1]) - ns(r[0]), kReadNs, 60);
  EXPECT_GT(ns(r[2]) - ns(r[0]), kReadNs);
  EXPECT_LT(ns(r[2]) - ns(r[0]), kReadNs + 200);
  EXPECT_NEAR(ns(r[3]) - ns(r[2]), kReadNs, 60);
}

TEST(Shape, LatencyGrowsWithSize) {
  for (const char* pattern : {"write_lat", "send_lat", "read_lat"}) {
    const auto r =
        over(std::string("inline=0 pattern=") + pattern,
             {"size=2", "size=64", "size=256", "size=1K", "size=4K", "size=16K", "size=64K", "size=256K"});
    never_falls(each(r, us), 1);
    EXPECT_LT(us(r[1]), 1.05 * us(r[0])) << pattern;  // within one packet's headers nothing grows
    // Large ones: what the link takes for the bytes more.
    EXPECT_NEAR(us(r[7]) - us(r[6]), (256 - 64) * 1024 * 8 / 100e3, 2) << pattern;
  }
}

// Payload is on its way from the host, over the cable and to the other host at a time, whatever its packets
// are; where each stage waits for whole packets it is not.
TEST(Shape, LatencyIsTheSameWhateverTheMtu) {
  const std::string page = "profile=connectx4-edr link=ib pattern=send_lat size=4096 ";
  const auto r = over(page, {"mtu=256", "mtu=1024", "mtu=4096"});
  for (const Result& one : r) EXPECT_NEAR(one.median / r[0].median, 1, 0.013);
  const auto whole = over(page + "engine.stream_bytes=0 ", {"mtu=256", "mtu=4096"});
  EXPECT_GT(whole[1].median, 1.1 * whole[0].median);
}

TEST(Shape, BandwidthGrowsWithSizeUpToTheLink) {
  for (const char* pattern : {"write_bw", "send_bw", "read_bw"}) {
    const auto r = over(std::string("port.rate_gbps=100 pattern=") + pattern,
                        {"size=64", "size=256", "size=1K", "size=4K", "size=16K", "size=64K", "size=256K"});
    never_falls(each(r, bits));
    EXPECT_GT(r[6].gbps(), 95) << pattern;
    for (const Result& one : r) EXPECT_LT(one.gbps(), 100) << pattern;
  }
}

// Wire arithmetic: 82 bytes of RoCE v2 around each packet, 16 more on a write's first.
TEST(Shape, LargeWritesGetWhatHeadersLeaveOfTheLink) {
  const auto r =
      over("port.rate_gbps=100 pattern=write_bw link=eth depth=16", {"mtu=4096", "mtu=2048", "mtu=1024"});
  const double mtus[] = {4096, 2048, 1024};
  for (std::size_t i = 0; i < 3; ++i) {
    const double packets = 65536 / mtus[i];
    EXPECT_NEAR(r[i].gbps(), 100 * 65536 / (65536 + packets * 82 + 16), 1) << mtus[i];
  }
}

// A PCIe slot that is narrower than the link.
TEST(Shape, TheNarrowerOfLinkAndSlotLimits) {
  const auto r = over("pattern=write_bw depth=16 profile=connectx5-x8",
                      {"port.rate_gbps=100", "port.rate_gbps=200", "port.rate_gbps=25"});
  EXPECT_GT(r[0].gbps(), 45);
  EXPECT_LT(r[0].gbps(), 56.7);  // 90 % of Gen3 x8
  EXPECT_NEAR(r[1].rate / r[0].rate, 1, 0.03);
  EXPECT_GT(r[2].gbps(), 23);
}

// One doorbell for many WQEs: a CPU posts more. Messages that must be gathered are never faster.
TEST(Shape, PostlistsAndInlineRaiseTheRate) {
  for (const char* where : {"inline=64", "inline=0"}) {
    const auto r = over(std::string("pattern=write_rate size=32 cq_mod=16 depth=128 ") + where,
                        {"postlist=1", "postlist=4", "postlist=16"});
    never_falls(each(r, rate));
    EXPECT_GT(r[1].rate, 1.8 * r[0].rate) << where;
    EXPECT_GT(r[2].rate, 2 * r[0].rate) << where;
  }
  const auto r = over("pattern=write_rate size=32 qps=16 threads=16 postlist=16", {"inline=64", "inline=0"});
  EXPECT_GE(r[0].rate, 0.97 * r[1].rate);
}

TEST(Shape, FewerCompletionsDoNoHarm) {
  never_falls(each(over("pattern=write_rate inline=64 postlist=16 depth=128",
                        {"cq_mod=1", "cq_mod=4", "cq_mod=16", "cq_mod=64"}),
                   rate));
}

// A QP's WQEs are worked on by one unit at a time: one QP gets part of the card, several get all of it.
// Asleep instead of polling: the interrupt comes on top, and moderation holds an event back until a period
// after the one before, or until as many completions have come. A lone event is not held.
TEST(Shape, EventsCostTheirInterruptAndTheirPeriod) {
  const std::string base = "profile=connectx5-100g-roce host.interrupt_ns=2000 ";
  const std::string large = "pattern=write_bw size=65536 depth=32 cq_mod=1 events=on ";
  const auto r = measured({base + "pattern=read_lat", base + "pattern=read_lat events=on",
                           base + "pattern=read_lat events=on cq_max_count=8 cq_period=16", base + large,
                           base + large + "cq_max_count=8 cq_period=100",
                           base + "pattern=read_lat events=on cq_max_count=8 cq_period=2"});
  EXPECT_NEAR(ns(r[1]) - ns(r[0]), 2000, 30);
  EXPECT_NEAR(ns(r[2]), 16000, 30);
  EXPECT_NEAR(ns(r[5]), ns(r[1]), 1) << "less than a read takes";
  // An interrupt for each completion, and for eight of them; the queue is long enough for both.
  const auto interrupts = [&](std::size_t i) {
    return static_cast<double>(r[i].counters.at("tx.interrupts"));
  };
  EXPECT_LT(interrupts(4), 0.4 * interrupts(3));
  EXPECT_NEAR(r[4].gbps(), r[3].gbps(), 1);
}

TEST(Shape, QueuePairsShareTheCard) {
  const auto r =
      over("pattern=write_rate inline=64 postlist=16 depth=256 port.rate_gbps=400 pcie.generation=5",
           {"qps=1", "qps=2 threads=2", "qps=4 threads=4", "qps=16 threads=16", "qps=64 threads=64"});
  never_falls(each(r, rate));
  EXPECT_NEAR(r[1].rate / r[0].rate, 2, 0.1);
  EXPECT_NEAR(r[2].rate / r[0].rate, 4, 0.2);
  EXPECT_GT(r[3].rate, 5 * r[0].rate);
  EXPECT_NEAR(r[4].rate / r[3].rate, 1, 0.1);  // that is all there is
}

// Flat while contexts fit the cache, less beyond it: one message a turn, so that each needs its context anew.
TEST(Shape, QueuePairsBeyondTheContextCacheCost) {
  for (const char* pattern : {"write_rate", "send_rate"}) {
    const auto r = over(std::string("inline=64 threads=32 depth=1 cache.qpc=256 pattern=") + pattern,
                        {"qps=64", "qps=128", "qps=256", "qps=512", "qps=1024"});
    never_falls(each({r[0], r[1], r[2]}, rate));
    EXPECT_LT(r[3].rate, 0.5 * r[2].rate) << pattern;
    EXPECT_NEAR(r[4].rate / r[3].rate, 1, 0.2) << pattern;
    EXPECT_EQ(r[1].counters.at("tx.qpc_misses"), 128u) << pattern;
    EXPECT_GT(r[4].counters.at("tx.qpc_misses"), 2048u) << pattern;
  }
}

// Buffers of more pages than the IOMMU keeps translations of: a walk at either end, and of small messages
// only as many as there are walks. Within them it costs nothing.
TEST(Shape, AnIommuCostsWhereItsTranslationsDoNotSuffice) {
  const std::string iommu = "memory.iotlb=64 memory.iotlb_walk_ns=300 ";
  const std::string lone = "pattern=write_lat size=1024 ";
  const auto r = measured({lone, lone + iommu, lone + "span=64M", lone + iommu + "span=64M"});
  EXPECT_NEAR(ns(r[1]), ns(r[0]), 1);
  EXPECT_NEAR(ns(r[3]) - ns(r[2]), 2 * 300, 20);
  const std::string reads = "pattern=read_rate size=64 qps=32 threads=32 span=16M ";
  const auto many =
      measured({reads, reads + iommu + "memory.iotlb_walks=4", reads + iommu + "memory.iotlb_walks=8"});
  EXPECT_LT(many[1].rate, 0.6 * many[0].rate);
  EXPECT_GT(many[2].rate, 1.5 * many[1].rate);
}

// With ATS a translation costs a round trip more the first time, and then nothing, however few the IOMMU has.
TEST(Shape, TranslationsThatTheCardKeepsAreNotWalkedForAgain) {
  const std::string iommu = "memory.iotlb=64 memory.iotlb_walk_ns=300 memory.iotlb_walks=4 ";
  const std::string lone = kRead + iommu + "pattern=write_lat size=1024 span=64M ";
  const auto first = measured({lone, lone + "memory.atc=65536"});
  EXPECT_NEAR(ns(first[1]) - ns(first[0]), 2 * kReadNs, 40);
  const std::string reads = "pattern=read_rate size=64 qps=32 threads=32 span=128K ";
  const auto many = measured({reads, reads + iommu, reads + iommu + "memory.atc=16384"});
  EXPECT_LT(many[1].rate, 0.6 * many[0].rate);
  EXPECT_GT(many[2].rate, 0.9 * many[0].rate);
}

// So many TLPs in the time that their credits are away, and no more than the link carries.
TEST(Shape, CreditsBoundWhatIsOnTheWayToTheHost) {
  const std::string back = "port.rate_gbps=100 pcie.lanes=16 pcie.max_payload=256 pcie.credit_ns=400 ";
  const std::string writes = back + "pattern=write_bw size=64K qps=4 ";
  const auto r = over(writes, {"", "pcie.posted_data=64", "pcie.posted_data=128", "pcie.posted_headers=4",
                               "pcie.posted_data=1024 pcie.posted_headers=64"});
  const double four = 4 * 256 * 8 / (400 + 280 / 15.75);  // Gb/s: TLPs of 280 bytes with their headers
  EXPECT_NEAR(r[1].gbps(), four, 0.05 * four);
  EXPECT_NEAR(r[2].gbps(), 2 * four, 0.1 * four);
  EXPECT_NEAR(r[3].gbps(), r[1].gbps(), 0.01 * four);
  EXPECT_NEAR(r[4].gbps(), r[0].gbps(), 0.1);
  EXPECT_GT(r[1].counters.count("rx.pcie_write_waits"), 0u);
  // A read waits where it asks for payload, and where the answer's is written.
  const auto requests = over(writes + "pcie.max_read_request=512 ", {"", "pcie.nonposted_headers=4"});
  const double asked = 4 * 512 * 8 / 400.0;
  EXPECT_LT(requests[1].gbps(), asked);
  EXPECT_GT(requests[1].gbps(), 0.85 * asked);
  const auto rates = over(back + "pattern=read_bw size=64K qps=4 ", {"", "pcie.posted_data=64"});
  EXPECT_NEAR(rates[1].gbps(), four, 0.1 * four);
  EXPECT_GT(rates[0].gbps(), 2 * four);
}

// Units are busy for longer with a READ's answer than the port is: as many work side by side, however fast it
// is.
TEST(Shape, AFasterLinkHasNoFewerReads) {
  const auto r =
      over("profile=connectx6-hdr200 link=ib pattern=read_rate size=64 qps=32 threads=32 iterations=50000 ",
           {"port.rate_gbps=100", "port.rate_gbps=198.5", "port.rate_gbps=400"});
  EXPECT_NEAR(r[1].mops(), r[0].mops(), 0.02 * r[0].mops());
  EXPECT_NEAR(r[2].mops(), r[0].mops(), 0.02 * r[0].mops());
}

// A lane's buffer is on its way over a long cable once in its round trip, and no more often.
TEST(Shape, LongCablesNeedLargeBuffers) {
  const std::string far =
      "link=ib pattern=write_bw size=64K qps=4 mtu=4096 depth=64 port.wire_latency_ns=10000 ";
  const auto r =
      over(far, {"", "port.lane_buffer=65536", "port.lane_buffer=131072", "port.lane_buffer=1048576"});
  const double once = 15 * 4096 * 8 / 20'350.0;  // Gb/s: whole packets, there and back
  EXPECT_NEAR(r[1].gbps(), once, 0.05 * once);
  EXPECT_NEAR(r[2].gbps(), 31.0 / 15 * once, 0.1 * once);
  EXPECT_GT(r[3].gbps(), 0.97 * r[0].gbps());
  EXPECT_GT(r[1].counters.count("tx.port_xmit_wait"), 0u);
  EXPECT_EQ(r[3].counters.count("tx.port_xmit_wait"), 0u);
}

// What the last cache does not hold comes from DRAM, at the end that reads payload; the other socket is
// farther away for all that either end reads and writes.
TEST(Shape, MemoryThatIsFartherAwayTakesLonger) {
  const std::string lone = "pattern=write_lat size=1024 span=64M ";
  const auto r = measured({lone, lone + "memory.llc_kib=4096 memory.dram_ns=80",
                           lone + "memory.llc_kib=262144 memory.dram_ns=80", lone + "memory.remote_ns=100"});
  EXPECT_NEAR(ns(r[1]) - ns(r[0]), 80, 10);
  EXPECT_NEAR(ns(r[3]) - ns(r[0]), 2 * 100, 10);
  const auto again = over("pattern=write_lat size=1024", {"", "memory.llc_kib=4096"});
  EXPECT_NEAR(ns(again[1]), ns(again[0]), 1) << "a buffer that the cache holds";
}

// The responder keeps one context for all datagrams; each connection has one of its own.
TEST(Shape, DatagramsNeedOneContext) {
  const auto r = over("pattern=send_rate inline=64 threads=8 depth=4 postlist=4 cache.qpc=64 qps=8",
                      {"transport=ud", "transport=rc"});
  EXPECT_GT(r[0].rate, 0.5 * r[1].rate);
}

// What comes with the doorbell need not be fetched; a CPU that posts one at a time is no slower for it.
TEST(Shape, BlueFlameSparesFetches) {
  const auto rates = over("pattern=write_rate inline=64 iterations=4000", {"blueflame=on", "blueflame=off"});
  EXPECT_GE(rates[0].rate, 0.97 * rates[1].rate);
  const auto lone = over("pattern=write_lat size=8 iterations=1000", {"blueflame=on", "blueflame=off"});
  EXPECT_GT(lone[0].counters.at("tx.blueflames"), 1000u);
  EXPECT_EQ(lone[1].counters.count("tx.blueflames"), 0u);
  // 64 bytes a WQE at least.
  EXPECT_GT(lone[1].counters.at("tx.dma_read_bytes"), lone[0].counters.at("tx.dma_read_bytes") + 1000 * 64);
}

// Each outstanding read is a round trip at a time, until something else is the limit.
TEST(Shape, ReadsAreAsManyAsMayBeOutstanding) {
  const auto r =
      over("pattern=read_rate postlist=16", {"reads=1", "reads=2", "reads=4", "reads=8", "reads=16"});
  for (std::size_t i = 1; i < 4; ++i) EXPECT_NEAR(r[i].rate / r[i - 1].rate, 2, 0.06) << i;
  never_falls(each(r, rate));
  const Result one = measured("pattern=read_lat");
  // One after the other: the wire and the responder, without the CPU and its doorbell.
  EXPECT_GT(1e9 / r[0].rate, 0.4 * one.median);
  EXPECT_LT(1e9 / r[0].rate, one.median);
}

// Atomics on one address wait for one another, a host read each; on others they do not.
TEST(Shape, AtomicsOnOneAddressWaitForOneAnother) {
  const std::string base = kRead + "pattern=fetch_add_rate depth=16 cq_mod=4 qps=8 threads=8";
  const auto r = over(base, {"addresses=1", "addresses=2", "addresses=4", "addresses=64"});
  EXPECT_LT(r[0].rate * kReadNs * 1e-9, 1.01);
  EXPECT_GT(r[0].rate * kReadNs * 1e-9, 0.9);
  EXPECT_NEAR(r[1].rate / r[0].rate, 2, 0.02);
  EXPECT_NEAR(r[2].rate / r[0].rate, 4, 0.04);
  EXPECT_NEAR(r[3].rate / r[0].rate, 8, 0.08) << "each QP has one at a time";
  // More who ask for the one make it no faster.
  const Result alone = measured(kRead + "pattern=fetch_add_rate depth=16 cq_mod=1 qps=1");
  EXPECT_NEAR(alone.rate / r[0].rate, 1, 0.1);
}

// One QP's are executed one after the other, wherever they go to, and however far away.
TEST(Shape, AtomicsOfOneQpWaitForOneAnother) {
  const std::string base = kRead + "pattern=fetch_add_rate ";
  const auto r = over(base, {"addresses=1", "addresses=64", "addresses=64 fabric=switch",
                             "addresses=64 reads=8 fabric=switch", "addresses=64 qps=2 threads=2"});
  EXPECT_NEAR(r[0].rate * kReadNs * 1e-9, 0.97, 0.03);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_NEAR(r[i].rate / r[0].rate, 1, 0.01) << i;
  EXPECT_NEAR(r[4].rate / r[0].rate, 2, 0.05);
}

// Messages of a page: as many are read from the host at a time as the profile says, each at an engine's pace.
// Those of several pages are read several pages at a time, too, and the link limits them.
TEST(Shape, AFewMessagesOfAQpAreReadAtATime) {
  const std::string base = "profile=connectx5-edr link=ib pattern=write_rate postlist=8 depth=256 size=4096 ";
  const auto r =
      over(base, {"engine.gather_messages=1", "engine.gather_messages=2", "engine.gather_messages=0",
                  "engine.gather_messages=1 size=64K", "engine.gather_messages=0 size=64K",
                  "engine.gather_messages=1 qps=2 threads=2"});
  EXPECT_GT(1e9 / r[0].rate, 860);  // engine.gather_page_ns of this profile
  EXPECT_LT(1e9 / r[0].rate, 980);
  EXPECT_NEAR(r[1].rate / r[0].rate, 2, 0.05);
  EXPECT_GT(r[2].bits, 95e9);
  EXPECT_NEAR(r[3].bits / r[4].bits, 1, 0.01);
  EXPECT_NEAR(r[5].rate / r[0].rate, 2, 0.05);
}

// RoCE that stays inside the card takes the port for its payload and InfiniBand's own headers alone.
TEST(Shape, LoopbackIsNotFramed) {
  const auto r = over("profile=connectx5-100g-roce pattern=write_bw mtu=1024 size=64K",
                      {"fabric=cable", "fabric=loopback", "fabric=loopback transport=uc"});
  EXPECT_NEAR(r[0].bits, 100e9 * 1024 / (1024 + 82), 3e8);
  for (std::size_t i = 1; i < 3; ++i) EXPECT_NEAR(r[i].bits, 100e9 * 1024 / (1024 + 16), 3e8) << i;
}

TEST(Shape, BothDirectionsAtOnce) {
  const auto r = over("pattern=write_bw depth=16", {"both=off", "both=on"});
  EXPECT_GT(r[1].rate, 1.9 * r[0].rate);
  EXPECT_LE(r[1].rate, 2.01 * r[0].rate);
  EXPECT_NEAR(r[1].shares[0], 0.5, 0.02);
}

// A link's whole rate is for Ethernet's frames; InfiniBand's link layer has its part of it.
TEST(Shape, InfiniBandsLinkLayerTakesItsPart) {
  const auto r = over("profile=connectx6-hdr100 pattern=write_bw mtu=4096 size=64K",
                      {"link=ib", "link=ib port.infiniband_overhead_percent=0",
                       "link=ib port.infiniband_overhead_percent=10", "link=eth", "link=ib fabric=switch"});
  EXPECT_NEAR(r[0].gbps(), 99 * 4096. / (4096 + 26), 0.1);
  EXPECT_NEAR(r[1].gbps(), 100 * 4096. / (4096 + 26), 0.1);
  EXPECT_NEAR(r[2].gbps(), 90 * 4096. / (4096 + 26), 0.1);
  EXPECT_NEAR(r[3].gbps(), 100 * 4096. / (4096 + 82), 0.1);
  EXPECT_NEAR(r[4].gbps(), r[0].gbps(), 0.1);
}

// Where both ends send, one CPU does all that its end has to do, as with perftest's -b.
TEST(Shape, OneCpuSendsAndReceives) {
  const std::string slow = " host.cqe_ns=60 host.post_recv_ns=60";
  for (const char* transport : {"rc", "uc", "ud"}) {
    const auto r = over(
        std::string("pattern=send_rate depth=128 transport=") + transport,
        {"both=off", "both=off" + slow, "both=on", "both=on" + slow, "both=on qps=4", "both=on events=on"});
    EXPECT_NEAR(r[1].rate / r[0].rate, 1, 0.02) << transport;
    EXPECT_GT(r[2].rate, 1.5 * r[0].rate) << transport;
    EXPECT_LT(r[2].rate, 1.9 * r[0].rate) << transport;
    EXPECT_LT(r[3].rate, 0.8 * r[2].rate) << transport;
    EXPECT_NEAR(r[4].rate / r[2].rate, 1, 0.1) << transport;
    EXPECT_NEAR(r[5].rate / r[2].rate, 1, 0.1) << transport;
  }
}

// A switch adds the same to all sizes, to a read twice.
TEST(Shape, ASwitchAddsItsHop) {
  for (const char* link : {"link=ib", "link=eth"}) {
    const std::string base = std::string(link) + " pattern=";
    const auto r = measured({base + "write_lat", base + "write_lat fabric=switch", base + "write_lat size=4K",
                             base + "write_lat size=4K fabric=switch", base + "read_lat",
                             base + "read_lat fabric=switch"});
    const double hop = ns(r[1]) - ns(r[0]);
    EXPECT_GT(hop, 90) << link;
    EXPECT_LT(hop, 310) << link;
    EXPECT_NEAR(ns(r[3]) - ns(r[2]), hop, 30) << link;
    EXPECT_NEAR(ns(r[5]) - ns(r[4]), 2 * hop, 30) << link;
  }
}

TEST(Shape, LoopbackIsShorterThanACable) {
  const auto r = over("pattern=write_lat", {"fabric=loopback", "fabric=cable"});
  EXPECT_LT(us(r[0]), us(r[1]));
}

// All send to one: each gets its share of the one link, which is full.
TEST(Shape, IncastSharesOneLink) {
  for (const char* link : {"link=ib depth=64", "link=eth depth=2"}) {  // Ethernet: what the switch can hold
    const auto r = over(std::string("pattern=write_bw fabric=switch port.rate_gbps=100 ") + link,
                        {"senders=1", "senders=2", "senders=7"});
    EXPECT_GT(r[2].gbps(), 95) << link;
    EXPECT_LT(r[2].gbps(), 100) << link;
    ASSERT_EQ(r[2].shares.size(), 7u);
    for (const double share : r[2].shares) EXPECT_NEAR(share, 1.0 / 7, 0.1 / 7) << link;
    EXPECT_NEAR(std::accumulate(r[2].shares.begin(), r[2].shares.end(), 0.0), 1, 1e-9);
    EXPECT_NEAR(r[1].shares[0], 0.5, 0.03) << link;
    EXPECT_EQ(r[2].counters.count("rx.wire_lost"), 0u) << link;
  }
}

// An unacknowledged transport is no slower; a datagram carries an address more.
TEST(Shape, Transports) {
  const auto r = over("pattern=send_lat size=64", {"transport=rc", "transport=uc", "transport=ud"});
  EXPECT_LE(us(r[1]), 1.02 * us(r[0]));
  EXPECT_NEAR(us(r[2]) / us(r[1]), 1, 0.1);
}

}  // namespace
}  // namespace hcasim::timing
