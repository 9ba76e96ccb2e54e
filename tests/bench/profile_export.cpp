// SPDX-License-Identifier: BSD-3-Clause
#include "profile_export.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace hcasim::bench {

namespace {

using Lines = std::vector<std::string>;

struct Field {
  std::string section, key, unit, evidence;
  double value = 0;
};

Lines lines_of(const std::string& file, const std::string& profile) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("profile " + profile + ": no such file");
  Lines lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(" #");
  if (from == std::string_view::npos) return {};
  return std::string(text.substr(from, text.find_last_not_of(' ') - from + 1));
}

// Of comment lines from `at` on, all that follow each other.
std::string comment_at(const Lines& lines, std::size_t at) {
  std::string text;
  for (; at < lines.size() && !lines[at].empty() && lines[at].front() == '#'; ++at) {
    const std::string line = trimmed(lines[at]);
    if (line.rfind("SPDX-", 0) != 0) text += (text.empty() ? "" : " ") + line;
  }
  return text;
}

// Behind the value of that line.
std::string beside(const Lines& lines, const toml::node& value) {
  const toml::source_position end = value.source().end;
  const std::string_view line = lines.at(end.line - 1);
  const auto hash = line.find('#', end.column - 1);
  return hash == std::string_view::npos ? std::string() : trimmed(line.substr(hash));
}

std::string unit_of(const std::string& key) {
  static constexpr std::pair<const char*, const char*> kUnits[] = {
      {"_ns", "ns"},   {"_bytes", "B"},    {"_gbps", "Gb/s"},
      {"_mhz", "MHz"}, {"_overhead", "B"}, {"_packets", "packets"}};
  for (const auto& [end, unit] : kUnits) {
    const std::string_view suffix = end;
    if (key.size() > suffix.size() && key.compare(key.size() - suffix.size(), suffix.size(), suffix) == 0)
      return unit;
  }
  static constexpr const char* kBytes[] = {"max_payload", "max_read_request", "completion_boundary",
                                           "write_buffer", "max_mtu"};
  const bool bytes =
      std::any_of(std::begin(kBytes), std::end(kBytes), [&](const char* k) { return key == k; });
  return bytes ? "B" : "";
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

std::string export_profile(const std::string& profile, const std::string& folder, const std::string& format) {
  const bool path = profile.find('/') != std::string::npos || profile.find(".toml") != std::string::npos;
  const std::string file = path ? profile : folder + "/" + profile + ".toml";
  const Lines lines = lines_of(file, profile);
  const toml::table root = toml::parse_file(file);
  std::vector<Field> fields;
  nlohmann::ordered_json sections = nlohmann::ordered_json::object();
  for (const auto& [name, node] : root) {
    const toml::table* const section = node.as_table();
    if (section == nullptr) continue;
    sections[std::string(name.str())] = comment_at(lines, section->source().begin.line);
    for (const auto& [key, value] : *section) {
      const std::string k(key.str());
      fields.push_back(
          {std::string(name.str()), k, unit_of(k), beside(lines, value), value.value<double>().value_or(0)});
    }
  }
  // As they stand in the file.
  std::stable_sort(fields.begin(), fields.end(), [&](const Field& a, const Field& b) {
    const auto line = [&](const Field& f) { return root[f.section][f.key].node()->source().begin.line; };
    return line(a) < line(b);
  });
  if (format == "csv") {
    std::string out = "section,key,value,unit,evidence\n";
    for (const Field& f : fields)
      out += fmt::format("{},{},{},{},{}\n", f.section, f.key, f.value, f.unit, quoted(f.evidence));
    return out;
  }
  nlohmann::ordered_json out;
  out["profile"] = root["name"].value_or(profile);
  out["generation"] = root["generation"].value_or("");
  out["sources"] = comment_at(lines, 0);
  out["sections"] = sections;
  out["fields"] = nlohmann::ordered_json::array();
  for (const Field& f : fields)
    out["fields"].push_back({{"section", f.section},
                             {"key", f.key},
                             {"value", f.value},
                             {"unit", f.unit},
                             {"evidence", f.evidence}});
  return out.dump(2) + "\n";
}

}  // namespace hcasim::bench
