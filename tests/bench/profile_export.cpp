// SPDX-License-Identifier: BSD-3-Clause
#include "profile_export.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "model/profile.h"

namespace hcasim::bench {

namespace {

using Lines = std::vector<std::string>;

constexpr char kNotThere[] = "the model's default; the profile does not name it",
               kGiven[] = "given with --set";

struct Field {
  std::string section, key, unit, evidence;
  double value = 0;
  std::size_t line = SIZE_MAX;  // of the file; SIZE_MAX: none
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

std::string unit_of(const std::string& name) {
  static constexpr std::pair<const char*, const char*> kEnds[] = {
      {"_ns", "ns"},     {"_bytes", "B"},   {"_gbps", "Gb/s"},   {"_percent", "%"},
      {"_kib", "KiB"},   {"_mhz", "MHz"},   {"_overhead", "B"},  {"_packets", "packets"},
      {"_ways", "ways"}, {".ways", "ways"}, {"_units", "units"}, {"_pages", "pages of 4 KiB"}};
  static constexpr std::pair<const char*, const char*> kNames[] = {{"pcie.generation", "generation of PCIe"},
                                                                   {"pcie.lanes", "lanes"},
                                                                   {"pcie.efficiency", "share"},
                                                                   {"pcie.max_payload", "B"},
                                                                   {"pcie.max_read_request", "B"},
                                                                   {"pcie.completion_boundary", "B"},
                                                                   {"pcie.tags", "read requests"},
                                                                   {"pcie.write_buffer", "B"},
                                                                   {"pcie.posted_headers", "TLPs"},
                                                                   {"pcie.posted_data", "16 B"},
                                                                   {"pcie.nonposted_headers", "TLPs"},
                                                                   {"memory.iotlb", "translations"},
                                                                   {"memory.iotlb_walks", "walks"},
                                                                   {"memory.atc", "translations"},
                                                                   {"engine.gather_messages", "messages"},
                                                                   {"engine.atomic_slots", "locks"},
                                                                   {"engine.rwqe_prefetch", "WQEs"},
                                                                   {"engine.dc_contexts", "contexts"},
                                                                   {"engine.ack_every", "packets"},
                                                                   {"cache.qpc", "entries"},
                                                                   {"cache.cqc", "entries"},
                                                                   {"cache.mkey", "entries"},
                                                                   {"cache.mtt", "entries"},
                                                                   {"cache.outstanding", "reads"},
                                                                   {"cache.reads", "READs and atomics"},
                                                                   {"cache.reads_outstanding", "reads"},
                                                                   {"cache.ste", "entries"},
                                                                   {"port.ib_link_width", "bits of PTYS"},
                                                                   {"port.ib_link_speed", "bits of PTYS"},
                                                                   {"port.max_mtu", "B"},
                                                                   {"port.lane_buffer", "B"},
                                                                   {"port.cnp_moderation", "1 port, 2 flow"}};
  for (const auto& [known, unit] : kNames)
    if (name == known) return unit;
  for (const auto& [end, unit] : kEnds) {
    const std::string_view suffix = end;
    if (name.size() > suffix.size() && name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0)
      return unit;
  }
  return "";
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

std::string export_profile(const std::string& profile, const std::string& folder,
                           const std::vector<std::string>& set, const std::string& format) {
  Profile loaded;
  std::string why;
  if (!Profile::load(profile, {folder}, loaded, why, set)) throw std::runtime_error(why);
  const bool path = profile.find('/') != std::string::npos || profile.find(".toml") != std::string::npos;
  const std::string file = path ? profile : folder + "/" + profile + ".toml";
  const Lines lines = lines_of(file, profile);
  const toml::table root = toml::parse_file(file);
  // In the file's order, which is what people read; then what it leaves as it is.
  std::vector<Field> fields;
  nlohmann::ordered_json sections = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < Profile::names().size(); ++i) {
    const std::string& name = Profile::names()[i];
    const std::size_t dot = name.find('.');
    Field f{name.substr(0, dot), name.substr(dot + 1), unit_of(name), kNotThere, loaded.value(i)};
    const toml::table* const section = root[f.section].as_table();
    sections[f.section] = section != nullptr ? comment_at(lines, section->source().begin.line) : "";
    if (const toml::node* const node = root[f.section][f.key].node()) {
      f.evidence = beside(lines, *node);
      f.line = node->source().begin.line;
    }
    if (std::any_of(set.begin(), set.end(), [&](const auto& s) { return s.rfind(name + "=", 0) == 0; }))
      f.evidence = kGiven;
    fields.push_back(f);
  }
  std::stable_sort(fields.begin(), fields.end(),
                   [](const Field& a, const Field& b) { return a.line < b.line; });
  if (format == "csv") {
    std::string out = "section,key,value,unit,evidence\n";
    for (const Field& f : fields)
      out += fmt::format("{},{},{},{},{}\n", f.section, f.key, f.value, f.unit, quoted(f.evidence));
    return out;
  }
  nlohmann::ordered_json out;
  out["profile"] = root["name"].value_or(profile);
  out["generation"] = loaded.generation->key;
  out["sources"] = comment_at(lines, 0);
  out["sections"] = sections;
  out["fields"] = nlohmann::ordered_json::array();
  for (const Field& f : fields)
    out["fields"].push_back({{"section", f.section},
                             {"key", f.key},
                             {"value", f.value},
                             {"unit", f.unit},
                             {"evidence", f.evidence}});
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace hcasim::bench
