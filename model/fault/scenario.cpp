// SPDX-License-Identifier: BSD-3-Clause
#include <toml++/toml.h>

#include <cstdio>

#include "model/fault/spec.h"
#include "model/toml_text.h"

namespace hcasim {

namespace {

constexpr std::size_t kMostBytes = 1 << 20;
constexpr std::size_t kMostFaults = 4096;

std::string at(const std::string& file, const toml::node& node) {
  return file + ":" + std::to_string(node.source().begin.line) + ": ";
}

// As it would stand in key=value. False: of a type that no key has.
bool as_text(const toml::node& node, std::string& out) {
  if (const auto text = node.value_exact<std::string>()) {
    out = *text;
  } else if (const auto number = node.value_exact<std::int64_t>()) {
    out = std::to_string(*number);
  } else if (const auto real = node.value_exact<double>()) {
    char digits[40];
    std::snprintf(digits, sizeof digits, "%.17g", *real);
    out = digits;
  } else if (const auto flag = node.value_exact<bool>()) {
    out = *flag ? "on" : "off";
  } else {
    return false;
  }
  return true;
}

// Each fault draws numbers of its own: one more fault in the file changes no other's.
std::uint64_t seed_of(std::uint64_t seed, std::size_t number) {
  std::uint64_t h = (seed ^ number * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;
  return h ^ h >> 33;
}

bool read_fault(const toml::table& table, const std::string& file, Scenario& s, std::string& err) {
  FaultPairs pairs;
  const toml::node* kind = nullptr;
  for (const auto& [key, node] : table) {
    std::string text;
    if (!as_text(node, text)) {
      err = at(file, node) + std::string(key.str()) + ": must be a number, a text, true or false";
      return false;
    }
    if (key.str() == "fault") {
      err = at(file, node) + "fault: write kind = \"" + text + "\"";
      return false;
    }
    const bool is_kind = key.str() == "kind";
    if (is_kind) kind = &node;
    pairs.emplace_back(is_kind ? "fault" : std::string(key.str()), text);
  }
  if (kind == nullptr) {
    err = at(file, table) + "kind: missing in this [[fault]]";
    return false;
  }
  FaultSpec f;
  if (!parse_fault(pairs, 0, seed_of(s.seed, s.faults.size() + 1), f, err)) {
    // "KEY=..." or "KEY: ...": the key's own line, else that of the table.
    const std::string key = err.substr(0, err.find_first_of("=:"));
    if (key == "fault") {
      err = at(file, *kind) + "kind" + err.substr(key.size());
      return false;
    }
    const toml::node* node = table.get(key);
    err.insert(0, at(file, node != nullptr ? *node : table));
    return false;
  }
  s.faults.push_back(std::move(f));
  return true;
}

}  // namespace

bool parse_scenario(const std::string& text, const std::string& file, Scenario& out, std::string& err) {
  if (!plain_toml(text, file, err)) return false;
  try {
    const toml::table root = toml::parse(text, file);
    Scenario s;
    if (const toml::node* seed = root.get("seed")) {
      const auto number = seed->value_exact<std::int64_t>();
      if (!number || *number < 0) {
        err = at(file, *seed) + "seed: allowed: 0 to 2^63-1";
        return false;
      }
      s.seed = static_cast<std::uint64_t>(*number);
    }
    for (const auto& [key, node] : root) {
      if (key.str() == "seed") continue;
      const toml::array* list = node.as_array();
      if (key.str() != "fault" || list == nullptr || !list->is_homogeneous<toml::table>()) {
        err = at(file, node) + std::string(key.str()) + ": unknown; allowed are seed and [[fault]] tables";
        return false;
      }
      if (list->size() > kMostFaults) {
        err = at(file, node) + "fault: there may be " + std::to_string(kMostFaults);
        return false;
      }
      for (const toml::node& one : *list)
        if (!read_fault(*one.as_table(), file, s, err)) return false;
    }
    out = std::move(s);
    return true;
  } catch (const toml::parse_error& e) {
    err = file + ":" + std::to_string(e.source().begin.line) + ": " + std::string(e.description());
  } catch (const std::exception& e) {
    err = file + ": " + e.what();
  }
  return false;
}

bool read_scenario(const std::string& path, std::string& text, std::string& err) {
  return read_text(path, kMostBytes, text, err);
}

}  // namespace hcasim
