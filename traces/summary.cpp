// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <map>

#include "traces/report.h"

namespace hcasim::traces {

std::int64_t percentile(const std::vector<std::int64_t>& sorted, double p) {
  if (sorted.empty()) return 0;
  auto rank = static_cast<std::size_t>(std::ceil(p / 100.0 * static_cast<double>(sorted.size())));
  return sorted[std::min(sorted.size(), std::max<std::size_t>(rank, 1)) - 1];
}

Summary summarize(const Analysis& a) {
  Summary s;
  std::map<std::pair<std::string, std::string>, OpSummary> ops;
  std::map<std::pair<unsigned, unsigned>, std::vector<std::int64_t>> stages;
  for (const WqeRow& w : a.wqes()) {
    OpSummary& o = ops[{w.opcode_name(), w.status_name()}];
    o.count++;
    o.bytes += w.bytes;
    if (w.start() != kNoTime && w.end() != kNoTime) {
      o.latency.push_back(w.end() - w.start());
      if (s.first == kNoTime || w.start() < s.first) s.first = w.start();
      if (s.last == kNoTime || w.end() > s.last) s.last = w.end();
      if (w.status == 0) s.bytes += w.bytes;
    }
    const auto steps = w.steps();
    for (std::size_t i = 1; i < steps.size(); i++)
      stages[{static_cast<unsigned>(steps[i - 1].first), static_cast<unsigned>(steps[i].first)}].push_back(
          steps[i].second - steps[i - 1].second);
  }
  for (auto& [key, o] : ops) {
    o.opcode = key.first;
    o.status = key.second;
    std::sort(o.latency.begin(), o.latency.end());
    s.ops.push_back(std::move(o));
  }
  for (auto& [key, delta] : stages) {
    std::sort(delta.begin(), delta.end());
    s.stages.push_back({kStageNames[key.first], kStageNames[key.second], std::move(delta)});
  }
  std::map<std::string, CommandSummary> commands;
  for (const CommandRow& c : a.commands()) {
    CommandSummary& k = commands[c.name()];
    k.count++;
    if (c.failed()) k.failed++;
    if (c.start != kNoTime && c.end != kNoTime) k.duration.push_back(c.end - c.start);
  }
  for (auto& [name, k] : commands) {
    k.name = name;
    std::sort(k.duration.begin(), k.duration.end());
    s.commands.push_back(std::move(k));
  }
  return s;
}

}  // namespace hcasim::traces
