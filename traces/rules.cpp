// SPDX-License-Identifier: BSD-3-Clause
#include "traces/rules.h"

#include <algorithm>
#include <cstdio>

namespace hcasim::traces {

namespace {
constexpr std::size_t kMostBytes = 64;  // shown in a message
}

const RuleInfo* find_rule(std::uint64_t number) {
  const auto* const end = kRuleInfo + kRules;
  const auto* const found =
      std::find_if(kRuleInfo, end, [number](const RuleInfo& r) { return r.number == number; });
  return found == end ? nullptr : found;
}

const char* object_name(RuleObject o) {
  switch (o) {
    case RuleObject::kNone:
      break;
    case RuleObject::kSlot:
      return "command slot";
    case RuleObject::kCommand:
      return "command";
    case RuleObject::kQp:
      return "QP";
    case RuleObject::kCq:
      return "CQ";
    case RuleObject::kEq:
      return "EQ";
    case RuleObject::kSrq:
      return "SRQ";
    case RuleObject::kRq:
      return "RQ";
    case RuleObject::kKey:
      return "key";
    case RuleObject::kUar:
      return "UAR page";
  }
  return "device";
}

std::string describe(const Broken& b) {
  const RuleInfo& rule = info(b.rule);
  char head[160];
  std::snprintf(head, sizeof head, "rule %s broken (%s) at %.3f us: ", rule.name,
                severity_name(rule.severity), static_cast<double>(b.time_ps) / 1e6);
  std::string out = head;
  out += object_name(b.object);
  if (b.object == RuleObject::kSlot || b.object == RuleObject::kCommand)
    out += " " + std::to_string(b.number);
  else if (b.object != RuleObject::kNone) {
    std::snprintf(head, sizeof head, " 0x%x", b.number);
    out += head;
  }
  if (b.function != 0) out += " of function " + std::to_string(b.function);
  out += std::string(": ") + rule.text;
  if (b.len != 0) out += "; bytes";
  for (std::size_t i = 0; i < std::min(b.len, kMostBytes); ++i) {
    std::snprintf(head, sizeof head, i % 4 == 0 ? " %02x" : "%02x", static_cast<unsigned>(b.bytes[i]));
    out += head;
  }
  if (b.len > kMostBytes) out += " ...";
  return out;
}

std::string Rules::summary() const {
  std::string out;
  for (unsigned i = 0; i < kRules; ++i) {
    if (counts_[i] == 0) continue;
    if (!out.empty()) out += ", ";
    out += std::string(kRuleInfo[i].name) + " " + std::to_string(counts_[i]);
  }
  return out;
}

void Rules::count(Broken b) {
  b.count = ++counts_[static_cast<unsigned>(b.rule)];
  ++total_;
  if (listener_) listener_(b);
}

bool parse_mode(const std::string& text, Rules::Mode* mode) {
  if (text == "report")
    *mode = Rules::Mode::kReport;
  else if (text == "strict")
    *mode = Rules::Mode::kStrict;
  else if (text == "off")
    *mode = Rules::Mode::kOff;
  else
    return false;
  return true;
}

std::string rules_page() {
  std::string out =
      "# Rules that a driver has to keep\n\n"
      "Made by `hcasim rules --page` from `traces/rule_list.h`. An HCA checks them all while it runs\n"
      "(`rules=report`, the default; `strict`; `off`). A broken rule is counted (`rules_broken` and the "
      "table\n"
      "`rules` of its statistics), recorded as trace point `rule_broken` (`hcasim trace rules FILE`), "
      "and\n"
      "logged the first time. `strict` puts the device into its fatal health state as well, and\n"
      "`./hcasim boot` ends with status 1.\n\n"
      "**error**: work, data or the driver's picture of the device is lost. **warning**: the device refuses\n"
      "with a status or ignores it, and nothing else suffers.\n\n"
      "| Number | Rule | Severity | What has to be kept | Source |\n|---|---|---|---|---|\n";
  for (const RuleInfo& r : kRuleInfo) {
    std::string source = r.source;
    for (std::size_t at = 0; (at = source.find('*', at)) != std::string::npos; at += 2)
      source.insert(at, 1, '\\');
    out += "| " + std::to_string(r.number) + " | `" + r.name + "` | " + severity_name(r.severity) + " | " +
           r.text + " | " + source + " |\n";
  }
  return out;
}

}  // namespace hcasim::traces
