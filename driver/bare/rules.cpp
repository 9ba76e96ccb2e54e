// SPDX-License-Identifier: BSD-3-Clause
#include "driver/bare/rules.h"

#include "card/api/hca_api.h"
#include "driver/bare/machine.h"

namespace hcasim::bare {

std::vector<std::uint64_t> RuleWatch::counts() {
  std::vector<std::uint64_t> out(hca_rule_count());
  for (unsigned i = 0; i < out.size(); ++i) out[i] = hca_rule_broken(nullptr, i);
  return out;
}

std::set<std::string> RuleWatch::broken() const {
  std::set<std::string> out;
  if (all_) return out;
  const std::vector<std::uint64_t> now = counts();
  for (unsigned i = 0; i < now.size(); ++i) {
    if (now[i] > before_[i] && allowed_.count(hca_rule_name(i)) == 0) out.insert(hca_rule_name(i));
  }
  return out;
}

std::string RuleWatch::text() const {
  std::string out;
  for (const std::string& name : broken()) out += (out.empty() ? "" : ", ") + name;
  return out;
}

void RuleWatch::must_be_none() const {
  if (const std::string rules = text(); !rules.empty())
    throw BareError("the driver has broken rules: " + rules);
}

}  // namespace hcasim::bare
