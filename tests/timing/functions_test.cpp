// SPDX-License-Identifier: BSD-3-Clause
// A virtual function is as fast as the physical one. On InfiniBand its packets have a GRH more, by which they
// find it: 40 bytes; on Ethernet it is found by its MAC address, as nobody has given the switch tables.
#include <gtest/gtest.h>

#include "figures.h"

namespace hcasim::timing {
namespace {

class Functions : public ::testing::TestWithParam<const char*> {
 protected:
  // A figure of the virtual function's, in parts of the physical one's.
  static double share(const std::string& pattern, double (*figure)(const Result&)) {
    const std::string words = std::string("link=") + GetParam() + " " + pattern + " function=";
    const auto r = measured({words + "physical", words + "virtual"});
    EXPECT_EQ(r[1].counters.count("tx.retransmits"), 0u);
    return figure(r[1]) / figure(r[0]);
  }
  static double rate(const Result& r) { return r.rate; }
  static double bits(const Result& r) { return r.bits; }
};

TEST_P(Functions, LatencyIsThePhysicalOnes) {
  EXPECT_NEAR(share("pattern=write_lat size=2", us), 1, 0.03);
  EXPECT_NEAR(share("pattern=send_lat size=64", us), 1, 0.03);
  EXPECT_NEAR(share("pattern=read_lat size=8", us), 1, 0.03);
}

TEST_P(Functions, SoIsTheRateOfMessages) {
  EXPECT_NEAR(share("pattern=write_rate size=2 inline=2", rate), 1, 0.03);
  EXPECT_NEAR(share("pattern=write_rate size=2 inline=2 qps=8 postlist=16", rate), 1, 0.03);
  EXPECT_NEAR(share("pattern=write_bw size=64K", bits), 1, 0.03);
}

INSTANTIATE_TEST_SUITE_P(OnBothLinks, Functions, ::testing::Values("ib", "eth"),
                         [](const auto& p) { return std::string(p.param); });

}  // namespace
}  // namespace hcasim::timing
