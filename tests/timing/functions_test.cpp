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

// An E-Switch with tables adds to a packet's way what the profile says of each entry that it meets (the
// tables: driver/timing/eswitch.h).
class ESwitchTime : public ::testing::Test {
 protected:
  static std::string words(const std::string& mode, const std::string& more = "") {
    return "link=eth function=virtual eswitch=" + mode +
           " pattern=write_lat size=2 host.poll_ns=1 steering.look_up_every_ns=0 " + more;
  }
};

TEST_F(ESwitchTime, ALookUpIsAddedForEachGroupOnTheWay) {
  // The sending card looks at two groups of the legacy FDB, the receiving one at the first of them.
  const auto r =
      measured({words("none"), words("legacy", "steering.look_up_ns=0"),
                words("legacy", "steering.look_up_ns=5"), words("legacy", "steering.look_up_ns=100")});
  EXPECT_NEAR(ns(r[1]), ns(r[0]), 1);
  EXPECT_NEAR(ns(r[2]) - ns(r[1]), 3 * 5, 1);
  EXPECT_NEAR(ns(r[3]) - ns(r[1]), 3 * 100, 1);
}

TEST_F(ESwitchTime, SwitchdevAddsItsAclsAndTheirTags) {
  // Out: the ACL, what representors send, what leads on, the rules for addresses, the rule that fits; in: the
  // same without the last. An ACL writes its tag on either side.
  const std::string free = "steering.look_up_ns=0 steering.rewrite_ns=0";
  const auto r = measured({words("none"), words("switchdev", free),
                           words("switchdev", "steering.look_up_ns=100 steering.rewrite_ns=0"),
                           words("switchdev", "steering.look_up_ns=0 steering.rewrite_ns=100")});
  EXPECT_NEAR(ns(r[1]), ns(r[0]), 1);
  EXPECT_NEAR(ns(r[2]) - ns(r[1]), 9 * 100, 1);
  EXPECT_NEAR(ns(r[3]) - ns(r[1]), 2 * 100, 1);
}

TEST_F(ESwitchTime, AsShippedAVirtualFunctionStaysWithinAFewPerCent) {
  const auto r = measured({"link=eth pattern=write_lat size=2", words("legacy"), words("switchdev")});
  EXPECT_GT(ns(r[1]), ns(r[0]));
  EXPECT_GT(ns(r[2]), ns(r[1]));
  EXPECT_LT(ns(r[1]) / ns(r[0]), 1.03);
  EXPECT_LT(ns(r[2]) / ns(r[0]), 1.08);
}

TEST_F(ESwitchTime, LookUpsLimitTheRate) {
  // Messages go out through two look-ups each, and acknowledgements come in through one.
  const std::string rate = "link=eth function=virtual pattern=write_rate size=2 inline=2 qps=8 postlist=16 ";
  const auto r = measured({rate + "eswitch=none", rate + "eswitch=legacy",
                           rate + "eswitch=legacy steering.look_up_every_ns=100"});
  EXPECT_NEAR(r[1].rate / r[0].rate, 1, 0.03);
  EXPECT_LT(r[2].rate, 1e9 / 200);
  EXPECT_GT(r[2].rate, 1e9 / 320);
}

TEST_F(ESwitchTime, AnEntryThatIsNotOnTheChipIsRead) {
  // One entry has room: each look-up drives out the one before.
  const auto r = measured({words("legacy"), words("legacy", "cache.ste=1 cache.ways=1")});
  EXPECT_GT(ns(r[1]) - ns(r[0]), 2 * 400);
}

}  // namespace
}  // namespace hcasim::timing
