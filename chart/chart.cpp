// SPDX-License-Identifier: BSD-3-Clause
#include "chart/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hcasim::chart {

namespace {

constexpr double kWidth = 560, kHeight = 300, kLeft = 80, kTop = 46, kRight = 190, kEach = kHeight + 110;
constexpr std::size_t kMostMarks = 60;  // points of a curve that are marked each
const char* const kColours[] = {"#1b6ca8", "#c1440e", "#3f7d20", "#7b3f98", "#b8860b", "#2f4f4f", "#c2185b"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

// 2048 as 2K: sizes are powers of two.
std::string tick(double v) {
  if (v >= 1048576 && std::fmod(v, 1048576) == 0) return fmt::format("{:g}M", v / 1048576);
  if (v >= 1024 && std::fmod(v, 1024) == 0) return fmt::format("{:g}K", v / 1024);
  return fmt::format("{:g}", v);
}

class Axis {
 public:
  // base: of its marks, if it is logarithmic.
  Axis(double low, double high, double base) : log_(low > 0 && high > 0 && high / low >= base), base_(base) {
    if (log_) {
      low_ = std::floor(std::log(low) / std::log(base) + 1e-9);
      high_ = std::ceil(std::log(high) / std::log(base) - 1e-9);
    } else {
      const double unit = std::pow(10, std::floor(std::log10(std::max(high, 1e-9))));
      low_ = 0;
      high_ = std::max(1.0, std::ceil(high / unit)) * unit;
    }
  }
  // 0 to 1
  double at(double v) const { return ((log_ ? std::log(v) / std::log(base_) : v) - low_) / (high_ - low_); }
  std::vector<double> marks() const {
    std::vector<double> list;
    if (!log_) {
      for (int i = 0; i <= 5; ++i) list.push_back(low_ + (high_ - low_) * i / 5);
      return list;
    }
    const double step = std::max(1.0, std::ceil((high_ - low_) / 10));
    const auto steps = static_cast<int>((high_ - low_ + 1e-9) / step);
    for (int i = 0; i <= steps; ++i) list.push_back(std::pow(base_, low_ + i * step));
    return list;
  }

 private:
  bool log_;
  double base_, low_ = 0, high_ = 1;
};

std::string one(const Chart& chart, double top) {
  double x_low = HUGE_VAL, x_high = 0, y_low = HUGE_VAL, y_high = 0;
  for (const Curve& c : chart.curves) {
    for (const auto& [x, y] : c.points) {
      x_low = std::min(x_low, x);
      x_high = std::max(x_high, x);
      y_low = std::min(y_low, y);
      y_high = std::max(y_high, y);
    }
  }
  const Axis x_axis(x_low, x_high, chart.linear ? HUGE_VAL : 2),
      y_axis(y_low, y_high, chart.linear ? HUGE_VAL : 10);
  const auto at_x = [&](double x) { return kLeft + x_axis.at(x) * kWidth; };
  const auto at_y = [&](double y) { return top + kHeight - y_axis.at(y) * kHeight; };
  std::string out = fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"15\">{}</text>\n", kLeft, top - 16,
                                escaped(chart.title));
  for (const double x : x_axis.marks()) {
    out += fmt::format("<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#ddd\"/>\n",
                       at_x(x), top, top + kHeight);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", at_x(x),
                       top + kHeight + 18, tick(x));
  }
  for (const double y : y_axis.marks()) {
    out += fmt::format("<line x1=\"{0}\" y1=\"{1:.1f}\" x2=\"{2}\" y2=\"{1:.1f}\" stroke=\"#ddd\"/>\n", kLeft,
                       at_y(y), kLeft + kWidth);
    out += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n", kLeft - 6,
                       at_y(y) + 4, y);
  }
  out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", kLeft + kWidth / 2,
                     top + kHeight + 40, escaped(chart.x));
  out += fmt::format("<text transform=\"translate(20 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
                     top + kHeight / 2, escaped(chart.y));
  for (std::size_t i = 0; i < chart.curves.size(); ++i) {
    const char* colour = kColours[i % std::size(kColours)];
    std::string path;
    for (const auto& [x, y] : chart.curves[i].points) {
      path += fmt::format("{:.1f},{:.1f} ", at_x(x), at_y(y));
      if (chart.curves[i].points.size() <= kMostMarks)
        out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", at_x(x), at_y(y),
                           colour);
    }
    out += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", path,
                       colour);
    out += fmt::format("<text x=\"{}\" y=\"{}\" fill=\"{}\">{}</text>\n", kLeft + kWidth + 12,
                       top + 14 + 18 * static_cast<double>(i), colour, escaped(chart.curves[i].name));
  }
  return out;
}

}  // namespace

std::string svg(const std::vector<Chart>& charts) {
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      kLeft + kWidth + kRight, kEach * static_cast<double>(charts.size()));
  for (std::size_t i = 0; i < charts.size(); ++i)
    out += one(charts[i], kTop + kEach * static_cast<double>(i));
  return out + "</svg>\n";
}

}  // namespace hcasim::chart
