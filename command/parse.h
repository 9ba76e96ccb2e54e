// SPDX-License-Identifier: BSD-3-Clause
/// How command lines are parsed: all programs say what is wrong in one form, and end with one status.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>

namespace hcasim::command {

constexpr int kUsageError = 2;

/// nullopt: go on; else the exit status: 0 after --help, kUsageError of a wrong command line. What is wrong
/// is said on standard error behind the program's name, which is the App's.
std::optional<int> parse(CLI::App& app, int argc, char** argv);

}  // namespace hcasim::command
