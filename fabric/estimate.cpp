// SPDX-License-Identifier: GPL-2.0-or-later
#include "fabric/estimate.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>

namespace hcasim::fabric {

namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

// Bytes, as measured (docs/fabric.md).
constexpr std::uint64_t kOfCard = 3u << 19, kOfQp = 24u << 10;
constexpr std::uint64_t kOfProcess = 21u << 20, kOfRank = 32u << 20;  // one alone; one of several, with MPI
constexpr std::uint64_t kOfEachCard = 2u << 10, kOfEachPair = 48, kOfMessage = 88, kOfDependency = 8;

// Simulated time of a card's bring-up and of a QP's way to ready: twice what they take of firmware that is as
// fast as delivered. Idle time that is simulated costs nothing.
constexpr Time kCardSetUp = 500 * kUs, kQpSetUp = 50 * kUs, kSecond = 1000 * kMs;

// The number behind a name at the start of a line, or the file's first one if there is none.
std::uint64_t number_in(const std::string& file, const std::string& name, std::uint64_t fallback) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.compare(0, name.size(), name) != 0) continue;
    const char* const text = line.c_str() + name.size();
    char* end = nullptr;
    const std::uint64_t value = std::strtoull(text, &end, 10);
    return end == text ? fallback : value;  // "max"
  }
  return fallback;
}

// What a control group leaves, with those above it; file caches are given up before a process is ended.
std::uint64_t left_by_groups(const std::string& base, std::string group, const char* limit_file,
                             const char* usage_file, const char* cache) {
  std::uint64_t least = kUnlimited;
  for (;;) {
    const std::string folder = base + group + "/";
    const std::uint64_t limit = number_in(folder + limit_file, "", kUnlimited);
    const std::uint64_t used = number_in(folder + usage_file, "", 0);
    const std::uint64_t cached = std::min(used, number_in(folder + "memory.stat", cache, 0));
    if (limit != kUnlimited) least = std::min(least, limit - std::min(limit, used - cached));
    if (group.find_first_not_of('/') == std::string::npos) return least;
    const std::size_t slash = group.find_last_of('/');
    group.erase(slash == std::string::npos ? 0 : slash);
  }
}

}  // namespace

Extent extent_of(const Topology& topology, const Workload& workload) {
  return {topology.cards, pairs_of(workload).size(), workload.messages.size(), workload.dependencies.size()};
}

std::uint64_t memory_of_rank(const Extent& e, unsigned ranks, std::uint64_t cards_here) {
  const std::uint64_t of_all = e.cards * kOfEachCard + e.pairs * kOfEachPair + e.messages * kOfMessage +
                               e.dependencies * kOfDependency;
  const std::uint64_t qps = e.cards == 0 ? 0 : 2 * e.pairs * cards_here / e.cards;
  return (ranks == 1 ? kOfProcess : kOfRank) + cards_here * kOfCard + qps * kOfQp + of_all;
}

std::uint64_t memory_of(const Extent& e, unsigned ranks) {
  return memory_of_rank(e, ranks, e.cards) + (ranks - 1) * memory_of_rank(e, ranks, 0);
}

std::uint64_t available_memory(const std::string& root) {
  const std::uint64_t kib = number_in(root + "/proc/meminfo", "MemAvailable:", kUnlimited);
  std::uint64_t least = kib > kUnlimited >> 10 ? kUnlimited : kib << 10;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // NUMBER:CONTROLLERS:PATH; of version 2 none
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",",
                      group = line.substr(second + 1), base = root + "/sys/fs/cgroup";
    if (controllers == ",,")
      least = std::min(least, left_by_groups(base, group, "memory.max", "memory.current", "inactive_file "));
    else if (controllers.find(",memory,") != std::string::npos)
      least = std::min(least, left_by_groups(base + "/memory", group, "memory.limit_in_bytes",
                                             "memory.usage_in_bytes", "total_inactive_file "));
  }
  return least;
}

void check_memory(const Extent& e, std::uint64_t wanted, const std::string& for_what) {
  const std::uint64_t there = available_memory();
  if (wanted <= there) return;
  throw ScenarioError(std::to_string(e.cards) + " cards, " + std::to_string(2 * e.pairs) + " QPs and " +
                      std::to_string(e.messages) + " messages take about " + std::to_string(wanted >> 20) +
                      " MiB" + (for_what.empty() ? "" : " ") + for_what + ", and " +
                      std::to_string(there >> 20) +
                      " are available: take fewer cards, peers, messages or ranks");
}

Time planned_begin(const Extent& e) {
  const Time set_up = static_cast<Time>(e.cards) * kCardSetUp + static_cast<Time>(2 * e.pairs) * kQpSetUp;
  return (set_up / kSecond + 1) * kSecond;
}

}  // namespace hcasim::fabric
