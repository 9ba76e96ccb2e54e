// SPDX-License-Identifier: BSD-3-Clause
/// A session of elfutils' libdwfl with one file.
#pragma once

#include <elfutils/libdwfl.h>

#include <string>

namespace hcasim::coverage {

/// It relocates the debug information of modules, whose sections it lays out as it likes.
class DwarfSession {
 public:
  /// Throws std::runtime_error if the file has no debug information.
  explicit DwarfSession(const std::string& path);
  ~DwarfSession();
  DwarfSession(const DwarfSession&) = delete;
  DwarfSession& operator=(const DwarfSession&) = delete;
  Dwfl_Module* module() const { return module_; }

 private:
  Dwfl* dwfl_ = nullptr;
  Dwfl_Module* module_ = nullptr;
};

}  // namespace hcasim::coverage
