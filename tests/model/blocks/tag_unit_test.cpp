// SPDX-License-Identifier: BSD-3-Clause
// Tag matching by itself: list operations and arriving messages in; verdicts, completions and the HCA's own
// requests out.
#include "model/tm/tag_unit.h"

#include <gmock/gmock.h>

#include "block_rig.h"
#include "prm/wqe.h"

namespace hcasim::test {
namespace {

using prm::CqeOp;
using prm::TmhOp;
using prm::TmListOp;
using prm::TmOp;
using Arrival = TagUnit::Arrival;

constexpr std::uint64_t kTag = 0xfeed, kBuffer = 0x61000;
constexpr std::uint32_t kBufferLen = 512, kLkey = 0x1177, kEntryOfNone = 5;

class TagUnitTest : public SingleBlockTest {
 protected:
  void SetUp() override {
    SingleBlockTest::SetUp();
    r.make_eq();
    r.make_cq();
    qp = &r.make_qp();
    qp->use_srq = true;
    qp->has_rq = false;
    qp->srqn = BlockRig::kSrqn;
    xrq = r.qps.create_srq(BlockRig::kSrqn);
    xrq->xrq = true;
    xrq->pd = BlockRig::kPd;
    xrq->cqn = BlockRig::kCqn;
    xrq->tags = std::make_unique<TagList>(3);
  }
  SendWqe list_wqe(TmListOp op, std::uint16_t index, std::uint8_t flags = prm::TmSeg::kCqeReq) const {
    struct {
      prm::TmSeg seg;
      prm::DataSeg data;
    } w{};
    w.seg.opcode = static_cast<std::uint8_t>(static_cast<unsigned>(op) << 4);
    w.seg.flags = flags;
    w.seg.index = index;
    w.seg.append_tag = kTag;
    w.seg.append_mask = ~std::uint64_t{0};
    w.data.byte_count = kBufferLen;
    w.data.lkey = kLkey;
    w.data.addr = kBuffer;
    SendWqe wqe;
    wqe.opcode = prm::WqeOp::kTagMatch;
    wqe.counter = 17;
    wqe.bytes.resize(sizeof w);
    std::memcpy(wqe.bytes.data(), &w, sizeof w);
    return wqe;
  }
  bool append(std::uint16_t next) {
    const bool good = r.tags.execute(sim_now(), *qp, list_wqe(TmListOp::kAppend, next));
    r.run_ns(2000);
    return good;
  }
  static PacketRef message(TmhOp op, std::uint64_t tag, std::uint32_t len = 100) {
    PacketRef p = PacketPool::make();
    p->payload_len = len;
    std::memset(p->data(), 0, len);
    prm::Tmh tmh{};
    tmh.opcode = static_cast<std::uint8_t>(op);
    tmh.tag = tag;
    std::memcpy(p->data(), &tmh, sizeof tmh);
    return p;
  }
  PacketRef rendezvous(std::uint32_t bytes) const {
    PacketRef p = message(TmhOp::kRndv, kTag, sizeof(prm::Tmh) + sizeof(prm::Rvh));
    prm::Rvh rvh{};
    rvh.va = 0x123000;
    rvh.rkey = 0x4455;
    rvh.len = bytes;
    std::memcpy(p->data() + sizeof(prm::Tmh), &rvh, sizeof rvh);
    return p;
  }
  Arrival arrive(const PacketRef& p, bool last = true) {
    const Arrival a = r.tags.arrive(sim_now(), *qp, *p, last);
    r.run_ns(2000);
    return a;
  }
  std::uint32_t completions() const {
    return block_rig().cqs.find(BlockRig::kFunction, BlockRig::kCqn)->producer;
  }
  TmOp cqe_op(unsigned i) const { return static_cast<TmOp>(r.cqe(i).app_op); }

