// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/thermal.h"

#include <algorithm>
#include <cmath>

namespace hcasim::fw {

double Thermal::celsius(Time t, std::uint64_t bytes) {
  if (t <= at_) return celsius_;
  const double seconds = static_cast<double>(t - at_) / static_cast<double>(kSecond);
  const std::uint64_t moved = bytes > bytes_ ? bytes - bytes_ : 0;  // drivers may clear the port's counters
  const double load = std::min(1.0, static_cast<double>(moved) / (2 * bytes_per_second_ * seconds));
  // Towards where it would settle under the load since it was asked last.
  const double settled = kAir + kIdleRise + (kBusyRise - kIdleRise) * load;
  const double left = std::exp(-static_cast<double>(t - at_) / static_cast<double>(kSettles));
  celsius_ = settled + (celsius_ - settled) * left;
  highest_ = std::max(highest_, celsius_);
  at_ = t;
  bytes_ = bytes;
  return celsius_;
}

void Thermal::heat(Time t, std::uint64_t bytes, double to) {
  celsius(t, bytes);
  celsius_ = std::max(celsius_, to);
  highest_ = std::max(highest_, celsius_);
}

}  // namespace hcasim::fw
