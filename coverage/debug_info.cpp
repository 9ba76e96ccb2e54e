// SPDX-License-Identifier: BSD-3-Clause
#include "coverage/debug_info.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <stdexcept>
#include <unordered_map>

#include "coverage/dwarf_session.h"

namespace hcasim::coverage {
namespace {

class Reader {
 public:
  Reader(DwarfSession& session, Binary& binary) : module_(session.module()), binary_(binary) {
    for (std::size_t i = 0; i < binary.sections.size(); i++) by_name_[binary.sections[i].name] = i;
    relocatable_ = by_name_.count("") == 0;  // segments have no names
  }

  void read() {
    Dwarf_Die* unit = nullptr;
    Dwarf_Addr bias = 0;
    while ((unit = dwfl_module_nextcu(module_, unit, &bias)) != nullptr) {
      bias_ = bias;
      const char* folder = nullptr;
      Dwarf_Attribute attribute;
      if (dwarf_attr(unit, DW_AT_comp_dir, &attribute) != nullptr) folder = dwarf_formstring(&attribute);
      folder_ = folder != nullptr ? folder : "";
      if (const char* name = dwarf_diename(unit); name != nullptr)
        homes_.insert(std::filesystem::path(binary_.files[file_of(name)]).parent_path().string());
      read_lines(unit);
      Dwarf_Die child;
      if (dwarf_child(unit, &child) == 0) read_functions(child);
    }
    read_symbols();
    for (auto& [key, function] : functions_) {
      if (function.entries.empty()) continue;
      std::sort(function.entries.begin(), function.entries.end());
      function.entries.erase(std::unique(function.entries.begin(), function.entries.end()),
                             function.entries.end());
      binary_.functions.push_back(std::move(function));
    }
    binary_.homes.assign(homes_.begin(), homes_.end());
    // A sequence that ends where the next one begins: its end comes first.
    std::stable_sort(binary_.rows.begin(), binary_.rows.end(), [](const LineRow& a, const LineRow& b) {
      return a.at == b.at ? (a.line == 0) > (b.line == 0) : a.at < b.at;
    });
  }

 private:
  std::size_t file_of(const std::string& name) {
    const auto [at, fresh] = files_.try_emplace(folder_ + '\n' + name, 0);
    if (fresh) {
      std::filesystem::path path(name);
      if (path.is_relative()) path = std::filesystem::path(folder_) / path;
      const std::string clean = from_root(path.lexically_normal().string());
      const auto [index, is_new] = names_.try_emplace(clean, binary_.files.size());
      if (is_new) binary_.files.push_back(clean);
      at->second = index->second;
    }
    return at->second;
  }

  /// Where in a section of code libdw's address is; nothing if it is in none, such as that of a function that
  /// was left out.
  std::optional<Place> place_of(Dwarf_Addr address) {
    if (!relocatable_) {
      const Dwarf_Addr in_file = address - bias_;
      for (std::size_t i = 0; i < binary_.sections.size(); i++)
        if (in_file >= binary_.sections[i].base &&
            in_file - binary_.sections[i].base <= binary_.sections[i].size)
          return Place{i, in_file};
      return {};
    }
    Dwarf_Addr offset = address;
    const int relocation = dwfl_module_relocate_address(module_, &offset);
    if (relocation < 0) return {};
    const char* name = dwfl_module_relocation_info(module_, static_cast<unsigned>(relocation), nullptr);
    const auto at = by_name_.find(name != nullptr ? name : "");
    if (at == by_name_.end() || offset > binary_.sections[at->second].size) return {};
    return Place{at->second, offset};
  }

  void read_lines(Dwarf_Die* unit) {
    Dwarf_Lines* lines = nullptr;
    std::size_t count = 0;
    if (dwarf_getsrclines(unit, &lines, &count) != 0) return;
    for (std::size_t i = 0; i < count; i++) {
      Dwarf_Line* line = dwarf_onesrcline(lines, i);
      Dwarf_Addr address = 0;
      int number = 0;
      bool statement = false, end = false;
      if (dwarf_lineaddr(line, &address) != 0 || dwarf_lineno(line, &number) != 0) continue;
      dwarf_linebeginstatement(line, &statement);
      dwarf_lineendsequence(line, &end);
      const auto place = place_of(address + bias_ - (end && address != 0 ? 1 : 0));
      if (!place) continue;
      const char* name = dwarf_linesrc(line, nullptr, nullptr);
      LineRow row;
      row.at = {place->section, place->offset + (end && address != 0 ? 1 : 0)};
      row.line = end || number < 0 ? 0 : static_cast<unsigned>(number);
      row.statement = statement;
      if (row.line != 0 && name != nullptr) row.file = file_of(name);
      binary_.rows.push_back(row);
    }
  }

