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

std::string StepTimes::name() const {
  return from < 0 ? "whole life" : std::string(kStageNames[from]) + " -> " + kStageNames[to];
}

std::vector<StepTimes> step_times(const std::vector<const WqeRow*>& rows) {
  std::map<std::pair<int, int>, std::vector<std::int64_t>> steps;
  for (const WqeRow* w : rows) {
    if (w->start() != kNoTime && w->end() != kNoTime) steps[{-1, -1}].push_back(w->end() - w->start());
    const auto passed = w->steps();
    for (std::size_t i = 1; i < passed.size(); i++)
      steps[{static_cast<int>(passed[i - 1].first), static_cast<int>(passed[i].first)}].push_back(
          passed[i].second - passed[i - 1].second);
  }
  std::vector<StepTimes> out;
  for (auto& [step, times] : steps) {
    std::sort(times.begin(), times.end());
    out.push_back({step.first, step.second, std::move(times)});
  }
  return out;
}

Summary summarize(const Analysis& a) {
  Summary s;
  std::map<std::pair<std::string, std::string>, OpSummary> ops;
  std::vector<const WqeRow*> rows;
  for (const WqeRow& w : a.wqes()) {
    rows.push_back(&w);
    OpSummary& o = ops[{w.opcode_name(), w.status_name()}];
    o.count++;
    o.bytes += w.bytes;
    if (w.start() != kNoTime && w.end() != kNoTime) {
      o.latency.push_back(w.end() - w.start());
      if (s.first == kNoTime || w.start() < s.first) s.first = w.start();
      if (s.last == kNoTime || w.end() > s.last) s.last = w.end();
      if (w.status == 0) s.bytes += w.bytes;
    }
  }
  for (auto& [key, o] : ops) {
    o.opcode = key.first;
    o.status = key.second;
    std::sort(o.latency.begin(), o.latency.end());
    s.ops.push_back(std::move(o));
  }
  s.stages = step_times(rows);
  if (!s.stages.empty() && s.stages.front().from < 0) s.stages.erase(s.stages.begin());
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
