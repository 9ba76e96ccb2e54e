// SPDX-License-Identifier: BSD-3-Clause
// DC: initiators whose sends name their target, targets that serve many initiators.
#include <cstdlib>

#include "driver/bare/dct.h"
#include "fixture.h"
#include "later_chip.h"
#include "prm/qos.h"

namespace hcasim::bare {
namespace {

class Dc : public DeviceTest {
 protected:
  struct Net {
    explicit Net(Pair& p, const DctOptions& o = {}, const QpAttr& attr = {})
        : srq(p.dev, p.pd),
          t1(p.dev, p.pd, p.bcq, srq, with_index(o, 0x51)),
          t2(p.dev, p.pd, p.bcq, srq, with_index(o, 0x52)) {
      for (auto* q : {&a, &b}) *q = initiator(p, attr);
    }
    static DctOptions with_index(DctOptions o, std::uint32_t index) {
      o.user_index = index;
      return o;
    }
    std::unique_ptr<Qp> initiator(Pair& p, QpAttr attr = {}) {
      QpOptions o;
      o.type = QpType::kDci;
      auto q = std::make_unique<Qp>(p.dev, p.pd, p.acq, p.acq, o, &srq);
      attr.send_psn = 0xfffff0;
      q->connect(attr);
      return q;
    }
    Srq srq;
    Dct t1, t2;
    std::unique_ptr<Qp> a, b;
  };
  static SendWr to(const Dct& t, SendWr w) {
    w.av.qpn = t.dctn();
    w.av.dc_key = t.key();
    return w;
  }
};

TEST_F(Dc, EverythingReachesTheTargetNamed) {
  Pair p(dev());
  Net n(p);
  for (const std::uint32_t len : {1u, 4096u, 30001u}) {
    for (Dct* t : {&n.t1, &n.t2}) {
      p.fill(len + t->dctn());
      expect_good(p.acq, n.a->post(to(*t, p.wr(WqeOp::kRdmaWrite, 0, len))));
      EXPECT_TRUE(p.same(0, len));
      p.fill(len);
      expect_good(p.acq, n.b->post(to(*t, p.wr(WqeOp::kRdmaRead, 0, len))));
      EXPECT_TRUE(p.same(0, len));
      p.fill(len + 1);
      n.srq.post({p.bsge(0, 40000)});
      auto w = to(*t, p.wr(WqeOp::kSendImm, 0, len));
      w.imm = 77;
      expect_good(p.acq, n.b->post(w));
      const Completion d = p.bcq.wait_one();
      EXPECT_EQ(d.op, prm::CqeOp::kRespSendImm);
      EXPECT_EQ(d.imm, 77u);
      EXPECT_EQ(d.byte_cnt, len);
      EXPECT_EQ(d.qpn, t->dctn());
      EXPECT_EQ(d.user_index, t == &n.t1 ? 0x51u : 0x52u);
      EXPECT_EQ(d.flags_rqpn & 0xffffff, n.b->qpn());
      EXPECT_TRUE(p.same(0, len));
      n.srq.release(d.wqe_counter);
    }
  }
  std::uint64_t value = 40;
  std::memcpy(p.bmem.data() + 64, &value, 8);
  for (unsigned i = 0; i < 20; ++i) {
    auto w = to(i % 3 ? n.t1 : n.t2, p.wr(WqeOp::kAtomicFa, 64, 8));
    w.swap_add = 2;
    w.signaled = i == 19;
    n.a->post(w);
  }
  EXPECT_FALSE(p.acq.wait_one().error());
  std::memcpy(&value, p.bmem.data() + 64, 8);
  EXPECT_EQ(value, 80u);
}

TEST_F(Dc, OrderHoldsAcrossTargets) {
  Pair p(dev());
  Net n(p);
  for (int i = 0; i < 30; ++i) n.srq.post({p.bsge(0, 64)});
  for (unsigned i = 0; i < 30; ++i) {
    auto w = to(i / 2 % 2 ? n.t1 : n.t2, p.wr(WqeOp::kSendImm, 0, 8));
    w.imm = i;
    n.a->post(w, i % 5 == 4);
  }
  for (unsigned i = 0; i < 30; ++i) {
    const Completion d = p.bcq.wait_one();
    EXPECT_EQ(d.imm, i);
    EXPECT_FALSE(p.acq.wait_one().error());
  }
}

TEST_F(Dc, LossIsRepairedAcrossTargets) {
  Pair p(dev());
  Net n(p);
  ASSERT_EQ(fn().inject("drop=0.03,reorder=0.02,duplicate=0.02"), "");
  std::uint64_t value = 0;
  std::memcpy(p.bmem.data(), &value, 8);
  for (int i = 0; i < 80; ++i) {
    auto fa = to(i % 2 ? n.t1 : n.t2, p.wr(WqeOp::kAtomicFa, 0, 8));
    fa.swap_add = 1;
    expect_good(p.acq, n.a->post(fa));
    fill_random(p.amem.data() + 1024, 20000, static_cast<std::uint64_t>(i));
    expect_good(p.acq, n.b->post(to(i % 3 ? n.t1 : n.t2, p.wr(WqeOp::kRdmaWrite, 1024, 20000))));
    EXPECT_TRUE(p.same(1024, 20000));
  }
  std::memcpy(&value, p.bmem.data(), 8);
  EXPECT_EQ(value, 80u) << "each once";
  ASSERT_EQ(fn().inject("drop=0,reorder=0,duplicate=0"), "");
}

TEST_F(Dc, WrongKeyIsNotAnswered) {
  Pair p(dev());
  QpAttr attr;
  attr.retry_count = 2;
  attr.ack_timeout = 8;
  Net n(p, {}, attr);
  dev().clear_async_events();
  auto w = to(n.t1, p.wr(WqeOp::kRdmaWrite, 0, 64));
  w.av.dc_key ^= 1;
  p.fill(1);
  n.a->post(w);
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kTransportRetryExc);
  EXPECT_FALSE(p.same(0, 64));
  EXPECT_EQ(n.a->state(), QpState::kErr);
  EXPECT_EQ(dev().count_async(prm::EqeType::kDctKeyViolation, n.t1.dctn()), 1u) << "once for each arming";
  using C = prm::query_dct_out::dct_context_entry;
  EXPECT_EQ(n.t1.query().must().get<C::dc_access_key_violation_count>(), 3u);
  EXPECT_EQ(n.t1.query().must().get<C::dc_access_key>(), n.t1.key());
  expect_good(p.acq, n.b->post(to(n.t1, p.wr(WqeOp::kRdmaWrite, 0, 64))));
}

TEST_F(Dc, AFailedConnectionHarmsNoOther) {
  breaks({"rkey-bounds"});
  Pair p(dev());
  Net n(p);
  dev().clear_async_events();
  expect_good(p.acq, n.a->post(to(n.t1, p.wr(WqeOp::kRdmaWrite, 0, 64))));
  expect_good(p.acq, n.b->post(to(n.t1, p.wr(WqeOp::kRdmaWrite, 0, 64))));
  auto w = to(n.t1, p.wr(WqeOp::kRdmaWrite, 0, 64));
  w.rkey ^= 0x100;
  n.a->post(w);
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kRemoteAccess);
  EXPECT_EQ(n.a->state(), QpState::kErr);
  expect_good(p.acq, n.b->post(to(n.t1, p.wr(WqeOp::kRdmaRead, 0, 64))));
  // After a reset the initiator connects anew.
  ASSERT_TRUE(n.a->to_reset().ok());
  n.a->connect({});
  expect_good(p.acq, n.a->post(to(n.t1, p.wr(WqeOp::kRdmaRead, 0, 64))));
  EXPECT_EQ(dev().count_async(prm::EqeType::kLastWqe), 0u);
}

