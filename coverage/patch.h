// SPDX-License-Identifier: BSD-3-Clause
/// Which of the lines that a patch adds ran, and in which tests.
#pragma once

#include <string>
#include <vector>

#include "coverage/tracefile.h"

namespace hcasim::coverage {

struct AddedLine {
  std::string file;   ///< as in the patch, without a/ or b/
  unsigned line = 0;  ///< in the patched file
  std::string text;
};

/// The lines that a unified diff adds. `sources`: the tree that the module was built from; if other changes
/// have moved a hunk there, its lines are where the hunk's text stands. A hunk whose text is not there is
/// named in `missing` ("FILE:LINE"), and its lines are left out. Throws std::runtime_error: what is wrong,
/// with file and line.
std::vector<AddedLine> read_patch(const std::string& path, const std::string& sources,
                                  std::vector<std::string>& missing);

struct LineFate {
  AddedLine added;
  bool is_code = false;            ///< the compiler made instructions of it
  std::vector<std::string> tests;  ///< those that ran it
};
std::vector<LineFate> fates(const std::vector<AddedLine>& lines, const std::vector<Coverage>& tests);

}  // namespace hcasim::coverage
