// SPDX-License-Identifier: BSD-3-Clause
// The RC data path when all goes well: what arrives, what the CQEs say.
#include <cstring>

#include "fixture.h"

namespace hcasim::bare {
namespace {

using RcData = DeviceTest;

TEST_F(RcData, SendArrives) {
  Pair p(dev());
  p.fill(1);
  const auto r = p.b.post_recv({p.bsge(512, 4096)});
  auto w = p.wr(WqeOp::kSend, 512, 1000);
  const auto n = p.a.post(w);
  const Completion s = p.acq.wait_one(), d = p.bcq.wait_one();
  EXPECT_EQ(s.op, prm::CqeOp::kReq);
  EXPECT_EQ(s.send_op, WqeOp::kSend);
  EXPECT_EQ(s.qpn, p.a.qpn());
  EXPECT_EQ(s.wqe_counter, n);
  EXPECT_EQ(d.op, prm::CqeOp::kRespSend);
  EXPECT_EQ(d.qpn, p.b.qpn());
  EXPECT_EQ(d.byte_cnt, 1000u);
  EXPECT_EQ(d.wqe_counter, r);
  EXPECT_EQ(d.user_index, 0u) << "a kernel object has its SRQN there, 0 without SRQ";
  EXPECT_FALSE(d.solicited);
  EXPECT_TRUE(p.same(512, 1000));
  EXPECT_FALSE(p.same(512, 1001)) << "not a byte more";
}

TEST_F(RcData, SendWithImmediateInvalidateSolicited) {
  breaks({"rkey-unknown"});
  Pair p(dev());
  p.fill(2);
  MkeySpec spec = Mr::of(p.pd, p.bmem);
  spec.remote_invalidate = true;
  spec.umr_en = true;
  Mr window(dev(), spec);
  for (int i = 0; i < 3; ++i) p.b.post_recv({p.bsge(0, 4096)});
  auto w = p.wr(WqeOp::kSendImm, 0, 64);
  w.imm = 0xcafef00d;
  w.solicited = true;
  p.a.post(w);
  Completion d = p.bcq.wait_one();
  EXPECT_EQ(d.op, prm::CqeOp::kRespSendImm);
  EXPECT_EQ(d.imm, 0xcafef00du);
  EXPECT_TRUE(d.solicited);
  auto x = p.wr(WqeOp::kRdmaWrite, 0, 16);
  x.rkey = window.key();
  p.a.post(x);
  EXPECT_FALSE(p.acq.wait(2).back().error());
  w = p.wr(WqeOp::kSendInval, 0, 64);
  w.imm = window.key();
  p.a.post(w);
  d = p.bcq.wait_one();
  EXPECT_EQ(d.op, prm::CqeOp::kRespSendInv);
  EXPECT_EQ(d.imm, window.key());
  EXPECT_FALSE(p.acq.wait_one().error());
  p.a.post(x);
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kRemoteAccess);
}

TEST_F(RcData, WriteLeavesNoTraceAtTheReceiver) {
  Pair p(dev());
  p.fill(3);
  expect_good(p.acq, p.a.post(p.wr(WqeOp::kRdmaWrite, 100, 5000)));
  EXPECT_TRUE(p.same(100, 5000));
  EXPECT_FALSE(p.same(99, 1));
  EXPECT_FALSE(p.bcq.ready());
}

TEST_F(RcData, WriteWithImmediateConsumesAReceive) {
  Pair p(dev());
  p.fill(4);
  const auto r = p.b.post_recv({});
  auto w = p.wr(WqeOp::kRdmaWriteImm, 0, 9000);
  w.imm = 77;
  p.a.post(w);
  const Completion d = p.bcq.wait_one();
  EXPECT_EQ(d.op, prm::CqeOp::kRespWrImm);
  EXPECT_EQ(d.imm, 77u);
  EXPECT_EQ(d.byte_cnt, 9000u);
  EXPECT_EQ(d.wqe_counter, r);
  EXPECT_FALSE(p.acq.wait_one().error());
  EXPECT_TRUE(p.same(0, 9000));
}

TEST_F(RcData, ReadFetches) {
  Pair p(dev());
  p.fill(5);
  const auto n = p.a.post(p.wr(WqeOp::kRdmaRead, 300, 20000));
  const Completion c = p.acq.wait_one();
  EXPECT_EQ(c.wqe_counter, n);
  EXPECT_EQ(c.send_op, WqeOp::kRdmaRead);
  EXPECT_EQ(c.byte_cnt, 20000u);
  EXPECT_TRUE(p.same(300, 20000));
  EXPECT_FALSE(p.same(299, 1));
  EXPECT_FALSE(p.bcq.ready());
}

TEST_F(RcData, AtomicsReturnTheOldValue) {
  Pair p(dev());
  std::uint64_t* target = reinterpret_cast<std::uint64_t*>(p.bmem.data());
  const std::uint64_t* result = reinterpret_cast<const std::uint64_t*>(p.amem.data());
  *target = 1000;
  auto w = p.wr(WqeOp::kAtomicFa, 0, 8);
  w.swap_add = 5;
  p.a.post(w);
  Completion c = p.acq.wait_one();
  EXPECT_FALSE(c.error()) << c.text();
  EXPECT_EQ(c.byte_cnt, 8u);
  EXPECT_EQ(*target, 1005u);
  EXPECT_EQ(*result, 1000u);
  w = p.wr(WqeOp::kAtomicCs, 0, 8);
  w.compare = 1005;
  w.swap_add = 42;
  p.a.post(w);
  EXPECT_FALSE(p.acq.wait_one().error());
  EXPECT_EQ(*target, 42u);
  EXPECT_EQ(*result, 1005u);
  p.a.post(w);  // compare fails now
  EXPECT_FALSE(p.acq.wait_one().error());
  EXPECT_EQ(*target, 42u);
  EXPECT_EQ(*result, 42u);
  *target = ~0ULL;
  w = p.wr(WqeOp::kAtomicFa, 0, 8);
  w.swap_add = 2;
  p.a.post(w);
  EXPECT_FALSE(p.acq.wait_one().error());
  EXPECT_EQ(*target, 1u) << "wraps at 64 bits";
}

TEST_F(RcData, AtomicsOfManyQpsAddUp) {
  Pair p(dev());
  std::uint64_t* target = reinterpret_cast<std::uint64_t*>(p.bmem.data());
  std::vector<std::unique_ptr<Qp>> qps;
  for (int i = 0; i < 8; ++i) {
    qps.push_back(std::make_unique<Qp>(dev(), p.pd, p.acq, p.bcq));
    qps.push_back(std::make_unique<Qp>(dev(), p.pd, p.bcq, p.bcq));
    connect_pair(*qps[2 * static_cast<std::size_t>(i)], *qps[2 * static_cast<std::size_t>(i) + 1]);
  }
  auto w = p.wr(WqeOp::kAtomicFa, 0, 8);
  w.swap_add = 1;
  for (int k = 0; k < 20; ++k) {
    for (std::size_t i = 0; i < qps.size(); i += 2) qps[i]->post(w);
  }
  EXPECT_EQ(p.acq.wait(160).size(), 160u);
  EXPECT_EQ(*target, 160u);
}

TEST_F(RcData, InlineOfEveryLength) {
  Pair p(dev());
  p.fill(6);
  for (std::uint32_t len : {1u, 3u, 11u, 12u, 13u, 28u, 64u, 100u, 188u, 500u, 900u}) {
    p.fill(len);
    auto w = p.wr(WqeOp::kRdmaWrite, 0, 0);
    w.inline_data.assign(p.amem.data(), p.amem.data() + len);
    expect_good(p.acq, p.a.post(w));
    EXPECT_TRUE(p.same(0, len)) << len;
    EXPECT_FALSE(p.same(len, 8)) << len;
  }
}

TEST_F(RcData, InlineSendWrapsAroundTheRing) {
  PairOptions o;
  o.log_sq = 4;
  Pair p(dev(), o);
  for (unsigned i = 0; i < 60; ++i) {  // WQEs of 3 WQEBBs in a ring of 16
    p.fill(i);
    p.b.post_recv({p.bsge(0, 4096)});
    auto w = p.wr(WqeOp::kSend, 0, 0);
    w.inline_data.assign(p.amem.data(), p.amem.data() + 150);
    expect_good(p.acq, p.a.post(w));
    expect_good(p.bcq, static_cast<std::uint16_t>(i));
    ASSERT_TRUE(p.same(0, 150)) << i;
  }
}

// What UCX sends: its header in the WQE, the user's data where they lie.
TEST_F(RcData, InlineHeadInFrontOfMemory) {
  PairOptions o;
  o.log_sq = 4;  // the WQEs go round its end
  constexpr std::uint32_t kMtu = 4096;
  Pair p(dev(), o);
  unsigned round = 0;
  for (const std::uint32_t head : {1u, 12u, 13u, 28u, 100u})
    for (const std::uint32_t len : {1u, 11u, 500u, kMtu, kMtu * 3 + 7}) {
      p.fill(++round);
      for (const WqeOp op : {WqeOp::kRdmaWrite, WqeOp::kSend}) {
        SendWr w = p.wr(op, 0, 0);
        w.inline_head.assign(p.amem.data(), p.amem.data() + head);
        w.sges = {p.asge(head, len / 2), p.asge(head + len / 2, len - len / 2)};
        if (len == 1) w.sges = {p.asge(head, 1)};
        if (op == WqeOp::kSend) p.b.post_recv({p.bsge(0, 60'000)});
        std::memset(p.bmem.data(), 0, head + len + 8);
        expect_good(p.acq, p.a.post(w));
        if (op == WqeOp::kSend) {
          const Completion c = p.bcq.wait_one();
          EXPECT_FALSE(c.error()) << c.text();
          EXPECT_EQ(c.byte_cnt, head + len);
        }
        EXPECT_TRUE(p.same(0, head + len)) << head << "+" << len;
        EXPECT_FALSE(p.same(head + len, 8)) << head << "+" << len;
      }
    }
}

TEST_F(RcData, InlineHeadThatMemoryCannotFollow) {
  breaks({"mr-key", "wqe-segment"});
  Pair p(dev());
  SendWr w = p.wr(WqeOp::kRdmaWrite, 0, 0);
  w.inline_head.assign(20, 7);
  w.sges = {{p.amr.start(), 0xdeadbe00, 64}};
  p.a.post(w);
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kLocalProt);
  // A READ has nothing to send.
  Pair q(dev());
  w = q.wr(WqeOp::kRdmaRead, 0, 0);
  w.inline_head.assign(20, 7);
  w.sges = {q.asge(0, 64)};
  q.a.post(w);
  expect_error(q.acq.wait_one(), prm::CqeSyndrome::kLocalQpOp);
}

TEST_F(RcData, GatherAndScatterLists) {
  Pair p(dev());
  p.fill(7);
  p.b.post_recv({p.bsge(40000, 1), p.bsge(100, 999), p.bsge(9000, 3000), p.bsge(20000, 5000)});
  SendWr w;
  w.op = WqeOp::kSend;
  w.sges = {p.asge(5, 2000), p.asge(9001, 7), p.asge(30000, 3993)};
  std::vector<std::uint8_t> sent, got;
  for (const Sge& s : w.sges) {
    const std::uint8_t* from = p.amem.data() + (s.addr - p.amr.start());
    sent.insert(sent.end(), from, from + s.len);
  }
  p.a.post(w);
  const Completion d = p.bcq.wait_one();
  EXPECT_EQ(d.byte_cnt, 6000u);
  for (const auto& [off, len] : {std::pair{40000, 1}, {100, 999}, {9000, 3000}, {20000, 2000}})
    got.insert(got.end(), p.bmem.data() + off, p.bmem.data() + off + len);
  EXPECT_EQ(sent, got);
  EXPECT_FALSE(p.acq.wait_one().error());
  // READ into several SGEs.
  SendWr rd;
  rd.op = WqeOp::kRdmaRead;
  rd.raddr = p.bmr.start();
  rd.rkey = p.bmr.key();
  rd.sges = {p.asge(1, 4095), p.asge(50000, 1), p.asge(10000, 6000)};
  p.a.post(rd);
  EXPECT_FALSE(p.acq.wait_one().error());
  EXPECT_EQ(std::memcmp(p.amem.data() + 1, p.bmem.data(), 4095), 0);
  EXPECT_EQ(p.amem.data()[50000], p.bmem.data()[4095]);
  EXPECT_EQ(std::memcmp(p.amem.data() + 10000, p.bmem.data() + 4096, 6000), 0);
}

TEST_F(RcData, ThirtySges) {
  Pair p(dev());
  p.fill(8);
  SendWr w = p.wr(WqeOp::kRdmaWrite, 0, 0);
  std::vector<std::uint8_t> want;
  for (unsigned i = 0; i < 30; ++i) {
    const std::uint32_t off = (29 - i) * 2000, len = 1 + i * 37;
    w.sges.push_back(p.asge(off, len));
    want.insert(want.end(), p.amem.data() + off, p.amem.data() + off + len);
  }
  expect_good(p.acq, p.a.post(w));
  EXPECT_EQ(std::memcmp(p.bmem.data(), want.data(), want.size()), 0);
}

TEST_F(RcData, ZeroLength) {
  Pair p(dev());
  p.fill(9);
  p.b.post_recv({p.bsge(0, 64)});
  p.b.post_recv({});
  const auto s = p.a.post(p.wr(WqeOp::kSend, 0, 0));
  expect_good(p.acq, s);
  Completion d = p.bcq.wait_one();
  EXPECT_EQ(d.op, prm::CqeOp::kRespSend);
  EXPECT_EQ(d.byte_cnt, 0u);
  auto w = p.wr(WqeOp::kRdmaWriteImm, 0, 0);
  w.raddr = 0;
  w.rkey = 0;  // not checked for zero-length operations
  expect_good(p.acq, p.a.post(w));
  EXPECT_EQ(p.bcq.wait_one().byte_cnt, 0u);
  w.op = WqeOp::kRdmaWrite;
  expect_good(p.acq, p.a.post(w));
  w.op = WqeOp::kRdmaRead;
  expect_good(p.acq, p.a.post(w));
  EXPECT_FALSE(p.same(0, 64));
}

class RcMtu : public RcData, public ::testing::WithParamInterface<unsigned> {};

TEST_P(RcMtu, SegmentationOfAllOperations) {
  const unsigned mtu = GetParam();
  PairOptions o;
  o.attr.mtu = mtu;
  Pair p(dev(), o);
  for (const std::uint32_t len :
       {1u, mtu - 1, mtu, mtu + 1, 2 * mtu, 2 * mtu + 7, 5 * mtu, 17 * mtu - 3, 40000u}) {
    if (len > 60000) continue;
    for (const WqeOp op :
         {WqeOp::kSend, WqeOp::kSendImm, WqeOp::kRdmaWrite, WqeOp::kRdmaWriteImm, WqeOp::kRdmaRead}) {
      p.fill(len);
      const bool recv = op != WqeOp::kRdmaWrite && op != WqeOp::kRdmaRead;
      if (recv) p.b.post_recv({p.bsge(3, 65000)});
      const auto n = p.a.post(p.wr(op, 3, len));
      expect_good(p.acq, n);
      if (recv) {
        const Completion d = p.bcq.wait_one();
        EXPECT_EQ(d.byte_cnt, len);
        EXPECT_FALSE(d.error()) << d.text();
      }
      ASSERT_TRUE(p.same(3, len)) << len << " bytes, opcode " << static_cast<int>(op);
      ASSERT_FALSE(p.same(3 + len, 16)) << "more than " << len << " bytes moved";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RcMtu, ::testing::Values(256, 512, 1024, 2048, 4096));

TEST_F(RcData, PsnWrapsAround) {
  for (const std::uint32_t psn : {0xfffffeu, 0xfffff0u, 0xffffffu}) {
    PairOptions o;
    o.attr.mtu = 256;
    o.attr.send_psn = psn;
    o.attr.recv_psn = 0x7ffffe;
    Pair p(dev(), o);
    for (int i = 0; i < 20; ++i) {
      p.fill(static_cast<std::uint64_t>(i));
      p.b.post_recv({p.bsge(0, 8192)});
      p.a.post(p.wr(WqeOp::kSend, 0, 3000));
      p.b.post([&] {
        SendWr w;
        w.op = WqeOp::kRdmaRead;
        w.sges = {p.bsge(40000, 5000)};
        w.raddr = p.amr.start() + 40000;
        w.rkey = p.amr.key();
        return w;
      }());
      p.a.post(p.wr(WqeOp::kRdmaWrite, 20000, 2000));
      for (Cq* cq : {&p.acq, &p.bcq}) {
        const auto got = cq->wait(2);
        ASSERT_EQ(got.size(), 2u);
        EXPECT_FALSE(got[0].error() || got[1].error());
      }
      EXPECT_TRUE(p.same(0, 3000));
      EXPECT_TRUE(p.same(20000, 2000));
      EXPECT_TRUE(p.same(40000, 5000));
    }
    // Reads across the wrap of their own side too.
    for (int i = 0; i < 10; ++i) {
      p.fill(static_cast<std::uint64_t>(i) + 100);
      p.a.post(p.wr(WqeOp::kRdmaRead, 0, 10000));
      ASSERT_FALSE(p.acq.wait_one().error());
      EXPECT_TRUE(p.same(0, 10000));
    }
  }
}

TEST_F(RcData, LargeMessagesUpTo8MiB) {
  PairOptions o;
  o.bytes = 9 << 20;
  Pair p(dev(), o);
  for (const std::uint32_t len : {1u << 20, (1u << 20) + 1, 3u << 20, 8u << 20}) {
    p.fill(len);
    expect_good(p.acq, p.a.post(p.wr(WqeOp::kRdmaWrite, 4097, len)));
    ASSERT_TRUE(p.same(4097, len)) << "write of " << len;
    ASSERT_FALSE(p.same(4097 + len, 64));
    p.fill(len + 1);
    expect_good(p.acq, p.a.post(p.wr(WqeOp::kRdmaRead, 4097, len)));
    ASSERT_TRUE(p.same(4097, len)) << "read of " << len;
    p.fill(len + 2);
    p.b.post_recv({p.bsge(4097, len)});
    p.a.post(p.wr(WqeOp::kSend, 4097, len));
    ASSERT_EQ(p.bcq.wait_one().byte_cnt, len);
    ASSERT_FALSE(p.acq.wait_one().error());
    ASSERT_TRUE(p.same(4097, len)) << "send of " << len;
  }
}

TEST_F(RcData, ScatteredQueuesAndMemory) {
  PairOptions o;
  o.scattered = true;
  o.bytes = 2 << 20;
  o.log_sq = 9;
  o.log_rq = 9;
  o.log_cq = 10;
  Pair p(dev(), o);
  p.fill(10);
  for (unsigned i = 0; i < 1500; ++i) {
    p.b.post_recv({p.bsge((i * 977) % 1000000, 300)});
    p.a.post(p.wr(WqeOp::kSend, (i * 977) % 1000000, 300));
    if (i % 100 == 99) {
      for (const auto& c : p.acq.wait(100)) ASSERT_FALSE(c.error()) << c.text();
      for (const auto& c : p.bcq.wait(100)) ASSERT_FALSE(c.error()) << c.text();
    }
  }
  for (unsigned i = 0; i < 1500; ++i) ASSERT_TRUE(p.same((i * 977) % 1000000, 300));
  p.fill(11);
  expect_good(p.acq, p.a.post(p.wr(WqeOp::kRdmaWrite, 1, (2 << 20) - 2)));
  EXPECT_TRUE(p.same(1, (2 << 20) - 2));
}

TEST_F(RcData, CompletionsComeInOrder) {
  Pair p(dev());
  p.fill(12);
  std::vector<std::uint16_t> posted;
  std::mt19937 rnd(1);
  for (int round = 0; round < 20; ++round) {
    posted.clear();
    for (int i = 0; i < 30; ++i) {
      const WqeOp ops[] = {WqeOp::kRdmaWrite, WqeOp::kRdmaRead, WqeOp::kAtomicFa, WqeOp::kNop};
      const WqeOp op = ops[rnd() % 4];
      posted.push_back(op == WqeOp::kNop
                           ? p.a.post_nop(true, false)
                           : p.a.post(p.wr(op, 0, op == WqeOp::kAtomicFa ? 8 : rnd() % 9000 + 1), false));
    }
    p.a.ring_doorbell();
    const auto got = p.acq.wait(posted.size());
    ASSERT_EQ(got.size(), posted.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_FALSE(got[i].error()) << got[i].text();
      ASSERT_EQ(got[i].wqe_counter, posted[i]);
    }
  }
}

TEST_F(RcData, UnsignaledWqesMakeNoCqe) {
  Pair p(dev());
  p.fill(13);
  auto w = p.wr(WqeOp::kRdmaWrite, 0, 64);
  for (int i = 0; i < 40; ++i) {
    w.signaled = i % 8 == 7;
    const auto n = p.a.post(w);
    if (w.signaled) {
      expect_good(p.acq, n);
      EXPECT_FALSE(p.acq.ready());
    }
  }
}

TEST_F(RcData, WqeCounterIsFreeRunning) {
  PairOptions o;
  o.log_sq = 3;
  Pair p(dev(), o);
  auto w = p.wr(WqeOp::kRdmaWrite, 0, 8);
  for (unsigned i = 0; i < 70000; ++i) {  // past the wrap of 16 bits
    w.signaled = i % 4 == 3;
    const auto n = p.a.post(w, w.signaled);
    if (!w.signaled) continue;
    const auto c = p.acq.wait(1);
    ASSERT_EQ(c.size(), 1u);
    ASSERT_EQ(c[0].wqe_counter, n);
    ASSERT_EQ(n, static_cast<std::uint16_t>(i));
  }
}

TEST_F(RcData, FenceWaitsForReads) {
  Pair p(dev());
  // READ into a's memory, then a fenced SEND of what was read: without the fence the old bytes could go out.
  for (int i = 0; i < 20; ++i) {
    p.fill(static_cast<std::uint64_t>(i));
    p.b.post_recv({p.bsge(32768, 16384)});
    auto r = p.wr(WqeOp::kRdmaRead, 0, 16384);
    auto s = p.wr(WqeOp::kSend, 0, 16384);
    s.fence = prm::kFenceFence;
    p.a.post(r, false);
    p.a.post(s);
    ASSERT_FALSE(p.bcq.wait_one().error());
    ASSERT_EQ(p.acq.wait(2).size(), 2u);
    ASSERT_EQ(std::memcmp(p.bmem.data(), p.bmem.data() + 32768, 16384), 0) << "the send overtook the read";
  }
}

TEST_F(RcData, OutstandingReadsAreBounded) {
  PairOptions o;
  o.attr.log_outstanding_reads = 0;  // one at a time
  Pair p(dev(), o);
  p.fill(14);
  for (int i = 0; i < 30; ++i)
    p.a.post(p.wr(WqeOp::kRdmaRead, static_cast<std::size_t>(i) * 2000, 2000), false);
  p.a.ring_doorbell();
  for (const auto& c : p.acq.wait(30)) EXPECT_FALSE(c.error()) << c.text();
  EXPECT_TRUE(p.same(0, 60000));
}

TEST_F(RcData, BothDirectionsAtOnce) {
  Pair p(dev());
  p.fill(15);
  for (int i = 0; i < 50; ++i) {
    p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 30000), false);
    SendWr w;
    w.op = WqeOp::kRdmaWrite;
    w.sges = {p.bsge(32768, 30000)};
    w.raddr = p.amr.start() + 32768;
    w.rkey = p.amr.key();
    p.b.post(w, false);
  }
  p.a.ring_doorbell();
  p.b.ring_doorbell();
  EXPECT_EQ(p.acq.wait(50).size(), 50u);
  EXPECT_EQ(p.bcq.wait(50).size(), 50u);
  EXPECT_TRUE(p.same(0, 30000));
  EXPECT_TRUE(p.same(32768, 30000));
}

TEST_F(RcData, QpToItself) {
  Pair p(dev(), [] {
    PairOptions o;
    o.connect = false;
    return o;
  }());
  QpAttr a;
  a.remote_qpn = p.a.qpn();
  p.a.connect(a);
  p.fill(16);
  p.a.post_recv({p.bsge(0, 4096)});
  p.a.post(p.wr(WqeOp::kSend, 0, 3000));
  const auto got = p.acq.wait(2);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_FALSE(got[0].error() || got[1].error());
  EXPECT_TRUE(p.same(0, 3000));
}

TEST_F(RcData, SixtyFourQpsAtOnce) {
  constexpr std::size_t kPairs = 64, kLen = 12000;
  Pair p(dev(), [] {
    PairOptions o;
    o.bytes = kPairs * 16384;
    o.log_cq = 13;
    return o;
  }());
  p.fill(17);
  std::vector<std::unique_ptr<Qp>> qps;
  for (std::size_t i = 0; i < 2 * kPairs; ++i)
    qps.push_back(std::make_unique<Qp>(dev(), p.pd, i % 2 ? p.bcq : p.acq, i % 2 ? p.bcq : p.acq));
  for (std::size_t i = 0; i < kPairs; ++i) connect_pair(*qps[2 * i], *qps[2 * i + 1]);
  for (int round = 0; round < 5; ++round) {
    p.fill(100 + static_cast<std::uint64_t>(round));
    for (std::size_t i = 0; i < kPairs; ++i) {
      qps[2 * i + 1]->post_recv({p.bsge(i * 16384, 16000)});
      qps[2 * i]->post(p.wr(WqeOp::kSend, i * 16384, kLen));
    }
    const auto s = p.acq.wait(kPairs), r = p.bcq.wait(kPairs);
    ASSERT_EQ(s.size(), kPairs);
    ASSERT_EQ(r.size(), kPairs);
    for (const auto& c : s) EXPECT_FALSE(c.error()) << c.text();
    for (const auto& c : r) EXPECT_FALSE(c.error()) << c.text();
    for (std::size_t i = 0; i < kPairs; ++i) EXPECT_TRUE(p.same(i * 16384, kLen)) << i;
  }
}

TEST_F(RcData, UserIndexIsEchoed) {
  Pair p(dev());
  QpOptions o;
  o.user_index = 0x00abcd;
  Qp a(dev(), p.pd, p.acq, p.acq, o);
  o.user_index = 0x123456;
  Qp b(dev(), p.pd, p.bcq, p.bcq, o);
  connect_pair(a, b);
  p.fill(18);
  b.post_recv({p.bsge(0, 4096)});
  a.post(p.wr(WqeOp::kSend, 0, 64));
  EXPECT_EQ(p.acq.wait_one().user_index, 0x00abcdu);
  const Completion d = p.bcq.wait_one();
  EXPECT_EQ(d.user_index, 0x123456u);
  EXPECT_EQ(d.qpn, b.qpn());
  ASSERT_TRUE(b.to_error().ok());
  b.post_recv({p.bsge(0, 64)});
  EXPECT_EQ(p.bcq.wait_one().user_index, 0x123456u) << "in error CQEs too";
}

TEST_F(RcData, RingsAtAnOffsetAndInLargePages) {
  Pair p(dev());
  p.fill(19);
  for (const unsigned log_page : {12u, 16u, 21u}) {
    QpOptions o;
    o.ring.log_page = log_page;
    o.ring.page_offset = 37;
    o.log_sq = 8;
    CqOptions c;
    c.ring = o.ring;
    c.ring.page_offset = 5;
    Cq cq(dev(), c);
    Qp a(dev(), p.pd, cq, cq, o), b(dev(), p.pd, cq, cq, o);
    connect_pair(a, b);
    for (unsigned i = 0; i < 300; ++i) {
      b.post_recv({p.bsge(i, 4096)});
      a.post(p.wr(WqeOp::kSend, i, 100));
      const auto got = cq.wait(2);
      ASSERT_EQ(got.size(), 2u);
      ASSERT_FALSE(got[0].error() || got[1].error());
    }
    EXPECT_TRUE(p.same(0, 399));
    p.fill(log_page);
  }
}

TEST_F(RcData, ReceiverPostsLate) {
  Pair p(dev());
  p.fill(20);
  const auto n = p.a.post(p.wr(WqeOp::kSend, 0, 20000));
  machine().advance(200'000);
  EXPECT_FALSE(p.acq.ready());
  p.b.post_recv({p.bsge(0, 20000)});
  expect_good(p.acq, n);
  EXPECT_TRUE(p.same(0, 20000));
}

}  // namespace
}  // namespace hcasim::bare
