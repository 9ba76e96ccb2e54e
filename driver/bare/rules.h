// SPDX-License-Identifier: BSD-3-Clause
// The validation rules that the drivers of this process have broken since some moment, on any of its HCAs.
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

  // The rules broken since then that are not allowed.
  std::set<std::string> broken() const;
  std::string text() const;  // "" or "dbr-jump, sq-overrun"
  // Throws BareError if there are any.
  void must_be_none() const;
  // Allows these rules, or all, to be broken.
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
