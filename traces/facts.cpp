// SPDX-License-Identifier: BSD-3-Clause
#include "traces/facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "traces/rules.h"

namespace hcasim::traces {

void Facts::add(const Record& r, const std::vector<std::uint8_t>& blob) {
  if (r.p() >= Point::kCount) return;  // a point of another version of the format
  if (hcas_.empty()) first_ = last_ = r.time_ps;
  first_ = std::min(first_, r.time_ps);
  last_ = std::max(last_, r.time_ps);
  Hca& hca = hcas_[r.hca];
  hca.records++;
  if (is_error(r.p())) hca.errors++;
  hca.functions.insert(r.function);

  for (const auto& [rule, place] : open_) rules_[rule].examples[place].after.push_back(r);
  open_.erase(std::remove_if(open_.begin(), open_.end(),
                             [&](const auto& at) {
                               return rules_[at.first].examples[at.second].after.size() >= kAfter;
                             }),
              open_.end());
  if (r.p() == Point::kRuleBroken) {
    const unsigned number = find_rule(r.index) != nullptr ? r.index : 0;
    BrokenRule& rule = rules_[number];
    rule.count++;
    if (rule.examples.size() < kOfEach) {
      Example e;
      e.before.assign(before_.begin(), before_.end());
      e.broken = r;
      for (std::size_t i = 0; i < blob.size() && i < kBytes; i++)
        e.bytes += fmt::format(i % 4 == 0 && i != 0 ? " {:02x}" : "{:02x}", blob[i]);
      if (blob.size() > kBytes) e.bytes += " ...";
      open_.emplace_back(number, rule.examples.size());
      rule.examples.push_back(std::move(e));
    }
  }
  if (before_.size() == kBefore) before_.pop_front();
  before_.push_back(r);
}

std::uint64_t Facts::rules_broken() const {
  std::uint64_t n = 0;
  for (const auto& [number, rule] : rules_) n += rule.count;
  return n;
}

}  // namespace hcasim::traces
