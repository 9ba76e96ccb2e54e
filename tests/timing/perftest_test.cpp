// SPDX-License-Identifier: BSD-3-Clause
// perftest's output is read as it is printed, and what cannot be read is refused with its line.
#include "perftest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "figures.h"

namespace hcasim::bench {
namespace {

using ::testing::HasSubstr;
using Measurement = timing::Setup;  // testing::Test has a Setup of its own

const std::string kRule = std::string(87, '-') + "\n";
const std::string kLatencyHeading =
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
    "99% "
    "percentile[usec]   99.9% percentile[usec] \n";

// Client and server of a run over RoCE, with what perftest says between the rows.
const std::string kLatency =
    "$ ib_write_lat -d mlx5_0 -x 3 -a 10.0.0.2\n" + kRule +
    "                    RDMA_Write Latency Test\n"
    " Dual-port       : OFF\t\tDevice         : mlx5_0\n"
    " Number of qps   : 1\t\tTransport type : IB\n"
    " Connection type : RC\t\tUsing SRQ      : OFF\n"
    " PCIe relax order: ON\t\tLock-free      : OFF\n"
    " ibv_wr* API     : ON\n"
    " TX depth        : 1\n"
    " Mtu             : 1024[B]\n"
    " Link type       : Ethernet\n"
    " GID index       : 3\n"
    " Max inline data : 220[B]\n"
    " rdma_cm QPs\t : OFF\n"
    " Data ex. method : Ethernet\n" +
    kRule +
    " local address: LID 0000 QPN 0x0048 PSN 0xa7af12 RKey 0x10011b4d VAddr 0x007f10cb874000\n"
    " GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:00:00:01\n" +
    kRule + kLatencyHeading +
    "Conflicting CPU frequency values detected: 2200.000000 != 1040.353000. CPU Frequency is not max.\n"
    " 2       1000          0.88           6.84         0.98     \t       1.03        \t0.20   \t\t1.21    "
    "\t\t5.42   \n"
    " 4096    1000          453.06         37330.73     692.41            928.05           2465.901216.65    "
    "          "
    "   37330.73\n" +
    kRule;

const std::string kBandwidth =
    kRule +
    "                    Send Bidirectional BW Test\n"
    " Dual-port       : OFF          Device         : mlx5_0\n"
    " Number of qps   : 4            Transport type : IB\n"
    " Connection type : UC           Using SRQ      : ON\n"
    " TX depth        : 128\n"
    " RX depth        : 512\n"
    " CQ Moderation   : 100\n"
    " Mtu             : 4096[B]\n"
    " Link type       : IB\n"
    " Max inline data : 0[B]\n" +
    kRule +
    " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]    CPU_Util[%]\n"
    " 64         5000             330.00             329.65             5.401026         12.50\n" +
    kRule;

const std::string kGigabits =
    "                    RDMA_Read BW Test\n"
    " Connection type : RC\n"
    " Outstand reads  : 24\n" +
    kRule +
    " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    " 8388608    5000             98.10              98.04              0.001461\n";

TEST(PerftestText, LatenciesAreReadWithTheirSetUp) {
  const PerftestRows read = read_perftest(kLatency, "f", Measurement());
  ASSERT_EQ(read.rows.size(), 2u);
  EXPECT_TRUE(read.notes.empty());
  const PublishedRow& row = read.rows[0];
  EXPECT_EQ(row.unit, "us");
  EXPECT_EQ(row.published, 0.98);  // t_typical
  EXPECT_EQ(row.id, "22");         // its line
  EXPECT_NEAR(row.tolerance, 1.04, 0.01);
  const Measurement& s = row.measurements.at(0);
  EXPECT_EQ(s.pattern(), "write_lat");
  EXPECT_EQ(s.size, 2u);
  EXPECT_EQ(s.mtu, 1024u);
  EXPECT_EQ(s.inline_limit, 220);
  EXPECT_TRUE(s.ethernet);
  EXPECT_EQ(read.rows[1].published, 692.41);  // beside two figures without a blank between them
}

TEST(PerftestText, RatesAreReadWithTheirSetUp) {
  Measurement base;
  base.set("fabric=switch");
  const PerftestRows read = read_perftest(kBandwidth + kGigabits, "f", base);
  ASSERT_EQ(read.rows.size(), 2u);
  const Measurement& s = read.rows[0].measurements.at(0);
  EXPECT_EQ(read.rows[0].unit, "M/s");
  EXPECT_EQ(read.rows[0].published, 5.401026);
  EXPECT_EQ(s.pattern(), "send_bw");
  EXPECT_TRUE(s.both);
  EXPECT_EQ(s.qps, 4u);
  EXPECT_EQ(s.depth, 128u);
  EXPECT_EQ(s.cq_mod, 100u);
  EXPECT_EQ(s.transport, timing::Transport::kUc);
  EXPECT_FALSE(s.ethernet);
  EXPECT_EQ(s.fabric, timing::Fabric::kSwitch);
  const Measurement& big = read.rows[1].measurements.at(0);
  EXPECT_EQ(read.rows[1].unit, "Gb/s");
  EXPECT_NEAR(read.rows[1].published, 98.04, 0.005);  // printed finer than the message rate
  EXPECT_EQ(big.pattern(), "read_bw");
  EXPECT_EQ(big.reads, 16u);
  EXPECT_EQ(big.fabric, timing::Fabric::kSwitch);  // nothing is left of the run before
  EXPECT_EQ(big.qps, 1u);
  ASSERT_EQ(read.notes.size(), 2u);
  EXPECT_THAT(read.notes[0], HasSubstr("f:5: Using SRQ"));
  EXPECT_THAT(read.notes[1], HasSubstr("Outstand reads: 16 are simulated"));
}

// A file may have tests of both kinds, and queues be told beside it.
TEST(PerftestText, QueuesAreOfBandwidthTests) {
  Measurement base;
  base.set("qps=8");
  base.set("depth=32");
  base.set("threads=2");
  base.set("postlist=2");
  const PerftestRows read = read_perftest(kLatency + kGigabits, "f", base);
  ASSERT_EQ(read.rows.size(), 3u);
  EXPECT_EQ(read.rows[0].measurements.at(0).qps, 1u);
  EXPECT_FALSE(read.rows[0].measurements.at(0).several());
  EXPECT_EQ(read.rows[2].measurements.at(0).qps, 8u);
  EXPECT_EQ(read.rows[2].measurements.at(0).depth, 32u);
  const std::string of_several = " Number of qps   : 4\n Post List : 4\n TX depth        : 8\n Mtu ";
  const std::string text = std::string(kLatency).replace(kLatency.find(" Mtu "), 5, of_several);
  EXPECT_EQ(read_perftest(text, "f", Measurement()).rows.size(), 2u);
}

// perftest's megabytes are MiB.
TEST(PerftestText, MegabytesAreOfTwoToTheTwentieth) {
  const std::string text =
      " Send BW Test\n #bytes #iterations BW peak[MB/sec] BW average[MB/sec]\n 65536 100 0.00 9347.33\n";
  EXPECT_NEAR(read_perftest(text, "f", Measurement()).rows.at(0).published, 9347.33 * 8 * 1048576 / 1e9,
              1e-9);
}

TEST(PerftestText, IsReadAsItIsWritten) {
  const std::vector<Measurement> setups{
      timing::setup("pattern=write_lat size=2"),
      timing::setup("pattern=write_lat size=4096"),
      timing::setup("pattern=fetch_add_lat link=ib"),
      timing::setup("pattern=read_lat events=on"),
      timing::setup("pattern=send_bw size=64 qps=2 postlist=4 mtu=1024 inline=64"),
      timing::setup("pattern=write_bw size=65536 both=on transport=uc")};
  const auto results = timing::measure_all(setups, 2);
  const std::string text = perftest_text(setups, results);
  const PerftestRows read = read_perftest(text, "f", Measurement());
  EXPECT_EQ(read.notes.size(), 1u);  // of events
  ASSERT_EQ(read.rows.size(), setups.size()) << text;
  for (std::size_t i = 0; i < setups.size(); ++i) {
    const Measurement a = setups[i].resolved(), b = read.rows[i].measurements.at(0).resolved();
    for (const timing::SetupKey& k : timing::setup_keys())
      EXPECT_EQ(a.get(k.name), b.get(k.name)) << k.name << "\n" << text;
    const double v = read.rows[i].simulated({results[i]});
    EXPECT_NEAR(read.rows[i].published, v, read.rows[i].unit == "us" ? 0.0051 : 0.0001 * v) << text;
  }
}

std::string refusal(const std::string& text) {
  try {
    (void)read_perftest(text, "f", Measurement());
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "accepted";
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

TEST(PerftestText, WhatCannotBeReadIsToldWithItsLine) {
  EXPECT_THAT(refusal(""), HasSubstr("no row of perftest's in it"));
  EXPECT_THAT(refusal("hello\n"), HasSubstr("RDMA_Write Latency Test"));
  EXPECT_THAT(refusal(kLatencyHeading + " 2 1 1 1 1 1 1 1 1\n"),
              HasSubstr("f:1: rows without the name of their test"));
  EXPECT_THAT(refusal(replaced(kLatency, "RDMA_Write", "RDMA_Write_imm")),
              HasSubstr("f:3: this test is not simulated"));
  EXPECT_THAT(refusal(replaced(kLatency, ": RC", ": DC")),
              HasSubstr("f:6: Connection type: DC is not simulated; allowed are RC"));
  EXPECT_THAT(refusal(replaced(kLatency, "OFF\t\tDevice", "ON\t\tDevice")), HasSubstr("f:4: Dual-port"));
  EXPECT_THAT(refusal(replaced(kLatency, "1024[B]", "1500[B]")),
              HasSubstr("f:10: Mtu: mtu=1500: allowed: 256, 512"));
  EXPECT_THAT(refusal(replaced(kLatency, "1024[B]", "x")), HasSubstr("f:10: Mtu: a whole number"));
  EXPECT_THAT(refusal(replaced(kLatency, " Dual-port", " Test with events. Using mlx5_0_comp0\n Dual")),
              HasSubstr("f:23: events: latency of writes is of memory"));
  EXPECT_THAT(refusal(replaced(kLatency, "t_min[usec]", "t_min[cycles]")),
              HasSubstr("t_min: in cycles; allowed is usec"));
  EXPECT_THAT(refusal(replaced(kLatency, "t_stdev[usec]", "t_mode[usec]")),
              HasSubstr("not a column that is known"));
  EXPECT_THAT(refusal(replaced(kLatency, " 2       1000", " 2")),
              HasSubstr("f:22: 8 figures, where the heading has 9"));
  EXPECT_THAT(refusal(replaced(kLatency, "0.98 ", "0x98 ")), HasSubstr("f:22: \"0x98\": a number"));
  EXPECT_THAT(refusal(replaced(kLatency, "0.98 ", "0.00 ")), HasSubstr("f:22: the figure must be above 0"));
  EXPECT_THAT(refusal(replaced(kLatency, " 2       1000", " 0       1000")),
              HasSubstr("#bytes: size=0: allowed: 1 to 64M"));
  EXPECT_THAT(refusal(replaced(kBandwidth, "average[MB/sec]", "average[kB/sec]")),
              HasSubstr("BW average: in kB/sec; allowed"));
  EXPECT_THAT(refusal(replaced(kBandwidth, ": UC", ": UD") + replaced(kGigabits, ": RC", ": UD")),
              HasSubstr("transport=ud"));
}

// Any text is read or refused.
TEST(PerftestText, BrokenTextIsReadOrRefused) {
  std::mt19937 chance(1);
  const std::string whole = kLatency + kBandwidth + kGigabits;
  unsigned refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = whole;
    for (unsigned n = chance() % 4 + 1; n > 0; --n) {
      const std::size_t at = chance() % text.size(), length = chance() % 20;
      switch (chance() % 3) {
        case 0:
          text.erase(at, length);
          break;
        case 1:
          text[at] = static_cast<char>(chance());
          break;
        default:
          text.insert(at, text.substr(chance() % text.size(), length));
      }
      if (text.empty()) text = " ";
    }
    try {
      for (const PublishedRow& row : read_perftest(text, "f", Measurement()).rows)
        ASSERT_GT(row.published, 0);
    } catch (const std::runtime_error& e) {
      ++refused;
      ASSERT_EQ(std::string(e.what()).compare(0, 2, "f:"), 0) << e.what();
    }
  }
  EXPECT_GT(refused, 100u);
}

}  // namespace
}  // namespace hcasim::bench
