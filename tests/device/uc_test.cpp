// SPDX-License-Identifier: BSD-3-Clause
// UC: SENDs and WRITEs without acknowledgements. What is lost is lost whole, what arrives is right.
#include <cstring>

#include "fixture.h"

namespace hcasim::bare {
namespace {

class Uc : public DeviceTest {
 protected:
  struct Pairs {
    explicit Pairs(Pair& p, unsigned mtu = 1024)
        : a(p.dev, p.pd, p.acq, p.acq, options()), b(p.dev, p.pd, p.bcq, p.bcq, options()) {
      QpAttr attr;
      attr.mtu = mtu;
      attr.access = kRemoteWrite;
      attr.send_psn = 0xfffff0;
      attr.recv_psn = 0x10;
      connect_pair(a, b, attr);
    }
    static QpOptions options() {
      QpOptions o;
      o.type = QpType::kUc;
      return o;
    }
    Qp a, b;
  };
};

TEST_F(Uc, SendsAndWritesArrive) {
  Pair p(dev());
  Pairs u(p);
  for (const std::uint32_t len : {1u, 1024u, 1025u, 30000u}) {
    p.fill(len);
    expect_good(p.acq, u.a.post(p.wr(WqeOp::kRdmaWrite, 0, len)));
    machine().advance(100'000);
    EXPECT_TRUE(p.same(0, len));
    EXPECT_FALSE(p.bcq.ready());
    p.fill(len + 1);
    u.b.post_recv({p.bsge(0, 60000)});
    auto w = p.wr(WqeOp::kSendImm, 0, len);
    w.imm = len;
    expect_good(p.acq, u.a.post(w));
    Completion d = p.bcq.wait_one();
    EXPECT_EQ(d.op, prm::CqeOp::kRespSendImm);
    EXPECT_EQ(d.byte_cnt, len);
    EXPECT_EQ(d.imm, len);
    EXPECT_TRUE(p.same(0, len));
    u.b.post_recv({});
    w.op = WqeOp::kRdmaWriteImm;
    expect_good(p.acq, u.a.post(w));
    d = p.bcq.wait_one();
    EXPECT_EQ(d.op, prm::CqeOp::kRespWrImm);
    EXPECT_EQ(d.byte_cnt, len);
  }
}

TEST_F(Uc, LostPacketsLoseWholeMessages) {
  Pair p(dev());
  Pairs u(p);
  p.fill(1);
  ASSERT_EQ(fn().inject("drop=0.05"), "");
  unsigned received = 0;
  for (unsigned i = 0; i < 200; ++i) {
    if (received == 0 || i % 8 == 0) {
      while (static_cast<std::uint16_t>(u.b.rq_producer() - received) < 40) u.b.post_recv({p.bsge(0, 60000)});
    }
    std::memset(p.bmem.data(), 0, 10000);
    expect_good(p.acq, u.a.post(p.wr(WqeOp::kSend, 0, 10000)));
    machine().advance(50'000);
    while (const auto c = p.bcq.poll()) {
      ASSERT_FALSE(c->error()) << c->text();
      EXPECT_EQ(c->byte_cnt, 10000u);
      EXPECT_EQ(c->wqe_counter, static_cast<std::uint16_t>(received))
          << "a lost message costs no receive WQE";
      EXPECT_TRUE(p.same(0, 10000));
      ++received;
    }
  }
  EXPECT_GT(received, 60u);
  EXPECT_LT(received, 180u);
  EXPECT_EQ(u.b.state(), QpState::kRts);
}

TEST_F(Uc, NoReceiverIsNoError) {
  Pair p(dev());
  Pairs u(p);
  p.fill(2);
  for (int i = 0; i < 5; ++i) expect_good(p.acq, u.a.post(p.wr(WqeOp::kSend, 0, 5000)));
  machine().advance(1'000'000);
  u.b.post_recv({p.bsge(0, 5000)});
  expect_good(p.acq, u.a.post(p.wr(WqeOp::kSend, 0, 5000)));
  EXPECT_EQ(p.bcq.wait_one().byte_cnt, 5000u);
  EXPECT_TRUE(p.same(0, 5000));
}

TEST_F(Uc, WriteWithoutRightIsDroppedSilently) {
  breaks({"rkey-unknown"});
  Pair p(dev());
  Pairs u(p);
  auto w = p.wr(WqeOp::kRdmaWrite, 0, 5000);
  w.rkey ^= 1;
  expect_good(p.acq, u.a.post(w));
  machine().advance(1'000'000);
  EXPECT_EQ(u.a.state(), QpState::kRts) << "nobody tells the requester";
}

TEST_F(Uc, ReadsAndAtomicsAreLocalErrors) {
  breaks({"wqe-opcode"});
  for (const WqeOp op : {WqeOp::kRdmaRead, WqeOp::kAtomicFa}) {
    Pair p(dev());
    Pairs u(p);
    u.a.post(p.wr(op, 0, 8));
    expect_error(p.acq.wait_one(), prm::CqeSyndrome::kLocalQpOp);
  }
  expect_serves_on();
}

}  // namespace
}  // namespace hcasim::bare
