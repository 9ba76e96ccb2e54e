// SPDX-License-Identifier: BSD-3-Clause
#include "coverage/binary.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <libelf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <unordered_map>

#include "coverage/debug_info.h"

namespace hcasim::coverage {

ElfFile::ElfFile(const std::string& path) : path_(path) {
  elf_version(EV_CURRENT);
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) throw std::runtime_error(fmt::format("{}: cannot be read", path));
  elf_ = elf_begin(fd_, ELF_C_READ_MMAP, nullptr);
  GElf_Ehdr header;
  if (elf_ == nullptr || elf_kind(elf_) != ELF_K_ELF || gelf_getehdr(elf_, &header) == nullptr ||
      header.e_machine != EM_X86_64) {
    close();
    throw std::runtime_error(fmt::format("{}: no ELF file of x86-64", path));
  }
  type_ = header.e_type;
}
ElfFile::~ElfFile() { close(); }
void ElfFile::close() {
  if (elf_ != nullptr) elf_end(elf_);
  if (fd_ >= 0) ::close(fd_);
  elf_ = nullptr;
  fd_ = -1;
}

std::string ElfFile::section_name(Elf_Scn* section) const {
  std::size_t names = 0;
  GElf_Shdr header;
  if (elf_getshdrstrndx(elf_, &names) != 0 || gelf_getshdr(section, &header) == nullptr) return {};
  const char* name = elf_strptr(elf_, names, header.sh_name);
  return name != nullptr ? name : "";
}

namespace {

/// What the kernel keeps lists of to patch: each entry of these sections points to code that it changes.
constexpr std::array kPatched = {
    ".altinstructions", ".retpoline_sites", ".return_sites",      ".call_sites",       ".ibt_endbr_seal",
    "__mcount_loc",     "__jump_table",     ".static_call_sites", ".parainstructions", ".smp_locks"};
constexpr std::uint64_t kPatchedBytes =
    16;  ///< at such a place at most: the longest alternatives are a few instructions

void varies(Section& section, std::uint64_t offset, std::uint64_t size) {
  for (std::uint64_t i = offset; i < offset + size && i < section.varies.size(); i++)
    section.varies[i] = true;
}

/// Sections of code of a module, by their index in the file.
std::unordered_map<std::size_t, std::size_t> read_sections(const ElfFile& file, Binary& binary) {
  std::unordered_map<std::size_t, std::size_t> index;
  Elf_Scn* scn = nullptr;
  while ((scn = elf_nextscn(file.elf(), scn)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(scn, &header) == nullptr) continue;
    if ((header.sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) != (SHF_ALLOC | SHF_EXECINSTR)) continue;
    Section section;
    section.name = file.section_name(scn);
    section.size = header.sh_size;
    const Elf_Data* data = header.sh_type == SHT_PROGBITS ? elf_rawdata(scn, nullptr) : nullptr;
    if (data != nullptr && data->d_buf != nullptr) {
      const auto* bytes = static_cast<const std::uint8_t*>(data->d_buf);
      section.bytes.assign(bytes, bytes + data->d_size);
      section.varies.assign(data->d_size, false);
    }
    index[elf_ndxscn(scn)] = binary.sections.size();
    binary.sections.push_back(std::move(section));
  }
  return index;
}

bool is_patch_list(const std::string& name) {
  return std::any_of(kPatched.begin(), kPatched.end(), [&](const char* p) { return name == p; });
}

/// What is relocated in code, and where the kernel patches it.
void read_relocations(const ElfFile& file, const std::unordered_map<std::size_t, std::size_t>& index,
                      Binary& binary) {
  Elf_Scn* scn = nullptr;
  while ((scn = elf_nextscn(file.elf(), scn)) != nullptr) {
    GElf_Shdr header, target_header, symbols_header;
    if (gelf_getshdr(scn, &header) == nullptr || header.sh_type != SHT_RELA || header.sh_entsize == 0)
      continue;
    Elf_Scn* target = elf_getscn(file.elf(), header.sh_info);
    Elf_Scn* symbols = elf_getscn(file.elf(), header.sh_link);
    if (target == nullptr || symbols == nullptr || gelf_getshdr(target, &target_header) == nullptr ||
        gelf_getshdr(symbols, &symbols_header) == nullptr)
      continue;
    const auto code = index.find(header.sh_info);
    if (code == index.end() && !is_patch_list(file.section_name(target))) continue;
    Elf_Data* data = elf_getdata(scn, nullptr);
    Elf_Data* symbol_data = elf_getdata(symbols, nullptr);
    if (data == nullptr || symbol_data == nullptr) continue;
    const std::size_t count = header.sh_size / header.sh_entsize;
    for (std::size_t i = 0; i < count; i++) {
      GElf_Rela rela;
      GElf_Sym symbol;
      if (gelf_getrela(data, static_cast<int>(i), &rela) == nullptr ||
          gelf_getsym(symbol_data, static_cast<int>(GELF_R_SYM(rela.r_info)), &symbol) == nullptr)
        continue;
      const auto points_to = index.find(symbol.st_shndx);
      const auto where =
          static_cast<std::uint64_t>(static_cast<std::int64_t>(symbol.st_value) + rela.r_addend);
      if (code == index.end()) {
        if (points_to != index.end()) varies(binary.sections[points_to->second], where, kPatchedBytes);
        continue;
      }
      varies(binary.sections[code->second], rela.r_offset, GELF_R_TYPE(rela.r_info) == R_X86_64_64 ? 8 : 4);
    }
  }
}

}  // namespace

