// SPDX-License-Identifier: BSD-3-Clause
#include "traces/overview.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <unordered_set>

namespace hcasim::traces {
namespace {

using LaneKey = std::pair<unsigned, std::uint32_t>;
LaneKey lane_of(const WqeRow& w) { return {w.hca, w.qpn}; }

/// Idle stretches that are long beside those in which something is under way.
void find_cuts(Axis* axis, const std::vector<const WqeRow*>& rows, std::size_t most) {
  std::vector<Axis::Cut> gaps;
  std::int64_t until = axis->first, idle = 0;
  for (const WqeRow* w : rows) {  // by start
    if (w->start() > until) {
      gaps.push_back({until, w->start() - until, 0});
      idle += gaps.back().length;
    }
    until = std::max(until, last_time(*w));
  }
  const auto stretches = static_cast<std::int64_t>(gaps.size()) + 1;
  const std::int64_t least = (axis->last - axis->first - idle) / stretches * 10;
  std::sort(gaps.begin(), gaps.end(), [](const auto& x, const auto& y) { return x.length > y.length; });
  std::int64_t cut = 0;
  std::size_t n = 0;
  while (n < gaps.size() && n < most && gaps[n].length > least) cut += gaps[n++].length;
  if (cut <= (axis->last - axis->first) / 2) return;
  gaps.resize(n);
  std::sort(gaps.begin(), gaps.end(), [](const auto& x, const auto& y) { return x.at < y.at; });
  std::int64_t before = 0;
  for (Axis::Cut& c : gaps) {
    c.before = before;
    before += c.length;
  }
  axis->cuts = std::move(gaps);
}

/// All bins of the lane of a WQE that it touches; under_way is the difference to the bin before, until sum().
void count(const Axis& axis, const WqeRow& w, Lane* lane) {
  lane->wqes++;
  lane->bytes += w.bytes;
  if (w.status > 0) lane->failed++;
  if (w.status < 0 && w.opcode >= 0) lane->open++;
  const std::size_t from = axis.bin_of(w.start()), to = axis.bin_of(last_time(w));
  lane->bins[from].begun++;
  if (w.status > 0) lane->bins[to].failed++;
  lane->bins[from].under_way++;
  if (to + 1 < lane->bins.size()) lane->bins[to + 1].under_way--;
}

void sum(Lane* lane) {
  for (std::size_t i = 1; i < lane->bins.size(); i++) lane->bins[i].under_way += lane->bins[i - 1].under_way;
}

/// `most` of them at even distances.
template <class T>
std::vector<T> spread(const std::vector<T>& v, std::size_t most) {
  if (v.size() <= most) return v;
  std::vector<T> out;
  for (std::size_t i = 0; i < most; i++) out.push_back(v[i * v.size() / most]);
  return out;
}

/// The queues worth a lane.
std::set<LaneKey> choose_lanes(const std::map<LaneKey, std::pair<std::uint64_t, std::uint64_t>>& counts,
                               std::size_t most) {
  std::vector<std::pair<std::pair<std::uint64_t, std::uint64_t>, LaneKey>> by_worth;
  by_worth.reserve(counts.size());
  for (const auto& [key, count] : counts) by_worth.emplace_back(count, key);
  std::stable_sort(by_worth.begin(), by_worth.end(),
                   [](const auto& x, const auto& y) { return x.first > y.first; });
  std::set<LaneKey> out;
  for (std::size_t i = 0; i < by_worth.size() && i < most; i++) out.insert(by_worth[i].second);
  return out;
}

void choose_bars(Overview* o, const std::vector<const WqeRow*>& rows, const OverviewLimits& limits,
                 const std::vector<const WqeRow*>& told) {
  if (rows.size() <= limits.bars) {
    o->bars = rows;
    return;
  }
  std::unordered_set<const WqeRow*> chosen(told.begin(), told.end());
  std::vector<const WqeRow*> failed, ended, rest;
  for (const WqeRow* w : rows) {
    if (w->status > 0) failed.push_back(w);
    if (w->end() != kNoTime) ended.push_back(w);
  }
  for (const WqeRow* w : spread(failed, std::min(limits.failed, limits.bars / 4))) chosen.insert(w);
  const std::size_t slowest = std::min({limits.slowest, limits.bars / 4, ended.size()});
  std::partial_sort(
      ended.begin(), ended.begin() + static_cast<std::ptrdiff_t>(slowest), ended.end(),
      [](const WqeRow* x, const WqeRow* y) { return x->end() - x->start() > y->end() - y->start(); });
  chosen.insert(ended.begin(), ended.begin() + static_cast<std::ptrdiff_t>(slowest));
  for (const WqeRow* w : rows)
    if (chosen.count(w) == 0) rest.push_back(w);
  if (chosen.size() < limits.bars)
    for (const WqeRow* w : spread(rest, limits.bars - chosen.size())) chosen.insert(w);
  for (const WqeRow* w : rows)
    if (chosen.count(w) != 0) o->bars.push_back(w);
}

}  // namespace

std::int64_t last_time(const WqeRow& w) {
  std::int64_t last = std::max({w.done, w.failed, w.start()});
  for (unsigned i = 0; i < kStages; i++)
    if (static_cast<Stage>(i) != Stage::kConsumed) last = std::max(last, w.time[i]);  // kNoTime is the least
  return last;
}

std::int64_t Axis::busy() const {
  return last - first - (cuts.empty() ? 0 : cuts.back().before + cuts.back().length);
}

std::int64_t Axis::place(std::int64_t t) const {
  t = std::clamp(t, first, last);
  const auto next =
      std::upper_bound(cuts.begin(), cuts.end(), t, [](std::int64_t v, const Cut& c) { return v < c.at; });
  if (next == cuts.begin()) return t - first;
  const Cut& c = *std::prev(next);
  return t - first - c.before - std::min(c.length, t - c.at);
}

std::int64_t Axis::time_at(std::int64_t place) const {
  const auto next = std::upper_bound(cuts.begin(), cuts.end(), place, [this](std::int64_t v, const Cut& c) {
    return v < c.at - first - c.before;
  });
  const std::int64_t t = first + std::min(place, busy());
  return next == cuts.begin() ? t : t + std::prev(next)->before + std::prev(next)->length;
}

std::size_t Axis::bin_of(std::int64_t t) const {
  return std::min(bins - 1, static_cast<std::size_t>(place(t) / bin));
}

Overview overview(const Analysis& a, const OverviewLimits& limits, const std::vector<const WqeRow*>& told) {
  Overview o;
  std::vector<const WqeRow*> rows;
  std::map<LaneKey, std::pair<std::uint64_t, std::uint64_t>> counts;  // failed, all
  for (const WqeRow& w : a.wqes()) {
    if (w.status > 0) o.all_failed++;
    if (w.start() == kNoTime) continue;
    if (rows.empty()) o.axis.first = o.axis.last = w.start();
    o.axis.last = std::max(o.axis.last, last_time(w));
    rows.push_back(&w);
    auto& [failed, all] = counts[lane_of(w)];
    all++;
    if (w.status > 0) failed++;
  }
  o.placed = rows.size();
  if (rows.empty()) return o;
  find_cuts(&o.axis, rows, limits.cuts);
  o.axis.bins = limits.bins;
  o.axis.bin = o.axis.busy() / static_cast<std::int64_t>(limits.bins) + 1;

  const std::set<LaneKey> shown = choose_lanes(counts, limits.lanes);
  o.lanes_left_out = counts.size() - shown.size();
  std::map<LaneKey, std::size_t> number;
  for (const LaneKey& key : shown) {
    number[key] = o.lanes.size();
    Lane& lane = o.lanes.emplace_back();
    lane.hca = key.first;
    lane.qpn = key.second;
    lane.bins.resize(limits.bins);
  }
  o.rates.resize(limits.bins);
  std::int64_t begin = o.axis.first;
  for (std::size_t i = 0; i < limits.bins; i++) {
    const std::int64_t end = o.axis.time_at(static_cast<std::int64_t>(i + 1) * o.axis.bin);
    o.rates[i].length = std::max<std::int64_t>(end - begin, 0);
    begin = end;
  }
  std::vector<const WqeRow*> drawable;
  for (const WqeRow* w : rows) {
    if (w->end() != kNoTime && w->status >= 0) {
      Rate& rate = o.rates[o.axis.bin_of(w->end())];
      rate.done++;
      if (w->status > 0) rate.failed++;
      if (w->status == 0) rate.bytes += w->bytes;
    }
    const auto lane = number.find(lane_of(*w));
    if (lane == number.end()) continue;
    count(o.axis, *w, &o.lanes[lane->second]);
    drawable.push_back(w);
  }
  for (Lane& lane : o.lanes) sum(&lane);
  choose_bars(&o, drawable, limits, told);
  o.bars_failed = static_cast<std::size_t>(
      std::count_if(o.bars.begin(), o.bars.end(), [](const WqeRow* w) { return w->status > 0; }));
  return o;
}

std::size_t log_bin(std::int64_t ps) {
  if (ps <= 0) return 0;
  return 1 + static_cast<std::size_t>(8 * std::log10(static_cast<double>(ps)) + 1e-9);
}

}  // namespace hcasim::traces
