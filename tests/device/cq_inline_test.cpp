// SPDX-License-Identifier: BSD-3-Clause
// Small messages in the CQE itself, and entries of 128 bytes.
#include <cstring>

#include "fixture.h"

namespace hcasim::bare {
namespace {

constexpr std::uint8_t kReq32 = 0x11, kReq64 = 0x22, kRes32 = 1, kRes64 = 2;

// A pair with memory, and on top of its PD two QPs whose CQEs carry data.
struct InlinePair {
  explicit InlinePair(Device& device, unsigned cqe_size, std::uint8_t cs_req, std::uint8_t cs_res,
                      bool padded = false)
      : pair(device),
        acq(device, cq_options(cqe_size, padded)),
        bcq(device, cq_options(cqe_size, padded)),
        a(device, pair.pd, acq, acq, qp_options(cs_req, cs_res)),
        b(device, pair.pd, bcq, bcq, qp_options(cs_req, cs_res)) {
    connect_pair(a, b);
    pair.fill(17);
  }
  static CqOptions cq_options(unsigned cqe_size, bool padded) {
    CqOptions o;
    o.cqe_size = cqe_size;
    o.padded = padded;
    return o;
  }
  static QpOptions qp_options(std::uint8_t cs_req, std::uint8_t cs_res) {
    QpOptions o;
    o.cs_req = cs_req;
    o.cs_res = cs_res;
    return o;
  }
  // Sends len bytes at 0 of a's memory into b's at 0; the receiver's completion.
  Completion send(std::uint32_t len, WqeOp op = WqeOp::kSend) {
    b.post_recv({pair.bsge(0, 256)});
    auto w = pair.wr(op, 0, len);
    w.imm = 0xabcd1234;
    a.post(w);
    EXPECT_FALSE(acq.wait_one().error());
    return bcq.wait_one();
  }
  Pair pair;
  Cq acq, bcq;
  Qp a, b;
};

struct Shape {
  unsigned cqe_size;
  std::uint8_t cs_req, cs_res;
  std::uint32_t room;
};

class CqInline : public DeviceTest {};

TEST_F(CqInline, SmallReceivesLieInTheCqeAndNotInTheBuffer) {
  for (const Shape s : {Shape{64, kReq32, kRes32, 32}, Shape{128, kReq64, kRes64, 64}}) {
    InlinePair p(dev(), s.cqe_size, s.cs_req, s.cs_res);
    for (const std::uint32_t len : {1u, 31u, 32u, 33u, 64u, 65u, 200u}) {
      std::memset(p.pair.bmem.data(), 0xee, 256);
      for (const WqeOp op : {WqeOp::kSend, WqeOp::kSendImm}) {
        const Completion c = p.send(len, op);
        ASSERT_FALSE(c.error()) << c.text();
        EXPECT_EQ(c.byte_cnt, len);
        if (op == WqeOp::kSendImm) {
          EXPECT_EQ(c.imm, 0xabcd1234u);
        }
        const std::uint8_t* in_cqe = c.inline_data();
        ASSERT_EQ(in_cqe != nullptr, len <= s.room) << s.cqe_size << ", " << len << " bytes";
        EXPECT_EQ(std::memcmp(in_cqe ? in_cqe : p.pair.bmem.data(), p.pair.amem.data(), len), 0) << len;
        if (in_cqe) {
          EXPECT_EQ(p.pair.bmem.data()[0], 0xee) << "it is in one place";
        }
      }
    }
  }
}

TEST_F(CqInline, AnEmptyMessageHasNoData) {
  InlinePair p(dev(), 64, kReq32, kRes32);
  const Completion c = p.send(0);
  EXPECT_FALSE(c.error());
  EXPECT_EQ(c.inline_data(), nullptr);
}

TEST_F(CqInline, TheBufferMustBeLargeEnoughAllTheSame) {
  breaks({"receive-length"});
  InlinePair p(dev(), 64, kReq32, kRes32);
  p.b.post_recv({p.pair.bsge(0, 16)});
  p.a.post(p.pair.wr(WqeOp::kSend, 0, 17));
  expect_error(p.bcq.wait_one(), prm::CqeSyndrome::kLocalLength);
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kRemoteInvalReq);
}

TEST_F(CqInline, RdmaWriteWithImmediateGoesToMemory) {
  InlinePair p(dev(), 64, kReq32, kRes32);
  const Completion c = p.send(16, WqeOp::kRdmaWriteImm);
  EXPECT_FALSE(c.error());
  EXPECT_EQ(c.inline_data(), nullptr);
  EXPECT_TRUE(p.pair.same(0, 16));
}

TEST_F(CqInline, FromAnSrq) {
  Pair p(dev());
  p.fill(3);
  Srq srq(dev(), p.pd);
  Cq cq(dev());
  QpOptions o;
  o.cs_res = kRes32;
  Qp a(dev(), p.pd, p.acq, p.acq), b(dev(), p.pd, cq, cq, o, &srq);
  connect_pair(a, b);
  const std::uint16_t index = srq.post({p.bsge(0, 64)});
  a.post(p.wr(WqeOp::kSend, 0, 24));
  const Completion c = cq.wait_one();
  ASSERT_FALSE(c.error()) << c.text();
  EXPECT_EQ(c.wqe_counter, index);
  ASSERT_NE(c.inline_data(), nullptr);
  EXPECT_EQ(std::memcmp(c.inline_data(), p.amem.data(), 24), 0);
}

TEST_F(CqInline, ReadsAndAtomics) {
  for (const Shape s : {Shape{64, kReq32, 0, 32}, Shape{128, kReq64, 0, 64}}) {
    InlinePair p(dev(), s.cqe_size, s.cs_req, s.cs_res);
    for (const std::uint32_t len : {8u, 32u, 33u, 64u, 65u, 5000u}) {
      p.pair.fill(len);
      p.a.post(p.pair.wr(WqeOp::kRdmaRead, 0, len));
      const Completion c = p.acq.wait_one();
      ASSERT_FALSE(c.error()) << c.text();
      EXPECT_EQ(c.byte_cnt, len);
      ASSERT_EQ(c.inline_data() != nullptr, len <= s.room) << len;
      EXPECT_EQ(std::memcmp(c.inline_data() ? c.inline_data() : p.pair.amem.data(), p.pair.bmem.data(), len),
                0)
          << len;
      EXPECT_EQ(p.pair.same(0, len), len > s.room);
    }
    // Without a CQE there is but the buffer.
    p.pair.fill(1000);
    auto w = p.pair.wr(WqeOp::kRdmaRead, 0, 16);
    w.signaled = false;
    p.a.post(w);
    p.a.post(p.pair.wr(WqeOp::kRdmaWrite, 512, 0));
    EXPECT_FALSE(p.acq.wait_one().error());
    EXPECT_TRUE(p.pair.same(0, 16));

    std::uint64_t before = 0;
    std::memcpy(&before, p.pair.bmem.data() + 64, sizeof before);
    w = p.pair.wr(WqeOp::kAtomicFa, 64, 8);
    w.swap_add = 5;
    p.a.post(w);
    const Completion c = p.acq.wait_one();
    ASSERT_FALSE(c.error()) << c.text();
    ASSERT_NE(c.inline_data(), nullptr);
    std::uint64_t original = 0, after = 0;
    std::memcpy(&original, c.inline_data(), sizeof original);
    std::memcpy(&after, p.pair.bmem.data() + 64, sizeof after);
    EXPECT_EQ(original, before);
    EXPECT_EQ(after, before + 5);
  }
}

TEST_F(CqInline, WhatDoesNotFitTheCqIsNotInlined) {
  // 64 bytes need an entry of 128.
  InlinePair p(dev(), 64, kReq64, kRes64);
  EXPECT_EQ(p.send(16).inline_data(), nullptr);
  EXPECT_TRUE(p.pair.same(0, 16));
}

TEST_F(CqInline, PaddedEntriesAreWrittenWhole) {
  for (const bool padded : {false, true}) {
    InlinePair p(dev(), 128, kReq64, kRes64, padded);
    std::memset(p.bcq.ring().data(), 0x77, 64);
    const Completion c = p.send(100);
    EXPECT_FALSE(c.error());
    EXPECT_EQ(c.head[0], padded ? 0 : 0x77);
    EXPECT_EQ(c.head[63], padded ? 0 : 0x77);
    for (unsigned i = 0; i < 600; ++i) ASSERT_FALSE(p.send(i % 80).error());
  }
}

TEST_F(CqInline, AnEntryAcrossTwoPages) {
  Pair p(dev());
  p.fill(5);
  CqOptions o;
  o.cqe_size = 128;
  o.log_size = 6;
  o.ring.scattered = true;
  o.ring.page_offset = 1;  // each 32nd entry lies in two pages
  Cq cq(dev(), o);
  Qp a(dev(), p.pd, p.acq, p.acq), b(dev(), p.pd, cq, cq, InlinePair::qp_options(0, kRes64));
  connect_pair(a, b);
  for (unsigned i = 0; i < 200; ++i) {
    b.post_recv({p.bsge(0, 64)});
    a.post(p.wr(WqeOp::kSend, i, 48));
    expect_good(p.acq, static_cast<std::uint16_t>(i));
    const Completion c = cq.wait_one();
    ASSERT_FALSE(c.error());
    ASSERT_NE(c.inline_data(), nullptr);
    ASSERT_EQ(std::memcmp(c.inline_data(), p.amem.data() + i, 48), 0) << i;
  }
}

TEST_F(CqInline, RefusedByCommand) {
  breaks({"cap-not-offered"});
  Pair p(dev());
  for (const std::uint8_t req : {0x12, 0x33, 0x01}) {
    EXPECT_THROW(Qp(dev(), p.pd, p.acq, p.acq, InlinePair::qp_options(req, 0)), BareError) << int{req};
  }
  EXPECT_THROW(Qp(dev(), p.pd, p.acq, p.acq, InlinePair::qp_options(0, 3)), BareError);
}

}  // namespace
}  // namespace hcasim::bare
