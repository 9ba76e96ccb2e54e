// SPDX-License-Identifier: BSD-3-Clause
// Short ways to say what is measured.
#ifndef HCASIM_TESTS_TIMING_FIGURES_H
#define HCASIM_TESTS_TIMING_FIGURES_H

#include <string>
#include <vector>

#include "driver/timing/measure.h"

namespace hcasim::timing {

// "KEY=VALUE KEY=VALUE"
inline Setup setup(const std::string& words) {
  Setup s;
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    if (end > at) s.set(words.substr(at, end - at));
    at = end + 1;
  }
  return s;
}

inline std::vector<Result> measured(const std::vector<std::string>& all) {
  std::vector<Setup> setups;
  for (const std::string& words : all) setups.push_back(setup(words));
  return measure_all(setups, 2);
}

inline Result measured(const std::string& words) { return measured(std::vector<std::string>{words}).front(); }

// Latency, us; messages a second, millions; payload, Gb/s.
inline double us(const Result& r) { return r.median / 1000; }
inline double ns(const Result& r) { return r.median; }

}  // namespace hcasim::timing
#endif
