// SPDX-License-Identifier: BSD-3-Clause
// Time of ends of a wire.
#ifndef HCASIM_TESTS_WIRE_PASS_H
#define HCASIM_TESTS_WIRE_PASS_H

#include <cstdint>

#include "wire/link.h"

namespace hcasim::wire {

constexpr std::int64_t kSecond = 1'000'000'000;  // ns

// Lets `seconds` pass from `now` (ns) on, for these ends (each has a link), in steps of 10 ms.
template <class... Ends>
void pass_from(std::int64_t& now, double seconds, Ends&... ends) {
  const std::int64_t end = now + static_cast<std::int64_t>(seconds * 1e9);
  while (now < end) {
    now += kSecond / 100;
    (ends.link.poll(now), ...);
  }
}

}  // namespace hcasim::wire
#endif
