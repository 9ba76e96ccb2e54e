// SPDX-License-Identifier: BSD-3-Clause
// RC errors: the syndrome on each side, the flush that follows in order, and that both QPs can be used again.
#include <cstring>

#include "fixture.h"

namespace hcasim::bare {
namespace {

using S = prm::CqeSyndrome;

class RcError : public DeviceTest {
 protected:
  // Both QPs through RESET back to RTS; then traffic flows again.
  static void revive(Pair& p) {
    ASSERT_TRUE(p.a.to_reset().ok());
    ASSERT_TRUE(p.b.to_reset().ok());
    while (p.acq.poll()) {
    }
    while (p.bcq.poll()) {
    }
    connect_pair(p.a, p.b);
    p.fill(99);
    p.b.post_recv({p.bsge(0, 4096)});
    expect_good(p.acq, p.a.post(p.wr(WqeOp::kSend, 0, 100)));
    expect_good(p.bcq, 0);
    EXPECT_TRUE(p.same(0, 100));
  }
  // Posts `w` and three more WQEs behind; expects `at_requester`, then three flushes in order.
  static void expect_requester_error(Pair& p, const SendWr& w, S at_requester) {
    std::vector<std::uint16_t> posted{p.a.post(w, false)};
    for (int i = 0; i < 3; ++i) posted.push_back(p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64), false));
    p.a.ring_doorbell();
    const auto got = p.acq.wait(4);
    ASSERT_EQ(got.size(), 4u);
    expect_error(got[0], at_requester);
    EXPECT_EQ(got[0].op, prm::CqeOp::kReqErr);
    EXPECT_EQ(got[0].qpn, p.a.qpn());
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(got[i].wqe_counter, posted[i]);
      if (i) expect_error(got[i], S::kWrFlush);
    }
    EXPECT_EQ(p.a.state(), QpState::kErr);
    // What is posted to a QP in error is flushed too.
    const auto late = p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
    const Completion c = p.acq.wait_one();
    expect_error(c, S::kWrFlush);
    EXPECT_EQ(c.wqe_counter, late);
  }
};

TEST_F(RcError, LocalProtectionWrongLkey) {
  breaks({"mr-key"});
  Pair p(dev());
  auto w = p.wr(WqeOp::kSend, 0, 100);
  w.sges[0].lkey ^= 0x1;
  expect_requester_error(p, w, S::kLocalProt);
  revive(p);
}

TEST_F(RcError, LocalProtectionBeyondTheRegion) {
  breaks({"mr-bounds"});
  Pair p(dev());
  auto w = p.wr(WqeOp::kRdmaWrite, 0, 100);
  w.sges[0].addr = p.amr.start() + p.amr.len() - 50;
  expect_requester_error(p, w, S::kLocalProt);
  revive(p);
  w = p.wr(WqeOp::kRdmaWrite, 0, 100);
  w.sges[0].addr = ~0ULL - 10;  // wraps
  expect_requester_error(p, w, S::kLocalProt);
  revive(p);
}

TEST_F(RcError, LocalProtectionOfAnotherPd) {
  breaks({"mr-pd"});
  Pair p(dev());
  Pd other(dev());
  Mr mr(dev(), Mr::of(other, p.amem));
  auto w = p.wr(WqeOp::kRdmaWrite, 0, 100);
  w.sges[0].lkey = mr.key();
  expect_requester_error(p, w, S::kLocalProt);
  revive(p);
}

TEST_F(RcError, LocalProtectionReadIntoReadOnlyMemory) {
  breaks({"mr-rights"});
  Pair p(dev());
  Mr ro(dev(), Mr::of(p.pd, p.amem, kLocalRead));
  p.fill(1);
  auto w = p.wr(WqeOp::kRdmaRead, 0, 1000);
  w.sges[0].lkey = ro.key();
  const std::uint8_t before = p.amem.data()[0];
  expect_requester_error(p, w, S::kLocalProt);
  EXPECT_EQ(p.amem.data()[0], before);
  revive(p);
}

