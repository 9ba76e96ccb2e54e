// SPDX-License-Identifier: BSD-3-Clause
/// The files that a command line names: none that is to be written may be one that is read, or written twice.
#pragma once

#include <string>
#include <vector>

namespace hcasim::command {

/// Whether two names lead to one file, be it there already or not. Devices and pipes are not meant.
bool same_file(const std::string& a, const std::string& b);

struct Output {
  std::string option, path;  ///< path "": not asked for; "-": standard output
};
/// What is wrong with writing these while those are read, and what to do; "": nothing.
std::string check_outputs(const std::vector<Output>& written, const std::vector<std::string>& read = {});

}  // namespace hcasim::command
