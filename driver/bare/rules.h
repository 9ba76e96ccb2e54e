// SPDX-License-Identifier: BSD-3-Clause
// Which validation rules the drivers of a machine have broken since some moment.
#ifndef HCASIM_DRIVER_BARE_RULES_H
#define HCASIM_DRIVER_BARE_RULES_H

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "driver/bare/machine.h"

namespace hcasim::bare {

class RuleWatch {
 public:
  explicit RuleWatch(Machine& machine) : machine_(machine) { restart(); }

  // Forgets what was broken so far.
  void restart() { before_ = counts(); }
  // What was broken since, and may not be.
  std::set<std::string> broken() const;
  std::string text() const;  // "" or "dbr-jump, sq-overrun"
  // From now on these, or all, may be broken.
  void allow(const std::vector<std::string>& rules) { allowed_.insert(rules.begin(), rules.end()); }
  void allow_all() { all_ = true; }

 private:
  std::map<std::string, std::uint64_t> counts() const;

  Machine& machine_;
  std::map<std::string, std::uint64_t> before_;
  std::set<std::string> allowed_;
  bool all_ = false;
};

}  // namespace hcasim::bare
#endif
