// SPDX-License-Identifier: BSD-3-Clause
/// Reads DWARF by elfutils' libdw.
#pragma once

#include <libelf.h>

#include <string>

#include "coverage/binary.h"

namespace hcasim::coverage {

/// An ELF file of x86-64 that is open for reading. Throws std::runtime_error if it is none.
class ElfFile {
 public:
  explicit ElfFile(const std::string& path);
  ~ElfFile();
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;
  Elf* elf() const { return elf_; }
  int type() const { return type_; }  ///< ET_REL, ET_DYN ...
  std::string section_name(Elf_Scn* section) const;

 private:
  void close();
  std::string path_;
  int fd_ = -1;
  Elf* elf_ = nullptr;
  int type_ = 0;
};

/// Files, functions and lines of `path` into `binary`, whose sections are known. Throws std::runtime_error if
/// there is no debug information.
void read_debug_info(const std::string& path, Binary& binary);

}  // namespace hcasim::coverage