std::vector<Segment> code_segments(const std::string& path) {
  const ElfFile file(path);
  std::vector<Segment> segments;
  std::size_t count = 0;
  if (elf_getphdrnum(file.elf(), &count) != 0) count = 0;
  for (std::size_t i = 0; i < count; i++) {
    GElf_Phdr header;
    if (gelf_getphdr(file.elf(), static_cast<int>(i), &header) == nullptr) continue;
    if (header.p_type == PT_LOAD && (header.p_flags & PF_X) != 0)
      segments.push_back({header.p_offset, header.p_filesz, header.p_vaddr});
  }
  if (segments.empty()) throw std::runtime_error(fmt::format("{}: has no code that is loaded", path));
  return segments;
}

std::optional<Place> place_in_library(const Binary& library, const std::vector<Segment>& segments,
                                      std::uint64_t offset) {
  for (const Segment& segment : segments) {
    if (offset < segment.in_file || offset - segment.in_file >= segment.size) continue;
    const std::uint64_t address = offset - segment.in_file + segment.address;
    for (std::size_t i = 0; i < library.sections.size(); i++)
      if (address >= library.sections[i].base &&
          address - library.sections[i].base < library.sections[i].size)
        return Place{i, address};
  }
  return {};
}

Binary read_binary(const std::string& path, const std::string& debug) {
  Binary binary;
  binary.path = path;
  {
    const ElfFile file(path);
    if (file.type() == ET_REL) {
      read_relocations(file, read_sections(file, binary), binary);
    } else {
      for (const Segment& segment : code_segments(path)) {
        Section section;
        section.base = segment.address;
        section.size = segment.size;
        const Elf_Data* data = elf_getdata_rawchunk(file.elf(), static_cast<std::int64_t>(segment.in_file),
                                                    segment.size, ELF_T_BYTE);
        if (data == nullptr || data->d_buf == nullptr)
          throw std::runtime_error(fmt::format("{}: cut off: its code is not all there", path));
        const auto* bytes = static_cast<const std::uint8_t*>(data->d_buf);
        section.bytes.assign(bytes, bytes + data->d_size);
        section.varies.assign(data->d_size, false);
        binary.sections.push_back(std::move(section));
      }
    }
  }
  read_debug_info(debug.empty() ? path : debug, binary);
  return binary;
}

std::string from_root(const std::string& path) {
  // Folders at the root of the kernel's tree and of rdma-core's.
  static const std::array roots = {"/drivers/", "/include/", "/providers/",     "/libibverbs/",
                                   "/arch/",    "/net/",     "/kernel/",        "/librdmacm/",
                                   "/util/",    "/ccan/",    "/kernel-headers/"};
  std::size_t first = std::string::npos;
  for (const char* root : roots) first = std::min(first, path.find(root));
  return first == std::string::npos ? path : path.substr(first + 1);
}

}  // namespace hcasim::coverage
