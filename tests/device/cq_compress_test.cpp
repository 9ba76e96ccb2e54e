// SPDX-License-Identifier: BSD-3-Clause
// Compressed CQEs of received frames.
#include "eth_fixture.h"

namespace hcasim::bare {
namespace {

using prm::MiniFormat;

CqOptions compressing(MiniFormat format, unsigned cqe_size = 64, unsigned log_size = 8) {
  CqOptions o;
  o.compress = format;
  o.cqe_size = cqe_size;
  o.log_size = log_size;
  return o;
}

// Posts n receives, sends n frames of growing lengths with one doorbell; their completions.
std::vector<Completion> burst(EthLink& link, unsigned n, const std::function<Frame(unsigned)>& frame) {
  for (unsigned i = 0; i < n; ++i) link.rq.post({link.rx_sge(i * 2048, 2048)}, false);
  link.rq.ring_doorbell();
  for (unsigned i = 0; i < n; ++i) {
    const Frame f = frame(i);
    link.put(i * 4096, f);
    EthWr wr;
    wr.sges = {link.tx_sge(i * 4096, static_cast<std::uint32_t>(f.size()))};
    wr.signaled = i + 1 == n;
    link.sq.post(wr, false);
  }
  link.sq.ring_doorbell();
  const auto got = link.rcq.wait(n);
  link.scq.wait(1);
  return got;
}

class CqCompress : public EthTest {};

TEST_F(CqCompress, ABurstIsABlockAndLosesNothing) {
  for (const unsigned size : {64u, 128u}) {
    for (const MiniFormat format : {MiniFormat::kHash, MiniFormat::kChecksum, MiniFormat::kChecksumStride}) {
      EthLink link(dev(), {}, compressing(format, size));
      std::uint16_t counter = 0;
      for (unsigned round = 0; round < 40; ++round) {  // round the ring, from all places of it
        const unsigned n = 1 + round * 7 % 40;
        const auto got = burst(link, n, [&](unsigned i) { return plain_frame(100 + i * 7, round * 64 + i); });
        ASSERT_EQ(got.size(), n);
        for (unsigned i = 0; i < n; ++i) {
          ASSERT_FALSE(got[i].error());
          ASSERT_EQ(got[i].byte_cnt, 100 + i * 7);
          ASSERT_EQ(got[i].wqe_counter, counter++) << n << ", " << i;
          const Frame want = plain_frame(100 + i * 7, round * 64 + i);
          ASSERT_EQ(link.received(i * 2048, want.size()), want);
          if (format != MiniFormat::kHash) {
            ASSERT_EQ(got[i].raw.check_sum, plain_sum(want, 14, want.size())) << i;
          }
        }
      }
      EXPECT_GT(link.rcq.blocks(), 20u);
    }
  }
}

// Drivers that take several CQEs at once rely on it; driver/bare refuses a block that does.
TEST_F(CqCompress, NoBlockGoesPastTheRingsEnd) {
  EthLink link(dev(), {}, compressing(MiniFormat::kHash, 64, 4));
  unsigned blocks = 0;
  for (unsigned round = 0; round < 16; ++round) {  // 11 of 16 places: each round begins at another one
    ASSERT_EQ(burst(link, 11, [](unsigned) { return plain_frame(200); }).size(), 11u);
    EXPECT_GT(link.rcq.blocks(), blocks) << "round " << round;
    blocks = link.rcq.blocks();
  }
}

TEST_F(CqCompress, ALoneFrameIsNotHeldForLong) {
  EthLink link(dev(), {}, compressing(MiniFormat::kChecksum));
  for (unsigned i = 0; i < 5; ++i) {
    ASSERT_EQ(burst(link, 1, [](unsigned) { return plain_frame(300); }).size(), 1u);
  }
  EXPECT_EQ(link.rcq.blocks(), 0u) << "a title alone is a CQE like others";
}

TEST_F(CqCompress, DifferentFramesEndABlock) {
  EthLink link(dev(), {}, compressing(MiniFormat::kChecksum));
  // TCP and others in turn: header types differ.
  const auto frame = [](unsigned i) { return i % 2 ? plain_frame(200) : l4_frame({}); };
  const auto got = burst(link, 12, frame);
  ASSERT_EQ(got.size(), 12u);
  EXPECT_EQ(link.rcq.blocks(), 0u);
  for (unsigned i = 0; i < 12; ++i) EXPECT_EQ(got[i].raw.l4_l3_hdr_type == 0, i % 2 == 1) << i;
}

TEST_F(CqCompress, EventsComeWhenTheBlockIsThere) {
  EthLink link(dev(), {}, compressing(MiniFormat::kChecksum));
  link.rcq.arm();
  bool there = false;
  link.rcq.set_handler([&] { there = link.rcq.ready(); });
  burst(link, 10, [](unsigned) { return plain_frame(200); });
  EXPECT_TRUE(machine().run_until([&] { return link.rcq.events() == 1; }));
  EXPECT_TRUE(there);
  // Armed with frames held back: they are written first, and raise the event.
  link.rcq.arm();
  machine().advance(100'000);
  EXPECT_EQ(link.rcq.events(), 1u);
}

TEST_F(CqCompress, StridingQueues) {
  for (const MiniFormat format : {MiniFormat::kChecksum, MiniFormat::kChecksumStride}) {
    RqOptions o;
    o.type = 3;
    o.log_stride = 5;
    o.log_strides = 9;
    o.log_stride_size = 6;  // 512 strides of 64 bytes
    EthLink link(dev(), o, compressing(format));
    for (unsigned i = 0; i < 4; ++i) link.rq.post({link.rx_sge(i * 32768, 32768)});
    unsigned stride = 0;
    for (unsigned i = 0; i < 32; ++i) {
      const Frame f = plain_frame(64 + i * 10, i);
      link.put(i * 4096, f);
      EthWr wr;
      wr.sges = {link.tx_sge(i * 4096, static_cast<std::uint32_t>(f.size()))};
      link.sq.post(wr, false);
    }
    link.sq.ring_doorbell();
    const auto got = link.rcq.wait(32);
    ASSERT_EQ(got.size(), 32u);
    for (unsigned i = 0; i < 32; ++i) {
      const Frame want = plain_frame(64 + i * 10, i);
      ASSERT_EQ(got[i].byte_cnt & 0xffff, want.size());
      ASSERT_EQ(got[i].wqe_counter, stride) << i;
      ASSERT_EQ(got[i].raw.wqe_id, 0u);
      ASSERT_EQ(link.received(stride * 64u, want.size()), want) << i;
      stride += got[i].byte_cnt >> 16;
    }
    EXPECT_GT(link.rcq.blocks(), 0u);
  }
}

TEST_F(CqCompress, FlushEndsABlock) {
  EthLink link(dev(), {}, compressing(MiniFormat::kChecksum));
  for (unsigned i = 0; i < 6; ++i) link.rq.post({link.rx_sge(i * 2048, 2048)});
  for (unsigned i = 0; i < 3; ++i) link.send(plain_frame(100));
  machine().run_until([&] { return link.scq.ready(); });
  link.scq.wait(3);
  link.steer_to(0);
  ASSERT_TRUE(link.rq.modify(1, 3).ok());
  const auto got = link.rcq.wait(6);
  ASSERT_EQ(got.size(), 6u);
  for (unsigned i = 0; i < 6; ++i) {
    EXPECT_EQ(got[i].error(), i >= 3) << i;
    EXPECT_EQ(got[i].wqe_counter, i);
  }
}

TEST_F(CqCompress, AlsoForQueuesOfMessages) {
  // Completions that are no frames' are written as they are.
  EthLink link(dev(), {}, compressing(MiniFormat::kChecksum));
  Qp a(dev(), link.pd, link.rcq, link.rcq), b(dev(), link.pd, link.rcq, link.rcq);
  connect_pair(a, b);
  for (unsigned i = 0; i < 20; ++i) {
    b.post_recv({link.rx_sge(0, 64)});
    SendWr w;
    w.sges = {link.tx_sge(0, 64)};
    a.post(w);
  }
  const auto got = link.rcq.wait(40);
  ASSERT_EQ(got.size(), 40u);
  for (const auto& c : got) EXPECT_FALSE(c.error());
  EXPECT_EQ(link.rcq.blocks(), 0u);
}

TEST_F(CqCompress, AFormatThatThereIsNot) {
  breaks({"cap-not-offered"});
  EXPECT_THROW(Cq(dev(), compressing(static_cast<MiniFormat>(2))), BareError);
}

}  // namespace
}  // namespace hcasim::bare
