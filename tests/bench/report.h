// SPDX-License-Identifier: BSD-3-Clause
// What `./hcasim bench timing` says of measurements: text, CSV, JSON, charts.
#ifndef HCASIM_TESTS_BENCH_REPORT_H
#define HCASIM_TESTS_BENCH_REPORT_H

#include <functional>
#include <nlohmann/json.hpp>

#include "chart/chart.h"
#include "published.h"

namespace hcasim::bench {

// The rows beside what was measured for them, `results` in the order of the rows' measurements.
class Comparison {
 public:
  Comparison(std::vector<PublishedRow> rows, const std::vector<timing::Result>& results);
  bool good() const;  // every row is within its tolerance
  std::string text() const;
  std::string csv() const;
  nlohmann::json json() const;

 private:
  std::vector<PublishedRow> rows_;
  std::vector<double> simulated_;
};

// Measurements of a grid: what is asked for, and the keys in which they differ.
class Grid {
 public:
  // sweeps: "KEY=A,B,C". Throws timing::SetupError.
  Grid(const timing::Setup& base, const std::vector<std::string>& sweeps);
  const std::vector<timing::Setup>& setups() const { return setups_; }
  std::vector<timing::Result> results;  // to be filled in, one a setup

  std::string heading() const;
  std::string line(std::size_t i) const;
  std::string csv() const;
  nlohmann::json json() const;
  // The first key that was swept and is a number. Throws timing::SetupError if there is none.
  const std::string& x_key() const;
  // Over that key: latencies, and throughput in Gb/s (rate: M/s).
  std::vector<chart::Chart> charts() const;

 private:
  std::string label(std::size_t i, const std::string& without) const;
  std::size_t width(const std::string& key) const;

  std::vector<std::string> keys_;  // swept
  std::vector<timing::Setup> setups_;
};

}  // namespace hcasim::bench
#endif
