// SPDX-License-Identifier: BSD-3-Clause
#include "fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "model/profile.h"
#include "model/profile_parameters.h"
#include "model/toml_text.h"
#include "perftest.h"

namespace hcasim::bench {

using timing::Result;
using timing::Setup;
using timing::SetupError;

namespace {

constexpr std::size_t kMostBytes = 1 << 20;  // of a file
constexpr double kBoundDeviation = 5;        // %, of a figure that is a bound
constexpr double kFinePoll = 1;              // ns
constexpr double kNoiseUs = 0.0003;          // of a latency, with that: of half cycles
constexpr double kNoiseShare = 0.0003;       // of a rate

// Parameters of which 0 is no amount but a word: what it stands for, and the least amount there is. Between 0
// and that, figures jump, and the way from 0 leads nowhere.
struct Word {
  const char* name;
  const char* zero;
  double least;
};
constexpr Word kWords[] = {
    {"pcie.posted_headers", "no limit", 1},
    {"pcie.posted_data", "no limit", 1},
    {"pcie.nonposted_headers", "no limit", 1},
    {"memory.iotlb", "no IOMMU", 1},
    {"memory.atc", "no translations on the card", 1},
    {"memory.llc_kib", "all payload in the last cache", 1},
    {"engine.tx_response_more_ns", "as engine.tx_more_ns", 1},
    {"engine.gather_messages", "any number", 1},
    {"engine.stream_bytes", "the whole packet", 1},
    {"cache.reads", "all of them", 1},
    {"port.lane_buffer", "no flow control", 64},
};

std::string name_of(const std::string& pair) { return pair.substr(0, pair.find('=')); }

bool has(const std::vector<std::string>& pairs, const std::string& name) {
  return std::any_of(pairs.begin(), pairs.end(), [&](const std::string& p) { return name_of(p) == name; });
}

Profile loaded(const std::string& profile, const std::string& folder, const std::vector<std::string>& set) {
  Profile p;
  std::string why;
  if (!Profile::load(profile, {folder}, p, why, set)) throw SetupError(why);
  return p;
}

Unknown unknown_of(const std::string& name, const Profile& profile) {
  const auto& ranges = parameter_ranges();
  const auto r =
      std::find_if(ranges.begin(), ranges.end(), [&](const ParameterRange& one) { return one.name == name; });
  if (r == ranges.end())
    throw SetupError("--over " + name + ": there is no such parameter; --list shows all");
  if (r->power_of_two || name == "core.clock_mhz" || name == "pcie.generation")
    throw SetupError("--over " + name + ": goes in steps, and cannot be fitted; give it with --set");
  Unknown u;
  u.name = name;
  u.low = r->low;
  u.high = r->high;
  u.start = profile.value(static_cast<std::size_t>(r - ranges.begin()));
  u.unit = r->time ? 0 : 1 + static_cast<int>(r - ranges.begin());
  if (r->time) {
    const bool host = name.compare(0, 5, "host.") == 0;  // whose clock is another
    u.grain = host ? 1 : std::max(1.0, static_cast<double>(profile.cycle) / 1000);
  } else {
    u.grain = r->whole || u.start <= 0 ? 1 : std::pow(10, std::floor(std::log10(u.start)) - 3);
  }
  for (const Word& w : kWords) {
    if (name != w.name) continue;
    if (u.start == 0)
      throw SetupError("--over " + name + ": 0 stands for \"" + w.zero +
                       "\", and is no value to start from; give one: --set " + name + "=VALUE");
    u.low = std::max(w.least, u.grain);
  }
  return u;
}

// The rows' figures at points; a measurement that was made already is not made again. A point that cannot be
// measured has no figures; of the first one, which is the start, the reason is thrown.
class Simulator {
 public:
  Simulator(const Measured& measured, std::vector<Unknown> parameters, std::vector<std::string> set,
            std::string folder, unsigned jobs, const FitProgress& progress)
      : measured_(measured),
        parameters_(std::move(parameters)),
        set_(std::move(set)),
        folder_(std::move(folder)),
        jobs_(jobs),
        progress_(progress) {}

  std::vector<std::vector<double>> operator()(const std::vector<Point>& points, bool derivative) {
    std::vector<Setup> missing;
    std::vector<std::string> keys;
    for (const Point& p : points) {
      for (const PublishedRow& row : measured_.rows) {
        for (const Setup& m : row.measurements) {
          const Setup s = at(m, p, derivative);
          const std::string key = key_of(s);
          if (!results_.emplace(key, std::nullopt).second) continue;
          if (started_ && !is_allowed(s)) continue;
          missing.push_back(s);
          keys.push_back(key);
        }
      }
    }
    const auto results = measured(missing);
    for (std::size_t i = 0; i < keys.size(); ++i) results_[keys[i]] = results[i];
    started_ = true;
    std::vector<std::vector<double>> figures;
    for (const Point& p : points) figures.push_back(figures_at(p, derivative));
    return figures;
  }
  std::size_t measurements() const {
    return static_cast<std::size_t>(
        std::count_if(results_.begin(), results_.end(), [](const auto& r) { return r.second.has_value(); }));
  }

 private:
  // Values that are allowed each by itself may contradict one another.
  bool is_allowed(const Setup& s) const {
    Profile p;
    std::string why;
    return Profile::load(s.profile, {folder_}, p, why, s.parameters);
  }

