// SPDX-License-Identifier: BSD-3-Clause
// `./hcasim bench timing`: perftest's figures in simulated time, beside the published ones.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "published.h"

namespace {

using hcasim::bench::PublishedRow;
using hcasim::timing::Result;
using hcasim::timing::Setup;

// The table of published figures. False: a row is off.
bool compare(const std::vector<PublishedRow>& rows, const std::vector<std::string>& sets, unsigned jobs) {
  std::vector<Setup> all;
  for (const PublishedRow& row : rows) {
    for (Setup s : row.measurements) {
      for (const std::string& pair : sets) s.set(pair);
      all.push_back(s);
    }
  }
  const std::vector<Result> results = measure_all(all, jobs);
  std::printf("%-4s %-74s %12s %10s %8s %10s\n", "row", "set-up", "published", "simulated", "error",
              "allowed");
  bool good = true;
  auto at = results.begin();
  for (const PublishedRow& row : rows) {
    const auto end = at + static_cast<std::ptrdiff_t>(row.measurements.size());
    const double v = row.simulated({at, end});
    at = end;
    const bool within = row.within(v);
    good = good && within;
    char error[32] = "", allowed[32] = "";
    if (!row.at_most) {
      std::snprintf(error, sizeof error, "%+.1f %%", row.error(v));
      std::snprintf(allowed, sizeof allowed, "%g %%", row.tolerance);
    }
    std::printf("%-4s %-74s %12s %10.2f %8s %10s  %s\n", row.id.c_str(), row.setup.c_str(),
                row.figure().c_str(), v, error, allowed, within ? "ok" : "OFF");
    if (!row.note.empty()) std::printf("     %s\n", row.note.c_str());
  }
  return good;
}

void print(const Setup& asked, const Result& r) {
  const Setup s = asked.resolved();
  std::printf("%s %u B: ", s.pattern().c_str(), s.size);
  if (s.metric == hcasim::timing::Metric::kLat)
    std::printf("median %.3f us, least %.3f, most %.3f\n", r.median / 1000, r.least / 1000, r.most / 1000);
  else
    std::printf("%.3f M/s, %.2f Gb/s\n", r.mops(), r.gbps());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("perftest's figures in simulated time, beside the published ones");
  std::vector<std::string> sets;
  std::string published = HCASIM_PUBLISHED, pattern;
  unsigned jobs = 2;
  app.add_option("--set", sets,
                 "KEY=VALUE of the measurement, or SECTION.KEY=VALUE of the profile; repeatable")
      ->allow_extra_args(false);
  app.add_option("--published", published, "the table of published figures");
  app.add_option("--pattern", pattern,
                 "one measurement instead of the table: such as write_lat, read_bw, send_rate");
  app.add_option("--jobs", jobs, "measurements at a time")->check(CLI::Range(1, 256));
  CLI11_PARSE(app, argc, argv);
  try {
    if (!pattern.empty()) {
      Setup setup;
      setup.set("pattern", pattern);
      for (const std::string& pair : sets) setup.set(pair);
      print(setup, measure(setup));
      return 0;
    }
    return compare(hcasim::bench::load_published(published), sets, jobs) ? 0 : 1;
  } catch (const std::exception& e) {
    std::cerr << "bench timing: " << e.what() << "\n";
    return 2;
  }
}
