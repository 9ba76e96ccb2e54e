// SPDX-License-Identifier: BSD-3-Clause
/// How command lines are parsed: all programs say what is wrong in one form, and end with one status.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace hcasim::command {

constexpr int kUsageError = 2;

/// nullopt: go on; else the exit status: 0 after --help, kUsageError of a wrong command line. What is wrong
/// is said on standard error behind the program's name, which is the App's.
std::optional<int> parse(CLI::App& app, int argc, char** argv);

/// For CLI::Option::check(): whole numbers from `least` to `most`. CLI11 by itself takes a negative number,
/// and one that is too large, as a huge one.
CLI::Validator whole(std::uint64_t least = 0, std::uint64_t most = 1'000'000'000'000'000);
/// Numbers that are finite.
CLI::Validator finite();

/// --from and --to: a span of simulated time, us.
struct TimeSpan {
  double from = -1e300, to = 1e300;

  /// `what` begins then, such as "those that began". Takes the App's callback.
  void options(CLI::App& app, const std::string& what);
  bool has(double us) const { return us >= from && us < to; }
};

}  // namespace hcasim::command
