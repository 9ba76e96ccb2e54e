// SPDX-License-Identifier: BSD-3-Clause
#include "model/timed_queue.h"

#include <gmock/gmock.h>

#include <random>

#include "bench.h"

namespace hcasim::test {
namespace {

class TimedQueueTest : public BlockTest {
 protected:
  void SetUp() override {
    BlockTest::SetUp();
    b.queue.clear();
    b.taken.clear();
    b.on_item = nullptr;
  }
  std::vector<int> items() const {
    std::vector<int> list;
    for (const auto& [due, item] : b.taken) list.push_back(item);
    return list;
  }
};

using ::testing::ElementsAre;

TEST_F(TimedQueueTest, ItemsComeInOrderOfTimeThenOfArrival) {
  const Time t = sim_now();
  b.queue.push(t + 300, 1);
  b.queue.push(t + 100, 2);
  b.queue.push(t + 300, 3);
  b.queue.push(t + 100, 4);
  b.queue.push(t + 200, 5);
  EXPECT_EQ(b.queue.size(), 5u);
  b.run(150);
  EXPECT_THAT(items(), ElementsAre(2, 4));
  b.run(1000);
  EXPECT_THAT(items(), ElementsAre(2, 4, 5, 1, 3));
  EXPECT_TRUE(b.queue.empty());
}

TEST_F(TimedQueueTest, AsASortedListWouldHaveThem) {
  std::mt19937 random(3);
  std::vector<std::pair<Time, int>> want;
  Time t = sim_now();
  for (int i = 0; i < 5000; ++i) {
    const Time due = t + random() % 1000;
    b.queue.push(due, i);
    want.emplace_back(due, i);
    if (i % 7 == 0) {
      b.run(random() % 500);
      t = sim_now();
    }
  }
  b.run(2000);
  std::stable_sort(want.begin(), want.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  EXPECT_EQ(b.taken, want);
}

TEST_F(TimedQueueTest, WorkThatHandlersAddIsTakenInItsTurn) {
  const Time t = sim_now();
  b.on_item = [&](Time due, int item) {
    if (item == 1) {
      b.queue.push(due + 50, 10);
      b.queue.push(due, 11);
    }
  };
  b.queue.push(t + 10, 1);
  b.queue.push(t + 20, 2);
  b.run(1000);
  EXPECT_THAT(items(), ElementsAre(1, 11, 2, 10));
}

TEST_F(TimedQueueTest, ClearedItemsDoNotCome) {
  b.queue.push(sim_now() + 10, 1);
  b.queue.push(sim_now() + 5, 2);
  b.queue.clear();
  b.run(100);
  EXPECT_TRUE(b.taken.empty());
  b.queue.push(sim_now(), 3);
  b.run(1);
  EXPECT_THAT(items(), ElementsAre(3));
}

TEST_F(TimedQueueTest, AnExceptionEndsInTheFaultSink) {
  b.on_item = [](Time, int item) {
    if (item == 1) throw std::runtime_error("oops");
  };
  b.expected_faults = 1;
  b.queue.push(sim_now(), 1);
  b.queue.push(sim_now(), 2);
  b.run(1);
  EXPECT_EQ(b.expected_faults, 0);
  EXPECT_EQ(b.taken.size(), 2u);
}

}  // namespace
}  // namespace hcasim::test
