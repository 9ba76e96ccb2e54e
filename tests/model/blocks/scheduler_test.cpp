// SPDX-License-Identifier: BSD-3-Clause
// The scheduler by itself: doorbells in, turns out.
#include "model/sched/scheduler.h"

#include <gmock/gmock.h>

#include <limits>

#include "block_rig.h"

namespace hcasim::test {
namespace {

constexpr std::uint32_t kPage = 7;

class SchedulerTest : public SingleBlockTest {
 protected:
  void SetUp() override {
    SingleBlockTest::SetUp();
    for (const std::uint32_t qpn : {1u, 2u}) {
      Qp* qp = r.qps.create(qpn);
      qp->state = QpState::kRts;
      qp->uar_page = kPage;
    }
  }
  Qp& qp(std::uint32_t n) { return *r.qps.find(n); }
  std::vector<std::uint32_t> turns_of_requester() const {
    std::vector<std::uint32_t> out;
    for (const FakeEngine::Seen& s : r.request_turns.turns) out.push_back(s.qpn);
    return out;
  }
};

TEST_F(SchedulerTest, ADoorbellGivesItsQpATurn) {
  const Time rung = sim_now();
  ASSERT_EQ(r.scheduler.doorbell(rung, BlockRig::kFunction, 1, 5, kPage), DoorbellFate::kTaken);
  EXPECT_TRUE(r.request_turns.turns.empty()) << "only when simulated time has come to it";
  r.run_ns(1000);
  ASSERT_EQ(r.request_turns.turns.size(), 1u);
  EXPECT_EQ(r.request_turns.turns[0].qpn, 1u);
  EXPECT_EQ(r.request_turns.turns[0].at, rung + r.profile.engine.doorbell + r.profile.engine.schedule);
  EXPECT_TRUE(r.response_turns.turns.empty());
  EXPECT_TRUE(qp(1).req.doorbell_named);
  EXPECT_EQ(qp(1).req.doorbell_index, 5);
}

TEST_F(SchedulerTest, ADoorbellForNoSendQueueIsRefused) {
  qp(2).has_sq = false;
  qp(1).state = QpState::kRst;
  EXPECT_EQ(r.scheduler.doorbell(sim_now(), BlockRig::kFunction, 1, 0, kPage), DoorbellFate::kNobody);
  EXPECT_EQ(r.scheduler.doorbell(sim_now(), BlockRig::kFunction, 2, 0, kPage), DoorbellFate::kNobody);
  EXPECT_EQ(r.scheduler.doorbell(sim_now(), BlockRig::kFunction, 3, 0, kPage), DoorbellFate::kNobody);
  r.run_ns(1000);
  EXPECT_TRUE(r.request_turns.turns.empty());
}

// IBTA 10.3.1.2: what is posted in INIT or RTR is sent in RTS.
TEST_F(SchedulerTest, ADoorbellBeforeRtsIsRememberedWithoutATurn) {
  qp(1).state = QpState::kRtr;
  EXPECT_EQ(r.scheduler.doorbell(sim_now(), BlockRig::kFunction, 1, 9, kPage), DoorbellFate::kTaken);
  r.run_ns(1000);
  EXPECT_TRUE(r.request_turns.turns.empty());
  EXPECT_TRUE(qp(1).req.doorbell);
}

TEST_F(SchedulerTest, AWakeUpTakesTheEarliestTimeAskedFor) {
  const Time now = sim_now();
  r.scheduler.wake(now + from_ns(300), qp(1));
  r.scheduler.wake(now + from_ns(100), qp(1));
  r.scheduler.wake(now + from_ns(200), qp(1));
  r.run_ns(1000);
  ASSERT_EQ(r.request_turns.turns.size(), 1u);
  EXPECT_EQ(r.request_turns.turns[0].at, now + from_ns(100) + r.profile.engine.schedule);
}

TEST_F(SchedulerTest, ResponsesHaveTurnsOfTheirOwn) {
  r.scheduler.wake_responder(sim_now(), qp(2));
  r.run_ns(1000);
  EXPECT_TRUE(r.request_turns.turns.empty());
  ASSERT_EQ(r.response_turns.turns.size(), 1u);
  EXPECT_EQ(r.response_turns.turns[0].qpn, 2u);
}

TEST_F(SchedulerTest, QpsWithMoreToSendTakeTurns) {
  for (int i = 0; i < 4; ++i) r.request_turns.results.push_back({from_ns(50), from_ns(50)});
  const Time now = sim_now();
  r.scheduler.wake(now, qp(1));
  r.scheduler.wake(now, qp(2));
  r.run_ns(1000);
  EXPECT_THAT(turns_of_requester(), ::testing::ElementsAre(1, 2, 1, 2, 1, 2));
}

TEST_F(SchedulerTest, ATurnOfAQpThatWasResetIsVoid) {
  r.scheduler.wake(sim_now() + from_ns(100), qp(1));
  qp(1).req = RequesterState{};
  r.run_ns(1000);
  EXPECT_TRUE(r.request_turns.turns.empty());
}

TEST_F(SchedulerTest, WhoWaitsForThePortLeavesNoneAlone) {
  EXPECT_TRUE(r.scheduler.alone(qp(1)));
  r.request_turns.results.push_back({0, from_ns(400), true});
  r.scheduler.wake(sim_now(), qp(1));
  r.run_ns(200);
  EXPECT_TRUE(r.scheduler.alone(qp(1)));
  EXPECT_FALSE(r.scheduler.alone(qp(2)));
  EXPECT_TRUE(qp(1).req.port_queued);
  r.run_ns(1000);
  EXPECT_FALSE(qp(1).req.port_queued);
  EXPECT_THAT(turns_of_requester(), ::testing::ElementsAre(1, 1));
  EXPECT_TRUE(r.scheduler.alone(qp(2)));
}

TEST_F(SchedulerTest, WatchersAreToldOfDoorbells) {
  ASSERT_EQ(r.scheduler.doorbell(sim_now(), BlockRig::kFunction, 2, 0, kPage), DoorbellFate::kTaken);
  ASSERT_EQ(r.prefetcher.doorbells.size(), 1u);
  EXPECT_EQ(r.prefetcher.doorbells[0].qpn, 2u);
  EXPECT_TRUE(r.doorbell_faults.doorbells.empty()) << "there are no faults of QPs";
}

// As low as a rate can be, and a time as late: a saved state may say either.
TEST(RateClock, TimesStayInTheirRange) {
  RateClock clock;
  clock.burst = 8192;
  for (const double mbps : {5e-324, 1e-300, 1e-12}) {
    clock.mbps = mbps;
    for (const Time next : {std::numeric_limits<Time>::min(), Time{0}, std::numeric_limits<Time>::max()}) {
      clock.next = next;
      EXPECT_LT(clock.earliest(0), std::numeric_limits<Time>::max() / 2);
      for (int i = 0; i < 5; ++i) {
        clock.sent(from_ns(1), 4096);
        EXPECT_GE(clock.earliest(from_ns(1)), from_ns(1));
        EXPECT_GT(clock.next, kSecond);
      }
    }
  }
  clock = {1000, 0, 0};
  clock.sent(from_ns(10), 125);
  EXPECT_EQ(clock.earliest(0), from_ns(1010));
}

}  // namespace
}  // namespace hcasim::test
