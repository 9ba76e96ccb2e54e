// SPDX-License-Identifier: BSD-3-Clause
/// What ran in a guest: the file that the QEMU plugin wrote (format.h), and where the guest had its modules.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "coverage/format.h"

namespace hcasim::coverage {

struct Executed {
  std::vector<executed_record> records;
  std::uint32_t left_out = 0;  ///< instructions for which the file had no room
  std::vector<executed_mapping> mappings;

  /// There are instructions, but none was counted: QEMU was killed before the plugin wrote the counts.
  bool uncounted() const;
};

/// Reads the plugin's file, also that of a QEMU that was killed: uncounted() from QEMU 9.0 on. Throws
/// std::runtime_error, which names the file and what is wrong.
Executed read_executed(const std::string& path);

/// One time that the guest loaded a module, or that a program had a library at one place.
struct Load {
  std::string module;
  std::map<std::string, std::uint64_t>
      sections;            ///< of a module: the guest's virtual address of each section of code, by its name
  std::uint64_t base = 0;  ///< of a library: the virtual address of its file's first byte; 0: a module
};

/// Reads what driver/guest/report-modules said: a line "module NAME", then a line "NAME ADDRESS" for each
/// section of code; and what `resolve` has put behind it: a line "library NAME ADDRESS" for each place of
/// one. Lines that are neither are left out: the guest may end in the midst of one. Throws std::runtime_error
/// if the file cannot be read.
std::vector<Load> read_loads(const std::string& path);
/// That line.
std::string library_load(const std::string& name, std::uint64_t base);

}  // namespace hcasim::coverage