// An initiator that goes away in the middle of a message and comes back: the receive WQE that the message had
// is not lost.
TEST_F(Dc, AMessageThatIsNeverFinishedGivesItsReceiveWqeBack) {
  Pair p(dev());
  Net n(p);
  unsigned flushed = 0;
  for (unsigned i = 0; i < 40; ++i) {
    n.srq.post({p.bsge(0, 40000)});
    ASSERT_EQ(fn().inject("drop=0.4"), "");
    n.a->post(to(n.t1, p.wr(WqeOp::kSend, 0, 40000)));
    machine().advance(8000);
    ASSERT_TRUE(n.a->to_reset().ok());
    while (p.acq.poll()) {
    }
    ASSERT_EQ(fn().inject("drop=0"), "");
    n.a->connect({});
    n.a->post(to(n.t1, p.wr(WqeOp::kSend, 0, 64)));
    ASSERT_TRUE(machine().run_until([&] { return p.bcq.ready(); }, 1'000'000)) << i;
    Completion c = p.bcq.wait_one();
    n.srq.release(c.wqe_counter);
    if (c.error() || c.byte_cnt != 64) {  // the message has been begun, or got through
      if (c.error()) {
        ++flushed;
        expect_error(c, prm::CqeSyndrome::kWrFlush);
        EXPECT_EQ(c.qpn, n.t1.dctn());
      }
      n.srq.post({p.bsge(0, 40000)});
      c = p.bcq.wait_one();
      n.srq.release(c.wqe_counter);
    }
    EXPECT_FALSE(c.error()) << c.text();
    EXPECT_FALSE(p.acq.wait_one().error());
  }
  EXPECT_GT(flushed, 3u);
}

