// SPDX-License-Identifier: BSD-3-Clause
#include "model/sched/traffic_classes.h"

#include <algorithm>

#include "model/state/state.h"

namespace hcasim {

namespace {
constexpr std::uint64_t kBurst = 8192;  // bytes that a class with a rate may send at once after a rest
}

void TrafficClasses::set_rate(unsigned tc, unsigned unit, unsigned value, double mbps) {
  settings_.classes[tc].rate_unit = static_cast<std::uint8_t>(unit);
  settings_.classes[tc].rate_value = static_cast<std::uint8_t>(value);
  rates_[tc] = {};
  rates_[tc].mbps = mbps;
  rates_[tc].burst = kBurst;
}

void TrafficClasses::clear() { reset_state(*this); }

void TrafficClasses::sent(Time t, unsigned tc, std::uint64_t bytes) {
  rates_[tc].sent(t, bytes);
  if (limit_ != 0 && waits_of_groups(tc, true)) ahead_ += bytes;
  served_[tc] += static_cast<double>(bytes) / std::max<unsigned>(settings_.classes[tc].share, 1);
}

void TrafficClasses::waits(unsigned tc) {
  if (waiting_[tc]++ != 0) return;
  waiting_mask_ |= 1u << tc;
  served_[tc] = std::max(served_[tc], reached_[settings_.classes[tc].group]);
}

void TrafficClasses::left(unsigned tc) {
  if (waits_of_groups(tc, false)) ahead_ = 0;
  if (waiting_[tc] == 0 || --waiting_[tc] != 0) return;
  waiting_mask_ &= ~(1u << tc);
}

bool TrafficClasses::waits_of_groups(unsigned tc, bool lower) const {
  const unsigned group = settings_.classes[tc].group;
  for (unsigned other = 0; other < kCount; ++other) {
    const unsigned theirs = settings_.classes[other].group;
    if ((waiting_mask_ >> other & 1) != 0 && (lower ? theirs < group : theirs > group)) return true;
  }
  return false;
}

unsigned TrafficClasses::next() {
  unsigned best = best_of(waiting_mask_);
  if (best == kCount) return 0;
  if (limit_ != 0 && ahead_ >= limit_) {
    std::uint32_t lower = 0;
    for (unsigned tc = 0; tc < kCount; ++tc)
      if (settings_.classes[tc].group < settings_.classes[best].group) lower |= 1u << tc;
    const unsigned below = best_of(waiting_mask_ & lower);
    if (below != kCount) best = below;
  }
  double& reached = reached_[settings_.classes[best].group];
  reached = std::max(reached, served_[best]);
  return best;
}

unsigned TrafficClasses::best_of(std::uint32_t mask) const {
  unsigned best = kCount;
  for (unsigned tc = 0; tc < kCount; ++tc) {
    if ((mask >> tc & 1) == 0) continue;
    const unsigned group = settings_.classes[tc].group;
    if (best == kCount || group > settings_.classes[best].group ||
        (group == settings_.classes[best].group && served_[tc] < served_[best]))
      best = tc;
  }
  return best;
}

}  // namespace hcasim
