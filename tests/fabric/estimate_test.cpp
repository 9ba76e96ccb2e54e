// SPDX-License-Identifier: GPL-2.0-or-later
// What a run is said to take before it is made.
#include "fabric/estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "../files.h"

namespace hcasim::fabric {
namespace {

using ::testing::HasSubstr;
constexpr std::uint64_t kMib = 1 << 20;
constexpr Time kSecond = 1000 * kMs;

TEST(Estimate, CountsWhatThereIs) {
  TopologySpec star;
  star.hosts = 4;
  WorkloadSpec w;
  w.name = w.kind = "incast";
  w.bytes = 1000;
  w.senders = 3;
  w.rounds = 5;
  w.window = 2;
  const Topology topology = build_topology(star);
  const Workload workload = build_workload({w}, 4);
  const std::vector<std::pair<unsigned, unsigned>> pairs{{0, 1}, {0, 2}, {0, 3}};
  EXPECT_EQ(pairs_of(workload), pairs);
  const Extent e = extent_of(topology, workload);
  EXPECT_EQ(e.cards, 4u);
  EXPECT_EQ(e.pairs, 3u);
  EXPECT_EQ(e.messages, 15u);
  EXPECT_EQ(e.dependencies, workload.dependencies.size());
}

// Every rank has the messages of the whole fabric.
TEST(Estimate, MemoryGrowsWithRanksAndMessages) {
  const Extent few{1024, 16384, 200'000, 100'000}, many{1024, 16384, 4'000'000, 4'000'000};
  EXPECT_GT(memory_of(few, 1), 1024 * 3 / 2 * kMib);
  EXPECT_GE(memory_of(few, 16), memory_of(few, 1) + 15 * 32 * kMib);
  EXPECT_GT(memory_of(many, 1), memory_of(few, 1) + 300 * kMib);
  EXPECT_GT(memory_of(many, 16), memory_of(few, 16) + 16 * 300 * kMib);
  // Of all ranks it is the sum of each.
  const std::uint64_t each = memory_of_rank(many, 16, 1024 / 16);
  EXPECT_NEAR(static_cast<double>(memory_of(many, 16)), 16.0 * static_cast<double>(each), 1e3);
}

TEST(Estimate, TooMuchIsRefused) {
  const Extent e{1024, 16384, 200'000, 100'000};
  EXPECT_NO_THROW(check_memory(e, 0, ""));
  try {
    check_memory(e, std::uint64_t{1} << 60, "on 4 ranks");
    FAIL() << "accepted";
  } catch (const ScenarioError& error) {
    EXPECT_THAT(error.what(), HasSubstr("1024 cards, 32768 QPs and 200000 messages take about"));
    EXPECT_THAT(error.what(), HasSubstr("MiB on 4 ranks, and"));
  }
}

// A machine as its files describe it.
class Machine {
 public:
  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = folder_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::uint64_t available() const { return available_memory(folder_ / ""); }

 private:
  test::Folder folder_;
};

TEST(Estimate, AvailableIsWhatTheMachineHas) {
  Machine m;
  EXPECT_EQ(m.available(), std::numeric_limits<std::uint64_t>::max()) << "nobody knows";
  m.write("proc/meminfo", "MemTotal:       8388608 kB\nMemAvailable:   4194304 kB\n");
  EXPECT_EQ(m.available(), 4096 * kMib);
}

TEST(Estimate, AvailableIsNoMoreThanAContainerMayHave) {
  Machine m;
  m.write("proc/meminfo", "MemAvailable:   4194304 kB\n");
  m.write("proc/self/cgroup", "0::/a/b\n");
  m.write("sys/fs/cgroup/a/b/memory.max", "max\n");
  EXPECT_EQ(m.available(), 4096 * kMib) << "without a limit";
  m.write("sys/fs/cgroup/a/memory.max", std::to_string(1000 * kMib) + "\n");
  m.write("sys/fs/cgroup/a/memory.current", std::to_string(300 * kMib) + "\n");
  EXPECT_EQ(m.available(), 700 * kMib) << "the limit of a group above";
  m.write("sys/fs/cgroup/a/memory.stat",
          "anon 1\ninactive_file " + std::to_string(100 * kMib) + "\nactive_file 7\n");
  EXPECT_EQ(m.available(), 800 * kMib) << "caches are given up";
  m.write("sys/fs/cgroup/a/memory.current", std::to_string(5000 * kMib) + "\n");
  EXPECT_EQ(m.available(), 0u);
}

TEST(Estimate, AvailableKnowsTheOlderControlGroups) {
  Machine m;
  m.write("proc/meminfo", "MemAvailable:   4194304 kB\n");
  m.write("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:hugetlb,memory:/outside\n");
  m.write("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(500 * kMib) + "\n");
  m.write("sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(200 * kMib) + "\n");
  EXPECT_EQ(m.available(), 300 * kMib);
}

// A whole second, and time enough: some 0.2 ms a card, 0.02 ms a QP are what set-up takes.
TEST(Estimate, WorkloadsBeginAtAWholeSecond) {
  EXPECT_EQ(planned_begin({2, 1, 2, 0}), kSecond);
  EXPECT_EQ(planned_begin({1024, 16384, 200'000, 0}), 3 * kSecond);
  for (const std::uint64_t cards : {16u, 500u, 4096u}) {
    const std::uint64_t pairs = cards * 32;
    const Time begin = planned_begin({cards, pairs, 1, 0});
    EXPECT_EQ(begin % kSecond, 0);
    EXPECT_GT(begin, static_cast<Time>(cards) * 400 * kUs + static_cast<Time>(2 * pairs) * 40 * kUs);
  }
}

}  // namespace
}  // namespace hcasim::fabric
