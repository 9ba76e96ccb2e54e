// SPDX-License-Identifier: BSD-3-Clause
// Completion and event queues: arming, moderation, resize, overrun, sizes.
#include <cstring>

#include "fixture.h"

namespace hcasim::bare {
namespace {

using CqEq = DeviceTest;

TEST_F(CqEq, NoEventUnlessArmed) {
  Pair p(dev());
  expect_good(p.acq, p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64)));
  machine().advance(1'000'000);
  EXPECT_EQ(p.acq.events(), 0u);
}

TEST_F(CqEq, ArmedOnceFiresOnce) {
  Pair p(dev());
  p.acq.arm();
  machine().advance(100'000);
  EXPECT_EQ(p.acq.events(), 0u) << "nothing there yet";
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  EXPECT_TRUE(machine().run_until([&] { return p.acq.events() == 1; }));
  EXPECT_TRUE(p.acq.ready()) << "CQE before EQE";
  for (int i = 0; i < 5; ++i) p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  machine().advance(1'000'000);
  EXPECT_EQ(p.acq.events(), 1u) << "one shot";
  EXPECT_EQ(p.acq.wait(6).size(), 6u);
  p.acq.arm();
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  EXPECT_TRUE(machine().run_until([&] { return p.acq.events() == 2; }));
}

TEST_F(CqEq, ArmAfterTheCqeFiresAtOnce) {
  Pair p(dev());
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  machine().run_until([&] { return p.acq.ready(); });
  machine().advance(1'000'000);
  p.acq.arm();
  EXPECT_TRUE(machine().run_until([&] { return p.acq.events() == 1; }, 1'000'000))
      << "the race of arm and CQE";
}

TEST_F(CqEq, SolicitedOnly) {
  Pair p(dev());
  for (int i = 0; i < 4; ++i) p.b.post_recv({p.bsge(0, 4096)});
  p.bcq.arm(true);
  auto w = p.wr(WqeOp::kSend, 0, 64);
  p.a.post(w);
  EXPECT_EQ(p.bcq.wait(1).size(), 1u);
  machine().advance(1'000'000);
  EXPECT_EQ(p.bcq.events(), 0u);
  w.solicited = true;
  p.a.post(w);
  EXPECT_TRUE(machine().run_until([&] { return p.bcq.events() == 1; }));
  EXPECT_EQ(p.bcq.wait(1).size(), 1u);
  // An error is always worth an event.
  p.bcq.arm(true);
  ASSERT_TRUE(p.b.to_error().ok());
  EXPECT_TRUE(machine().run_until([&] { return p.bcq.events() == 2; }));
}

// No event is held if there was none before. Returns when it came; its CQE is taken.
std::int64_t first_event(Pair& p) {
  Machine& machine = p.dev.machine();
  p.acq.arm();
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  EXPECT_TRUE(machine.run_until([&] { return p.acq.events() == 1; }, 20'000));
  const std::int64_t at = machine.now();
  p.acq.wait_one();
  return at;
}

TEST_F(CqEq, ModerationByCount) {
  Pair p(dev());
  ASSERT_TRUE(p.acq.set_moderation(4000, 8).ok());
  first_event(p);
  p.acq.arm();
  const std::int64_t t0 = machine().now();
  for (int i = 0; i < 7; ++i) p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  machine().run_until([&] { return p.acq.events() != 1; }, 500'000);
  ASSERT_EQ(p.acq.events(), 1u) << "seven CQEs raised an event that eight were to raise";
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  EXPECT_TRUE(machine().run_until([&] { return p.acq.events() == 2; }));
  EXPECT_LT(machine().now() - t0, 3'000'000) << "the eighth, not the period, made the event";
}

TEST_F(CqEq, ModerationByPeriod) {
  Pair p(dev());
  ASSERT_TRUE(p.acq.set_moderation(100, 1000).ok());
  const std::int64_t first = first_event(p);
  p.acq.arm();
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  EXPECT_FALSE(machine().run_until([&] { return p.acq.events() == 2; }, first + 95'000 - machine().now()));
  EXPECT_TRUE(machine().run_until([&] { return p.acq.events() == 2; }, 10'000));
}

// One CQE each 60 us: a period of 100 us that begins with an event ends 100 us after it; one that each CQE
// begins anew ends 100 us after the last one.
TEST_F(CqEq, ThePeriodBeginsWithAnEventOrWithEachCqe) {
  Pair p(dev());
  for (const bool each : {false, true}) {
    CqOptions o;
    o.period_us = 100;
    o.max_count = 1000;
    o.period_from_cqe = each;
    Cq cq(dev(), o);
    Qp a(dev(), p.pd, cq, cq), b(dev(), p.pd, cq, cq);
    connect_pair(a, b);
    const auto next = [&](std::int64_t timeout) {
      const std::uint64_t before = cq.events();
      return machine().run_until([&] { return cq.events() != before; }, timeout);
    };
    cq.arm();
    if (!each) {  // there was no event within the last 100 us
      a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
      ASSERT_TRUE(next(20'000));
      cq.wait_one();
      cq.arm();
    }
    const std::int64_t start = machine().now();
    bool event = false;
    for (int i = 0; i < 5 && !event; ++i) {
      a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
      event = next(60'000);
    }
    ASSERT_TRUE(event || next(1'000'000)) << "no event at all";
    const std::int64_t took = machine().now() - start;
    EXPECT_GT(took, (each ? 4 * 60'000 : 0) + 95'000);
    EXPECT_LT(took, (each ? 4 * 60'000 : 0) + 120'000);
  }
}

TEST_F(CqEq, CqesOf128Bytes) {
  Pair p(dev());
  CqOptions o;
  o.cqe_size = 128;
  Cq cq(dev(), o);
  Qp a(dev(), p.pd, cq, cq), b(dev(), p.pd, cq, cq);
  connect_pair(a, b);
  for (unsigned i = 0; i < 600; ++i) {
    a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
    const auto c = cq.wait_one();
    ASSERT_FALSE(c.error());
    ASSERT_EQ(c.wqe_counter, static_cast<std::uint16_t>(i));
  }
}

TEST_F(CqEq, OverrunIsAnEventAndTheRestServesOn) {
  breaks({"cq-overrun"});
  Pair p(dev());
  CqOptions o;
  o.log_size = 3;
  auto cq = std::make_unique<Cq>(dev(), o);
  cq->set_auto_update(false);
  auto a = std::make_unique<Qp>(dev(), p.pd, *cq, *cq), b = std::make_unique<Qp>(dev(), p.pd, p.bcq, p.bcq);
  connect_pair(*a, *b);
  dev().clear_async_events();
  for (int i = 0; i < 20; ++i) a->post(p.wr(WqeOp::kRdmaWrite, 0, 64), false);
  a->ring_doorbell();
  EXPECT_TRUE(machine().run_until([&] { return dev().count_async(prm::EqeType::kCqError, cq->cqn()) != 0; }));
  machine().advance(1'000'000);
  EXPECT_EQ(dev().count_async(prm::EqeType::kCqError, cq->cqn()), 1u);
  EXPECT_EQ(dev().count_async(prm::EqeType::kWqCatas, a->qpn()), 1u) << "its QP goes with it";
  EXPECT_EQ(a->state(), QpState::kErr);
  unsigned n = 0;
  while (auto c = cq->poll()) {
    EXPECT_EQ(c->wqe_counter, n) << "no CQE was overwritten";
    ++n;
  }
  EXPECT_EQ(n, 8u);
  expect_serves_on();
}

// As DPDK does for what it sends: the card takes it, and no rule is broken.
TEST_F(CqEq, AConsumerMayCountIn16Bits) {
  PairOptions o;
  o.log_cq = 5;
  Pair p(dev(), o);
  p.acq.set_auto_update(false);
  for (unsigned done = 0; done < 0x10800; ++done) {
    p.a.post_nop();
    ASSERT_FALSE(p.acq.wait_one().error()) << done;
    p.acq.dbr().set(0, (done + 1) & 0xffff);
  }
}

TEST_F(CqEq, OverrunIgnored) {
  Pair p(dev());
  CqOptions o;
  o.log_size = 3;
  o.overrun_ignore = true;
  Cq cq(dev(), o);
  Qp a(dev(), p.pd, cq, cq), b(dev(), p.pd, p.bcq, p.bcq);
  connect_pair(a, b);
  dev().clear_async_events();
  for (int i = 0; i < 20; ++i) a.post(p.wr(WqeOp::kRdmaWrite, 0, 64), false);
  a.ring_doorbell();
  machine().advance(5'000'000);
  EXPECT_EQ(dev().count_async(prm::EqeType::kCqError), 0u);
  EXPECT_EQ(a.state(), QpState::kRts);
  // The last four are in the places of the first ones, as of the ring's third round; those behind them are of
  // the second.
  std::uint16_t n = 16;
  while (const auto c = cq.poll()) {
    EXPECT_FALSE(c->error());
    EXPECT_EQ(c->wqe_counter, n++);
  }
  EXPECT_EQ(n, 20u) << "the ring was not written over";
}

TEST_F(CqEq, ConsumerIndexMakesRoom) {
  Pair p(dev());
  CqOptions o;
  o.log_size = 2;
  Cq cq(dev(), o);
  Qp a(dev(), p.pd, cq, cq), b(dev(), p.pd, p.bcq, p.bcq);
  connect_pair(a, b);
  for (unsigned i = 0; i < 1000; ++i) {
    for (int k = 0; k < 4; ++k) a.post(p.wr(WqeOp::kRdmaWrite, 0, 8), false);
    a.ring_doorbell();
    ASSERT_EQ(cq.wait(4).size(), 4u) << i;
  }
}

TEST_F(CqEq, ResizeKeepsWhatWasNotPolled) {
  Pair p(dev());
  CqOptions o;
  o.log_size = 4;
  Cq cq(dev(), o);
  Qp a(dev(), p.pd, cq, cq), b(dev(), p.pd, p.bcq, p.bcq);
  connect_pair(a, b);
  std::uint16_t next = 0;
  const auto post = [&](int n) {
    for (int i = 0; i < n; ++i) a.post(p.wr(WqeOp::kRdmaWrite, 0, 8), false);
    a.ring_doorbell();
    machine().advance(100'000);
  };
  const auto take = [&](std::size_t n) {
    const auto got = cq.wait(n);
    ASSERT_EQ(got.size(), n);
    for (const auto& c : got) {
      EXPECT_FALSE(c.error());
      EXPECT_EQ(c.wqe_counter, next++);
    }
  };
  for (const unsigned log : {6u, 5u, 10u, 4u, 7u}) {
    post(11);
    take(4);
    ASSERT_TRUE(cq.resize(log).ok()) << log;
    take(7);
    post(12);
    take(12);
  }
}

TEST_F(CqEq, ResizeToLessThanWhatWaits) {
  breaks({"cq-layout"});
  Pair p(dev());
  CqOptions o;
  o.log_size = 6;
  Cq cq(dev(), o);
  Qp a(dev(), p.pd, cq, cq), b(dev(), p.pd, p.bcq, p.bcq);
  connect_pair(a, b);
  for (int i = 0; i < 40; ++i) a.post(p.wr(WqeOp::kRdmaWrite, 0, 8), false);
  a.ring_doorbell();
  machine().advance(1'000'000);
  const auto r = cq.resize(4);
  EXPECT_TRUE(r.done);
  EXPECT_NE(static_cast<int>(r.status), 0) << r.text();
  EXPECT_EQ(cq.wait(40).size(), 40u) << "the old ring is still in use";
}

TEST_F(CqEq, EqRingWrapsMany) {
  Pair p(dev());
  std::uint64_t before = p.acq.events();
  for (int i = 0; i < 5000; ++i) {  // the completion EQ has 2048 entries
    p.acq.arm();
    p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 8));
    ASSERT_TRUE(machine().run_until([&] { return p.acq.events() == before + 1; })) << i;
    before = p.acq.events();
    p.acq.wait(1);
  }
}

TEST_F(CqEq, UnarmedEqWritesButDoesNotInterrupt) {
  Pair p(dev());
  EventQueue& eq = dev().comp_eq(0);
  eq.set_automatic(false);
  const auto irqs = [&] { return fn().interrupts(1); };
  eq.poll(true);
  const std::uint64_t before = irqs();
  p.acq.arm();
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 8));
  EXPECT_TRUE(machine().run_until([&] { return irqs() == before + 1; }));
  p.acq.wait(1);
  p.acq.arm();
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 8));
  p.acq.wait(1);
  machine().advance(1'000'000);
  EXPECT_EQ(irqs(), before + 1) << "the EQ was not armed again";
  EXPECT_EQ(eq.poll(false), 2u) << "but the EQEs are there";
  p.acq.arm();
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 8));
  p.acq.wait(1);
  machine().advance(1'000'000);
  EXPECT_EQ(irqs(), before + 1);
  eq.arm();  // with an old consumer index: there is an EQE beyond it
  EXPECT_TRUE(machine().run_until([&] { return irqs() == before + 2; }, 1'000'000));
  eq.set_automatic(true);
  eq.poll();
}

TEST_F(CqEq, VectorsAreKeptApart) {
  Pair p(dev());
  CqOptions o;
  o.comp_vector = 1;
  Cq cq(dev(), o);
  Qp a(dev(), p.pd, cq, cq), b(dev(), p.pd, p.bcq, p.bcq);
  connect_pair(a, b);
  const std::uint64_t v1 = fn().interrupts(1), v2 = fn().interrupts(2);
  cq.arm();
  a.post(p.wr(WqeOp::kRdmaWrite, 0, 8));
  EXPECT_TRUE(machine().run_until([&] { return cq.events() == 1; }));
  EXPECT_EQ(fn().interrupts(1), v1);
  EXPECT_EQ(fn().interrupts(2), v2 + 1);
}

TEST_F(CqEq, CommunicationEstablished) {
  PairOptions o;
  o.connect = false;
  Pair p(dev(), o);
  QpAttr a;
  a.remote_qpn = p.b.qpn();
  p.a.connect(a);
  a.remote_qpn = p.a.qpn();
  p.b.to_init(a).must();
  p.b.to_rtr(a).must();
  dev().clear_async_events();
  p.b.post_recv({p.bsge(0, 64)});
  p.a.post(p.wr(WqeOp::kSend, 0, 64));
  EXPECT_EQ(p.bcq.wait(1).size(), 1u) << "a QP in RTR receives";
  machine().advance(1'000'000);
  EXPECT_EQ(dev().count_async(prm::EqeType::kCommEst, p.b.qpn()), 1u);
}

}  // namespace
}  // namespace hcasim::bare
