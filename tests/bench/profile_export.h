// SPDX-License-Identifier: BSD-3-Clause
// A timing profile for other simulators: each parameter that the model has, with its value, its unit and what
// it is known from, which is the comment beside it in the profile's file.
#ifndef HCASIM_TESTS_BENCH_PROFILE_EXPORT_H
#define HCASIM_TESTS_BENCH_PROFILE_EXPORT_H

#include <string>
#include <vector>

namespace hcasim::bench {

// profile: a name in `folder`, or a path. set: SECTION.KEY=VALUE, in place of the profile's. format: "json"
// or "csv". Throws std::runtime_error: no such profile, or what is wrong with it.
std::string export_profile(const std::string& profile, const std::string& folder,
                           const std::vector<std::string>& set, const std::string& format);

}  // namespace hcasim::bench
#endif
