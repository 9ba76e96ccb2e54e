// SPDX-License-Identifier: BSD-3-Clause
// What a fit found: for people, for programs, as a profile.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "fit.h"
#include "model/profile.h"
#include "model/profile_parameters.h"
#include "model/toml_text.h"

namespace hcasim::bench {

namespace {

constexpr std::size_t kMostBytes = 1 << 20;
constexpr std::string_view kBefore = "; before:";

std::string number(double v) { return fmt::format("{:.6g}", v); }

// As a profile takes it: whole parameters only whole, of any size.
std::string profile_value(const std::string& name, double v) {
  const auto& ranges = parameter_ranges();
  const bool whole = std::any_of(ranges.begin(), ranges.end(),
                                 [&](const ParameterRange& r) { return r.name == name && r.whole; });
  return whole ? fmt::format("{:.0f}", v) : fmt::format("{:.10g}", v);
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i)
    out += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  return out;
}

std::string names_of(const Fit& fit, const Combination& c) {
  std::vector<std::string> names;
  for (const std::size_t k : c.unknowns) names.push_back(fit.parameters[k].name);
  return joined(names);
}

// Such as "A + 2 B".
std::string sum_of(const Fit& fit, const Combination& c, const std::vector<double>& weights) {
  std::string out;
  for (std::size_t i = 0; i < c.unknowns.size(); ++i) {
    const double w = weights[i];
    if (std::abs(w) < 0.03) continue;
    const std::string factor = std::abs(std::abs(w) - 1) < 0.07 ? "" : fmt::format("{:.2g} ", std::abs(w));
    out += out.empty() ? (w < 0 ? "-" : "") : w < 0 ? " - " : " + ";
    out += factor + fit.parameters[c.unknowns[i]].name;
  }
  return out;
}

std::string sentence(const Fit& fit, const Combination& c) {
  if (!c.weights.empty())
    return fmt::format("only {} is identified: {:.4g} +- {:.2g}", sum_of(fit, c, c.weights), c.value,
                       c.error);
  const std::string names = names_of(fit, c);
  if (c.known == 0) return "nothing is identified of " + names;
  std::string out =
      fmt::format("only {} of {} are identified",
                  c.known == 1 ? "one combination" : fmt::format("{} combinations", c.known), names);
  if (!c.nothing.empty()) out += "; no row tells a change by one unit of " + sum_of(fit, c, c.nothing);
  return out;
}

std::string verdict(const Fit& fit, std::size_t j) {
  const Estimate& e = fit.solution.estimates[j];
  switch (e.known) {
    case Known::kYes:
      return "yes";
    case Known::kWeakly:
      return fmt::format("weakly: +- {:.0f} %", e.value > 0 ? e.error / e.value * 100 : 100);
    case Known::kTogether: {
      std::vector<std::string> others;
      for (const std::size_t k : fit.solution.combinations[e.combination].unknowns) {
        if (k != j) others.push_back(fit.parameters[k].name);
      }
      return "no: not told apart from " + joined(others);
    }
    case Known::kHardly:
      return "no: the rows depend too little on it";
    case Known::kNo:
      return "no: no row depends on it, near this value";
  }
  return "";
}

bool has_error(const Estimate& e) { return e.known == Known::kYes || e.known == Known::kWeakly; }

std::string error_of(const PublishedRow& row, double v) {
  return row.at_most ? std::string() : fmt::format("{:+.1f} %", row.error(v));
}

// Of the parameters that are fitted, what the profile's file says: a fit may start elsewhere (--set).
std::vector<double> values_in_file(const Fit& fit, const std::string& folder) {
  Profile p;
  std::string why;
  if (!Profile::load(fit.profile, {folder}, p, why)) throw std::runtime_error(why);
  const std::vector<std::string>& names = Profile::names();
  std::vector<double> values;
  for (const Unknown& u : fit.parameters)
    values.push_back(
        p.value(static_cast<std::size_t>(std::find(names.begin(), names.end(), u.name) - names.begin())));
  return values;
}

// One line, without what a comment may not hold.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e ? '?' : c;
  return out;
}

