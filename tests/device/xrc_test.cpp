// SPDX-License-Identifier: BSD-3-Clause
// XRC: initiator and target QPs, SRQs named by each request, their CQ, PD and user index.
#include <cstring>

#include "fixture.h"

namespace hcasim::bare {
namespace {

class Xrc : public DeviceTest {
 protected:
  // a sends; the target QP belongs to a PD that holds nothing, as the drivers' does; two SRQs of one domain,
  // each with a CQ of its own.
  struct Pairs {
    explicit Pairs(Pair& p, const QpAttr& how = {})
        : domain(p.dev),
          empty(p.dev),
          cq1(p.dev),
          cq2(p.dev),
          unused(p.dev),
          srq1(p.dev, p.pd, srq_options(cq1, 0x111)),
          srq2(p.dev, p.pd, srq_options(cq2, 0x222)),
          a(p.dev, p.pd, p.acq, unused, options(), &srq1),
          b(p.dev, empty, unused, unused, target(), &srq1) {
      QpAttr attr = how;
      attr.send_psn = 0xfffffa;
      attr.recv_psn = 0x77;
      connect_pair(a, b, attr);
    }
    SrqOptions srq_options(Cq& cq, std::uint32_t user_index) {
      SrqOptions o;
      o.xrcd = domain.number();
      o.cqn = cq.cqn();
      o.user_index = user_index;
      return o;
    }
    QpOptions options() {
      QpOptions o;
      o.type = QpType::kXrc;
      o.xrcd = domain.number();
      return o;
    }
    // As the driver makes them: without a send queue and a doorbell record.
    QpOptions target() {
      QpOptions o = options();
      o.no_sq = true;
      return o;
    }
    Xrcd domain;
    Pd empty;
    Cq cq1, cq2, unused;
    Srq srq1, srq2;
    Qp a, b;
  };
};

TEST_F(Xrc, EachSendNamesItsSrq) {
  Pair p(dev());
  Pairs x(p);
  for (int i = 0; i < 30; ++i) {
    x.srq1.post({p.bsge(0, 30000)});
    x.srq2.post({p.bsge(30000, 30000)});
  }
  std::mt19937 rnd(7);
  for (int i = 0; i < 60; ++i) {
    const bool second = rnd() % 2;
    Srq& srq = second ? x.srq2 : x.srq1;
    Cq& cq = second ? x.cq2 : x.cq1;
    const std::uint32_t len = rnd() % 20000 + 1;
    p.fill(static_cast<std::uint64_t>(i));
    auto w = p.wr(i % 3 ? WqeOp::kSend : WqeOp::kSendImm, 0, len);
    w.imm = 0xabc;
    w.xrc_srqn = srq.srqn();
    const auto n = x.a.post(w);
    const Completion d = cq.wait_one();
    ASSERT_FALSE(d.error()) << d.text();
    EXPECT_EQ(d.byte_cnt, len);
    EXPECT_EQ(d.user_index, second ? 0x222u : 0x111u) << "the SRQ's, not the QP's";
    EXPECT_EQ(d.qpn, x.b.qpn());
    EXPECT_EQ(std::memcmp(p.amem.data(), p.bmem.data() + (second ? 30000 : 0), len), 0);
    srq.release(d.wqe_counter);
    srq.post({p.bsge(second ? 30000 : 0, 30000)});
    expect_good(p.acq, n);
    EXPECT_FALSE((second ? x.cq1 : x.cq2).ready());
    EXPECT_FALSE(x.unused.ready());
  }
}

TEST_F(Xrc, WritesReadsAndAtomicsUseTheSrqsPd) {
  Pair p(dev());
  Pairs x(p);
  x.srq1.post({});
  for (const std::uint32_t len : {1u, 4096u, 30001u}) {
    p.fill(len);
    auto w = p.wr(WqeOp::kRdmaWrite, 0, len);
    w.xrc_srqn = x.srq1.srqn();
    expect_good(p.acq, x.a.post(w));
    EXPECT_TRUE(p.same(0, len));
    p.fill(len + 1);
    w = p.wr(WqeOp::kRdmaRead, 0, len);
    w.xrc_srqn = x.srq2.srqn();
    expect_good(p.acq, x.a.post(w));
    EXPECT_TRUE(p.same(0, len));
  }
  auto w = p.wr(WqeOp::kRdmaWriteImm, 0, 100);
  w.xrc_srqn = x.srq1.srqn();
  w.imm = 5;
  expect_good(p.acq, x.a.post(w));
  const Completion d = x.cq1.wait_one();
  EXPECT_EQ(d.op, prm::CqeOp::kRespWrImm);
  EXPECT_EQ(d.imm, 5u);
  std::uint64_t value = 40;
  std::memcpy(p.bmem.data() + 64, &value, 8);
  w = p.wr(WqeOp::kAtomicFa, 64, 8);
  w.swap_add = 2;
  w.xrc_srqn = x.srq1.srqn();
  expect_good(p.acq, x.a.post(w));
  std::memcpy(&value, p.bmem.data() + 64, 8);
  EXPECT_EQ(value, 42u);
  std::memcpy(&value, p.amem.data() + 64, 8);
  EXPECT_EQ(value, 40u) << "the value before";
}

TEST_F(Xrc, AnotherDomainsSrqIsRefused) {
  Pair p(dev());
  QpAttr attr;
  attr.rnr_retry = 1;
  Pairs x(p, attr);
  Xrcd other(dev());
  SrqOptions o = x.srq_options(x.cq1, 1);
  o.xrcd = other.number();
  Srq foreign(dev(), p.pd, o);
  foreign.post({p.bsge(0, 1024)});
  x.srq1.post({p.bsge(0, 1024)});
  dev().clear_async_events();
  auto w = p.wr(WqeOp::kSend, 0, 64);
  w.xrc_srqn = foreign.srqn();
  x.a.post(w);
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kRemoteInvalReq);
  machine().advance(100'000);
  EXPECT_FALSE(x.cq1.ready());
  EXPECT_EQ(x.b.state(), QpState::kErr);
  EXPECT_EQ(dev().count_async(prm::EqeType::kWqInvalidReq, x.b.qpn()), 1u);
  EXPECT_EQ(dev().count_async(prm::EqeType::kLastWqe), 0u) << "the SRQs are not the QP's";
  expect_serves_on();
}

// With its CQ an SRQ has failed: what comes for it is refused, and not taken for nothing.
TEST_F(Xrc, AnSrqFailsWithItsCq) {
  breaks({"cq-overrun"});
  Pair p(dev());
  Pairs x(p);
  CqOptions few;
  few.log_size = 2;
  Cq cq(dev(), few);
  Srq srq(dev(), p.pd, x.srq_options(cq, 0x333));
  for (int i = 0; i < 8; ++i) srq.post({p.bsge(0, 1024)});
  dev().clear_async_events();
  auto w = p.wr(WqeOp::kSend, 0, 64);
  w.xrc_srqn = srq.srqn();
  for (int i = 0; i < 5; ++i) expect_good(p.acq, x.a.post(w));
  EXPECT_TRUE(machine().run_until([&] { return dev().count_async(prm::EqeType::kSrqCatas, srq.srqn()) != 0; },
                                  1'000'000));
  EXPECT_EQ(dev().count_async(prm::EqeType::kCqError, cq.cqn()), 1u);
  x.a.post(w);
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kRemoteOp);
  EXPECT_EQ(dev().count_async(prm::EqeType::kSrqCatas), 1u);
}

// The process whose it was is gone: its completions are nobody's, and not those of the target's CQ, which
// drivers do not look at.
TEST_F(Xrc, AnSrqMayGoInTheMidstOfAMessage) {
  expect_strays_ = true;
  constexpr std::uint32_t kLong = 1 << 20;
  PairOptions large;
  large.bytes = kLong;
  Pair p(dev(), large);
  Pairs x(p);
  auto srq = std::make_unique<Srq>(dev(), p.pd, x.srq_options(x.cq1, 0x333));
  srq->post({p.bsge(0, kLong)});
  auto w = p.wr(WqeOp::kSend, 0, kLong);
  w.xrc_srqn = srq->srqn();
  x.a.post(w);
  machine().advance(4'000);  // in the midst of it
  ASSERT_FALSE(p.acq.ready());
  srq.reset();
  machine().advance(1'000'000);
  EXPECT_CMD_OK(x.b.to_error());
  machine().advance(100'000);
  EXPECT_FALSE(x.unused.ready());
  EXPECT_FALSE(x.cq1.ready());
}

TEST_F(Xrc, AnRmpIsNoXrcSrq) {
  Pair p(dev());
  Pairs x(p);
  Srq rmp(dev(), p.pd);
  rmp.post({p.bsge(0, 1024)});
  for (const std::uint32_t srqn : {rmp.srqn(), 0u, 0xfffff0u}) {
    auto w = p.wr(WqeOp::kRdmaWrite, 0, 64);
    w.xrc_srqn = srqn;
    Pairs y(p);
    y.a.post(w);
    expect_error(p.acq.wait_one(), prm::CqeSyndrome::kRemoteInvalReq);
  }
}

TEST_F(Xrc, EmptySrqMakesRnrThenServes) {
  Pair p(dev());
  Pairs x(p);
  auto w = p.wr(WqeOp::kSend, 0, 64);
  w.xrc_srqn = x.srq1.srqn();
  const std::uint64_t timeouts = fn().counter("timeouts"), retransmits = fn().counter("retransmits");
  const auto n = x.a.post(w);
  machine().advance(300'000);
  EXPECT_FALSE(x.cq1.ready());
  EXPECT_GT(fn().counter("retransmits"), retransmits) << "it is told to wait, and comes again";
  EXPECT_EQ(fn().counter("timeouts"), timeouts) << "long before it would by itself";
  x.srq1.post({p.bsge(0, 1024)});
  EXPECT_FALSE(x.cq1.wait_one().error());
  expect_good(p.acq, n);
}

TEST_F(Xrc, LossIsRepaired) {
  Pair p(dev());
  Pairs x(p);
  ASSERT_EQ(fn().inject("drop=0.03,reorder=0.02"), "");
  for (int i = 0; i < 60; ++i) {
    p.fill(static_cast<std::uint64_t>(i));
    x.srq2.post({p.bsge(0, 60000)});
    auto w = p.wr(i % 2 ? WqeOp::kSend : WqeOp::kRdmaRead, 0, 50000);
    w.xrc_srqn = x.srq2.srqn();
    expect_good(p.acq, x.a.post(w));
    if (i % 2) {
      const Completion d = x.cq2.wait_one();
      EXPECT_EQ(d.byte_cnt, 50000u);
      x.srq2.release(d.wqe_counter);
    }
    EXPECT_TRUE(p.same(0, 50000));
  }
  ASSERT_EQ(fn().inject("drop=0,reorder=0"), "");
}

TEST_F(Xrc, DomainIsHeldByItsQps) {
  breaks({"destroy-busy", "object-reference"});
  Pair p(dev());
  Pairs x(p);
  Mailbox free(prm::op::DEALLOC_XRCD, prm::dealloc_xrcd_in::bytes);
  EXPECT_CMD_STATUS(dev().exec(free.set<prm::dealloc_xrcd_in::xrcd>(x.domain.number())),
                    prm::CmdStatus::kBadResState);
  QpOptions o = x.options();
  o.xrcd = 0xffff;
  EXPECT_THROW(Qp(dev(), p.pd, p.acq, p.acq, o, &x.srq1), BareError);
}

TEST_F(Xrc, LimitEventOfAnXrcSrq) {
  Pair p(dev());
  Pairs x(p);
  for (int i = 0; i < 4; ++i) x.srq1.post({p.bsge(0, 1024)});
  dev().clear_async_events();
  ASSERT_TRUE(x.srq1.arm_limit(3).ok());
  for (unsigned i = 0; i < 2; ++i) {
    EXPECT_EQ(dev().count_async(prm::EqeType::kSrqLimit), 0u);
    auto w = p.wr(WqeOp::kSend, 0, 64);
    w.xrc_srqn = x.srq1.srqn();
    expect_good(p.acq, x.a.post(w));
    x.cq1.wait_one();
    machine().advance(100'000);
  }
  EXPECT_EQ(dev().count_async(prm::EqeType::kSrqLimit, x.srq1.srqn()), 1u);
}

}  // namespace
}  // namespace hcasim::bare
