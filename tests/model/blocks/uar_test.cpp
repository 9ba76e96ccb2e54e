// SPDX-License-Identifier: BSD-3-Clause
// The UAR block by itself: stores in; doorbells for the scheduler, the CQs and the EQs out.
#include "model/uar/uar.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "block_rig.h"
#include "prm/prm.h"
#include "prm/wqe.h"

namespace hcasim::test {
namespace {

constexpr std::uint64_t kPageAt = std::uint64_t{BlockRig::kUarPage} * kUarPageSize;

class UarTest : public SingleBlockTest {
 protected:
  void SetUp() override {
    SingleBlockTest::SetUp();
    pages.set_allocated(BlockRig::kUarPage, true);
    eq = &r.make_eq();
    cq = &r.make_cq();
    qp = &r.make_qp();
  }
  template <class T>
  void store(unsigned reg, const T& value, unsigned len = sizeof(T)) {
    std::uint8_t bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof value);
    uar.write(sim_now(), BlockRig::kFunction, kPageAt + reg, bytes, len);
  }
  static prm::CtrlSeg ctrl(std::uint32_t qpn, std::uint16_t index) {
    prm::CtrlSeg c{};
    c.set(prm::WqeOp::kNop, index, qpn, 1, prm::kCeAlways);
    return c;
  }
  void ring(std::uint32_t qpn, std::uint16_t index) { store(prm::uar::kSqDoorbell, ctrl(qpn, index), 8); }
  prm::CqDoorbell arm_word(std::uint32_t cqn) const {
    prm::CqDoorbell db{};
    db.cmd_ci = 0;
    db.cqn = cqn;
    return db;
  }

  std::uint64_t doorbells() const { return r.scheduler.doorbells() - before; }

