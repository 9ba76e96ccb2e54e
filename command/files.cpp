// SPDX-License-Identifier: BSD-3-Clause
#include "command/files.h"

#include <filesystem>
#include <system_error>

namespace hcasim::command {

namespace fs = std::filesystem;

bool same_file(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  std::error_code error;
  const fs::file_status first = fs::status(a, error);
  // What goes to /dev/null twice is not lost, and of a pipe nothing is overwritten.
  if (fs::exists(first) && !fs::is_regular_file(first)) return false;
  if (fs::equivalent(a, b, error)) return true;
  if (fs::exists(first) || fs::exists(b, error)) return false;
  const fs::path whole_a = fs::weakly_canonical(fs::absolute(a, error), error);
  const fs::path whole_b = fs::weakly_canonical(fs::absolute(b, error), error);
  return !whole_a.empty() && whole_a == whole_b;
}

std::string check_outputs(const std::vector<Output>& written, const std::vector<std::string>& read) {
  for (std::size_t i = 0; i < written.size(); i++) {
    const Output& o = written[i];
    if (o.path.empty()) continue;
    for (const std::string& file : read)
      if (o.path != "-" && same_file(o.path, file))
        return o.option + " " + o.path + " is what is to be read: name another file";
    for (std::size_t k = 0; k < i; k++)
      if (o.path == "-" ? written[k].path == "-" : same_file(o.path, written[k].path))
        return o.option + " and " + written[k].option + " both go to " +
               (o.path == "-" ? "standard output" : o.path) + ": name another file for one of them";
  }
  return "";
}

}  // namespace hcasim::command
