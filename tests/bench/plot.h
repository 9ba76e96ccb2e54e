// SPDX-License-Identifier: BSD-3-Clause
// A plot of one curve as SVG, both axes from 0.
#ifndef HCASIM_TESTS_BENCH_PLOT_H
#define HCASIM_TESTS_BENCH_PLOT_H

#include <string>
#include <utility>
#include <vector>

namespace hcasim::bench {

struct Plot {
  std::string title, x, y;
  std::vector<std::pair<double, double>> points;
};

// The points, joined, and a line from the origin through the last one: what grows in proportion lies on it.
std::string svg(const Plot& plot);

}  // namespace hcasim::bench
#endif