TEST_F(RcError, LocalProtectionInTheMiddleOfAList) {
  breaks({"mr-key"});
  Pair p(dev());
  auto w = p.wr(WqeOp::kRdmaWrite, 0, 0);
  w.sges = {p.asge(0, 5000), {p.amr.start(), 0x77777700, 5000}};
  expect_requester_error(p, w, S::kLocalProt);
  revive(p);
}

struct RemoteCase {
  const char* name;
  WqeOp op;
  unsigned access;  // of the target key
  unsigned qp_access;
  std::int64_t raddr;  // relative to the region
  std::uint32_t key_xor;
  std::uint32_t len;
  S want;
  prm::EqeType event;  // at the responder
};

class RcRemote : public RcError, public ::testing::WithParamInterface<RemoteCase> {};

TEST_P(RcRemote, IsReportedOnBothSides) {
  breaks({"atomic-unaligned", "qp-rights", "rkey-bounds", "rkey-rights", "rkey-unknown"});
  const RemoteCase& c = GetParam();
  PairOptions o;
  o.attr.access = c.qp_access;
  Pair p(dev(), o);
  p.fill(1);
  Mr target(dev(), Mr::of(p.pd, p.bmem, c.access));
  auto w = p.wr(c.op, 0, c.len);
  w.raddr = target.start() + static_cast<std::uint64_t>(c.raddr);
  w.rkey = target.key() ^ c.key_xor;
  p.b.post_recv({p.bsge(60000, 1000)});
  p.b.post_recv({p.bsge(60000, 1000)});
  std::vector<std::uint8_t> before(p.bmem.data(), p.bmem.data() + p.bmem.size());
  dev().clear_async_events();
  expect_requester_error(p, w, c.want);
  EXPECT_EQ(std::memcmp(before.data(), p.bmem.data(), before.size()), 0) << "nothing was written";
  machine().advance(1'000'000);
  // The responder went to error: its receives are flushed, and its owner is told.
  EXPECT_EQ(p.b.state(), QpState::kErr);
  const auto flushed = p.bcq.wait(2);
  ASSERT_EQ(flushed.size(), 2u);
  for (const auto& f : flushed) EXPECT_TRUE(f.error()) << f.text();
  EXPECT_EQ(dev().count_async(c.event, p.b.qpn()), 1u);
  revive(p);
}

INSTANTIATE_TEST_SUITE_P(
    All, RcRemote,
    ::testing::Values(RemoteCase{"WriteWrongKey", WqeOp::kRdmaWrite, kAllAccess, kAllAccess, 0, 1, 100,
                                 S::kRemoteAccess, prm::EqeType::kWqAccess},
                      RemoteCase{"WriteUnknownKey", WqeOp::kRdmaWrite, kAllAccess, kAllAccess, 0, 0x55555500,
                                 100, S::kRemoteAccess, prm::EqeType::kWqAccess},
                      RemoteCase{"WriteNoRight", WqeOp::kRdmaWrite, kLocalRead | kLocalWrite | kRemoteRead,
                                 kAllAccess, 0, 0, 100, S::kRemoteAccess, prm::EqeType::kWqAccess},
                      RemoteCase{"WriteBeyond", WqeOp::kRdmaWrite, kAllAccess, kAllAccess, 65500, 0, 100,
                                 S::kRemoteAccess, prm::EqeType::kWqAccess},
                      RemoteCase{"WriteBefore", WqeOp::kRdmaWrite, kAllAccess, kAllAccess, -1, 0, 100,
                                 S::kRemoteAccess, prm::EqeType::kWqAccess},
                      RemoteCase{"WriteLongBeyond", WqeOp::kRdmaWrite, kAllAccess, kAllAccess, 40000, 0,
                                 30000, S::kRemoteAccess, prm::EqeType::kWqAccess},
                      RemoteCase{"ReadNoRight", WqeOp::kRdmaRead, kLocalRead | kLocalWrite | kRemoteWrite,
                                 kAllAccess, 0, 0, 100, S::kRemoteAccess, prm::EqeType::kWqAccess},
                      RemoteCase{"ReadBeyond", WqeOp::kRdmaRead, kAllAccess, kAllAccess, 65536, 0, 1,
                                 S::kRemoteAccess, prm::EqeType::kWqAccess},
                      RemoteCase{"AtomicNoRight", WqeOp::kAtomicFa,
                                 kLocalRead | kLocalWrite | kRemoteWrite | kRemoteRead, kAllAccess, 0, 0, 8,
                                 S::kRemoteAccess, prm::EqeType::kWqAccess},
                      RemoteCase{"AtomicUnaligned", WqeOp::kAtomicFa, kAllAccess, kAllAccess, 4, 0, 8,
                                 S::kRemoteInvalReq, prm::EqeType::kWqInvalidReq},
                      RemoteCase{"WriteQpForbids", WqeOp::kRdmaWrite, kAllAccess, kRemoteRead, 0, 0, 100,
                                 S::kRemoteInvalReq, prm::EqeType::kWqInvalidReq},
                      RemoteCase{"ReadQpForbids", WqeOp::kRdmaRead, kAllAccess, kRemoteWrite, 0, 0, 100,
                                 S::kRemoteInvalReq, prm::EqeType::kWqInvalidReq},
                      RemoteCase{"AtomicQpForbids", WqeOp::kAtomicCs, kAllAccess, kRemoteWrite, 0, 0, 8,
                                 S::kRemoteInvalReq, prm::EqeType::kWqInvalidReq}),
    [](const auto& i) { return std::string(i.param.name); });

