// SPDX-License-Identifier: BSD-3-Clause
#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

namespace hcasim::bench {

using nlohmann::json;
using timing::Metric;
using timing::Result;
using timing::Setup;

namespace {

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

// A number, 64K too; nan: none.
double number(const std::string& text) {
  char* end = nullptr;
  double v = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return std::nan("");
  if (*end == 'K' || *end == 'k') v *= 1024, ++end;
  if (*end == 'M') v *= 1048576, ++end;
  return *end == 0 ? v : std::nan("");
}

// What a column is of.
enum class Of { kLatency, kThroughput, kShares, kCpus };

struct Column {
  const char* name;
  double (*value)(const Result&);
  Of of;
};

const Column kColumns[] = {
    {"median_us", [](const Result& r) { return r.median / 1000; }, Of::kLatency},
    {"mean_us", [](const Result& r) { return r.mean / 1000; }, Of::kLatency},
    {"p99_us", [](const Result& r) { return r.p99 / 1000; }, Of::kLatency},
    {"least_us", [](const Result& r) { return r.least / 1000; }, Of::kLatency},
    {"most_us", [](const Result& r) { return r.most / 1000; }, Of::kLatency},
    {"M/s", [](const Result& r) { return r.mops(); }, Of::kThroughput},
    {"Gb/s", [](const Result& r) { return r.gbps(); }, Of::kThroughput},
    {"least_share", [](const Result& r) { return *std::min_element(r.shares.begin(), r.shares.end()); },
     Of::kShares},
    {"most_share", [](const Result& r) { return *std::max_element(r.shares.begin(), r.shares.end()); },
     Of::kShares},
    {"cpu_send", [](const Result& r) { return r.cpu_send; }, Of::kCpus},
    {"cpu_receive", [](const Result& r) { return r.cpu_receive; }, Of::kCpus},
    {"lost", [](const Result& r) { return r.lost; }, Of::kCpus},
};

bool is_latency(const Setup& s) { return s.metric == Metric::kLat; }

// Columns that there are in any case.
bool shown(const std::string& key) { return key == "pattern" || key == "size"; }

bool has(const Column& c, const Setup& s, const Result& r) {
  switch (c.of) {
    case Of::kLatency:
      return is_latency(s);
    case Of::kThroughput:
      return !is_latency(s);
    case Of::kShares:
      return !is_latency(s) && r.shares.size() > 1;
    case Of::kCpus:
      return s.udp();
  }
  return false;
}

}  // namespace

Comparison::Comparison(std::vector<PublishedRow> rows, const std::vector<Result>& results)
    : rows_(std::move(rows)) {
  auto at = results.begin();
  for (const PublishedRow& row : rows_) {
    const auto end = at + static_cast<std::ptrdiff_t>(row.measurements.size());
    simulated_.push_back(row.simulated({at, end}));
    at = end;
  }
}

bool Comparison::good() const {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (!rows_[i].within(simulated_[i])) return false;
  }
  return true;
}

std::string Comparison::text() const {
  std::size_t width = 6;
  for (const PublishedRow& row : rows_) width = std::max(width, row.setup.size());
  std::string out = fmt::format("{:<4} {:<{}} {:>12} {:>10} {:>8} {:>8}\n", "row", "set-up", width,
                                "published", "simulated", "error", "allowed");
  std::size_t off = 0;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const PublishedRow& row = rows_[i];
    const double v = simulated_[i];
    const bool within = row.within(v);
    if (!within) ++off;
    out += fmt::format("{:<4} {:<{}} {:>12} {:>10.2f} {:>8} {:>8}  {}\n", row.id, row.setup, width,
                       row.figure(), v, row.at_most ? "" : fmt::format("{:+.1f} %", row.error(v)),
                       row.at_most ? "" : fmt::format("{:g} %", row.tolerance), within ? "ok" : "OFF");
    if (!row.note.empty()) out += fmt::format("{:<4} {}\n", "", row.note);
  }
  return out + (off == 0 ? fmt::format("{} rows, all within their tolerances\n", rows_.size())
                         : fmt::format("{} of {} rows OFF\n", off, rows_.size()));
}

