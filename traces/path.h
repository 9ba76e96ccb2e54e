// SPDX-License-Identifier: BSD-3-Clause
/// Ways of frames through flow tables, from the records frame_enters, frame_table, frame_leaves.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "traces/tracer.h"

namespace hcasim::traces {

/// One record of a frame's way.
struct PathStep {
  Record record;
  std::vector<std::uint8_t> head;  ///< frame_enters: the frame's first bytes
  std::string entry;               ///< frame_table: what set the entry, as the trace knows; "" if it does not
  std::vector<std::size_t> followed;  ///< the steps that came after it: several where copies part
};

struct FramePath {
  std::uint32_t number = 0;  ///< as in the records (Tracer::next_step())
  unsigned hca = 0;          ///< the one that the frame came to first
  std::vector<PathStep> steps;
  std::vector<std::size_t> roots;  ///< steps whose predecessor the trace has not
};

/// Gathers paths in the order in which frames came.
class Paths {
 public:
  void add(const Record& r, const std::vector<std::uint8_t>& blob);
  /// Joins the steps; call after the last record.
  void finish();
  const std::vector<FramePath>& all() const { return paths_; }

 private:
  void note_entry(const Record& r, const std::vector<std::uint8_t>& blob);

  std::vector<FramePath> paths_;
  std::unordered_map<std::uint32_t, std::size_t> by_number_;
  /// What set each entry: by HCA and function, table, flow index.
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> entries_;
};

/// "02:00:00:00:00:01 > 02:00:00:00:00:02, VLAN 5, IPv4 10.0.0.1 > 10.0.0.2, TCP 80 > 4000": as far as the
/// bytes go.
std::string frame_text(const std::uint8_t* bytes, std::size_t len);
/// "0:17": how a path is named: HCA, and its number there.
std::string path_id(const FramePath& path);
/// The path, a step a line, copies as branches.
std::string path_text(const FramePath& path);
/// What a step's record says, without times.
std::string step_text(const PathStep& step);

}  // namespace hcasim::traces
