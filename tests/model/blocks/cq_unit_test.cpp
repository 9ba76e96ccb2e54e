// SPDX-License-Identifier: BSD-3-Clause
// The completion unit by itself: completions in; CQEs in memory, events in its EQ out.
#include <gmock/gmock.h>

#include "block_rig.h"
#include "model/cq/cq.h"

namespace hcasim::test {
namespace {

using prm::EqeType;

class CqUnitTest : public SingleBlockTest {
 protected:
  void SetUp() override {
    SingleBlockTest::SetUp();
    r.make_eq();
    cq = &r.make_cq(2);
    r.cqs.on_failed([this](Time, const Cq& c) { failed.push_back(c.cqn); });
  }
  void TearDown() override {
    r.cqs.on_failed(nullptr);
    SingleBlockTest::TearDown();
  }
  void post(std::uint16_t counter, bool solicited = false) {
    Completion c;
    c.opcode = static_cast<std::uint8_t>(prm::CqeOp::kRespSend);
    c.qpn = BlockRig::kQpn;
    c.wqe_counter = counter;
    c.solicited = solicited;
    r.cqs.post(sim_now(), *cq, c);
    r.run_ns(2000);
  }
  void consume(std::uint32_t ci) { r.store(BlockRig::kCqDbr, prm::be32(ci)); }
  bool arm(std::uint32_t flags = 0) {
    return r.cqs.arm(sim_now(), BlockRig::kFunction, BlockRig::kCqn, flags, BlockRig::kUarPage) ==
           DoorbellFate::kTaken;
  }
  std::vector<unsigned> events() const {
    std::vector<unsigned> types;
    const Eq& eq = *r_eq();
    for (unsigned i = 0; i < eq.producer; ++i) types.push_back(r.eqe(i).type);
    return types;
  }
  const Eq* r_eq() const { return block_rig().eqs.find(BlockRig::kFunction, BlockRig::kEqn); }
  static unsigned type(EqeType t) { return static_cast<unsigned>(t); }

