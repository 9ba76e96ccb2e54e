// SPDX-License-Identifier: BSD-3-Clause
/// Coverage of source files: functions, lines, branches and how often each ran; as lcov's tracefile
/// (geninfo(1)) and as JSON like gcov's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hcasim::coverage {

struct FunctionCount {
  unsigned line = 0;
  std::uint64_t count = 0;   ///< how often it was entered
  std::uint64_t called = 0;  ///< of these, by a call: not where it is inlined (only in JSON)
};

/// A conditional jump, by its number among those of its line.
struct BranchCount {
  bool reached = false;
  std::optional<std::uint64_t> straight, jumped;  ///< nothing: it ran, and which way cannot be told
};

struct FileCoverage {
  std::map<std::string, FunctionCount> functions;
  std::map<unsigned, std::uint64_t> lines;
  std::map<unsigned, std::vector<BranchCount>> branches;
};

/// What one test ran, or several together; by source file.
struct Coverage {
  std::string test;  ///< name; empty: of several
  std::map<std::string, FileCoverage> files;
};

/// Adds what `other` ran. Functions, lines and branches that only one of them knows are kept: they are of
/// different builds.
void add(Coverage& sum, const Coverage& other);

/// Throws std::runtime_error, which says file, line and what is wrong. A file of several tests (TN:) gives
/// one Coverage for each.
std::vector<Coverage> read_tracefile(const std::string& path);
std::string to_tracefile(const Coverage& coverage);
std::string to_json(const Coverage& coverage);

struct Share {
  std::uint64_t reached = 0, all = 0;
};
struct FileShares {
  Share functions, lines, branches;
};
FileShares shares(const FileCoverage& file);

}  // namespace hcasim::coverage
