// SPDX-License-Identifier: BSD-3-Clause
// Which validation rules the drivers of this process have broken since some moment, on any HCA that it has
// had since.
#ifndef HCASIM_DRIVER_BARE_RULES_H
#define HCASIM_DRIVER_BARE_RULES_H

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace hcasim::bare {

class RuleWatch {
 public:
  RuleWatch() : before_(counts()) {}

  // What was broken since, and may not be.
  std::set<std::string> broken() const;
  std::string text() const;  // "" or "dbr-jump, sq-overrun"
  // Throws BareError when any was.
  void must_be_none() const;
  // These, or all, may be broken.
  void allow(const std::vector<std::string>& rules) { allowed_.insert(rules.begin(), rules.end()); }
  void allow_all() { all_ = true; }

 private:
  static std::vector<std::uint64_t> counts();

  std::vector<std::uint64_t> before_;  // by the rule's index
  std::set<std::string> allowed_;
  bool all_ = false;
};

}  // namespace hcasim::bare
#endif