std::vector<std::string> lines_of(const std::string& file) {
  std::string text, why;
  if (!read_text(file, kMostBytes, text, why)) throw std::runtime_error(why);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// The line "key = ..." of a section; npos: none. `header`: the section's own line, npos: none.
std::size_t find_line(const std::vector<std::string>& lines, const std::string& section,
                      const std::string& key, std::size_t& header) {
  header = std::string::npos;
  bool inside = section.empty();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string line = lines[i].substr(std::min(lines[i].find_first_not_of(" \t"), lines[i].size()));
    if (!line.empty() && line.front() == '[') {
      inside = line.compare(0, section.size() + 2, "[" + section + "]") == 0;
      if (inside) header = i;
      continue;
    }
    if (!inside || line.compare(0, key.size(), key) != 0) continue;
    const std::size_t next = line.find_first_not_of(" \t", key.size());
    if (next != std::string::npos && line[next] == '=') return i;
  }
  return std::string::npos;
}

void put(std::vector<std::string>& lines, const std::string& name, const std::string& value,
         const std::string& why) {
  const std::size_t dot = name.find('.');
  const std::string section = name.substr(0, dot), key = name.substr(dot + 1);
  std::size_t header = 0;
  const std::size_t at = find_line(lines, section, key, header);
  const std::string start = fmt::format("{:<24} # {}", key + " = " + value, why);
  if (at != std::string::npos) {
    const std::size_t hash = lines[at].find('#');
    std::string old = hash == std::string::npos ? "" : lines[at].substr(hash + 1);
    // Of a profile that was fitted itself: what it was known from before.
    if (const std::size_t last = old.rfind(kBefore); last != std::string::npos)
      old = old.substr(last + kBefore.size());
    lines[at] = start + (old.empty() ? "" : std::string(kBefore) + old);
  } else if (header != std::string::npos) {
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(header) + 1, start);
  } else {
    lines.insert(lines.end(), {"", "[" + section + "]", start});
  }
}

}  // namespace

std::string text(const Fit& fit) {
  const Solution& s = fit.solution;
  std::size_t width = 7, id = 4;
  for (const PublishedRow& row : fit.rows) {
    width = std::max(width, row.setup.size());
    id = std::max(id, row.id.size());
  }
  std::string out = fmt::format("{:<{}} {:<{}} {:>15} {:>10} {:>8} {:>10} {:>8}\n", "row", id, "measure",
                                width, "measured", "before", "error", "fitted", "error");
  for (std::size_t i = 0; i < fit.rows.size(); ++i) {
    const PublishedRow& row = fit.rows[i];
    out += fmt::format("{:<{}} {:<{}} {:>15} {:>10.3f} {:>8} {:>10.3f} {:>8}\n", row.id, id, row.setup, width,
                       row.figure(), s.before[i], error_of(row, s.before[i]), s.after[i],
                       error_of(row, s.after[i]));
  }
  out += fmt::format(
      "{} rows, {} rounds, {} measurements; root mean square of error / standard deviation: {:.2f} before, "
      "{:.2f} fitted\n\n",
      fit.rows.size(), s.rounds, fit.measurements, s.rms_before, s.rms_after);
  width = 9;
  for (const Unknown& u : fit.parameters) width = std::max(width, u.name.size());
  out += fmt::format("{:<{}} {:>10} {:>10} {:>11}  {}\n", "parameter", width, "start", "fitted", "std. error",
                     "identified by these rows");
  for (std::size_t j = 0; j < fit.parameters.size(); ++j) {
    const Estimate& e = s.estimates[j];
    out += fmt::format("{:<{}} {:>10} {:>10} {:>11}  {}{}\n", fit.parameters[j].name, width,
                       number(fit.parameters[j].start), number(e.value),
                       has_error(e) ? fmt::format("+- {:.2g}", e.error) : "", verdict(fit, j),
                       e.at_limit ? " (at the limit of its range)" : "");
  }
  for (const Combination& c : s.combinations) out += sentence(fit, c) + "\n";
  if (s.rms_after > 2)
    out +=
        "The rows are missed by more than their deviations: other parameters, or what the model leaves out, "
        "make the "
        "rest; standard errors are larger by as much.\n";
  return out;
}

