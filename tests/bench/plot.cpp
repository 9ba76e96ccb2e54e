// SPDX-License-Identifier: BSD-3-Clause
#include "plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hcasim::bench {

namespace {

constexpr double kWidth = 560, kHeight = 320, kLeft = 80, kTop = 50, kMarks = 5;

// A round number that is at least as large.
double round_up(double v) {
  if (v <= 0) return 1;
  const double unit = std::pow(10, std::floor(std::log10(v)));
  for (const double step : {1.0, 2.0, 2.5, 5.0, 10.0}) {
    if (v <= step * unit) return step * unit;
  }
  return 10 * unit;
}

}  // namespace

std::string svg(const Plot& plot) {
  double x_top = 0, y_top = 0;
  for (const auto& [x, y] : plot.points) {
    x_top = std::max(x_top, x);
    y_top = std::max(y_top, y);
  }
  x_top = round_up(x_top);
  y_top = round_up(y_top);
  const auto at_x = [&](double x) { return kLeft + x / x_top * kWidth; };
  const auto at_y = [&](double y) { return kTop + kHeight - y / y_top * kHeight; };
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n<text x=\"{2}\" y=\"28\" "
      "font-size=\"15\">{3}</text>\n",
      kLeft + kWidth + 40, kTop + kHeight + 60, kLeft, plot.title);
  for (int i = 0; i <= static_cast<int>(kMarks); ++i) {
    const double x = x_top * i / kMarks, y = y_top * i / kMarks;
    out += fmt::format("<line x1=\"{0}\" y1=\"{1}\" x2=\"{0}\" y2=\"{2}\" stroke=\"#ddd\"/>\n", at_x(x), kTop,
                       kTop + kHeight);
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>\n", at_x(x),
                       kTop + kHeight + 18, x);
    out += fmt::format("<line x1=\"{0}\" y1=\"{1}\" x2=\"{2}\" y2=\"{1}\" stroke=\"#ddd\"/>\n", kLeft,
                       at_y(y), kLeft + kWidth);
    out +=
        fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{:g}</text>\n", kLeft - 6, at_y(y) + 4, y);
  }
  out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", kLeft + kWidth / 2,
                     kTop + kHeight + 42, plot.x);
  out += fmt::format("<text transform=\"translate(20 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
                     kTop + kHeight / 2, plot.y);
  if (plot.points.empty()) return out + "</svg>\n";
  out += fmt::format(
      "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"#999\" stroke-dasharray=\"5 4\"/>\n", at_x(0),
      at_y(0), at_x(plot.points.back().first), at_y(plot.points.back().second));
  std::string path;
  for (const auto& [x, y] : plot.points) {
    path += fmt::format("{:.1f},{:.1f} ", at_x(x), at_y(y));
    out +=
        fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"#1b6ca8\"/>\n", at_x(x), at_y(y));
  }
  return out +
         fmt::format(
             "<polyline points=\"{}\" fill=\"none\" stroke=\"#1b6ca8\" stroke-width=\"2\"/>\n</svg>\n", path);
}

}  // namespace hcasim::bench