TEST_F(RcError, ReceiveBufferTooSmall) {
  breaks({"receive-length"});
  Pair p(dev());
  p.fill(2);
  p.b.post_recv({p.bsge(0, 99)});
  p.b.post_recv({p.bsge(0, 99)});
  expect_requester_error(p, p.wr(WqeOp::kSend, 0, 100), S::kRemoteInvalReq);
  const auto got = p.bcq.wait(2);
  ASSERT_EQ(got.size(), 2u);
  expect_error(got[0], S::kLocalLength);
  EXPECT_EQ(got[0].op, prm::CqeOp::kRespErr);
  EXPECT_EQ(got[0].wqe_counter, 0);
  expect_error(got[1], S::kWrFlush);
  EXPECT_EQ(got[1].wqe_counter, 1);
  revive(p);
}

TEST_F(RcError, ReceiveBufferTooSmallForALongMessage) {
  breaks({"receive-length"});
  Pair p(dev());
  p.b.post_recv({p.bsge(0, 10000)});
  expect_requester_error(p, p.wr(WqeOp::kSend, 0, 20000), S::kRemoteInvalReq);
  expect_error(p.bcq.wait_one(), S::kLocalLength);
  revive(p);
}

TEST_F(RcError, ReceiveWithBadKey) {
  breaks({"mr-key"});
  Pair p(dev());
  p.b.post_recv({{p.bmr.start(), p.bmr.key() ^ 0x700, 4096}});
  expect_requester_error(p, p.wr(WqeOp::kSend, 0, 100), S::kRemoteOp);
  expect_error(p.bcq.wait_one(), S::kLocalProt);
  revive(p);
}

TEST_F(RcError, ReceiveIntoReadOnlyMemory) {
  breaks({"mr-rights"});
  Pair p(dev());
  Mr ro(dev(), Mr::of(p.pd, p.bmem, kLocalRead));
  p.b.post_recv({{ro.start(), ro.key(), 4096}});
  expect_requester_error(p, p.wr(WqeOp::kSend, 0, 100), S::kRemoteOp);
  expect_error(p.bcq.wait_one(), S::kLocalProt);
  revive(p);
}

TEST_F(RcError, SendInvalidateOfAKeyThatMayNot) {
  breaks({"rkey-unknown"});
  Pair p(dev());
  p.b.post_recv({p.bsge(0, 4096)});
  auto w = p.wr(WqeOp::kSendInval, 0, 64);
  w.imm = p.bmr.key();  // en_rinval is off
  p.a.post(w);
  const Completion c = p.acq.wait_one();
  EXPECT_TRUE(c.error()) << c.text();
  EXPECT_TRUE(c.syndrome == S::kRemoteAccess || c.syndrome == S::kRemoteOp ||
              c.syndrome == S::kRemoteInvalReq)
      << c.text();
  revive(p);
}