TEST_F(Dc, ATargetFailsWithItsCq) {
  breaks({"cq-overrun"});
  Pair p(dev());
  QpAttr attr;
  attr.retry_count = 1;
  attr.ack_timeout = 8;
  Net n(p, {}, attr);
  CqOptions few;
  few.log_size = 2;
  Cq cq(dev(), few);
  cq.set_auto_update(false);
  Dct t(dev(), p.pd, cq, n.srq);
  for (int i = 0; i < 8; ++i) n.srq.post({p.bsge(0, 1024)});
  dev().clear_async_events();
  for (int i = 0; i < 4; ++i) expect_good(p.acq, n.a->post(to(t, p.wr(WqeOp::kSend, 0, 64))));
  n.a->post(to(t, p.wr(WqeOp::kSend, 0, 64)));
  p.acq.wait_one();  // the message is there, and its completion is not
  EXPECT_TRUE(machine().run_until([&] { return dev().count_async(prm::EqeType::kWqCatas, t.dctn()) != 0; },
                                  1'000'000));
  n.b->post(to(t, p.wr(WqeOp::kSend, 0, 64)));
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kTransportRetryExc);
  ASSERT_TRUE(t.drain().ok());
  ASSERT_TRUE(t.destroy().ok());
}

TEST_F(Dc, RightsOfTheTarget) {
  breaks({"qp-rights"});
  Pair p(dev());
  DctOptions o;
  o.access = kRemoteWrite;
  Net n(p, o);
  expect_good(p.acq, n.a->post(to(n.t1, p.wr(WqeOp::kRdmaWrite, 0, 64))));
  n.a->post(to(n.t1, p.wr(WqeOp::kRdmaRead, 0, 64)));
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kRemoteInvalReq);
  n.b->post(to(n.t2, p.wr(WqeOp::kAtomicFa, 0, 8)));
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kRemoteInvalReq);
}

