// SPDX-License-Identifier: GPL-2.0-or-later
#include "fabric/toml_section.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

namespace hcasim::fabric {

namespace {

std::string number(double v) {
  std::ostringstream out;
  out.precision(12);
  out << v;
  return out.str();
}

std::string range(std::uint64_t low, std::uint64_t high) {
  return "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
}

// One letter more, less, or another one, or two that have changed places.
bool alike(const std::string& a, const std::string& b) {
  const auto front = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  std::string rest_a(front.first, a.end()), rest_b(front.second, b.end());
  while (!rest_a.empty() && !rest_b.empty() && rest_a.back() == rest_b.back()) {
    rest_a.pop_back();
    rest_b.pop_back();
  }
  const std::size_t longer = std::max(rest_a.size(), rest_b.size());
  return longer <= 1 ||
         (longer == 2 && std::is_permutation(rest_a.begin(), rest_a.end(), rest_b.begin(), rest_b.end()));
}

}  // namespace

Section::Section(std::string file, const toml::table& table, std::string name)
    : file_(std::move(file)), table_(&table), name_(std::move(name)) {}

const toml::node* Section::find(const std::string& key) {
  known_.push_back(key);
  return table_->get(key);
}

std::string Section::at(const toml::node& node) const {
  return file_ + ":" + std::to_string(std::max<std::uint32_t>(1, node.source().begin.line)) + ": ";
}

std::string Section::place(const std::string& key) const {
  const toml::node* const node = table_->get(key);
  return at(node ? *node : static_cast<const toml::node&>(*table_)) + label(key);
}

void Section::fail(const std::string& key, const std::string& what) {
  throw ScenarioError(place(key) + ": " + what);
}

void Section::missing(const std::string& key, const std::string& wanted) {
  for (const auto& [other, node] : *table_) {
    const std::string name(other.str());
    if (std::find(known_.begin(), known_.end(), name) == known_.end() && alike(name, key))
      throw ScenarioError(at(node) + label(name) + ": there is no such key here; " + key + " is missing" +
                          wanted);
  }
  fail(key, "is missing" + wanted);
}

bool Section::has(const std::string& key) { return find(key) != nullptr; }

std::uint64_t Section::whole(const std::string& key, std::uint64_t fallback, std::uint64_t low,
                             std::uint64_t high) {
  const toml::node* const node = find(key);
  if (!node) return fallback;
  const auto v = node->value_exact<std::int64_t>();
  if (!v || *v < 0 || static_cast<std::uint64_t>(*v) < low || static_cast<std::uint64_t>(*v) > high)
    fail(key, "must be " + range(low, high));
  return static_cast<std::uint64_t>(*v);
}

std::uint64_t Section::whole(const std::string& key, std::uint64_t low, std::uint64_t high) {
  if (!table_->contains(key)) missing(key, "; " + range(low, high) + " is wanted");
  return whole(key, low, low, high);
}

double Section::real(const std::string& key, double fallback, double low, double high) {
  const toml::node* const node = find(key);
  if (!node) return fallback;
  double v = std::nan("");
  if (const auto whole = node->value_exact<std::int64_t>())
    v = static_cast<double>(*whole);
  else if (const auto real = node->value_exact<double>())
    v = *real;
  if (!(v >= low && v <= high)) fail(key, "must be a number from " + number(low) + " to " + number(high));
  return v;
}

bool Section::flag(const std::string& key, bool fallback) {
  const toml::node* const node = find(key);
  if (!node) return fallback;
  const auto v = node->value_exact<bool>();
  if (!v) fail(key, "must be true or false");
  return *v;
}

std::string Section::text(const std::string& key, const std::string& fallback) {
  const toml::node* const node = find(key);
  if (!node) return fallback;
  const auto v = node->value_exact<std::string>();
  if (!v) fail(key, "must be a text in quotes");
  return *v;
}

std::string Section::word(const std::string& key, const std::string& fallback,
                          const std::vector<std::string>& allowed) {
  std::string list;
  for (const std::string& a : allowed) list += (list.empty() ? "" : ", ") + a;
  const toml::node* const node = find(key);
  if (!node && fallback.empty()) missing(key, "; allowed are " + list);
  std::string v = node ? node->value_exact<std::string>().value_or("") : fallback;
  if (std::find(allowed.begin(), allowed.end(), v) == allowed.end()) fail(key, "must be one of " + list);
  return v;
}

std::vector<std::uint64_t> Section::wholes(const std::string& key, const std::vector<std::uint64_t>& fallback,
                                           std::uint64_t low, std::uint64_t high) {
  const toml::node* const node = find(key);
  if (!node) return fallback;
  const std::string what = "must be a list, each " + range(low, high);
  std::vector<std::uint64_t> list;
  if (!node->is_array()) fail(key, what);
  for (const toml::node& one : *node->as_array()) {
    const auto v = one.value_exact<std::int64_t>();
    if (!v || *v < 0 || static_cast<std::uint64_t>(*v) < low || static_cast<std::uint64_t>(*v) > high)
      fail(key, what);
    list.push_back(static_cast<std::uint64_t>(*v));
  }
  return list;
}

Section Section::table(const std::string& key) {
  const toml::node* const node = find(key);
  static const toml::table none;
  if (!node) return {file_, none, "[" + key + "]"};
  if (!node->is_table()) fail(key, "must be a table, [" + key + "]");
  return {file_, *node->as_table(), "[" + key + "]"};
}

std::vector<Section> Section::tables(const std::string& key) {
  const toml::node* const node = find(key);
  std::vector<Section> list;
  if (!node) return list;
  if (node->is_table()) {
    list.emplace_back(file_, *node->as_table(), "[" + key + "]");
    return list;
  }
  if (!node->is_array_of_tables()) fail(key, "must be a table, [" + key + "], or several, [[" + key + "]]");
  for (const toml::node& one : *node->as_array())
    list.emplace_back(file_, *one.as_table(), "[[" + key + "]]");
  return list;
}

void Section::done() {
  for (const auto& [key, node] : *table_) {
    const std::string name(key.str());
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    std::string list;
    std::sort(known_.begin(), known_.end());
    known_.erase(std::unique(known_.begin(), known_.end()), known_.end());
    for (const std::string& k : known_) list += (list.empty() ? "" : ", ") + k;
    throw ScenarioError(at(node) + label(name) + ": there is no such key here; allowed are " + list);
  }
}

}  // namespace hcasim::fabric
