// SPDX-License-Identifier: BSD-3-Clause
#include "driver/bare/rules.h"

namespace hcasim::bare {

std::map<std::string, std::uint64_t> RuleWatch::counts() const {
  std::map<std::string, std::uint64_t> out;
  for (std::size_t i = 0; i < machine_.functions(); ++i) {
    for (const auto& [name, count] : machine_.function(i).rules_broken()) out[name] += count;
  }
  return out;
}

std::set<std::string> RuleWatch::broken() const {
  std::set<std::string> out;
  if (all_) return out;
  for (const auto& [name, count] : counts()) {
    const auto before = before_.find(name);
    if (count > (before == before_.end() ? 0 : before->second) && allowed_.count(name) == 0) out.insert(name);
  }
  return out;
}

std::string RuleWatch::text() const {
  std::string out;
  for (const std::string& name : broken()) out += (out.empty() ? "" : ", ") + name;
  return out;
}

}  // namespace hcasim::bare