TEST_F(RcError, NoReceiverRnrRetriesRunOut) {
  PairOptions o;
  o.attr.rnr_retry = 3;
  o.attr.min_rnr_nak = 1;  // 0.01 ms
  Pair p(dev(), o);
  const std::int64_t t0 = machine().now();
  expect_requester_error(p, p.wr(WqeOp::kSend, 0, 100), S::kRnrRetryExc);
  const std::int64_t took = machine().now() - t0;
  EXPECT_GE(took, 3 * 10'000) << "three waits of the responder's timer";
  revive(p);
}

TEST_F(RcError, RnrWaitsTheResponderSTime) {
  PairOptions o;
  o.attr.rnr_retry = 7;
  o.attr.min_rnr_nak = 20;  // 10.24 ms
  Pair p(dev(), o);
  p.fill(3);
  const auto n = p.a.post(p.wr(WqeOp::kSend, 0, 100));
  machine().advance(1'000'000);
  p.b.post_recv({p.bsge(0, 4096)});
  const std::int64_t t0 = machine().now();
  expect_good(p.acq, n);
  EXPECT_GE(machine().now() - t0, 8'000'000);
  EXPECT_LE(machine().now() - t0, 12'000'000);
  EXPECT_TRUE(p.same(0, 100));
}

TEST_F(RcError, RnrSevenNeverGivesUp) {
  PairOptions o;
  o.attr.rnr_retry = 7;
  Pair p(dev(), o);
  p.fill(4);
  const auto n = p.a.post(p.wr(WqeOp::kSend, 0, 100));
  machine().advance(20'000'000);
  EXPECT_FALSE(p.acq.ready());
  p.b.post_recv({p.bsge(0, 4096)});
  expect_good(p.acq, n);
}

TEST_F(RcError, RnrInTheMiddleOfAQueue) {
  PairOptions o;
  o.attr.rnr_retry = 7;
  Pair p(dev(), o);
  for (unsigned i = 0; i < 30; ++i) {
    p.fill(i);
    p.a.post(p.wr(WqeOp::kSend, i * 2000, 2000), false);
  }
  p.fill(5);
  p.a.ring_doorbell();
  for (unsigned i = 0; i < 30; ++i) {
    machine().advance(15'000);
    p.b.post_recv({p.bsge(i * 2000, 2000)});
  }
  for (const auto& c : p.acq.wait(30)) EXPECT_FALSE(c.error()) << c.text();
  const auto got = p.bcq.wait(30);
  ASSERT_EQ(got.size(), 30u);
  EXPECT_TRUE(p.same(0, 60000)) << "order was kept";
}

TEST_F(RcError, NobodyAnswersRetriesRunOut) {
  PairOptions o;
  o.connect = false;
  Pair p(dev(), o);
  QpAttr a;
  a.remote_qpn = p.b.qpn();  // b stays in RESET
  a.retry_count = 3;
  a.ack_timeout = 8;  // 1.05 ms
  p.a.connect(a);
  const std::int64_t t0 = machine().now();
  expect_requester_error(p, p.wr(WqeOp::kRdmaWrite, 0, 100), S::kTransportRetryExc);
  const std::int64_t took = machine().now() - t0;
  EXPECT_GE(took, 3 * 1'048'576);
  EXPECT_LE(took, 4 * 4 * 1'100'000) << "the timeout may be up to four times the value";
}

TEST_F(RcError, RemoteLidThatNobodyHas) {
  PairOptions o;
  o.connect = false;
  Pair p(dev(), o);
  QpAttr a;
  a.remote_qpn = p.b.qpn();
  a.dlid = 0x3333;
  a.retry_count = 1;
  a.ack_timeout = 8;
  p.a.connect(a);
  expect_requester_error(p, p.wr(WqeOp::kRdmaWrite, 0, 100), S::kTransportRetryExc);
}

TEST_F(RcError, RemoteQpnThatNobodyHas) {
  PairOptions o;
  o.connect = false;
  Pair p(dev(), o);
  QpAttr a;
  a.remote_qpn = 0xfedcba;
  a.retry_count = 1;
  a.ack_timeout = 8;
  p.a.connect(a);
  expect_requester_error(p, p.wr(WqeOp::kRdmaWrite, 0, 100), S::kTransportRetryExc);
}

TEST_F(RcError, AckTimeoutZeroWaitsForEver) {
  PairOptions o;
  o.connect = false;
  Pair p(dev(), o);
  QpAttr a;
  a.remote_qpn = p.b.qpn();
  a.ack_timeout = 0;
  p.a.connect(a);
  const std::uint64_t wqes = fn().counter("wqes"), timeouts = fn().counter("timeouts"),
                      retransmits = fn().counter("retransmits");
  const auto n = p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 100));
  machine().advance(5'000'000'000);
  EXPECT_FALSE(p.acq.ready());
  EXPECT_EQ(fn().counter("wqes"), wqes + 1) << "it has been taken";
  EXPECT_EQ(fn().counter("timeouts"), timeouts);
  EXPECT_EQ(fn().counter("retransmits"), retransmits);
  ASSERT_TRUE(p.a.to_error().ok());
  const Completion c = p.acq.wait_one();
  expect_error(c, S::kWrFlush);
  EXPECT_EQ(c.wqe_counter, n) << "and waited until now";
}

TEST_F(RcError, FlushByCommandInOrder) {
  Pair p(dev());
  std::vector<std::uint16_t> sends, recvs;
  for (int i = 0; i < 40; ++i) recvs.push_back(p.b.post_recv({p.bsge(0, 100)}));
  for (int i = 0; i < 20; ++i) {
    auto w = p.wr(WqeOp::kRdmaWrite, 0, 100);
    w.signaled = i % 2 == 0;
    sends.push_back(p.b.post(w, false));  // not rung: the device has not seen them
  }
  ASSERT_TRUE(p.b.to_error().ok());
  const auto got = p.bcq.wait(40);
  ASSERT_EQ(got.size(), 40u);
  for (std::size_t i = 0; i < 40; ++i) {
    expect_error(got[i], S::kWrFlush);
    EXPECT_EQ(got[i].op, prm::CqeOp::kRespErr);
    EXPECT_EQ(got[i].wqe_counter, recvs[i]);
  }
  p.b.ring_doorbell();
  std::size_t i = 0;
  for (const auto& c : p.bcq.wait(20, 10'000'000)) {
    expect_error(c, S::kWrFlush);
    EXPECT_EQ(c.op, prm::CqeOp::kReqErr);
    while (i < sends.size() && sends[i] != c.wqe_counter)
      ++i;  // unsignalled ones may be missing, order may not
    EXPECT_LT(i, sends.size());
  }
  EXPECT_GE(i, 18u) << "the last signalled WQE was flushed";
}

TEST_F(RcError, ErrorWhileTrafficRuns) {
  Pair p(dev());
  for (int i = 0; i < 30; ++i) p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 60000), false);
  p.a.ring_doorbell();
  machine().advance(30'000);
  ASSERT_TRUE(p.a.to_error().ok());
  const auto got = p.acq.wait(30);
  ASSERT_EQ(got.size(), 30u);
  bool flushing = false;
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].wqe_counter, i);
    if (got[i].error()) flushing = true;
    EXPECT_EQ(got[i].error(), flushing) << "no success behind a flush";
  }
  EXPECT_TRUE(flushing);
  revive(p);
}