TEST_F(Dc, EmptySrqMakesRnrThenServes) {
  Pair p(dev());
  Net n(p);
  const auto c = n.a->post(to(n.t1, p.wr(WqeOp::kSend, 0, 64)));
  machine().advance(300'000);
  EXPECT_FALSE(p.bcq.ready());
  n.srq.post({p.bsge(0, 1024)});
  EXPECT_FALSE(p.bcq.wait_one().error());
  expect_good(p.acq, c);
}

TEST_F(Dc, LifeOfATarget) {
  breaks({"dct-drain", "destroy-busy", "object-unknown", "use-after-destroy"});
  Pair p(dev());
  QpAttr attr;
  attr.retry_count = 1;
  attr.ack_timeout = 8;
  Net n(p, {}, attr);
  expect_good(p.acq, n.a->post(to(n.t2, p.wr(WqeOp::kRdmaWrite, 0, 64))));
  dev().clear_async_events();
  EXPECT_CMD_STATUS(n.t2.destroy(), prm::CmdStatus::kBadResState);
  ASSERT_TRUE(n.t2.drain().ok());
  machine().advance(100'000);
  EXPECT_EQ(dev().count_async(prm::EqeType::kDctDrained, n.t2.dctn()), 1u);
  n.a->post(to(n.t2, p.wr(WqeOp::kRdmaWrite, 0, 64)));
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kTransportRetryExc);
  ASSERT_TRUE(n.t2.destroy().ok());
  EXPECT_CMD_STATUS(n.t2.query(), prm::CmdStatus::kBadRes);
  // A target is no QP.
  Mailbox in(prm::op::QUERY_QP, prm::query_qp_in::bytes);
  EXPECT_CMD_STATUS(dev().exec(in.set<prm::query_qp_in::qpn>(n.t1.dctn()), prm::query_qp_out::bytes),
                    prm::CmdStatus::kBadRes);
  Mailbox kill(prm::op::DESTROY_QP, prm::destroy_qp_in::bytes);
  EXPECT_CMD_STATUS(dev().exec(kill.set<prm::destroy_qp_in::qpn>(n.t1.dctn())), prm::CmdStatus::kBadRes);
  EXPECT_CMD_STATUS(n.srq.destroy(), prm::CmdStatus::kBadResState);
}

TEST_F(Dc, ADrainedTargetGivesBackTheReceiveWqeOfAMessageThatCameInPart) {
  constexpr std::uint32_t kLong = 1 << 20;
  PairOptions o;
  o.bytes = 2 * kLong;
  Pair p(dev(), o);
  QpAttr attr;
  attr.retry_count = 1;
  attr.ack_timeout = 8;
  Net n(p, {}, attr);
  n.srq.post({p.bsge(0, kLong)});
  n.a->post(to(n.t2, p.wr(WqeOp::kSend, 0, kLong)));
  machine().advance(30'000);  // of 90 us
  EXPECT_FALSE(p.bcq.ready());
  ASSERT_TRUE(n.t2.drain().ok());
  expect_error(p.bcq.wait_one(), prm::CqeSyndrome::kWrFlush);
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kTransportRetryExc);
  ASSERT_TRUE(n.t2.destroy().ok());
}

TEST_F(Dc, ARecreatedTargetIsANewOne) {
  Pair p(dev());
  Net n(p);
  Srq srq(dev(), p.pd);
  for (int i = 0; i < 3; ++i) {
    Dct t(dev(), p.pd, p.bcq, srq);
    expect_good(p.acq, n.a->post(to(t, p.wr(WqeOp::kRdmaWrite, 0, 5000))));
    expect_good(p.acq, n.a->post(to(n.t1, p.wr(WqeOp::kRdmaWrite, 0, 5000))));
  }
}

// With HCASIM_TEST_OPTIONS=dc_contexts=2: a third initiator waits until one of the first two has turned away.
TEST_F(Dc, InitiatorsWaitForAContext) {
  const char* options = std::getenv("HCASIM_TEST_OPTIONS");
  if (options == nullptr || std::string(options) != "dc_contexts=2") GTEST_SKIP() << "wants few contexts";
  Pair p(dev());
  Net n(p);
  auto third = n.initiator(p);
  expect_good(p.acq, n.a->post(to(n.t1, p.wr(WqeOp::kRdmaWrite, 0, 64))));
  expect_good(p.acq, n.b->post(to(n.t1, p.wr(WqeOp::kRdmaWrite, 0, 64))));
  third->post(to(n.t1, p.wr(WqeOp::kRdmaWrite, 0, 64)));
  machine().advance(2'000'000);
  EXPECT_FALSE(p.acq.ready()) << "no context is free";
  // Long after its last packet a connection counts as left; its initiator then connects once more.
  EXPECT_FALSE(p.acq.wait_one().error());
  machine().advance(5'000'000'000);
  expect_good(p.acq, n.a->post(to(n.t1, p.wr(WqeOp::kRdmaWrite, 0, 64))));
  expect_good(p.acq, n.b->post(to(n.t1, p.wr(WqeOp::kRdmaRead, 0, 64))));
}

class DcRoce : public Dc {
 protected:
  DcRoce() { function_ = kEthFunction; }
};

// What comes marked is answered to the initiator, which sends slower then.
TEST_F(DcRoce, MarksSlowTheInitiator) {
  Pair p(dev());
  Net n(p);
  const auto took = [&] {
    const std::int64_t from = machine().now();
    for (int i = 0; i < 10; ++i) n.a->post(to(n.t1, p.wr(WqeOp::kRdmaWrite, 0, 60000)));
    for (const Completion& c : p.acq.wait(10)) EXPECT_FALSE(c.error()) << c.text();
    return machine().now() - from;
  };
  took();
  const std::int64_t full = took();
  const std::uint64_t sent = fn().counter("cnp_sent"), handled = fn().counter("cnp_handled");
  ASSERT_EQ(fn().inject("ecn=1"), "");
  took();
  EXPECT_GT(fn().counter("cnp_sent"), sent);
  EXPECT_EQ(fn().counter("cnp_handled") - handled, fn().counter("cnp_sent") - sent);
  EXPECT_GT(took(), 4 * full);
  ASSERT_EQ(fn().inject("ecn=0"), "");
}

// Streams of a DCI, which chips later than ConnectX-5 have (HCASIM_TEST_OPTIONS=generation=connectx7).
class DcStreams : public Dc {
 protected:
  void SetUp() override {
    Dc::SetUp();
    if (!later_chip()) GTEST_SKIP() << "the default chip";
  }
  static std::unique_ptr<Qp> streaming(Pair& p, Srq& srq, unsigned log_errored, QpAttr attr = {}) {
    QpOptions o;
    o.type = QpType::kDci;
    o.log_streams = 3;
    o.log_errored_streams = log_errored;
    auto q = std::make_unique<Qp>(p.dev, p.pd, p.acq, p.acq, o, &srq);
    attr.send_psn = 0xfffff0;
    q->connect(attr);
    return q;
  }
  static SendWr on(std::uint16_t stream, SendWr w) {
    w.stream = stream;
    return w;
  }
  static SendWr wrong(SendWr w) {
    w.rkey ^= 0x100;
    return w;
  }
  CommandResult reset_stream(const Qp& qp, std::uint16_t stream) {
    using E = prm::qp_ext;
    Mailbox in(prm::op::RTS2RTS_QP, E::bytes);
    in.set<prm::rts2rts_qp_in::qpn>(qp.qpn()).set<E::qpc_ext>(1);
    return dev().exec(
        in.set<E::opt_param_mask_95_32>(prm::kOptDciStream).set<E::dci_stream_channel_id>(stream));
  }
};

TEST_F(DcStreams, AFailedStreamIsFlushedAndTheOthersGoOn) {
  breaks({"rkey-bounds"});
  Pair p(dev());
  Net n(p);
  for (Dct* other : {&n.t1, &n.t2}) {  // what follows goes to the same target, or to another one
    auto q = streaming(p, n.srq, 2);
    std::uint64_t value = 1000;
    std::memcpy(p.bmem.data() + 64, &value, 8);
    const auto add = [&](std::uint16_t stream, const Dct& t) {
      auto w = on(stream, to(t, p.wr(WqeOp::kAtomicFa, 64, 8)));
      w.swap_add = 1;
      return w;
    };
    // All at once, with packets of the later ones under way when the third fails.
    std::vector<std::uint16_t> counters;
    counters.push_back(q->post(add(1, n.t1), false));
    counters.push_back(q->post(on(2, to(n.t1, p.wr(WqeOp::kRdmaWrite, 1024, 20000))), false));
    counters.push_back(q->post(on(1, wrong(to(n.t1, p.wr(WqeOp::kRdmaWrite, 1024, 20000)))), false));
    counters.push_back(q->post(add(2, *other), false));
    counters.push_back(q->post(add(1, *other), false));
    counters.push_back(q->post(on(300, to(*other, p.wr(WqeOp::kRdmaWrite, 30000, 20000))), false));
    counters.push_back(q->post(add(2, *other)));
    p.fill(7);
    std::memcpy(p.bmem.data() + 64, &value, 8);
    for (std::size_t i = 0; i < counters.size(); ++i) {
      const Completion c = p.acq.wait_one();
      EXPECT_EQ(c.wqe_counter, counters[i]) << i;
      if (i == 2)
        expect_error(c, prm::CqeSyndrome::kRemoteAccess);
      else if (i == 4)
        expect_error(c, prm::CqeSyndrome::kWrFlush);
      else
        EXPECT_FALSE(c.error()) << i << ": " << c.text();
    }
    std::memcpy(&value, p.bmem.data() + 64, 8);
    EXPECT_EQ(value, 1003u) << "each once, and nothing of the failed stream";
    EXPECT_EQ(q->state(), QpState::kRts);
    EXPECT_TRUE(p.same(30000, 20000));
    // It stays so until it is reset.
    q->post(add(1, n.t1));
    expect_error(p.acq.wait_one(), prm::CqeSyndrome::kWrFlush);
    EXPECT_CMD_STATUS(reset_stream(*q, 2), CmdStatus::kBadResState);
    EXPECT_CMD_OK(reset_stream(*q, 1));
    EXPECT_CMD_STATUS(reset_stream(*q, 1), CmdStatus::kBadResState);
    expect_good(p.acq, q->post(add(1, n.t1)));
  }
}

TEST_F(DcStreams, WithAsManyFailedAsItTakesTheInitiatorFails) {
  breaks({"rkey-bounds"});
  Pair p(dev());
  Net n(p);
  auto q = streaming(p, n.srq, 1);
  const auto fail = [&](std::uint16_t stream) {
    q->post(on(stream, wrong(to(n.t1, p.wr(WqeOp::kRdmaWrite, 0, 64)))));
    expect_error(p.acq.wait_one(), prm::CqeSyndrome::kRemoteAccess);
  };
  for (std::uint16_t stream : {1, 2, 3}) {  // reset in time, any number may fail
    fail(stream);
    EXPECT_EQ(q->state(), QpState::kRts);
    EXPECT_CMD_OK(reset_stream(*q, stream));
  }
  fail(1);
  q->post(on(1, to(n.t1, p.wr(WqeOp::kRdmaWrite, 0, 64))));
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kWrFlush);
  EXPECT_EQ(q->state(), QpState::kRts) << "the same stream twice is one";
  fail(2);
  EXPECT_EQ(q->state(), QpState::kErr);
  ASSERT_TRUE(q->to_reset().ok());
  q->connect({});
  for (std::uint16_t stream : {1, 2})
    expect_good(p.acq, q->post(on(stream, to(n.t1, p.wr(WqeOp::kRdmaRead, 0, 64)))));
}

TEST_F(DcStreams, WhatIsWrongWithTheOwnMemoryFailsAStreamToo) {
  breaks({"mr-bounds"});
  Pair p(dev());
  Net n(p);
  auto q = streaming(p, n.srq, 2);
  auto w = on(1, to(n.t1, p.wr(WqeOp::kRdmaWrite, 0, 64)));
  w.sges[0].lkey ^= 0x100;
  q->post(w, false);
  const std::uint16_t last = q->post(on(2, to(n.t1, p.wr(WqeOp::kRdmaWrite, 0, 64))));
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kLocalProt);
  expect_good(p.acq, last);
}

