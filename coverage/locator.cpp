// SPDX-License-Identifier: BSD-3-Clause
#include <dwarf.h>
#include <elfutils/libdw.h>

#include <cstdlib>
#include <filesystem>

#include "coverage/dwarf_session.h"
#include "coverage/join.h"

namespace hcasim::coverage {
namespace {

std::string clean(const char* folder, const char* name) {
  std::filesystem::path path(name);
  if (path.is_relative() && folder != nullptr) path = std::filesystem::path(folder) / path;
  return from_root(path.lexically_normal().string());
}

}  // namespace

struct Locator::Debug {
  explicit Debug(const std::string& path) : session(path) {}
  DwarfSession session;
  std::map<std::string, Dwarf_Addr> sections;  ///< where libdwfl has put them
  Dwarf_Addr bias = 0;                         ///< from virtual addresses of the file to libdwfl's
};

Locator::Locator(const Binary& binary, const std::string& debug)
    : binary_(binary), debug_(std::make_unique<Debug>(debug.empty() ? binary.path : debug)) {
  Dwarf_Addr bias = 0;
  Elf* elf = dwfl_module_getelf(debug_->session.module(), &bias);
  std::size_t names = 0;
  if (elf == nullptr || elf_getshdrstrndx(elf, &names) != 0) return;
  Elf_Scn* scn = nullptr;
  while ((scn = elf_nextscn(elf, scn)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(scn, &header) == nullptr || (header.sh_flags & SHF_EXECINSTR) == 0) continue;
    if (const char* name = elf_strptr(elf, names, header.sh_name); name != nullptr)
      debug_->sections[name] = header.sh_addr + bias;
  }
  debug_->bias = bias;
}

Locator::~Locator() = default;

std::vector<SourceLine> Locator::lines_of(const Place& place) const {
  std::vector<SourceLine> chain;
  const std::string& name = binary_.sections[place.section].name;
  Dwarf_Addr start = debug_->bias;  // a library's place is an address
  if (!name.empty()) {
    const auto section = debug_->sections.find(name);
    if (section == debug_->sections.end()) return chain;
    start = section->second;
  }
  const Dwarf_Addr address = start + place.offset;
  Dwarf_Addr bias = 0;
  Dwarf_Die* unit = dwfl_module_addrdie(debug_->session.module(), address, &bias);
  if (unit == nullptr) return chain;
  const char* folder = nullptr;
  Dwarf_Attribute attribute;
  if (dwarf_attr(unit, DW_AT_comp_dir, &attribute) != nullptr) folder = dwarf_formstring(&attribute);
  Dwarf_Line* line = dwarf_getsrc_die(unit, address - bias);
  int number = 0;
  const char* file = line != nullptr ? dwarf_linesrc(line, nullptr, nullptr) : nullptr;
  if (file != nullptr) dwarf_lineno(line, &number);

  // The scopes around an address are those of the source, which of an inlined function are not where it has
  // been put into; those around an entry of the debug information are.
  Dwarf_Die *around = nullptr, *scopes = nullptr;
  if (dwarf_getscopes(unit, address - bias, &around) <= 0) return chain;
  const int count = dwarf_getscopes_die(&around[0], &scopes);
  std::free(around);  // NOLINT: libdw's
  for (int i = 0; i < count; i++) {
    const int tag = dwarf_tag(&scopes[i]);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
    const char* function = dwarf_diename(&scopes[i]);
    if (file != nullptr && number > 0)
      chain.push_back(
          {clean(folder, file), static_cast<unsigned>(number), function != nullptr ? function : ""});
    if (tag == DW_TAG_subprogram) break;
    // Where it is called: a line of the function around it.
    Dwarf_Word at = 0, of = 0;
    Dwarf_Files* files = nullptr;
    file = nullptr;
    number = 0;
    if (dwarf_attr(&scopes[i], DW_AT_call_line, &attribute) != nullptr &&
        dwarf_formudata(&attribute, &at) == 0)
      number = static_cast<int>(at);
    if (dwarf_attr(&scopes[i], DW_AT_call_file, &attribute) != nullptr &&
        dwarf_formudata(&attribute, &of) == 0 && dwarf_getsrcfiles(unit, &files, nullptr) == 0)
      file = dwarf_filesrc(files, of, nullptr, nullptr);
  }
  std::free(scopes);  // NOLINT: libdw's
  return chain;
}

}  // namespace hcasim::coverage