std::string Comparison::csv() const {
  std::string out =
      "row,setup,unit,published_low,published_high,simulated,error_percent,tolerance_percent,ok,source\n";
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const PublishedRow& row = rows_[i];
    out += fmt::format("{},{},{},{},{},{:.6g},{},{},{},{}\n", quoted(row.id), quoted(row.setup), row.unit,
                       row.at_most ? 0 : row.low, row.high, simulated_[i],
                       row.at_most ? "" : fmt::format("{:.2f}", row.error(simulated_[i])),
                       row.at_most ? "" : fmt::format("{:g}", row.tolerance),
                       row.within(simulated_[i]) ? 1 : 0, quoted(row.source));
  }
  return out;
}

json Comparison::json() const {
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const PublishedRow& row = rows_[i];
    nlohmann::json one{{"row", row.id},
                       {"setup", row.setup},
                       {"unit", row.unit},
                       {"published", row.published},
                       {"simulated", simulated_[i]},
                       {"source", row.source},
                       {"at_most", row.at_most},
                       {"ok", row.within(simulated_[i])}};
    if (!row.at_most) {
      one["error_percent"] = row.error(simulated_[i]);
      one["tolerance_percent"] = row.tolerance;
    }
    if (!row.note.empty()) one["note"] = row.note;
    all.push_back(std::move(one));
  }
  return all;
}

Grid::Grid(const Setup& base, const std::vector<std::string>& sweeps) : setups_{base} {
  for (const std::string& sweep : sweeps) {
    const std::size_t eq = sweep.find('=');
    if (eq == std::string::npos || eq == 0) throw timing::SetupError("\"" + sweep + "\": expected KEY=A,B,C");
    const std::string key = sweep.substr(0, eq);
    keys_.push_back(key);
    std::vector<Setup> next;
    for (const Setup& s : setups_) {
      for (const std::string& value : split(sweep.substr(eq + 1), ',')) {
        next.push_back(s);
        next.back().set(key, value);
      }
    }
    setups_ = std::move(next);
  }
}

std::size_t Grid::width(const std::string& key) const {
  std::size_t most = std::max<std::size_t>(10, key.size());
  for (const Setup& s : setups_) most = std::max(most, s.get(key).size());
  return most;
}

std::string Grid::heading() const {
  std::string out;
  for (const std::string& key : keys_) {
    if (!shown(key)) out += fmt::format("{:>{}} ", key, width(key));
  }
  out += fmt::format("{:>14} {:>8}", "pattern", "size");
  const auto any = [&](bool latency) {
    return std::any_of(setups_.begin(), setups_.end(),
                       [&](const Setup& s) { return is_latency(s) == latency; });
  };
  if (any(true)) out += fmt::format(" {:>10} {:>10} {:>10}", "median us", "least us", "most us");
  if (any(false)) out += fmt::format(" {:>10} {:>10}", "M/s", "Gb/s");
  return out + "\n";
}

std::string Grid::line(std::size_t i) const {
  const Setup s = setups_[i].resolved();
  const Result& r = results[i];
  std::string out;
  for (const std::string& key : keys_) {
    if (!shown(key)) out += fmt::format("{:>{}} ", setups_[i].get(key), width(key));
  }
  out += fmt::format("{:>14} {:>8}", s.pattern(), s.size);
  const bool mixed = std::any_of(setups_.begin(), setups_.end(),
                                 [&](const Setup& o) { return is_latency(o) != is_latency(s); });
  if (is_latency(s)) {
    out += fmt::format(" {:>10.3f} {:>10.3f} {:>10.3f}", r.median / 1000, r.least / 1000, r.most / 1000);
  } else {
    if (mixed) out += fmt::format(" {:>10} {:>10} {:>10}", "", "", "");
    out += fmt::format(" {:>10.3f} {:>10.2f}", r.mops(), r.gbps());
    if (r.shares.size() > 1) {
      const auto [least, most] = std::minmax_element(r.shares.begin(), r.shares.end());
      out += fmt::format("   shares {:.1f} to {:.1f} %", *least * 100, *most * 100);
    }
  }
  if (s.udp()) out += fmt::format("   CPUs {:.0f}, {:.0f} %", r.cpu_send * 100, r.cpu_receive * 100);
  if (r.lost > 0) out += fmt::format("   lost {:.1f} %", r.lost * 100);
  return out + "\n";
}

