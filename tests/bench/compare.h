// SPDX-License-Identifier: BSD-3-Clause
// How much slower one way of running is than another: both in turns, in short slices, so that what else the
// machine does at the time falls on both.
#ifndef HCASIM_TESTS_BENCH_COMPARE_H
#define HCASIM_TESTS_BENCH_COMPARE_H

#include <functional>

namespace hcasim::bench {

using Round = std::function<void()>;

// Processor time of a round of `what` over that of a round of `base`, medians of slices: that of this thread,
// and with what other threads of the process take meanwhile (writers of traces), which counts as `what`'s.
struct Slowdown {
  double own, all;
};
Slowdown slowdown(const Round& base, const Round& what);

}  // namespace hcasim::bench
#endif
