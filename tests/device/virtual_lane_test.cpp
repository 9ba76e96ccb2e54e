// SPDX-License-Identifier: BSD-3-Clause
// Virtual lanes: queues of several service levels share an InfiniBand port as its subnet manager has set.
#include "fixture.h"
#include "subnet_management.h"

namespace hcasim::bare {
namespace {

class VirtualLane : public DeviceTest {
 protected:
  static PairOptions level(std::uint8_t sl) {
    PairOptions o;
    o.attr.sl = sl;
    return o;
  }
  // How many of its writes the slower queue has done when the other one has done 60 of 96.
  static unsigned beside_60(Pair& fast, Pair& slow) {
    for (unsigned i = 0; i < 96; ++i) {
      fast.a.post(fast.wr(WqeOp::kRdmaWrite, 0, 16 << 10));
      slow.a.post(slow.wr(WqeOp::kRdmaWrite, 0, 16 << 10));
    }
    EXPECT_EQ(fast.acq.wait(60).size(), 60u);
    unsigned other = 0;
    while (slow.acq.poll()) ++other;
    EXPECT_EQ(fast.acq.wait(36).size(), 36u);
    EXPECT_EQ(slow.acq.wait(96 - other).size(), 96 - other);
    return other;
  }
};

TEST_F(VirtualLane, LanesShareByTheirWeights) {
  Pair p(dev(), level(0)), q(dev(), level(1));
  const unsigned equal = beside_60(p, q);
  EXPECT_GE(equal, 54u);
  EXPECT_LE(equal, 66u);
  arbitrate(dev(), kVlLow, {{0, 192}, {1, 64}});
  const unsigned third = beside_60(p, q);
  EXPECT_GE(third, 15u);  // 20, and what is on its way
  EXPECT_LE(third, 27u);
  // Both service levels by one lane: no difference.
  smp(dev(), true, kSlToVl, 0, SmpData(64));
  EXPECT_GE(beside_60(p, q), 54u);
}

TEST_F(VirtualLane, HighPriorityGoesFirstUpToItsLimit) {
  Pair p(dev(), level(2)), q(dev(), level(3));
  arbitrate(dev(), kVlHigh, {{2, 1}});
  arbitrate(dev(), kVlLow, {{3, 1}});
  limit_high_lanes(dev(), 255);
  EXPECT_LE(beside_60(p, q), 6u);
  // 16 KiB of the high table, then a packet (4 KiB) of the low one.
  limit_high_lanes(dev(), 4);
  const unsigned limited = beside_60(p, q);
  EXPECT_GE(limited, 7u);  // 12 of 60, and what the first one has done before the other one's first turn
  EXPECT_LE(limited, 24u);
}

TEST_F(VirtualLane, AServiceLevelWithoutALaneIsNotSent) {
  SmpData levels = smp(dev(), false, kSlToVl, 0);
  levels[2] = 0xf1;  // SL 4
  smp(dev(), true, kSlToVl, 0, levels);
  PairOptions o = level(4);
  o.attr.ack_timeout = 10;
  o.attr.retry_count = 1;
  Pair p(dev(), o);
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kTransportRetryExc);
}

}  // namespace
}  // namespace hcasim::bare