  std::vector<std::optional<Result>> measured(const std::vector<Setup>& setups) const {
    std::vector<std::optional<Result>> results(setups.size());
    try {
      std::size_t done = 0;
      auto all = measure_all(setups, jobs_, [&](std::size_t) {
        ++done;
        if (progress_.measured) progress_.measured(done, setups.size());
      });
      for (std::size_t i = 0; i < all.size(); ++i) results[i] = without_counters(std::move(all[i]));
      return results;
    } catch (const std::exception&) {
      if (!started_) throw;
    }
    // Which of them was it, and what are the others?
    for (std::size_t i = 0; i < setups.size(); ++i) {
      try {
        results[i] = without_counters(timing::measure(setups[i]));
      } catch (const std::exception&) {
        results[i].reset();
      }
      if (progress_.measured) progress_.measured(i + 1, setups.size());
    }
    return results;
  }
  static Result without_counters(Result r) {
    r.counters.clear();
    return r;
  }

  std::vector<double> figures_at(const Point& p, bool derivative) const {
    std::vector<double> figures;
    for (const PublishedRow& row : measured_.rows) {
      std::vector<Result> of_row;
      for (const Setup& m : row.measurements) {
        const std::optional<Result>& result = results_.at(key_of(at(m, p, derivative)));
        if (!result) return {};
        of_row.push_back(*result);
      }
      figures.push_back(row.simulated(of_row));
    }
    return figures;
  }

  Setup at(const Setup& measurement, const Point& p, bool derivative) const {
    Setup s = measurement;
    for (const std::string& pair : set_) s.set(pair);
    for (std::size_t j = 0; j < p.size(); ++j) {
      if (!has(measurement.parameters, parameters_[j].name))
        s.set(parameters_[j].name, fmt::format("{:.10g}", p[j]));
    }
    // A polling loop sees a latency in steps of its period, wider than what small parameters change.
    if (derivative && std::none_of(parameters_.begin(), parameters_.end(),
                                   [](const Unknown& u) { return u.name == "host.poll_ns"; }))
      s.set("host.poll_ns", fmt::format("{:g}", kFinePoll));
    return s;
  }
  static std::string key_of(const Setup& s) {
    std::string key;
    for (const timing::SetupKey& k : timing::setup_keys()) key += s.get(k.name) + ",";
    for (const std::string& p : s.parameters) key += p + ",";
    return key;
  }

  const Measured& measured_;
  const std::vector<Unknown> parameters_;
  const std::vector<std::string> set_;
  const std::string folder_;
  const unsigned jobs_;
  const FitProgress& progress_;
  bool started_ = false;                                            // the start has been measured
  std::unordered_map<std::string, std::optional<Result>> results_;  // none: it cannot be measured
};

Target target_of(const PublishedRow& row) {
  Target t;
  t.value = row.published;
  t.at_most = row.at_most;
  t.deviation =
      std::abs(row.published) * (row.at_most ? kBoundDeviation : std::max(0.01, row.tolerance)) / 100;
  if (t.deviation <= 0) throw SetupError("row " + row.id + ": a figure of 0 cannot be fitted to");
  const auto parts = static_cast<double>(row.measurements.size());
  t.noise = row.unit == "us"  ? kNoiseUs * std::sqrt(parts)
            : row.unit == "%" ? 0.1
                              : kNoiseShare * row.published;
  return t;
}

}  // namespace

const std::vector<std::string>& usual_parameters() {
  static const std::vector<std::string> all{
      "pcie.read_latency_ns", "pcie.write_latency_ns", "pcie.efficiency",
      "engine.gather_ns",     "engine.gather_page_ns", "engine.tx_wqe_ns",
      "port.wire_latency_ns", "port.rate_gbps",        "host.doorbell_ns"};
  return all;
}

Measured load_measured(const std::string& file, const Setup& base, bool profile_given) {
  Measured m;
  m.file = file;
  if (file.size() > 5 && file.compare(file.size() - 5, 5, ".toml") == 0) {
    m.rows = load_published(file);
    if (profile_given) {
      for (PublishedRow& row : m.rows)
        for (Setup& s : row.measurements) s.profile = base.profile;
    }
    for (const PublishedRow& row : m.rows) {
      for (const Setup& s : row.measurements) {
        if (s.profile != m.rows.front().measurements.front().profile)
          throw SetupError(
              file + ": row " + row.id +
              " is of another profile than the first; --profile says which one is fitted to all rows");
      }
    }
    return m;
  }
  std::string text, why;
  if (!read_text(file, kMostBytes, text, why)) throw std::runtime_error(why);
  PerftestRows read = read_perftest(text, file, base);
  m.rows = std::move(read.rows);
  m.notes = std::move(read.notes);
  return m;
}

Fit fit(const Measured& measured, const std::vector<std::string>& over, const std::vector<std::string>& set,
        const std::string& folder, unsigned jobs, const FitProgress& progress) {
  Fit f;
  f.file = measured.file;
  f.rows = measured.rows;
  f.profile = f.rows.front().measurements.front().profile;
  const Profile start = loaded(f.profile, folder, set);
  const std::vector<std::string>& names = over.empty() ? usual_parameters() : over;
  for (const std::string& name : names) {
    if (std::any_of(f.parameters.begin(), f.parameters.end(),
                    [&](const Unknown& u) { return u.name == name; }))
      throw SetupError("--over " + name + ": named twice");
    f.parameters.push_back(unknown_of(name, start));
  }
  for (const std::string& pair : set) {
    if (std::none_of(f.parameters.begin(), f.parameters.end(),
                     [&](const Unknown& u) { return u.name == name_of(pair); }))
      f.set.push_back(pair);
  }
  std::vector<Target> targets;
  for (const PublishedRow& row : f.rows) targets.push_back(target_of(row));
  Simulator simulator(measured, f.parameters, f.set, folder, jobs, progress);
  f.solution = solve(
      f.parameters, targets,
      [&](const std::vector<Point>& points, bool derivative) { return simulator(points, derivative); },
      progress.round);
  f.measurements = simulator.measurements();
  return f;
}

}  // namespace hcasim::bench