TEST_F(RcError, ResetForgetsEverything) {
  Pair p(dev());
  for (int i = 0; i < 30; ++i) p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 60000), false);
  p.a.ring_doorbell();
  machine().advance(20'000);
  ASSERT_TRUE(p.a.to_reset().ok());
  while (p.acq.poll()) {
  }
  machine().advance(1'000'000);  // what was on the wire still arrives at b
  const std::uint64_t written = machine().memory().bytes_written();
  machine().advance(10'000'000);
  EXPECT_FALSE(p.acq.ready()) << "no CQE after 2RST";
  EXPECT_EQ(machine().memory().bytes_written(), written);
  revive(p);
}

TEST_F(RcError, DestroyWhileTrafficRuns) {
  breaks({"mr-key", "rkey-unknown"});
  for (int round = 0; round < 10; ++round) {
    auto p = std::make_unique<Pair>(dev());
    for (int i = 0; i < 30; ++i) {
      p->b.post_recv({p->bsge(0, 60000)});
      p->a.post(p->wr(i % 2 ? WqeOp::kSend : WqeOp::kRdmaRead, 0, 60000), false);
    }
    p->a.ring_doorbell();
    machine().advance(7'000 * round);
    p.reset();  // 2RST and DESTROY of both, keys, CQs; then the memory is given back
    machine().advance(1'000'000);
  }
  expect_serves_on();
}

TEST_F(RcError, MkeyDestroyedWhileTrafficRuns) {
  breaks({"mr-key"});
  for (int round = 0; round < 10; ++round) {
    Pair p(dev());
    Buffer extra = dev().memory().allocate(1 << 20);
    auto mr = std::make_unique<Mr>(dev(), Mr::of(p.pd, extra));
    SendWr w;
    w.op = WqeOp::kRdmaRead;
    w.sges = {{mr->start(), mr->key(), 60000}};
    w.raddr = p.bmr.start();
    w.rkey = p.bmr.key();
    for (int i = 0; i < 40; ++i) p.a.post(w, false);
    p.a.ring_doorbell();
    machine().advance(5'000 * round);
    mr.reset();
    extra = Buffer();  // the pages are someone else's from here: stray DMA is counted
    machine().advance(5'000'000);
    const auto got = p.acq.wait(40, 1'000'000'000);
    ASSERT_EQ(got.size(), 40u);
    EXPECT_TRUE(got.back().error());
  }
}

// --- Draining the send queue

constexpr std::uint16_t kRts2Sqd = 0x508;

TEST_F(RcError, SqDrainFinishesWhatIsUnderWay) {
  Pair p(dev());
  p.fill(1);
  dev().clear_async_events();
  for (int i = 0; i < 20; ++i) p.a.post(p.wr(i % 2 ? WqeOp::kRdmaRead : WqeOp::kRdmaWrite, 0, 50000), false);
  p.a.ring_doorbell();
  machine().advance(3000);
  ASSERT_TRUE(p.a.modify(kRts2Sqd, 0, {}).ok());
  ASSERT_TRUE(machine().run_until([&] { return dev().count_async(prm::EqeType::kSqDrained, p.a.qpn()) == 1; },
                                  1'000'000'000));
  std::vector<Completion> got;
  while (const auto c = p.acq.poll()) got.push_back(*c);
  EXPECT_FALSE(got.empty());
  EXPECT_LT(got.size(), 20u) << "what had not been begun waits";
  machine().advance(5'000'000);
  EXPECT_FALSE(p.acq.ready()) << "nothing completes while drained";
  EXPECT_EQ(p.a.state(), QpState::kSqd);
  // Receives go on, new sends wait.
  p.a.post_recv({p.asge(0, 4096)});
  SendWr w;
  w.sges = {p.bsge(0, 100)};
  p.b.post(w);
  EXPECT_EQ(p.acq.wait_one().op, prm::CqeOp::kRespSend);
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 100));
  machine().advance(1'000'000);
  EXPECT_FALSE(p.acq.ready());
  ASSERT_TRUE(p.a.modify(prm::op::SQD_RTS_QP, 0, {}).ok());
  p.a.ring_doorbell();
  const auto rest = p.acq.wait(21 - got.size());
  ASSERT_EQ(rest.size(), 21 - got.size());
  got.insert(got.end(), rest.begin(), rest.end());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_FALSE(got[i].error()) << got[i].text();
    EXPECT_EQ(got[i].wqe_counter, i);
  }
  EXPECT_EQ(dev().count_async(prm::EqeType::kSqDrained), 1u);
}

// As of who takes back what has been posted (mlx5dv_qp_cancel_posted_send_wrs): whatever is not complete when
// the queue has drained may be changed.
TEST_F(RcError, WhatWaitsBehindADrainMayBeChanged) {
  constexpr unsigned kPosted = 40, kLen = 16384;
  PairOptions large;
  large.bytes = std::size_t{kPosted} * kLen;
  Pair p(dev(), large);
  dev().clear_async_events();
  std::memset(p.amem.data(), 0x5a, large.bytes);
  for (std::size_t i = 0; i < kPosted; ++i) p.a.post(p.wr(WqeOp::kRdmaWrite, i * kLen, kLen), false);
  p.a.ring_doorbell();
  machine().advance(3000);
  ASSERT_TRUE(p.a.modify(kRts2Sqd, 0, {}).ok());
  ASSERT_TRUE(machine().run_until([&] { return dev().count_async(prm::EqeType::kSqDrained, p.a.qpn()) == 1; },
                                  1'000'000'000));
  unsigned done = 0;
  for (; const auto c = p.acq.poll(); ++done) EXPECT_FALSE(c->error()) << c->text();
  ASSERT_GT(done, 0u);
  ASSERT_LT(done, kPosted);
  for (unsigned i = done; i < kPosted; ++i) {
    auto* ctrl = reinterpret_cast<prm::CtrlSeg*>(p.a.sq_wqebb(static_cast<std::uint16_t>(i)));
    ctrl->opmod_idx_opcode = i << 8 | static_cast<unsigned>(WqeOp::kNop);
  }
  ASSERT_TRUE(p.a.modify(prm::op::SQD_RTS_QP, 0, {}).ok());
  p.a.ring_doorbell();
  for (const Completion& c : p.acq.wait(kPosted - done)) EXPECT_FALSE(c.error()) << c.text();
  for (std::size_t i = 0; i < kPosted; ++i)
    EXPECT_EQ(p.bmem.data()[i * kLen], i < done ? 0x5a : 0) << "of " << done << " begun, " << i;
}

TEST_F(RcError, SqDrainOfAnIdleQueueIsDoneAtOnce) {
  breaks({"qp-state-transition"});
  Pair p(dev());
  dev().clear_async_events();
  const std::uint64_t failed = fn().counter("fw_qp_errors");
  ASSERT_TRUE(p.a.modify(kRts2Sqd, 0, {}).ok());
  EXPECT_TRUE(machine().run_until([&] { return dev().count_async(prm::EqeType::kSqDrained, p.a.qpn()) == 1; },
                                  1'000'000));
  EXPECT_EQ(fn().counter("fw_qp_errors"), failed) << "it has not failed";
  EXPECT_CMD_STATUS(p.a.modify(kRts2Sqd, 0, {}), CmdStatus::kBadQpState);
  ASSERT_TRUE(p.a.modify(prm::op::SQD_RTS_QP, 0, {}).ok());
  p.fill(2);
  expect_good(p.acq, p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 100)));
}

TEST_F(RcError, AQueueThatFailsWhileItDrainsIsInError) {
  PairOptions o;
  o.attr.retry_count = 1;
  o.attr.ack_timeout = 8;
  Pair p(dev(), o);
  ASSERT_TRUE(p.b.to_reset().ok());
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  machine().advance(20'000);
  dev().clear_async_events();
  ASSERT_TRUE(p.a.modify(kRts2Sqd, 0, {}).ok());
  EXPECT_EQ(p.a.query().must().get<prm::query_qp_out::qpc::state>(), 7u) << "draining";
  expect_error(p.acq.wait_one(), S::kTransportRetryExc);
  EXPECT_EQ(p.a.query().must().get<prm::query_qp_out::qpc::state>(), static_cast<unsigned>(QpState::kErr));
  EXPECT_EQ(dev().count_async(prm::EqeType::kSqDrained), 0u);
}

TEST_F(RcError, SqDrainEndsInError) {
  Pair p(dev());
  for (int i = 0; i < 10; ++i) p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 50000), false);
  p.a.ring_doorbell();
  machine().advance(5000);
  ASSERT_TRUE(p.a.modify(kRts2Sqd, 0, {}).ok());
  ASSERT_TRUE(p.a.to_error().ok());
  const auto got = p.acq.wait(10);
  ASSERT_EQ(got.size(), 10u);
  expect_error(got.back(), S::kWrFlush);
  revive(p);
}

}  // namespace
}  // namespace hcasim::bare
