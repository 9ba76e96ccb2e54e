// SPDX-License-Identifier: BSD-3-Clause
// RC over a bad wire: packets that are lost, doubled, reordered, damaged. Everything arrives once, in order.
#include <cstring>

#include "fixture.h"

namespace hcasim::bare {
namespace {

class RcLoss : public DeviceTest, public ::testing::WithParamInterface<const char*> {
 protected:
  static PairOptions options() {
    PairOptions o;
    o.attr.mtu = 1024;
    o.attr.ack_timeout = 6;  // 0.26 ms
    o.attr.retry_count = 7;
    o.log_cq = 11;
    o.bytes = 1 << 20;
    return o;
  }
};

TEST_P(RcLoss, AllOperationsArriveOnce) {
  Pair p(dev(), options());
  ASSERT_EQ(fn().inject(GetParam()), "");
  std::mt19937 rnd(42);
  std::uint64_t added = 0;
  auto* counter = reinterpret_cast<std::uint64_t*>(p.bmem.data() + p.bmem.size() - 64);
  *counter = 0;
  for (int round = 0; round < 30; ++round) {
    p.fill(static_cast<std::uint64_t>(round));
    *counter = added;
    std::vector<std::uint16_t> posted;
    std::vector<std::pair<std::size_t, std::uint32_t>> areas;
    std::size_t off = 0;
    unsigned receives = 0;
    std::vector<std::uint32_t> lens;
    for (int i = 0; i < 12; ++i) {
      const std::uint32_t len = rnd() % 40000 + 1;
      const WqeOp ops[] = {WqeOp::kSend,         WqeOp::kRdmaWrite, WqeOp::kRdmaRead,
                           WqeOp::kRdmaWriteImm, WqeOp::kAtomicFa,  WqeOp::kMaskedFa};
      const WqeOp op = ops[rnd() % 6];
      if (op == WqeOp::kAtomicFa) {
        SendWr w = p.wr(op, p.amem.size() - 64, 8);
        w.swap_add = 3;
        added += 3;
        posted.push_back(p.a.post(w, false));
        continue;
      }
      if (op == WqeOp::kMaskedFa) {  // 3 in the first of two words
        SendWr w = p.wr(op, p.amem.size() - 64, 16);
        w.atomic_bytes = 16;
        w.operands.resize(32);
        w.operands[7] = 3;
        added += 3;
        posted.push_back(p.a.post(w, false));
        continue;
      }
      if (op == WqeOp::kSend || op == WqeOp::kRdmaWriteImm) {
        p.b.post_recv({p.bsge(off, len)});
        lens.push_back(len);
        ++receives;
      }
      posted.push_back(p.a.post(p.wr(op, off, len), false));
      areas.emplace_back(off, len);
      off += len + 64;
    }
    p.a.ring_doorbell();
    const auto got = p.acq.wait(posted.size(), 60'000'000'000);
    ASSERT_EQ(got.size(), posted.size()) << "round " << round;
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_FALSE(got[i].error()) << got[i].text();
      ASSERT_EQ(got[i].wqe_counter, posted[i]);
    }
    const auto r = p.bcq.wait(receives);
    ASSERT_EQ(r.size(), receives);
    for (std::size_t i = 0; i < r.size(); ++i) {
      ASSERT_FALSE(r[i].error()) << r[i].text();
      ASSERT_EQ(r[i].byte_cnt, lens[i]);
    }
    EXPECT_FALSE(p.bcq.ready()) << "a message came twice";
    for (const auto& [at, len] : areas) ASSERT_TRUE(p.same(at, len)) << "round " << round;
    ASSERT_EQ(*counter, added) << "an atomic was done twice or not at all";
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, RcLoss,
                         ::testing::Values("drop=0.02", "drop=0.1", "duplicate=0.1", "duplicate=0.5",
                                           "reorder=0.05", "corrupt=0.02",
                                           "drop=0.02,duplicate=0.05,reorder=0.02,corrupt=0.01"),
                         [](const auto& i) { return "Case" + std::to_string(i.index); });

class RcLossOnce : public RcLoss {};

TEST_F(RcLossOnce, EverythingLostEndsInRetryExceeded) {
  PairOptions o = options();
  o.attr.retry_count = 2;
  Pair p(dev(), o);
  ASSERT_EQ(fn().inject("drop=1"), "");
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 100));
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kTransportRetryExc);
  ASSERT_EQ(fn().inject("none"), "");
  expect_serves_on();
}

TEST_F(RcLossOnce, LinkDownAndUpAgain) {
  Pair p(dev(), options());
  p.fill(1);
  dev().clear_async_events();
  ASSERT_EQ(fn().inject("link=down"), "");
  machine().advance(1'000'000);
  EXPECT_NE(dev().port_state(), 4);
  EXPECT_EQ(dev().count_async(prm::EqeType::kPortChange), 1u);
  const auto n = p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 5000));
  machine().advance(200'000);
  EXPECT_FALSE(p.acq.ready());
  ASSERT_EQ(fn().inject("link=up"), "");
  expect_good(p.acq, n);
  EXPECT_TRUE(p.same(0, 5000));
  machine().advance(1'000'000);
  EXPECT_EQ(dev().port_state(), 4);
}

TEST_F(RcLossOnce, SameSeedSameRun) {
  std::int64_t took[2];
  for (std::int64_t& t : took) {
    dev().function_reset();
    dev().probe();
    Pair p(dev(), options());
    ASSERT_EQ(fn().inject("drop=0.1,seed=77"), "");
    const std::int64_t t0 = machine().now();
    for (int i = 0; i < 20; ++i) p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 30000), false);
    p.a.ring_doorbell();
    ASSERT_EQ(p.acq.wait(20).size(), 20u);
    t = machine().now() - t0;
    fn().inject("none");
  }
  EXPECT_EQ(took[0], took[1]);
}

}  // namespace
}  // namespace hcasim::bare
