// SPDX-License-Identifier: BSD-3-Clause
// Nonlinear least squares over bounded unknowns of a simulation, and what its data say of each of them.
// Unknowns are changed by factors (the logarithm is what is solved for); a simulation moves in steps (whole
// clock cycles), so derivatives are taken over wide differences, and what lies within the steps counts as
// nothing.
#ifndef HCASIM_TESTS_BENCH_LEAST_SQUARES_H
#define HCASIM_TESTS_BENCH_LEAST_SQUARES_H

#include <functional>
#include <string>
#include <vector>

namespace hcasim::bench {

using Point = std::vector<double>;  // a value for each unknown

struct Unknown {
  std::string name;
  double start = 0, low = 0, high = 0;  // start: within [low, high]
  double grain = 1;                     // values are whole multiples of it
  int unit = 0;                         // those of unknowns that can be added up are equal
};

struct Target {
  double value = 0;
  double deviation = 1;  // standard, above 0
  double noise = 0;      // steps of the simulated figure
  bool at_most = false;  // less is as good
};

// The figures, one a target, for each of the points; none of a point that cannot be simulated, which then is
// no candidate. derivative: only their differences count.
using Simulation =
    std::function<std::vector<std::vector<double>>(const std::vector<Point>& points, bool derivative)>;

// What the targets say of an unknown.
enum class Known {
  kYes,
  kWeakly,    // its standard error is above a quarter of it
  kTogether,  // only in a combination with others
  kHardly,    // too little depends on it
  kNo,        // nothing depends on it
};

struct Estimate {
  double value = 0;
  double error = 0;  // standard; of kYes and kWeakly
  Known known = Known::kNo;
  bool at_limit = false;        // of its range
  std::size_t combination = 0;  // kTogether: index
};

// Unknowns that cannot be told apart.
struct Combination {
  std::vector<std::size_t> unknowns;
  std::size_t known = 0;  // how many combinations of them are known: fewer than unknowns
  // Of unknowns of one unit. known = 1: the weights of their sum that is known, the largest 1, and that sum.
  // All but one known: the changes of each that together change no figure, the largest 1.
  std::vector<double> weights, nothing;
  double value = 0, error = 0;
};

struct Solution {
  std::vector<Estimate> estimates;
  std::vector<Combination> combinations;
  std::vector<double> before, after;     // the figures
  double rms_before = 0, rms_after = 0;  // of (figure - target) / deviation
  unsigned rounds = 0;
};

// progress: told after each round; rms as above. Standard errors are those of the targets' deviations, and
// larger if the targets are missed by more. Throws std::runtime_error if the start cannot be simulated.
Solution solve(const std::vector<Unknown>& unknowns, const std::vector<Target>& targets,
               const Simulation& simulation,
               const std::function<void(unsigned round, double rms)>& progress = {});

}  // namespace hcasim::bench
#endif
