// SPDX-License-Identifier: BSD-3-Clause
/// A kernel module or a shared library: its code, and what its debug information (DWARF) says of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hcasim::coverage {

/// A section of code. Of a module each is loaded to a place of its own; of a library it is a segment, and
/// offsets are virtual addresses of its file.
struct Section {
  std::string name;
  std::uint64_t base = 0;  ///< offset of the first byte: 0 of a module's
  std::uint64_t size = 0;
  std::vector<std::uint8_t> bytes;  ///< as in the file; empty if the file has none
  /// Bytes that need not be as in the file when they run: the loader relocates them, or the kernel patches
  /// them (alternatives, return thunks, jump labels, calls of the function tracer).
  std::vector<bool> varies;
};

struct Place {
  std::size_t section = 0;
  std::uint64_t offset = 0;
  bool operator<(const Place& o) const {
    return section != o.section ? section < o.section : offset < o.offset;
  }
  bool operator==(const Place& o) const { return section == o.section && offset == o.offset; }
};

/// A function, by its place in the source. One that the compiler made more of (inlined, cloned) has an entry
/// for each.
struct Function {
  std::string name;
  std::size_t file = 0;  ///< index in Binary::files
  unsigned line = 0;     ///< of its declaration
  std::vector<Place> entries;
};

/// From `at`, up to the next row's place, the code is of `line`.
struct LineRow {
  Place at;
  std::size_t file = 0;
  unsigned line = 0;  ///< 0: of no line, or the end of a sequence
  bool statement =
      false;  ///< a statement of the source begins here; else the compiler has moved code of it here
};

struct Binary {
  std::string path;
  std::vector<Section> sections;
  std::vector<std::string> files;  ///< of the source, as from the root of its tree ("drivers/net/...")
  std::vector<std::string> homes;  ///< folders of what was compiled into it
  std::vector<Function> functions;
  std::vector<Place> calls_lead_to;  ///< where functions begin that are not inlined; sorted
  std::vector<LineRow> rows;         ///< sorted by place
};

/// Reads a module (.ko) or a library. `debug`: the file with its debug information, if that stands apart.
/// Throws std::runtime_error, which says which file and what to do.
Binary read_binary(const std::string& path, const std::string& debug = {});

/// Where a library has its code.
struct Segment {
  std::uint64_t in_file = 0;  ///< offset, bytes
  std::uint64_t size = 0;
  std::uint64_t address = 0;  ///< virtual
};
std::vector<Segment> code_segments(const std::string& path);
/// The place of what a library's file has at `offset`, if that is code.
std::optional<Place> place_in_library(const Binary& library, const std::vector<Segment>& segments,
                                      std::uint64_t offset);

/// A source file's name without what stands before the root of its tree.
std::string from_root(const std::string& path);

}  // namespace hcasim::coverage
