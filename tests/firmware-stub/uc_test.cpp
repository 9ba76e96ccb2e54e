// SPDX-License-Identifier: BSD-3-Clause
// Unreliable connections do what offering them promises (IBTA 9.8.2).
#include "driver/bare/qp.h"
#include "fixture.h"

namespace hcasim::bare {
namespace {

class Uc : public FirmwareTest {
 protected:
  struct Pair {
    explicit Pair(Device& d)
        : pd(d),
          acq(d),
          bcq(d),
          a(d, pd, acq, acq, uc()),
          b(d, pd, bcq, bcq, uc()),
          amem(d.memory().allocate(kBytes)),
          bmem(d.memory().allocate(kBytes)),
          amr(d, Mr::of(pd, amem)),
          bmr(d, Mr::of(pd, bmem)) {
      QpAttr attr;
      attr.mtu = 1024;
      attr.send_psn = 0xfffffe;  // wraps
      attr.recv_psn = 0xfffffe;
      attr.access = kRemoteWrite;
      attr.remote_qpn = b.qpn();
      a.connect(attr);
      attr.remote_qpn = a.qpn();
      b.connect(attr);
      for (std::size_t i = 0; i < kBytes; ++i) amem.data()[i] = static_cast<std::uint8_t>(i * 7 + 1);
    }
    static QpOptions uc() {
      QpOptions o;
      o.type = QpType::kUc;
      return o;
    }
    SendWr wr(WqeOp op, std::uint32_t len) const {
      SendWr w;
      w.op = op;
      w.sges = {{amr.start(), amr.key(), len}};
      w.raddr = bmr.start();
      w.rkey = bmr.key();
      w.imm = 0x1234;
      return w;
    }
    bool same(std::size_t len) const { return std::equal(amem.data(), amem.data() + len, bmem.data()); }

    static constexpr std::size_t kBytes = 64 << 10;
    Pd pd;
    Cq acq, bcq;
    Qp a, b;
    Buffer amem, bmem;
    Mr amr, bmr;
  };
};

TEST_F(Uc, SendsAndWrites) {
  Pair p(dev());
  for (const std::uint32_t len : {1u, 1024u, 1025u, 40000u}) {
    SCOPED_TRACE(len);
    std::fill(p.bmem.data(), p.bmem.data() + len, std::uint8_t{0});
    p.b.post_recv({{p.bmr.start(), p.bmr.key(), Pair::kBytes}});
    p.a.post(p.wr(WqeOp::kSend, len));
    EXPECT_EQ(static_cast<int>(p.acq.wait_one().op), static_cast<int>(prm::CqeOp::kReq));
    const Completion r = p.bcq.wait_one();
    EXPECT_EQ(static_cast<int>(r.op), static_cast<int>(prm::CqeOp::kRespSend));
    EXPECT_EQ(r.byte_cnt, len);
    EXPECT_TRUE(p.same(len));

    std::fill(p.bmem.data(), p.bmem.data() + len, std::uint8_t{0});
    p.b.post_recv({});
    p.a.post(p.wr(WqeOp::kRdmaWriteImm, len));
    EXPECT_EQ(static_cast<int>(p.acq.wait_one().op), static_cast<int>(prm::CqeOp::kReq));
    EXPECT_EQ(static_cast<int>(p.bcq.wait_one().op), static_cast<int>(prm::CqeOp::kRespWrImm));
    EXPECT_TRUE(p.same(len));
  }
}

TEST_F(Uc, NoReceiverIsNoError) {
  Pair p(dev());
  p.a.post(p.wr(WqeOp::kSend, 3000));
  EXPECT_EQ(static_cast<int>(p.acq.wait_one().op), static_cast<int>(prm::CqeOp::kReq));
  machine().advance(1'000'000);
  EXPECT_EQ(p.a.state(), QpState::kRts);
  EXPECT_EQ(p.b.state(), QpState::kRts);
  p.b.post_recv({{p.bmr.start(), p.bmr.key(), Pair::kBytes}});
  p.a.post(p.wr(WqeOp::kSend, 3000));
  EXPECT_EQ(static_cast<int>(p.acq.wait_one().op), static_cast<int>(prm::CqeOp::kReq));
  EXPECT_EQ(p.bcq.wait_one().byte_cnt, 3000u);
  EXPECT_TRUE(p.same(3000));
}

TEST_F(Uc, LossIsSilentAndTheNextMessageArrives) {
  Pair p(dev());
  ASSERT_EQ(fn().inject("drop=0.3,seed=5"), "");
  unsigned arrived = 0, posted = 0;
  for (unsigned i = 0; i < 40; ++i) {
    if (posted - arrived < 32) ++posted, p.b.post_recv({{p.bmr.start(), p.bmr.key(), Pair::kBytes}});
    p.a.post(p.wr(WqeOp::kSend, 2500));
    EXPECT_EQ(static_cast<int>(p.acq.wait_one().op), static_cast<int>(prm::CqeOp::kReq));
    machine().advance(100'000);
    while (const auto c = p.bcq.poll()) {
      EXPECT_EQ(c->byte_cnt, 2500u);
      ++arrived;
    }
  }
  EXPECT_GT(arrived, 2u);
  EXPECT_LT(arrived, 40u);
  ASSERT_EQ(fn().inject("none"), "");
  EXPECT_EQ(p.b.state(), QpState::kRts);
}

TEST_F(Uc, ReadsAreNotForIt) {
  breaks({"wqe-opcode"});
  Pair p(dev());
  p.a.post(p.wr(WqeOp::kRdmaRead, 100));
  EXPECT_EQ(static_cast<int>(p.acq.wait_one().op), static_cast<int>(prm::CqeOp::kReqErr));
}

}  // namespace
}  // namespace hcasim::bare
