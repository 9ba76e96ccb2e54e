// SPDX-License-Identifier: BSD-3-Clause
// Charts of several curves as SVG, below one another: both axes logarithmic where all values are above 0.
#ifndef HCASIM_CHART_CHART_H
#define HCASIM_CHART_CHART_H

#include <string>
#include <utility>
#include <vector>

namespace hcasim::chart {

struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

struct Chart {
  std::string title, x, y;
  std::vector<Curve> curves;
  bool linear = false;  // both axes, from 0 on
};

std::string svg(const std::vector<Chart>& charts);

}  // namespace hcasim::chart
#endif