  Qp* qp = nullptr;
  Srq* xrq = nullptr;
};

TEST_F(TagUnitTest, AnAppendIsCompletedWithItsPlaceInTheList) {
  ASSERT_TRUE(append(1));
  ASSERT_EQ(completions(), 1u);
  EXPECT_EQ(r.cqe(0).opcode(), CqeOp::kNoPacket);
  EXPECT_EQ(r.cqe(0).app, prm::Cqe::kAppTagMatching);
  EXPECT_EQ(cqe_op(0), TmOp::kAppend);
  EXPECT_EQ(r.cqe(0).app_info, 0);
  EXPECT_EQ(r.cqe(0).wqe_counter, 17);
  ASSERT_TRUE(append(2));
  EXPECT_EQ(r.cqe(1).app_info, 1);
}

TEST_F(TagUnitTest, AnEagerMessageGoesToTheBufferThatItsTagMatches) {
  ASSERT_TRUE(append(1));
  EXPECT_EQ(arrive(message(TmhOp::kEager, kTag)), Arrival::kMatched);
  EXPECT_EQ(r.tags.matched(), 1u);
  EXPECT_TRUE(qp->resp.wqe.valid);
  ASSERT_EQ(qp->resp.wqe.sges.size(), 1u);
  EXPECT_EQ(qp->resp.wqe.sges[0].addr, kBuffer);
  EXPECT_EQ(qp->resp.wqe.capacity, kBufferLen);
  EXPECT_EQ(qp->resp.tagged.skip, sizeof(prm::Tmh)) << "the header is not data";
  EXPECT_EQ(qp->resp.tagged.op, TmOp::kConsumedMsg);
  EXPECT_EQ(xrq->tags->size(), 0u) << "an entry takes one message";
}

TEST_F(TagUnitTest, ALongMessageIsReportedAsConsumedBeforeItsDataHaveCome) {
  ASSERT_TRUE(append(1));
  EXPECT_EQ(arrive(message(TmhOp::kEager, kTag), false), Arrival::kMatched);
  ASSERT_EQ(completions(), 2u);
  EXPECT_EQ(cqe_op(1), TmOp::kConsumed);
  EXPECT_EQ(qp->resp.tagged.op, TmOp::kExpected);
}

TEST_F(TagUnitTest, AnUnexpectedMessageGoesToAnUntaggedBuffer) {
  ASSERT_TRUE(append(1));
  EXPECT_EQ(arrive(message(TmhOp::kEager, kTag + 1)), Arrival::kUnmatched);
  EXPECT_EQ(qp->resp.tagged.op, TmOp::kUnexpected);
  EXPECT_FALSE(qp->resp.wqe.valid);
  EXPECT_EQ(xrq->tags->hw_phase(), 0) << "counted when there was a buffer, not before";
  r.tags.accepted(*qp);
  EXPECT_EQ(r.tags.unexpected(), 1u);
  EXPECT_EQ(xrq->tags->hw_phase(), 1);
}

TEST_F(TagUnitTest, AnEntryAppendedBehindAnUnexpectedMessageWaitsForTheSoftware) {
  arrive(message(TmhOp::kEager, kTag));
  r.tags.accepted(*qp);
  ASSERT_TRUE(append(1));
  EXPECT_EQ(arrive(message(TmhOp::kEager, kTag)), Arrival::kUnmatched);
  SendWqe sync = list_wqe(TmListOp::kNop, 0, prm::TmSeg::kSwCnt);
  prm::TmSeg seg;
  std::memcpy(&seg, sync.bytes.data(), sizeof seg);
  seg.sw_cnt = 1;
  std::memcpy(sync.bytes.data(), &seg, sizeof seg);
  ASSERT_TRUE(r.tags.execute(sim_now(), *qp, sync));
  EXPECT_EQ(arrive(message(TmhOp::kEager, kTag)), Arrival::kMatched);
}

TEST_F(TagUnitTest, AMessageWithoutATagAndAQpWithoutAListAreToldApart) {
  EXPECT_EQ(arrive(message(TmhOp::kNoTag, kTag)), Arrival::kUnmatched);
  EXPECT_EQ(qp->resp.tagged.op, TmOp::kNoTag);
  xrq->tags.reset();
  EXPECT_EQ(arrive(message(TmhOp::kEager, kTag)), Arrival::kNotForTags);
}

TEST_F(TagUnitTest, RemovingAnEntryThatIsGoneCompletesWithoutSuccess) {
  ASSERT_TRUE(append(1));
  for (const bool there : {true, false}) {
    ASSERT_TRUE(r.tags.execute(sim_now(), *qp, list_wqe(TmListOp::kRemove, 0)));
    r.run_ns(2000);
    const unsigned i = completions() - 1;
    EXPECT_EQ(cqe_op(i), TmOp::kRemove);
    const auto head = r.load<prm::TmCqe>(BlockRig::kCqRing + 64 * i);
    EXPECT_EQ((head.success & prm::TmCqe::kSuccess) != 0, there);
  }
}

TEST_F(TagUnitTest, MalformedOperationsAreRefused) {
  EXPECT_FALSE(append(1u << 3)) << "the next place lies outside of the list";
  SendWqe cut = list_wqe(TmListOp::kAppend, 1);
  cut.bytes.resize(sizeof(prm::TmSeg) - 1);
  EXPECT_FALSE(r.tags.execute(sim_now(), *qp, cut));
  EXPECT_FALSE(r.tags.execute(sim_now(), *qp, list_wqe(static_cast<TmListOp>(kEntryOfNone), 0)));
  EXPECT_EQ(completions(), 0u);
}

TEST_F(TagUnitTest, ARendezvousIsFetchedWithAReadAndEndedWithAMessage) {
  xrq->rendezvous = qp->rendezvous = true;
  ASSERT_TRUE(append(1));
  EXPECT_EQ(arrive(rendezvous(kBufferLen)), Arrival::kDone);
  ASSERT_EQ(qp->req.own.size(), 1u);
  const SendWqe read = qp->req.own[0];
  EXPECT_EQ(read.opcode, prm::WqeOp::kRdmaRead);
  EXPECT_EQ(read.raddr, 0x123000u);
  EXPECT_EQ(read.rkey, 0x4455u);
  ASSERT_EQ(read.sges.size(), 1u);
  EXPECT_EQ(read.sges[0].addr, kBuffer);
  EXPECT_EQ(r.request_turns.turns.size(), 1u) << "the send queue is woken for it";

  qp->req.own.clear();
  r.tags.request_done(sim_now(), *qp, read, true);
  r.run_ns(2000);
  EXPECT_EQ(cqe_op(completions() - 1), TmOp::kExpected);
  ASSERT_EQ(qp->req.own.size(), 1u);
  EXPECT_EQ(qp->req.own[0].opcode, prm::WqeOp::kSend);
  EXPECT_EQ(qp->req.own[0].bytes[0], static_cast<unsigned>(TmhOp::kFin));
}

TEST_F(TagUnitTest, ARendezvousLargerThanItsBufferIsLeftToSoftware) {
  xrq->rendezvous = qp->rendezvous = true;
  ASSERT_TRUE(append(1));
  EXPECT_EQ(arrive(rendezvous(kBufferLen + 1)), Arrival::kMatched);
  EXPECT_EQ(qp->resp.tagged.op, TmOp::kConsumedMsgSwRndv);
  EXPECT_TRUE(qp->req.own.empty());
}

}  // namespace
}  // namespace hcasim::test
