// SPDX-License-Identifier: BSD-3-Clause
/// Whether there are such rules, opcodes, statuses and commands at all: a name that is misspelt must not look
/// like one that nothing in the trace has.
#pragma once

#include <cstdint>
#include <string>

namespace hcasim::traces {

/// Checks of options of a command line (CLI::Option::check()): "" or what is wrong, and what to do.
std::string check_rule(const std::string& name);
/// As WqeRow::opcode_name() and status_name() have them, in capitals or not; of a status also ok and error.
std::string check_opcode(const std::string& name);
std::string check_status(const std::string& name);
/// Whether an option's value that one of these checks took means the thing of that name and number: by its
/// name, in capitals or not, or by its number, though that has a name.
bool is_name(const std::string& value, const std::string& name, std::int64_t number);
/// As CommandRow::name() has it.
std::string check_command(const std::string& name);

}  // namespace hcasim::traces
