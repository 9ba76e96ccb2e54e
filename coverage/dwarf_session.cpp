// SPDX-License-Identifier: BSD-3-Clause
#include "coverage/dwarf_session.h"

#include <fmt/format.h>

#include <stdexcept>

namespace hcasim::coverage {
namespace {

/// Debug information stands in the file that is named, or there is none.
int no_other_file(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word,
                  char**) {
  return -1;
}

}  // namespace

DwarfSession::DwarfSession(const std::string& path) {
  static const Dwfl_Callbacks callbacks = {nullptr, no_other_file, dwfl_offline_section_address, nullptr};
  dwfl_ = dwfl_begin(&callbacks);
  if (dwfl_ == nullptr) throw std::runtime_error(fmt::format("libdw: {}", dwfl_errmsg(-1)));
  module_ = dwfl_report_offline(dwfl_, path.c_str(), path.c_str(), -1);
  dwfl_report_end(dwfl_, nullptr, nullptr);
  Dwarf_Addr bias = 0;
  if (module_ == nullptr || dwfl_module_getdwarf(module_, &bias) == nullptr) {
    const std::string why = dwfl_errmsg(-1);
    dwfl_end(dwfl_);
    throw std::runtime_error(
        fmt::format("{}: no debug information ({}); build it with CONFIG_DEBUG_INFO (or -g), or give the "
                    "file that has it",
                    path, why));
  }
}

DwarfSession::~DwarfSession() { dwfl_end(dwfl_); }

}  // namespace hcasim::coverage
