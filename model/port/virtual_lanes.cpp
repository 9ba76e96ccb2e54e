// SPDX-License-Identifier: BSD-3-Clause
#include "model/port/virtual_lanes.h"

#include <algorithm>

#include "model/sched/traffic_classes.h"

namespace hcasim {

namespace {

constexpr unsigned kLow = 0, kHigh = 1;  // groups of classes
constexpr std::uint64_t kLimitUnit = 4096;

std::array<unsigned, VirtualLanes::kLanes> weights(const VirtualLanes::Table& table) {
  std::array<unsigned, VirtualLanes::kLanes> sums{};
  for (const VirtualLanes::Entry& e : table)
    if (e.lane < sums.size()) sums[e.lane] += e.weight;
  return sums;
}

}  // namespace

void VirtualLanes::apply(TrafficClasses& classes) const {
  for (unsigned level = 0; level < kServiceLevels; ++level) {
    const std::uint8_t lane = of(static_cast<std::uint8_t>(level));
    classes.map(level, lane == kNone ? 0 : lane);
  }
  const auto first = weights(high), second = weights(low);
  // Shares have eight bits.
  const unsigned most = std::max(
      {1u, *std::max_element(first.begin(), first.end()), *std::max_element(second.begin(), second.end())});
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const bool before = first[lane] != 0;
    const unsigned weight = before ? first[lane] : second[lane];
    classes.set_group(lane, before ? kHigh : kLow);
    classes.set_share(lane, std::max(1u, weight * TrafficClasses::kMostShare / most));
  }
  classes.set_limit(high_limit == kNoLimit ? 0 : std::max<std::uint64_t>(high_limit * kLimitUnit, 1));
}

}  // namespace hcasim
