// SPDX-License-Identifier: BSD-3-Clause
// A profile fitted to measured figures: which values of its parameters bring the simulated figures nearest to
// them, and which of the parameters the figures tell.
#ifndef HCASIM_TESTS_BENCH_FIT_H
#define HCASIM_TESTS_BENCH_FIT_H

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "least_squares.h"
#include "published.h"

namespace hcasim::bench {

// Measured figures and what simulates them.
struct Measured {
  std::string file;
  std::vector<PublishedRow> rows;
  std::vector<std::string> notes;  // what is simulated otherwise than it was measured
};

// file: perftest's output; named *.toml: rows as in published.toml, which weigh by their tolerances. base:
// what perftest's output does not tell, and the profile of all rows if it is `given`. Throws
// std::runtime_error "file:line: what is allowed".
Measured load_measured(const std::string& file, const timing::Setup& base, bool profile_given);

// Parameters that are fitted when none is named.
const std::vector<std::string>& usual_parameters();

struct Fit {
  std::string file, profile;
  std::vector<PublishedRow> rows;
  std::vector<Unknown> parameters;
  std::vector<std::string> set;  // SECTION.KEY=VALUE: given, and not fitted
  Solution solution;
  std::size_t measurements = 0;  // that were simulated
};

struct FitProgress {
  std::function<void(unsigned round, double rms)> round;
  std::function<void(std::size_t done, std::size_t all)> measured;  // within a round
};

// set: values of the profile that are taken for all rows; of a parameter that is fitted: where it starts. A
// row's own value of a parameter stays. Throws timing::SetupError.
Fit fit(const Measured& measured, const std::vector<std::string>& over, const std::vector<std::string>& set,
        const std::string& folder, unsigned jobs, const FitProgress& progress = {});

std::string text(const Fit& fit);
nlohmann::json json(const Fit& fit);
// The profile that it started from with the values found, as a file; each value with its evidence.
std::string fitted_profile(const Fit& fit, const std::string& folder, const std::string& name);

}  // namespace hcasim::bench
#endif