  Cq* cq = nullptr;
  std::vector<std::uint32_t> failed;
};

TEST_F(CqUnitTest, ACqeIsWrittenIntoTheNextSlotWithTheOwnerBitOfThePass) {
  for (unsigned i = 0; i < 6; ++i) {
    post(static_cast<std::uint16_t>(40 + i));
    EXPECT_EQ(r.cqe(i % 4).wqe_counter, 40 + i);
    EXPECT_EQ(r.cqe(i % 4).op_own & prm::Cqe::kOwner, i / 4);
    consume(i + 1);
  }
}

// The count behind the last solicited CQE is of 32 bits, consumer indexes have 24.
TEST_F(CqUnitTest, ASolicitedCqeOfLongAgoIsNoneThatWaits) {
  Cq c;
  c.any_solicited = true;
  c.solicited_end = 5;
  c.producer = 9;
  EXPECT_TRUE(c.waiting(4, true));
  EXPECT_FALSE(c.waiting(5, true));
  for (std::uint32_t since = 1; since < 1u << 25; since += 4099) {
    c.producer = c.solicited_end + since;
    EXPECT_FALSE(c.waiting((c.producer - 1) & 0xffffff, true)) << since;
    EXPECT_FALSE(c.waiting(c.producer & 0xffffff, true)) << since;
    EXPECT_TRUE(c.waiting((c.producer - 1) & 0xffffff, false)) << since;
  }
}

TEST_F(CqUnitTest, WithoutArmingThereIsNoEvent) {
  post(0);
  EXPECT_TRUE(events().empty());
  EXPECT_EQ(r.interrupts(), 0u);
}

TEST_F(CqUnitTest, AnArmedCqTellsOfTheNextCqeOnceAndBehindIt) {
  ASSERT_TRUE(arm());
  post(0);
  post(1);
  EXPECT_THAT(events(), ::testing::ElementsAre(type(EqeType::kComp)));
  EXPECT_EQ(r.eqe(0).data.comp.cqn & 0xffffff, BlockRig::kCqn);
  ASSERT_GE(r.host.events.size(), 3u);
  EXPECT_EQ(r.host.events[0].addr & ~63ull, BlockRig::kCqRing) << "CQE, then EQE, then interrupt";
  EXPECT_EQ(r.host.events[1].addr & ~63ull, BlockRig::kEqRing);
  EXPECT_TRUE(r.host.events[2].msix);
  EXPECT_EQ(r.interrupts(), 1u);
}

TEST_F(CqUnitTest, ArmedSolicitedFiresOnSolicitedOnly) {
  ASSERT_TRUE(arm(prm::CqDoorbell::kSolicitedOnly));
  post(0, false);
  EXPECT_TRUE(events().empty());
  post(1, true);
  EXPECT_EQ(events().size(), 1u);
}

TEST_F(CqUnitTest, AFullCqOverrunsOnceAndTellsItsEq) {
  const std::uint64_t before = r.cqs.overruns();
  for (std::uint16_t i = 0; i < 7; ++i) post(i);
  EXPECT_EQ(r.cqs.overruns() - before, 1u);
  EXPECT_TRUE(cq->error);
  EXPECT_EQ(r.cqe(0).wqe_counter, 0) << "what nobody has taken is not overwritten";
  EXPECT_THAT(events(), ::testing::ElementsAre(type(EqeType::kCqError)));
  EXPECT_EQ(r.eqe(0).data.cq_err.cqn, BlockRig::kCqn);
  EXPECT_THAT(failed, ::testing::ElementsAre(BlockRig::kCqn)) << "and its QPs are told, once";
}

TEST_F(CqUnitTest, ConsumedSlotsAreFoundInTheDoorbellRecord) {
  for (std::uint16_t i = 0; i < 4; ++i) post(i);
  consume(2);
  post(4);
  post(5);
  EXPECT_FALSE(cq->error);
  EXPECT_EQ(r.cqe(0).wqe_counter, 4);
  post(6);
  EXPECT_TRUE(cq->error);
}

// The driver moves what waits into the new ring, one place on, as RESIZE has one of its own.
TEST_F(CqUnitTest, ASolicitedCqeThatWaitsIsToldOfInTheNewRing) {
  post(0, false);
  post(1, true);
  consume(1);
  ASSERT_TRUE(r.cqs.resize(sim_now(), *cq, cq->ring, 3));
  ASSERT_TRUE(arm(prm::CqDoorbell::kSolicitedOnly | 2));  // RESIZE's own is taken
  r.run_ns(2000);
  EXPECT_EQ(events().size(), 1u);
  ASSERT_TRUE(arm(prm::CqDoorbell::kSolicitedOnly | 3));
  r.run_ns(2000);
  EXPECT_EQ(events().size(), 1u) << "it was taken";
}

TEST_F(CqUnitTest, ModerationHoldsTheEventUntilItsCount) {
  cq->max_count = 3;
  cq->period_us = 1000;
  ASSERT_TRUE(arm());
  post(0);
  EXPECT_EQ(events().size(), 1u) << "there was none in the last period";
  ASSERT_TRUE(arm(1));
  post(1);
  post(2);
  EXPECT_EQ(events().size(), 1u);
  post(3);
  EXPECT_EQ(events().size(), 2u);
}

TEST_F(CqUnitTest, ModerationHoldsTheEventUntilAPeriodAfterTheLastOne) {
  cq->max_count = 3;
  cq->period_us = 10;
  ASSERT_TRUE(arm());
  post(0);
  r.run_ns(4'000);
  ASSERT_TRUE(arm(1));
  post(1);
  EXPECT_EQ(events().size(), 1u);
  r.run_ns(3'000);
  EXPECT_EQ(events().size(), 2u);
  // Nothing waits when this period ends, and what comes then is not held.
  ASSERT_TRUE(arm(2));
  r.run_ns(11'000);
  EXPECT_EQ(events().size(), 2u);
  post(2);
  EXPECT_EQ(events().size(), 3u);
}

// What came between the last look and the arming is not told sooner for it.
TEST_F(CqUnitTest, ModerationHoldsTheEventOfWhatWaitsWhenTheCqIsArmed) {
  cq->max_count = 3;
  cq->period_us = 10;
  for (const bool from_cqe : {false, true}) {
    cq->period_from_cqe = from_cqe;
    consume(cq->producer);
    ASSERT_TRUE(arm(cq->producer));
    post(0);
    if (from_cqe) r.run_ns(11'000);
    const std::size_t before = events().size();
    post(1);
    ASSERT_TRUE(arm(cq->producer - 1));
    r.run_ns(2'000);
    EXPECT_EQ(events().size(), before) << from_cqe;
    r.run_ns(11'000);
    EXPECT_EQ(events().size(), before + 1) << from_cqe;
  }
}

TEST_F(CqUnitTest, AHostThatRefusesACqeBreaksTheCq) {
  r.cqs.write_refused(sim_now(), BlockRig::kFunction, BlockRig::kCqn);
  r.run_ns(2000);
  EXPECT_TRUE(cq->error);
  EXPECT_THAT(events(), ::testing::ElementsAre(type(EqeType::kCqError)));
  post(0);
  EXPECT_EQ(r.cqe(0).op_own, 0xf1) << "no further CQE";
}

TEST_F(CqUnitTest, ArmingNoCqIsToldToTheCaller) {
  EXPECT_EQ(r.cqs.arm(sim_now(), BlockRig::kFunction, BlockRig::kCqn + 1, 0, BlockRig::kUarPage),
            DoorbellFate::kNobody);
  ASSERT_TRUE(r.cqs.destroy(BlockRig::kFunction, BlockRig::kCqn));
  EXPECT_FALSE(arm());
}

}  // namespace
}  // namespace hcasim::test
