// SPDX-License-Identifier: BSD-3-Clause
/// What a page says of a trace's records beside the lives of WQEs and commands: who recorded, from when to
/// when, which rules were broken, with the records around the first of each.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "traces/reader.h"

namespace hcasim::traces {

class Facts {
 public:
  struct Hca {
    std::uint64_t records = 0, errors = 0;
    std::set<unsigned> functions;
  };
  struct Example {
    std::vector<Record> before;
    Record broken;
    std::string bytes;  ///< the wrong ones, hexadecimal
    std::vector<Record> after;
  };
  struct BrokenRule {
    std::uint64_t count = 0;
    std::vector<Example> examples;
  };

  void add(const Record& r, const std::vector<std::uint8_t>& blob);

  const std::map<unsigned, Hca>& hcas() const { return hcas_; }
  /// By number; 0: those that this version does not know.
  const std::map<unsigned, BrokenRule>& rules() const { return rules_; }
  std::uint64_t rules_broken() const;
  std::int64_t first() const { return first_; }  ///< ps; of all records
  std::int64_t last() const { return last_; }
  bool empty() const { return hcas_.empty(); }

 private:
  static constexpr std::size_t kBefore = 6, kAfter = 3, kOfEach = 3, kBytes = 64;

  std::map<unsigned, Hca> hcas_;
  std::map<unsigned, BrokenRule> rules_;
  std::int64_t first_ = 0, last_ = 0;
  std::deque<Record> before_;
  std::vector<std::pair<unsigned, std::size_t>> open_;  // examples that still take records: rule, place
};

}  // namespace hcasim::traces
