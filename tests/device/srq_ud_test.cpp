// SPDX-License-Identifier: BSD-3-Clause
// Shared receive queues, and UD as the drivers' management QPs use it.
#include <cstring>

#include "driver/bare/devx.h"
#include "fixture.h"

namespace hcasim::bare {
namespace {

using SrqTest = DeviceTest;

TEST_F(SrqTest, SharedByManyQps) {
  Pair p(dev());
  Srq srq(dev(), p.pd);
  std::vector<std::unique_ptr<Qp>> tx, rx;
  for (int i = 0; i < 6; ++i) {
    tx.push_back(std::make_unique<Qp>(dev(), p.pd, p.acq, p.acq));
    rx.push_back(std::make_unique<Qp>(dev(), p.pd, p.bcq, p.bcq, QpOptions{}, &srq));
    connect_pair(*tx.back(), *rx.back());
  }
  std::map<std::uint16_t, std::size_t> where;
  std::mt19937 rnd(3);
  for (int round = 0; round < 50; ++round) {
    p.fill(static_cast<std::uint64_t>(round));
    while (srq.free_count() > 30) {
      const std::size_t slot = where.size();
      std::size_t at = 0;
      for (std::size_t k = 0; k <= slot; ++k) {
        bool used = false;
        for (const auto& [i, o] : where) used = used || o == k * 1024;
        if (!used) {
          at = k * 1024;
          break;
        }
      }
      where[srq.post({p.bsge(at, 1024)})] = at;
    }
    const std::size_t from = rnd() % 60000;
    const std::uint32_t len = rnd() % 1024 + 1;
    const std::size_t who = rnd() % 6;
    SendWr w;
    w.op = WqeOp::kSend;
    w.sges = {p.asge(from, len)};
    tx[who]->post(w);
    const Completion d = p.bcq.wait_one();
    ASSERT_FALSE(d.error()) << d.text();
    EXPECT_EQ(d.qpn, rx[who]->qpn());
    EXPECT_EQ(d.user_index, srq.srqn()) << "a kernel object's CQE names the SRQ";
    ASSERT_EQ(where.count(d.wqe_counter), 1u) << d.text();
    EXPECT_EQ(std::memcmp(p.amem.data() + from, p.bmem.data() + where[d.wqe_counter], len), 0);
    where.erase(d.wqe_counter);
    srq.release(d.wqe_counter);
    EXPECT_FALSE(p.acq.wait_one().error());
  }
}

TEST_F(SrqTest, LimitEventFiresOnce) {
  Pair p(dev());
  Srq srq(dev(), p.pd);
  Qp rx(dev(), p.pd, p.bcq, p.bcq, {}, &srq), tx(dev(), p.pd, p.acq, p.acq);
  connect_pair(tx, rx);
  for (int i = 0; i < 20; ++i) srq.post({p.bsge(0, 1024)});
  dev().clear_async_events();
  ASSERT_TRUE(srq.arm_limit(10).ok());
  const auto send = [&] {
    SendWr w;
    w.sges = {p.asge(0, 8)};
    tx.post(w);
    srq.release(p.bcq.wait_one().wqe_counter);
    p.acq.wait(1);
    machine().advance(100'000);
  };
  for (int i = 0; i < 10; ++i) send();
  EXPECT_EQ(dev().count_async(prm::EqeType::kSrqLimit), 0u) << "10 are left, not fewer";
  send();
  EXPECT_EQ(dev().count_async(prm::EqeType::kSrqLimit, srq.srqn()), 1u);
  for (int i = 0; i < 4; ++i) send();
  EXPECT_EQ(dev().count_async(prm::EqeType::kSrqLimit), 1u) << "once for each arming";
  ASSERT_TRUE(srq.arm_limit(5).ok());
  send();
  machine().advance(100'000);
  EXPECT_EQ(dev().count_async(prm::EqeType::kSrqLimit), 2u);
}

// A receiver that posts more when it is told that few are left, and arms its limit after all of them were
// used.
TEST_F(SrqTest, ALimitThatIsArmedWhenNothingIsLeftIsToldOfAtTheNextMessage) {
  Pair p(dev());
  Srq srq(dev(), p.pd);
  Qp rx(dev(), p.pd, p.bcq, p.bcq, {}, &srq), tx(dev(), p.pd, p.acq, p.acq);
  connect_pair(tx, rx);
  SendWr w;
  w.sges = {p.asge(0, 8)};
  srq.post({p.bsge(0, 1024)});
  tx.post(w);
  srq.release(p.bcq.wait_one().wqe_counter);
  p.acq.wait(1);
  dev().clear_async_events();
  ASSERT_TRUE(srq.arm_limit(4).ok());
  tx.post(w);
  machine().advance(20'000);
  EXPECT_EQ(dev().count_async(prm::EqeType::kSrqLimit, srq.srqn()), 1u);
  for (int i = 0; i < 8; ++i) srq.post({p.bsge(0, 1024)});
  p.bcq.wait(1);
  p.acq.wait(1);
  EXPECT_EQ(dev().count_async(prm::EqeType::kSrqLimit), 1u);
}

TEST_F(SrqTest, ARingIsTakenInItsOrder) {
  Pair p(dev());
  SrqOptions o;
  o.log_size = 4;
  o.cyclic = true;
  Srq srq(dev(), p.pd, o);
  Qp rx(dev(), p.pd, p.bcq, p.bcq, {}, &srq), tx(dev(), p.pd, p.acq, p.acq);
  connect_pair(tx, rx);
  const auto at = [](unsigned i) { return 1024 * std::size_t{i % 32}; };
  unsigned posted = 0;
  for (unsigned i = 0; i < 100; ++i) {
    while (srq.free_count() > 3) {
      EXPECT_EQ(srq.post({p.bsge(at(posted), 1024)}), posted);
      ++posted;
    }
    p.fill(i);
    SendWr w;
    w.sges = {p.asge(2048, 700)};
    tx.post(w);
    const Completion c = p.bcq.wait_one();
    ASSERT_FALSE(c.error()) << c.text();
    EXPECT_EQ(c.wqe_counter, i) << "it runs on, unmasked";
    EXPECT_EQ(std::memcmp(p.amem.data() + 2048, p.bmem.data() + at(i), 700), 0) << i;
    srq.release(c.wqe_counter);
    EXPECT_FALSE(p.acq.wait_one().error());
  }
  using C = prm::query_rmp_out::rmp_context;
  const CommandResult r = srq.query();
  ASSERT_TRUE(r.ok()) << r.text();
  EXPECT_EQ(r.get<C::wq::wq_type>(), 1u);
  EXPECT_EQ(r.get<C::wq::hw_counter>(), 100u);
}

TEST_F(SrqTest, EmptyMakesRnrThenServes) {
  Pair p(dev());
  Srq srq(dev(), p.pd);
  Qp rx(dev(), p.pd, p.bcq, p.bcq, {}, &srq), tx(dev(), p.pd, p.acq, p.acq);
  connect_pair(tx, rx);
  SendWr w;
  w.sges = {p.asge(0, 8)};
  const std::uint64_t timeouts = fn().counter("timeouts"), retransmits = fn().counter("retransmits");
  tx.post(w);
  machine().advance(300'000);
  EXPECT_FALSE(p.bcq.ready());
  EXPECT_GT(fn().counter("retransmits"), retransmits) << "it is told to wait, and comes again";
  EXPECT_EQ(fn().counter("timeouts"), timeouts) << "long before it would by itself";
  srq.post({p.bsge(0, 1024)});
  EXPECT_FALSE(p.bcq.wait_one().error());
  EXPECT_FALSE(p.acq.wait_one().error());
}

TEST_F(SrqTest, LastWqeReachedWhenAQpGoesToError) {
  Pair p(dev());
  Srq srq(dev(), p.pd);
  Qp rx(dev(), p.pd, p.bcq, p.bcq, {}, &srq), tx(dev(), p.pd, p.acq, p.acq);
  connect_pair(tx, rx);
  for (int i = 0; i < 5; ++i) srq.post({p.bsge(0, 1024)});
  dev().clear_async_events();
  ASSERT_TRUE(rx.to_error().ok());
  EXPECT_TRUE(machine().run_until([&] { return dev().count_async(prm::EqeType::kLastWqe, rx.qpn()) == 1; },
                                  10'000'000));
  EXPECT_FALSE(p.bcq.ready()) << "the WQEs of the SRQ stay";
}

TEST_F(SrqTest, GarbageLinkIsAnErrorOfTheSrq) {
  breaks({"mr-key"});
  Pair p(dev());
  SrqOptions o;
  o.log_size = 4;
  Srq srq(dev(), p.pd, o);
  Qp rx(dev(), p.pd, p.bcq, p.bcq, {}, &srq), tx(dev(), p.pd, p.acq, p.acq);
  QpAttr attr;
  attr.rnr_retry = 1;
  connect_pair(tx, rx, attr);
  srq.post({{p.bmr.start(), 0xdeadbe00, 1024}});
  SendWr w;
  w.sges = {p.asge(0, 8)};
  tx.post(w);
  const Completion c = p.acq.wait_one();
  EXPECT_TRUE(c.error()) << c.text();
  expect_serves_on();
}

class Ud : public DeviceTest {
 protected:
  struct Pairs {
    Pairs(Device& d, Pair& p, std::uint32_t qkey = QpAttr{}.qkey)
        : a(d, p.pd, p.acq, p.acq, options()), b(d, p.pd, p.bcq, p.bcq, options()) {
      QpAttr attr;
      attr.qkey = qkey;
      for (Qp* q : {&a, &b}) q->connect(attr);
    }
    static QpOptions options() {
      QpOptions o;
      o.type = QpType::kUd;
      return o;
    }
    Qp a, b;
  };
};

TEST_F(Ud, SendLeavesRoomForTheGrh) {
  Pair p(dev());
  Pairs u(dev(), p);
  p.fill(1);
  u.b.post_recv({p.bsge(0, 4096)});
  SendWr w;
  w.sges = {p.asge(40, 1000)};
  w.av.qpn = u.b.qpn();
  const auto n = u.a.post(w);
  expect_good(p.acq, n);
  const Completion d = p.bcq.wait_one();
  EXPECT_EQ(d.op, prm::CqeOp::kRespSend);
  EXPECT_EQ(d.byte_cnt, 1040u) << "the 40 bytes of the GRH count always";
  EXPECT_EQ(d.flags_rqpn & 0xffffff, u.a.qpn());
  EXPECT_EQ(d.slid, dev().lid());
  EXPECT_EQ((d.flags_rqpn >> 28) & 3, 0u);
  EXPECT_TRUE(p.same(40, 1000));
}

// As UCX sends: headers in the WQE, data where they lie, and in the address's reserved bytes what the ring
// held before.
TEST_F(Ud, InlineHeadAndReservedBytesOfTheAddress) {
  Pair p(dev());
  Pairs u(dev(), p);
  for (const std::uint32_t len : {1u, 300u, 4096u - 24}) {
    p.fill(len);
    u.b.post_recv({p.bsge(0, 8192)});
    SendWr w;
    w.inline_head.assign(p.amem.data() + 40, p.amem.data() + 64);
    w.sges = {p.asge(64, len)};
    w.av.qpn = u.b.qpn();
    const auto n = u.a.post(w, false);
    auto* av = reinterpret_cast<prm::AvSeg*>(u.a.sq_wqebb(n) + sizeof(prm::CtrlSeg));
    av->key_low = 0x12345678;
    std::memset(av->rsvd, 0x5a, sizeof av->rsvd);
    u.a.ring_doorbell();
    expect_good(p.acq, n);
    EXPECT_EQ(p.bcq.wait_one().byte_cnt, 40 + 24 + len);
    EXPECT_TRUE(p.same(40, 24 + len)) << len;
  }
}

TEST_F(Ud, GrhIsWrittenWhenThereIsOne) {
  Pair p(dev());
  Pairs u(dev(), p);
  p.fill(2);
  u.b.post_recv({p.bsge(0, 4096)});
  SendWr w;
  w.op = WqeOp::kSendImm;
  w.imm = 0x1234;
  w.sges = {p.asge(40, 100)};
  w.av.qpn = u.b.qpn();
  w.av.grh = true;
  w.av.tclass = 0x5a;
  const auto gid = dev().gid(0);
  std::copy(gid.begin(), gid.end(), w.av.dgid.begin());
  u.a.post(w);
  const Completion d = p.bcq.wait_one();
  EXPECT_EQ(d.op, prm::CqeOp::kRespSendImm);
  EXPECT_EQ(d.imm, 0x1234u);
  EXPECT_EQ(d.byte_cnt, 140u);
  EXPECT_NE((d.flags_rqpn >> 28) & 3, 0u);
  const std::uint8_t* grh = p.bmem.data();
  EXPECT_EQ(grh[0] >> 4, 6) << "IP version";
  EXPECT_EQ((grh[0] << 4 | grh[1] >> 4) & 0xff, 0x5a);
  EXPECT_EQ(std::memcmp(grh + 8, gid.data(), 16), 0) << "source GID";
  EXPECT_EQ(std::memcmp(grh + 24, gid.data(), 16), 0) << "destination GID";
  EXPECT_TRUE(p.same(40, 100));
}

TEST_F(Ud, WhatDoesNotFitIsDropped) {
  breaks({"receive-length"});
  Pair p(dev());
  Pairs u(dev(), p);
  u.b.post_recv({p.bsge(0, 1039)});
  SendWr w;
  w.sges = {p.asge(0, 1000)};
  w.av.qpn = u.b.qpn();
  expect_good(p.acq, u.a.post(w));
  machine().advance(1'000'000);
  const auto c = p.bcq.poll();
  EXPECT_TRUE(!c || c->error());
  w.av.qkey = 0xbad;
  expect_good(p.acq, u.a.post(w));
  w.av.qpn = 0xfffff0;
  expect_good(p.acq, u.a.post(w));
  machine().advance(1'000'000);
  EXPECT_FALSE(p.bcq.ready());
}

TEST_F(Ud, WrongQkeysAreCounted) {
  Pair p(dev());
  Pairs u(dev(), p);
  using C = prm::query_hca_vport_context_out::hca_vport_context;
  // RoCE has them dropped alike, and no vport context that tells of it.
  const std::uint32_t counted = dev().ethernet() ? 0 : 3;
  const auto violations = [this, counted]() -> std::uint32_t {
    return counted == 0 ? 0 : dev().query_vport().must().get<C::qkey_violation_counter>();
  };
  const auto before = violations();
  u.b.post_recv({p.bsge(0, 4096)});
  SendWr w;
  w.sges = {p.asge(0, 100)};
  w.av.qpn = u.b.qpn();
  w.av.qkey = 0xbad;
  for (int i = 0; i < 3; ++i) expect_good(p.acq, u.a.post(w));
  machine().advance(1'000'000);
  EXPECT_FALSE(p.bcq.ready());
  EXPECT_EQ(violations(), before + counted);
}

TEST_F(Ud, NoReceiverIsNoError) {
  Pair p(dev());
  Pairs u(dev(), p);
  SendWr w;
  w.sges = {p.asge(0, 64)};
  w.av.qpn = u.b.qpn();
  for (int i = 0; i < 10; ++i) expect_good(p.acq, u.a.post(w));
  u.b.post_recv({p.bsge(0, 4096)});
  expect_good(p.acq, u.a.post(w));
  EXPECT_EQ(p.bcq.wait_one().byte_cnt, 104u);
}

TEST_F(Ud, LongerThanThePortMtuIsALocalError) {
  breaks({"wqe-length"});
  Pair p(dev());
  Pairs u(dev(), p);
  SendWr w;
  w.sges = {p.asge(0, 4097)};
  w.av.qpn = u.b.qpn();
  u.a.post(w);
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kLocalLength);
}

// As the kernel has QPs for management datagrams with other P_Keys than QP1's (mlx5_ib gsi.c).
TEST_F(Ud, SendsInTheNameOfQp1) {
  Pair p(dev());
  QpOptions o;
  o.type = QpType::kUd;
  o.source_qpn = 1;
  Pairs u(dev(), p);
  Qp tx(dev(), p.pd, p.acq, p.acq, o);
  tx.connect(QpAttr{});
  u.b.post_recv({p.bsge(0, 4096)});
  SendWr w;
  w.sges = {p.asge(40, 100)};
  w.av.qpn = u.b.qpn();
  expect_good(p.acq, tx.post(w));
  EXPECT_EQ(p.bcq.wait_one().flags_rqpn & 0xffffff, 1u);
}

TEST_F(Ud, NobodyElseSendsInTheNameOfQp1) {
  breaks({"cap-not-offered"});
  Pair p(dev());
  const auto tried = [&](const Pd& pd, Cq& cq, QpType type, std::uint32_t source) {
    QpOptions o;
    o.type = type;
    o.source_qpn = source;
    try {
      const Qp qp(dev(), pd, cq, cq, o);
      return true;
    } catch (const BareError&) {
      return false;
    }
  };
  EXPECT_FALSE(tried(p.pd, p.acq, QpType::kUd, 2));
  EXPECT_FALSE(tried(p.pd, p.acq, QpType::kRc, 1));
  {
    Uctx user(dev());
    const Uctx::As as(dev(), user);
    const Pd pd(dev());
    Cq cq(dev());
    EXPECT_TRUE(tried(pd, cq, QpType::kUd, 0));
    EXPECT_FALSE(tried(pd, cq, QpType::kUd, 1));
  }
  EXPECT_TRUE(tried(p.pd, p.acq, QpType::kUd, 1));
}

TEST_F(Ud, GsiQpTakesPacketsForQpn1) {
  Pair p(dev());
  QpOptions o;
  o.type = QpType::kQp1;
  Qp gsi(dev(), p.pd, p.bcq, p.bcq, o);
  QpAttr attr;
  attr.qkey = 0x80010000;
  gsi.connect(attr);
  EXPECT_GT(gsi.qpn(), 1u);
  Pairs u(dev(), p, 0x80010000);  // a WQE cannot set the high bit: the QP's own key is taken
  p.fill(5);
  gsi.post_recv({p.bsge(0, 4096)});
  SendWr w;
  w.sges = {p.asge(40, 256)};
  w.av.qpn = 1;
  w.av.qkey = 0x80010000;
  expect_good(p.acq, u.a.post(w));
  const Completion d = p.bcq.wait_one();
  EXPECT_EQ(d.qpn, gsi.qpn()) << "the internal number, known to the driver";
  EXPECT_EQ(d.byte_cnt, 296u);
  EXPECT_TRUE(p.same(40, 256));
}

TEST_F(Ud, MulticastReachesThoseWhoJoined) {
  Pair p(dev());
  Pairs u(dev(), p);
  Mailbox in(prm::op::ATTACH_TO_MCG, prm::attach_to_mcg_in::bytes);
  in.set<prm::attach_to_mcg_in::qpn>(u.b.qpn());
  std::array<std::uint8_t, 16> mgid{0xff, 0x12, 0x40, 0x1b};
  mgid[15] = 0x77;
  std::copy(mgid.begin(), mgid.end(), in.begin() + prm::attach_to_mcg_in::multicast_gid::bit_off / 8);
  const auto r = dev().exec(in);
  ASSERT_TRUE(r.ok()) << "multicast is not offered: " << r.text();
  p.fill(6);
  u.b.post_recv({p.bsge(0, 4096)});
  SendWr w;
  w.sges = {p.asge(40, 128)};
  w.av.qpn = 0xffffff;
  w.av.dlid = 0xc005;
  w.av.grh = true;
  w.av.dgid = mgid;
  expect_good(p.acq, u.a.post(w));
  EXPECT_EQ(p.bcq.wait_one().byte_cnt, 168u);
  EXPECT_TRUE(p.same(40, 128));
  Mailbox out(prm::op::DETACH_FROM_MCG, prm::attach_to_mcg_in::bytes);
  std::copy(in.begin() + 8, in.end(), out.begin() + 8);
  EXPECT_CMD_OK(dev().exec(out));
  u.b.post_recv({p.bsge(0, 4096)});
  expect_good(p.acq, u.a.post(w));
  machine().advance(1'000'000);
  EXPECT_FALSE(p.bcq.ready());
}

}  // namespace
}  // namespace hcasim::bare
