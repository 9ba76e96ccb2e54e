// SPDX-License-Identifier: BSD-3-Clause
/// Reads lcov's tracefiles: which lines and functions of a program (here: the guest's driver) were reached.
/// Format: geninfo(1), records SF, FN, FNDA, FNL, FNA, FNF, FNH, DA, LF, LH, end_of_record; others are
/// skipped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hcasim::traces {

struct CoverageFile {
  std::string path;
  std::uint64_t lines = 0, lines_hit = 0, functions = 0, functions_hit = 0;
};

/// The files by path; a file that stands there more than once (a section for each test) counts once, with
/// what any of them reached. false: `*err` says why.
bool read_coverage(const std::string& path, std::vector<CoverageFile>* files, std::string* err);

}  // namespace hcasim::traces
