// SPDX-License-Identifier: BSD-3-Clause
// Published figures, and the measurements that must come near them: a table in a TOML file.
#ifndef HCASIM_TESTS_BENCH_PUBLISHED_H
#define HCASIM_TESTS_BENCH_PUBLISHED_H

#include <string>
#include <vector>

#include "driver/timing/measure.h"

namespace hcasim::bench {

struct PublishedRow {
  std::string id, setup, source, note;
  // us: median latency; M/s: messages; Gb/s: payload; %: spread of the median or of the rate; x: of the rate.
  std::string unit;
  double published = 0;      // in `unit`; a range: its middle
  double low = 0, high = 0;  // the range, or both the figure
  double tolerance = 0;      // %, of the figure or of the range's middle
  bool at_most = false;      // the figure is a bound: less is as good
  // One measurement; two: the figure is their difference, x: their ratio; %: (most - least) / most of all.
  std::vector<timing::Setup> measurements;

  // The simulated figure, in `unit`.
  double simulated(const std::vector<timing::Result>& results) const;
  double error(double simulated) const;  // %
  bool within(double simulated) const;
  std::string figure() const;  // as published, with its unit
};

// Throws std::runtime_error "file:line: what is allowed".
std::vector<PublishedRow> load_published(const std::string& file);

}  // namespace hcasim::bench
#endif
