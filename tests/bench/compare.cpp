// SPDX-License-Identifier: BSD-3-Clause
#include "compare.h"

#include <algorithm>
#include <ctime>
#include <vector>

namespace hcasim::bench {

namespace {

constexpr int kSlices = 40;          // of each side
constexpr double kSlice = 0.005;     // s
constexpr int kMostRounds = 100000;  // in a slice

double seconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double slice(const Round& round, int rounds) {
  const double start = seconds(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < rounds; ++i) round();
  return (seconds(CLOCK_THREAD_CPUTIME_ID) - start) / rounds;
}

// Rounds that fill a slice.
int calibrate(const Round& round) {
  int rounds = 1;
  while (rounds < kMostRounds && slice(round, rounds) * rounds < kSlice / 2) rounds *= 2;
  return rounds;
}

double median(std::vector<double>& v) {
  const auto middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  return *middle;
}

}  // namespace

Slowdown slowdown(const Round& base, const Round& what) {
  const int base_rounds = calibrate(base), what_rounds = calibrate(what);
  std::vector<double> a, b;
  const double others = seconds(CLOCK_PROCESS_CPUTIME_ID) - seconds(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < kSlices; ++i) {
    a.push_back(slice(base, base_rounds));
    b.push_back(slice(what, what_rounds));
  }
  const double beside = seconds(CLOCK_PROCESS_CPUTIME_ID) - seconds(CLOCK_THREAD_CPUTIME_ID) - others;
  const double one = median(a), other = median(b);
  return {other / one, (other + beside / kSlices / what_rounds) / one};
}

}  // namespace hcasim::bench