std::string Grid::csv() const {
  std::set<std::string> parameters;
  for (const Setup& s : setups_) {
    for (const std::string& p : s.parameters) parameters.insert(p.substr(0, p.find('=')));
  }
  std::string out;
  for (const timing::SetupKey& key : timing::setup_keys()) out += std::string(key.name) + ",";
  for (const std::string& p : parameters) out += p + ",";
  for (const Column& c : kColumns) out += std::string(c.name) + ",";
  out += "digest\n";
  for (std::size_t i = 0; i < setups_.size(); ++i) {
    const Setup s = setups_[i].resolved();
    for (const timing::SetupKey& key : timing::setup_keys()) out += quoted(s.get(key.name)) + ",";
    for (const std::string& p : parameters) out += s.get(p) + ",";
    for (const Column& c : kColumns)
      out += has(c, s, results[i]) ? fmt::format("{:.6g},", c.value(results[i])) : std::string(",");
    out += fmt::format("{:016x}\n", results[i].digest);
  }
  return out;
}

json Grid::json() const {
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t i = 0; i < setups_.size(); ++i) {
    const Setup s = setups_[i].resolved();
    nlohmann::json setup, result;
    for (const timing::SetupKey& key : timing::setup_keys()) setup[key.name] = s.get(key.name);
    setup["parameters"] = s.parameters;
    for (const Column& c : kColumns) {
      if (has(c, s, results[i])) result[c.name] = c.value(results[i]);
    }
    result["simulated_ns"] = results[i].simulated_ns;
    result["digest"] = fmt::format("{:016x}", results[i].digest);
    result["counters"] = results[i].counters;
    all.push_back({{"setup", setup}, {"result", result}});
  }
  return all;
}

std::string Grid::label(std::size_t i, const std::string& without) const {
  std::string text;
  for (const std::string& key : keys_) {
    if (key == without) continue;
    const std::string value = setups_[i].get(key);
    text += (text.empty() ? "" : " ") + (key == "pattern" ? value : key + "=" + value);
  }
  return text.empty() ? setups_[i].pattern() : text;
}

const std::string& Grid::x_key() const {
  const auto key = std::find_if(keys_.begin(), keys_.end(), [&](const std::string& key) {
    return std::none_of(setups_.begin(), setups_.end(),
                        [&](const Setup& s) { return std::isnan(number(s.get(key))); });
  });
  if (key == keys_.end()) throw timing::SetupError("a plot needs a --sweep over numbers");
  return *key;
}

std::vector<chart::Chart> Grid::charts() const {
  const std::string& x = x_key();
  std::vector<chart::Chart> charts;
  for (const Metric metric : {Metric::kLat, Metric::kBw, Metric::kRate}) {
    chart::Chart chart;
    chart.x = x;
    chart.title = metric == Metric::kLat ? "Latency" : metric == Metric::kBw ? "Bandwidth" : "Messages";
    chart.title += ", " + setups_.front().profile;
    chart.y = metric == Metric::kLat ? "median, us" : metric == Metric::kBw ? "Gb/s" : "M/s";
    for (std::size_t i = 0; i < setups_.size(); ++i) {
      if (setups_[i].metric != metric) continue;
      const std::string name = label(i, x);
      auto curve = std::find_if(chart.curves.begin(), chart.curves.end(),
                                [&](const chart::Curve& c) { return c.name == name; });
      if (curve == chart.curves.end()) curve = chart.curves.insert(curve, {name, {}});
      const Result& r = results[i];
      curve->points.emplace_back(number(setups_[i].get(x)), metric == Metric::kLat  ? r.median / 1000
                                                            : metric == Metric::kBw ? r.gbps()
                                                                                    : r.mops());
    }
    if (!chart.curves.empty()) charts.push_back(std::move(chart));
  }
  return charts;
}

}  // namespace hcasim::bench
