// SPDX-License-Identifier: BSD-3-Clause
/// What stands around a command line's work.
#pragma once

namespace hcasim::command {

/// The exit status of work(argc, argv); what it throws is said on standard error behind `name`, the
/// program's, and ends with kUsageError (command/parse.h).
int run(const char* name, int (*work)(int, char**), int argc, char** argv);

}  // namespace hcasim::command
