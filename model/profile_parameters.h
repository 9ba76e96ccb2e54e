// SPDX-License-Identifier: BSD-3-Clause
// What values the parameters of a profile may have: for programs that look for values.
#ifndef HCASIM_MODEL_PROFILE_PARAMETERS_H
#define HCASIM_MODEL_PROFILE_PARAMETERS_H

#include <string>
#include <vector>

namespace hcasim {

struct ParameterRange {
  std::string name;   // SECTION.KEY
  double low, high;   // allowed, in the file's unit
  bool whole;         // whole numbers alone
  bool power_of_two;  // and of these, powers of two
  bool time;          // ns, rounded to whole cycles of the clock when loaded
};

// In the order of Profile::names().
const std::vector<ParameterRange>& parameter_ranges();

}  // namespace hcasim
#endif