  /// Functions and what was inlined into them, without recursion: debug information may nest as deep as it
  /// likes.
  void read_functions(const Dwarf_Die& first) {
    std::vector<Dwarf_Die> rest = {first};
    while (!rest.empty()) {
      Dwarf_Die die = rest.back();
      rest.pop_back();
      Dwarf_Die next;
      if (dwarf_siblingof(&die, &next) == 0) rest.push_back(next);
      const int tag = dwarf_tag(&die);
      if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine) add_function(die);
      if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) {
        Dwarf_Die child;
        if (dwarf_child(&die, &child) == 0) rest.push_back(child);
      }
    }
  }

  /// Where its code begins; nothing if it has none.
  std::optional<Place> entry_of(Dwarf_Die& die) {
    Dwarf_Addr entry = 0;
    if (dwarf_entrypc(&die, &entry) != 0 || entry == 0) {
      Dwarf_Addr base = 0, begin = 0, end = 0;
      if (dwarf_ranges(&die, 0, &base, &begin, &end) <= 0) return {};
      entry = begin;
    }
    return place_of(entry + bias_);
  }

  void add_function(Dwarf_Die& die) {
    Dwarf_Attribute declared;
    if (dwarf_attr(&die, DW_AT_declaration, &declared) != nullptr) return;
    // dwarf_attr_integrate and these follow DW_AT_abstract_origin.
    Dwarf_Attribute attribute;
    const char* name = nullptr;
    if (dwarf_attr_integrate(&die, DW_AT_name, &attribute) != nullptr) name = dwarf_formstring(&attribute);
    int line = 0;
    const char* file = dwarf_decl_file(&die);
    if (name == nullptr || file == nullptr || dwarf_decl_line(&die, &line) != 0 || line <= 0) return;
    const std::size_t index = file_of(file);
    Function& function = functions_[{index, static_cast<unsigned>(line), name}];
    function.name = name;
    function.file = index;
    function.line = static_cast<unsigned>(line);
    const auto place = entry_of(die);
    if (!place) return;
    function.entries.push_back(*place);
    if (dwarf_tag(&die) == DW_TAG_subprogram) binary_.calls_lead_to.push_back(*place);
  }

  /// Functions with the same code become one, which the others jump to; of these there is a symbol, and no
  /// more debug information than that the function was there.
  void read_symbols() {
    auto& entries = binary_.calls_lead_to;
    std::sort(entries.begin(), entries.end());
    const std::vector<Place> known = entries;
    std::map<std::string, Function*> by_name;
    for (auto& [key, function] : functions_)
      if (function.entries.empty()) by_name[function.name] = &function;
    const int count = dwfl_module_getsymtab(module_);
    for (int i = 0; i < count; i++) {
      GElf_Sym symbol;
      GElf_Addr address = 0;
      const char* name = dwfl_module_getsym_info(module_, i, &symbol, &address, nullptr, nullptr, nullptr);
      if (name == nullptr || GELF_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF)
        continue;
      const auto function = by_name.find(name);
      const auto place = place_of(address);
      if (function == by_name.end() || !place || std::binary_search(known.begin(), known.end(), *place))
        continue;
      function->second->entries.push_back(*place);
      entries.push_back(*place);
    }
    std::sort(entries.begin(), entries.end());
  }

  Dwfl_Module* module_;
  Binary& binary_;
  bool relocatable_ = false;
  Dwarf_Addr bias_ = 0;
  std::string folder_;
  std::unordered_map<std::string, std::size_t> by_name_;
  std::unordered_map<std::string, std::size_t> files_, names_;
  std::set<std::string> homes_;
  std::map<std::tuple<std::size_t, unsigned, std::string>, Function> functions_;
};

}  // namespace

void read_debug_info(const std::string& path, Binary& binary) {
  DwarfSession session(path);
  Reader(session, binary).read();
  if (binary.rows.empty())
    throw std::runtime_error(fmt::format("{}: its debug information has no lines; build it with -g", path));
}

}  // namespace hcasim::coverage