nlohmann::json json(const Fit& fit) {
  const Solution& s = fit.solution;
  nlohmann::json out{{"file", fit.file},   {"profile", fit.profile},     {"set", fit.set},
                     {"rounds", s.rounds}, {"rms_before", s.rms_before}, {"rms_fitted", s.rms_after}};
  for (std::size_t i = 0; i < fit.rows.size(); ++i) {
    const PublishedRow& row = fit.rows[i];
    out["rows"].push_back({{"row", row.id},
                           {"measure", row.setup},
                           {"unit", row.unit},
                           {"measured", row.published},
                           {"before", s.before[i]},
                           {"fitted", s.after[i]}});
  }
  static const char* const kKnown[] = {"yes", "weakly", "together", "hardly", "no"};
  for (std::size_t j = 0; j < fit.parameters.size(); ++j) {
    const Estimate& e = s.estimates[j];
    nlohmann::json one{{"parameter", fit.parameters[j].name},
                       {"start", fit.parameters[j].start},
                       {"fitted", e.value},
                       {"identified", kKnown[static_cast<std::size_t>(e.known)]},
                       {"at_limit", e.at_limit}};
    if (has_error(e)) one["standard_error"] = e.error;
    out["parameters"].push_back(one);
  }
  out["combinations"] = nlohmann::json::array();
  for (const Combination& c : s.combinations) {
    nlohmann::json one{{"identified", c.known}, {"sentence", sentence(fit, c)}};
    for (const std::size_t k : c.unknowns) one["parameters"].push_back(fit.parameters[k].name);
    if (!c.weights.empty()) {
      one["weights"] = c.weights;
      one["value"] = c.value;
      one["standard_error"] = c.error;
    }
    out["combinations"].push_back(one);
  }
  return out;
}

std::string fitted_profile(const Fit& fit, const std::string& folder, const std::string& name) {
  const bool path =
      fit.profile.find('/') != std::string::npos || fit.profile.find(".toml") != std::string::npos;
  std::vector<std::string> lines = lines_of(path ? fit.profile : folder + "/" + fit.profile + ".toml");
  const Solution& s = fit.solution;
  const std::string file = plain(fit.file.substr(fit.file.rfind('/') + 1));
  for (const std::string& pair : fit.set) {
    const std::size_t eq = pair.find('=');
    const std::string parameter = pair.substr(0, eq);
    // Not the text: strtod() reads what TOML does not.
    put(lines, parameter, profile_value(parameter, std::strtod(pair.c_str() + eq + 1, nullptr)),
        "given beside " + file);
  }
  const std::vector<double> before = values_in_file(fit, folder);
  for (std::size_t j = 0; j < fit.parameters.size(); ++j) {
    const Estimate& e = s.estimates[j];
    if (!has_error(e) && e.value == before[j]) continue;
    const bool given = !has_error(e) && e.value == fit.parameters[j].start;
    std::string why = (given ? "given beside " : "fitted to ") + file;
    if (has_error(e)) why += fmt::format(", +- {:.2g}", e.error);
    if (!has_error(e)) why += "; not identified: " + verdict(fit, j).substr(4);
    const std::string& parameter = fit.parameters[j].name;
    put(lines, parameter, profile_value(parameter, e.value),
        why + fmt::format(" (was {})", profile_value(parameter, before[j])));
  }
  std::size_t header = 0, after = 0;
  const std::size_t named = find_line(lines, "", "name", header);
  std::string safe;
  for (const char c : name)
    safe += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' ? c : '_';
  const std::string name_line = "name = \"" + safe + "\"";
  if (named != std::string::npos)
    lines[named] = name_line;
  else
    lines.insert(lines.begin(), name_line);
  if (!lines.empty() && lines.front().find("SPDX") != std::string::npos) after = 1;
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(after),
               fmt::format("# {} fitted to {} rows of {}: root mean square of error / standard deviation "
                           "{:.2f}, {:.2f} before.",
                           plain(fit.profile.substr(fit.profile.rfind('/') + 1)), fit.rows.size(), file,
                           s.rms_after, s.rms_before));
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

}  // namespace hcasim::bench