  UarPages idle_pages, pages;
  Uar uar{{r.profile, r.tracer, r.scheduler, r.dma, BlockRig::both(idle_pages, pages), r.both_qps(), r.cqs,
           r.eqs}};
  Eq* eq = nullptr;
  Cq* cq = nullptr;
  Qp* qp = nullptr;
  const std::uint64_t before = r.scheduler.doorbells();
};

TEST_F(UarTest, ADoorbellGivesTheQpATurn) {
  ring(BlockRig::kQpn, 4);
  EXPECT_TRUE(qp->req.doorbell_named);
  EXPECT_EQ(qp->req.doorbell_index, 4);
  r.run_ns(1000);
  ASSERT_EQ(r.request_turns.turns.size(), 1u);
  EXPECT_EQ(r.request_turns.turns[0].qpn, BlockRig::kQpn);
  EXPECT_EQ(pages.bad, 0u);
}

TEST_F(UarTest, ADoorbellOnAPageThatWasNotAllocatedIsCounted) {
  pages.set_allocated(BlockRig::kUarPage, false);
  ring(BlockRig::kQpn, 0);
  EXPECT_EQ(pages.bad, 1u);
  EXPECT_FALSE(qp->req.doorbell);
  r.run_ns(1000);
  EXPECT_TRUE(r.request_turns.turns.empty());
}

TEST_F(UarTest, APageBeyondTheUarsIsCounted) {
  pages.set_allocated(Uar::kPages, true);
  const prm::CtrlSeg c = ctrl(BlockRig::kQpn, 0);
  std::uint8_t bytes[8];
  std::memcpy(bytes, &c, sizeof bytes);
  uar.write(sim_now(), BlockRig::kFunction, std::uint64_t{Uar::kPages} * kUarPageSize + prm::uar::kSqDoorbell,
            bytes, 8);
  EXPECT_EQ(pages.bad, 1u);
  EXPECT_FALSE(qp->req.doorbell);
}

TEST_F(UarTest, TwoHalvesOf32BitsMakeOneDoorbell) {
  const prm::CtrlSeg c = ctrl(BlockRig::kQpn, 6);
  store(prm::uar::kSqDoorbell, c.opmod_idx_opcode);
  EXPECT_FALSE(qp->req.doorbell) << "half a register rings nothing";
  store(prm::uar::kSqDoorbell + 4, c.qpn_ds);
  EXPECT_TRUE(qp->req.doorbell);
  EXPECT_EQ(qp->req.doorbell_index, 6);
  EXPECT_EQ(doorbells(), 1u);
  EXPECT_EQ(pages.bad, 0u);
}

TEST_F(UarTest, HalvesOfTwoRegistersMakeNoDoorbell) {
  const prm::CtrlSeg c = ctrl(BlockRig::kQpn, 6);
  store(prm::uar::kSqDoorbell, c.opmod_idx_opcode);
  store(prm::uar::kSqDoorbell + 0x100 + 4, c.qpn_ds);
  EXPECT_EQ(doorbells(), 0u);
}

TEST_F(UarTest, ADoorbellOfNoQpIsCounted) {
  ring(0x999, 0);
  qp->has_sq = false;
  ring(BlockRig::kQpn, 0);
  EXPECT_EQ(pages.bad, 2u);
  EXPECT_EQ(doorbells(), 0u);
}

TEST_F(UarTest, ADoorbellAfterTheInterfaceWasSwitchedOffIsNoBadOne) {
  const std::uint64_t bad = r.tracer.count(traces::Point::kDoorbellBad);
  r.dma.set_enabled(BlockRig::kFunction, false);
  pages.set_allocated(BlockRig::kUarPage, false);
  ring(BlockRig::kQpn, 0);
  store(prm::uar::kCqArm, arm_word(BlockRig::kCqn));
  r.dma.set_enabled(BlockRig::kFunction, true);
  EXPECT_EQ(r.tracer.count(traces::Point::kDoorbellBad), bad);
  EXPECT_EQ(pages.bad, 0u);
  EXPECT_EQ(doorbells(), 0u);
}

TEST_F(UarTest, ABurstIsTakenAsAWqeOnlyWhereBlueFlameIsOffered) {
  struct {
    prm::CtrlSeg c;
    std::uint8_t rest[48];
  } burst{ctrl(BlockRig::kQpn, 2), {}};
  std::fill(std::begin(burst.rest), std::end(burst.rest), 0xb5);
  store(prm::uar::kSqDoorbell, burst);
  EXPECT_TRUE(qp->req.doorbell) << "its first 8 bytes are a doorbell in any case";
  EXPECT_EQ(qp->req.blueflame_len, 0u);
  EXPECT_EQ(pages.blueflames, 0u);

  pages.set_blueflame(true);
  store(prm::uar::kSqDoorbell, burst);
  EXPECT_EQ(pages.blueflames, 1u);
  ASSERT_EQ(qp->req.blueflame_len, sizeof burst);
  EXPECT_EQ(qp->req.blueflame[63], 0xb5);
}

TEST_F(UarTest, TheArmRegisterArmsItsCq) {
  store(prm::uar::kCqArm, arm_word(BlockRig::kCqn));
  EXPECT_TRUE(cq->armed);
  EXPECT_EQ(pages.bad, 0u);
  store(prm::uar::kCqArm, arm_word(BlockRig::kCqn + 1));
  EXPECT_EQ(pages.bad, 1u) << "no such CQ";
}

TEST_F(UarTest, TheEqRegistersMoveTheConsumerAndOneOfThemArms) {
  eq->armed = false;
  r.eqs.to_eq(sim_now(), BlockRig::kFunction, BlockRig::kEqn, 0x0a, 0, nullptr, 0);
  r.run_ns(1000);
  prm::EqDoorbell db{};
  db.eqn_ci = BlockRig::kEqn << 24 | 1;
  store(prm::uar::kEqUpdate, db);
  EXPECT_EQ(eq->consumer, 1u);
  EXPECT_FALSE(eq->armed);
  store(prm::uar::kEqArm, db);
  EXPECT_TRUE(eq->armed);
  db.eqn_ci = 99u << 24;
  store(prm::uar::kEqArm, db);
  EXPECT_EQ(pages.bad, 1u) << "no such EQ";
}

// A process reaches the pages alone that were mapped for it, and with them no queue of others.
TEST_F(UarTest, DoorbellsOnAnotherPageThanTheContextsCountForNothing) {
  pages.set_allocated(BlockRig::kUarPage + 1, true);
  pages.set_blueflame(true);
  eq->armed = false;
  const auto store_beside = [&](unsigned reg, const auto& value, unsigned len) {
    store(kUarPageSize + reg, value, len);
  };
  store_beside(prm::uar::kSqDoorbell, ctrl(BlockRig::kQpn, 4), 8);
  struct {
    prm::CtrlSeg c;
    std::uint8_t rest[48];
  } burst{ctrl(BlockRig::kQpn, 2), {}};
  store_beside(prm::uar::kSqDoorbell, burst, sizeof burst);
  store_beside(prm::uar::kCqArm, arm_word(BlockRig::kCqn), 8);
  prm::EqDoorbell db{};
  db.eqn_ci = BlockRig::kEqn << 24 | 0xffffe0;  // the EQ would be full
  store_beside(prm::uar::kEqUpdate, db, sizeof db);
  store_beside(prm::uar::kEqArm, db, sizeof db);
  EXPECT_EQ(pages.bad, 5u);
  EXPECT_EQ(doorbells(), 0u);
  EXPECT_FALSE(qp->req.doorbell);
  EXPECT_EQ(qp->req.blueflame_len, 0u);
  EXPECT_FALSE(cq->armed);
  EXPECT_FALSE(eq->armed);
  EXPECT_EQ(eq->consumer, 0u);
}

TEST_F(UarTest, StoresBesideTheRegistersAndOfOtherSizesAreCounted) {
  const std::uint64_t value = 0;
  store(0x18, value);
  EXPECT_EQ(pages.bad, 1u) << "no register there";
  store(prm::uar::kCqArm, value, 2);
  EXPECT_EQ(pages.bad, 2u);
  store(prm::uar::kEqArm, value, 2);
  EXPECT_EQ(pages.bad, 3u);
  store(prm::uar::kSqDoorbell, value, 1);
  EXPECT_EQ(pages.bad, 4u);
  const std::uint8_t big[Uar::kMaxBurst + 1] = {};
  uar.write(sim_now(), BlockRig::kFunction, kPageAt + prm::uar::kSqDoorbell, big, sizeof big);
  EXPECT_EQ(pages.bad, 5u);
}

TEST_F(UarTest, APageThatWasTakenBackByResetIsNotAllocated) {
  pages.clear();
  ring(BlockRig::kQpn, 0);
  EXPECT_EQ(pages.bad, 1u);
  EXPECT_EQ(doorbells(), 0u);
}

}  // namespace
}  // namespace hcasim::test
