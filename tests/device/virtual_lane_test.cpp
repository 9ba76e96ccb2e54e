// SPDX-License-Identifier: BSD-3-Clause
// Virtual lanes: queues of several service levels share an InfiniBand port as its subnet manager has set.
#include <algorithm>

#include "fixture.h"

namespace hcasim::bare {
namespace {

class VirtualLane : public DeviceTest {
 protected:
  enum : std::uint16_t { kPortInfo = 0x15, kSlToVl = 0x17, kVlArbitration = 0x18 };
  static constexpr std::uint32_t kLow = 1u << 16, kHigh = 3u << 16;
  static constexpr std::size_t kData = 64;
  using Bytes = std::vector<std::uint8_t>;

  // A subnet manager's MAD; the attribute as the port answers it.
  Bytes smp(bool set, std::uint16_t attribute, std::uint32_t modifier, const Bytes& data = {}) {
    using In = prm::mad_ifc_in;
    Mailbox in(prm::op::MAD_IFC, In::bytes);
    in.set<In::port>(1);
    std::uint8_t* mad = in.data() + In::mad::bit_off / 8;
    mad[0] = mad[1] = mad[2] = 1;
    mad[3] = set ? 2 : 1;
    prm::store32(mad + 16, std::uint32_t{attribute} << 16);
    prm::store32(mad + 20, modifier);
    std::copy(data.begin(), data.end(), mad + kData);
    const auto r = dev().exec(in, prm::mad_ifc_out::bytes).must();
    const std::uint8_t* answer = r.out.data() + prm::mad_ifc_out::response_mad_packet::bit_off / 8;
    EXPECT_EQ(prm::load32(answer + 4) >> 16, 0u);
    return {answer + kData, answer + 2 * kData};
  }
  void arbitrate(std::uint32_t block, std::vector<std::pair<std::uint8_t, std::uint8_t>> entries) {
    Bytes table(64);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      table[2 * i] = entries[i].first;
      table[2 * i + 1] = entries[i].second;
    }
    smp(true, kVlArbitration, block, table);
  }
  void limit_high(std::uint8_t limit) {
    Bytes info = smp(false, kPortInfo, 1);
    info[38] = limit;
    info[32] &= 0xf0;  // the state stays
    smp(true, kPortInfo, 1, info);
  }
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
  arbitrate(kLow, {{0, 192}, {1, 64}});
  const unsigned third = beside_60(p, q);
  EXPECT_GE(third, 15u);  // 20, and what is on its way
  EXPECT_LE(third, 27u);
  // Both service levels by one lane: no difference.
  smp(true, kSlToVl, 0, Bytes(64));
  EXPECT_GE(beside_60(p, q), 54u);
}

TEST_F(VirtualLane, HighPriorityGoesFirstUpToItsLimit) {
  Pair p(dev(), level(2)), q(dev(), level(3));
  arbitrate(kHigh, {{2, 1}});
  arbitrate(kLow, {{3, 1}});
  limit_high(255);
  EXPECT_LE(beside_60(p, q), 6u);
  // 16 KiB of the high table, then a packet (4 KiB) of the low one.
  limit_high(4);
  const unsigned limited = beside_60(p, q);
  EXPECT_GE(limited, 7u);  // 12 of 60, and what the first one has done before the other one's first turn
  EXPECT_LE(limited, 24u);
}

TEST_F(VirtualLane, AServiceLevelWithoutALaneIsNotSent) {
  Bytes levels = smp(false, kSlToVl, 0);
  levels[2] = 0xf1;  // SL 4
  smp(true, kSlToVl, 0, levels);
  PairOptions o = level(4);
  o.attr.ack_timeout = 10;
  o.attr.retry_count = 1;
  Pair p(dev(), o);
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kTransportRetryExc);
}

}  // namespace
}  // namespace hcasim::bare