TEST_F(DcStreams, ATargetThatDoesNotAnswerFailsAStream) {
  Pair p(dev());
  Net n(p);
  QpAttr attr;
  attr.retry_count = 1;
  attr.ack_timeout = 8;
  auto q = streaming(p, n.srq, 2, attr);
  auto w = on(1, to(n.t1, p.wr(WqeOp::kRdmaWrite, 0, 64)));
  w.av.dc_key ^= 1;
  q->post(w, false);
  const std::uint16_t last = q->post(on(2, to(n.t1, p.wr(WqeOp::kRdmaRead, 0, 20000))));
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kTransportRetryExc);
  expect_good(p.acq, last);
}

TEST_F(DcStreams, OfInitiatorsAlone) {
  breaks({"cap-not-offered", "qp-optional-mask"});
  Pair p(dev());
  Net n(p);
  EXPECT_CMD_STATUS(reset_stream(p.a, 1), CmdStatus::kBadParam);
  QpOptions o;
  o.log_streams = 1;
  EXPECT_THROW(Qp(p.dev, p.pd, p.acq, p.acq, o), BareError);
  o.type = QpType::kDci;
  o.log_streams = 31;
  EXPECT_THROW(Qp(p.dev, p.pd, p.acq, p.acq, o, &n.srq), BareError);
  o.log_streams = 1;
  o.log_errored_streams = 31;
  EXPECT_THROW(Qp(p.dev, p.pd, p.acq, p.acq, o, &n.srq), BareError);
}

}  // namespace
}  // namespace hcasim::bare
