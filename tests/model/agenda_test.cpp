// SPDX-License-Identifier: BSD-3-Clause
#include "model/agenda.h"

#include <gmock/gmock.h>

#include <random>

#include "bench.h"

namespace hcasim::test {
namespace {

class AgendaTest : public BlockTest {
 protected:
  void SetUp() override {
    BlockTest::SetUp();
    clear();
  }
  void TearDown() override {
    clear();
    agenda.set_horizon(0);
    BlockTest::TearDown();
  }
  void clear() {
    b.run_ns(1);  // an event of the test before, if any
    b.queue.clear();
    b.other.clear();
    b.taken.clear();
    b.on_item = nullptr;
    b.stranger.body = nullptr;
    b.stranger.event.cancel();
  }
  // As Bench::run(), ahead of SystemC's clock if `ahead`.
  void run(Time duration, bool ahead) {
    agenda.set_horizon(ahead ? sim_now() + duration : 0);
    b.run(duration);
    agenda.set_horizon(0);
  }
  Agenda& agenda = Agenda::instance();
};

TEST_F(AgendaTest, NoNewRunWhileABlockWaitsOrHasItsTurn) {
  const Time t = sim_now();
  const std::uint64_t epoch = next_epoch();
  bool renewed = false;
  b.on_item = [&](Time, int) { renewed = simulation().renew(); };
  b.queue.push(t + 100, 1);
  EXPECT_FALSE(simulation().renew());
  run(1000, false);
  EXPECT_EQ(b.taken.size(), 1u);
  EXPECT_FALSE(renewed);
  EXPECT_GT(sim_now(), t);
  EXPECT_EQ(next_epoch(), epoch + 1);
}

TEST_F(AgendaTest, RunsAheadInOneActivation) {
  const Time t = sim_now();
  std::vector<Time> clocks, times;
  b.on_item = [&](Time, int) {
    clocks.push_back(static_cast<Time>(sc_core::sc_time_stamp().value()));
    times.push_back(sim_now());
  };
  for (int i = 0; i < 10; ++i) (i % 2 ? b.other : b.queue).push(t + 100 * (i + 1), i);
  const std::uint64_t activations = simulation().clock.activations, turns = simulation().clock.turns;
  run(1000, true);
  EXPECT_EQ(simulation().clock.activations - activations, 1u);
  EXPECT_EQ(simulation().clock.turns - turns, 10u);
  ASSERT_EQ(b.taken.size(), 10u);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(b.taken[static_cast<std::size_t>(i)], std::make_pair(t + 100 * (i + 1), i));
    EXPECT_EQ(times[static_cast<std::size_t>(i)], t + 100 * (i + 1));
    EXPECT_EQ(clocks[static_cast<std::size_t>(i)], t + 100);
  }
  EXPECT_EQ(agenda.reached(), t + 1000);
  EXPECT_EQ(sim_now(), t + 1000);
}

TEST_F(AgendaTest, NoFurtherThanAsked) {
  const Time t = sim_now();
  b.queue.push(t + 100, 1);
  b.queue.push(t + 200, 2);
  b.queue.push(t + 201, 3);
  run(200, true);
  EXPECT_EQ(b.taken.size(), 2u);
  EXPECT_EQ(sim_now(), t + 200);
  run(1, true);
  EXPECT_EQ(b.taken.size(), 3u);
}

// Another process of the platform has its turn at its time, before what the model does then or later, and
// sees all that it did before.
TEST_F(AgendaTest, NotPastAnotherProcess) {
  const Time t = sim_now();
  std::size_t seen = 0;
  Time at = 0;
  b.stranger.body = [&] {
    seen = b.taken.size();
    at = sim_now();
    b.queue.push(sim_now() + 10, 99);
  };
  b.stranger.event.notify(to_sc(250));
  for (int i = 1; i <= 5; ++i) b.queue.push(t + 100 * i, i);
  run(1000, true);
  EXPECT_EQ(seen, 2u);
  EXPECT_EQ(at, t + 250);
  std::vector<int> order;
  for (const auto& [due, item] : b.taken) order.push_back(item);
  EXPECT_THAT(order, ::testing::ElementsAre(1, 2, 99, 3, 4, 5));
}

// A block that wakes another process, which answers at once.
TEST_F(AgendaTest, AnswersOfAnotherProcess) {
  const Time t = sim_now();
  b.on_item = [&](Time, int item) {
    if (item == 1) b.stranger.event.notify(sc_core::SC_ZERO_TIME);
  };
  b.stranger.body = [&] { b.other.push(sim_now(), 2); };
  b.queue.push(t + 100, 1);
  b.queue.push(t + 110, 3);
  run(1000, true);
  std::vector<int> order;
  for (const auto& [due, item] : b.taken) order.push_back(item);
  EXPECT_THAT(order, ::testing::ElementsAre(1, 2, 3));
}

// The same work, ahead of the clock or not, in cuts of any length: the same order and times.
TEST_F(AgendaTest, AheadOrNotIsTheSame) {
  const auto work = [&](bool ahead, unsigned seed) {
    std::mt19937 random(5), cuts(seed);
    const Time t = sim_now();
    int left = 2000;
    b.on_item = [&](Time due, int item) {
      if (left-- <= 0) return;
      (random() % 2 ? b.other : b.queue).push(due + static_cast<Time>(random() % 300), item + 1);
      if (random() % 3 == 0)
        (random() % 2 ? b.other : b.queue).push(due + static_cast<Time>(random() % 3), -item);
    };
    for (int i = 0; i < 4; ++i) b.queue.push(t + i, 1000 * i);
    while (!b.queue.empty() || !b.other.empty()) run(static_cast<Time>(1 + cuts() % 700), ahead);
    auto taken = std::move(b.taken);
    b.taken.clear();
    for (auto& [due, item] : taken) due -= t;
    return taken;
  };
  const auto exact = work(false, 1);
  EXPECT_GT(exact.size(), 2000u);
  EXPECT_EQ(work(true, 2), exact);
  EXPECT_EQ(work(true, 3), exact);
}

TEST_F(AgendaTest, ATurnThatIsTakenBackDoesNotCome) {
  const Time t = sim_now();
  b.queue.push(t + 10, 1);
  b.other.push(t + 20, 2);
  b.on_item = [&](Time, int) { b.other.clear(); };
  run(100, true);
  EXPECT_EQ(b.taken.size(), 1u);
}

}  // namespace
}  // namespace hcasim::test
