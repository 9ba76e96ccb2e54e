// SPDX-License-Identifier: BSD-3-Clause
// A timing profile for other simulators: each field with its value, its unit and what it is known from, which
// is the comment beside it in the profile's file.
#ifndef HCASIM_TESTS_BENCH_PROFILE_EXPORT_H
#define HCASIM_TESTS_BENCH_PROFILE_EXPORT_H

#include <string>

namespace hcasim::bench {

// profile: a name in `folder`, or a path. format: "json" or "csv". Throws std::runtime_error: no such
// profile, or what is wrong with it.
std::string export_profile(const std::string& profile, const std::string& folder, const std::string& format);

}  // namespace hcasim::bench
#endif
