// SPDX-License-Identifier: BSD-3-Clause
#include "published.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <stdexcept>

#include "model/toml_text.h"

namespace hcasim::bench {

namespace {

constexpr std::size_t kMostBytes = 1 << 20;  // of a file

class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  [[noreturn]] void refuse(const toml::source_region& where, const std::string& message) const {
    throw std::runtime_error(fmt::format("{}:{}: {}", file_, where.begin.line, message));
  }

  std::string text(const toml::table& row, const char* key, bool needed = true) const {
    const auto v = row[key].value_exact<std::string>();
    if (!v && (needed || row.contains(key))) refuse(row.source(), fmt::format("{}: a string", key));
    return v.value_or("");
  }

  double number(const toml::node& node, const char* key) const {
    const auto v = node.value<double>();
    if (!v) refuse(node.source(), fmt::format("{}: a number", key));
    return *v;
  }

  void apply(const toml::table& keys, timing::Setup& setup) const {
    for (const auto& [key, value] : keys) {
      std::string as_text;
      if (const auto s = value.value_exact<std::string>())
        as_text = *s;
      else if (const auto i = value.value_exact<std::int64_t>())
        as_text = std::to_string(*i);
      else if (const auto d = value.value_exact<double>())
        as_text = fmt::format("{}", *d);
      else
        refuse(value.source(), fmt::format("{}: a string or a number", key.str()));
      try {
        setup.set(std::string(key.str()), as_text);
      } catch (const timing::SetupError& e) {
        refuse(value.source(), e.what());
      }
    }
  }

  PublishedRow row(const toml::table& t) const {
    static const char* const known[] = {"id",        "setup",   "source",  "note",  "unit", "published",
                                        "tolerance", "at_most", "measure", "minus", "over", "against"};
    for (const auto& [key, value] : t) {
      if (std::none_of(std::begin(known), std::end(known),
                       [&k = key](const char* n) { return k.str() == n; }))
        refuse(value.source(), fmt::format("{}: unknown; allowed are {}", key.str(), fmt::join(known, ", ")));
    }
    PublishedRow r;
    r.id = text(t, "id");
    r.setup = text(t, "setup");
    r.source = text(t, "source");
    r.note = text(t, "note", false);
    r.unit = text(t, "unit");
    if (r.unit != "us" && r.unit != "M/s" && r.unit != "Gb/s" && r.unit != "%" && r.unit != "x")
      refuse(t.source(), "unit: us, M/s, Gb/s, % or x");
    r.at_most = t.contains("at_most");
    const toml::node* figure = t.get(r.at_most ? "at_most" : "published");
    if (!figure) refuse(t.source(), "published: a number, or [least, most]");
    if (const toml::array* range = figure->as_array(); range && range->size() == 2) {
      r.low = number(*range->get(0), "published");
      r.high = number(*range->get(1), "published");
    } else {
      r.low = r.high = number(*figure, "published");
    }
    r.published = (r.low + r.high) / 2;
    if (!r.at_most) {
      if (!t.contains("tolerance")) refuse(t.source(), "tolerance: % of the published figure");
      r.tolerance = number(*t.get("tolerance"), "tolerance");
    }
    const toml::table* measure = t["measure"].as_table();
    if (!measure) refuse(t.source(), "measure: a table of what is measured");
    timing::Setup setup;
    apply(*measure, setup);
    if (const toml::table* over = t["over"].as_table()) {
      for (const auto& [key, values] : *over) {
        const toml::array* list = values.as_array();
        if (!list || list->empty()) refuse(values.source(), "over: KEY = [values]");
        for (const toml::node& v : *list) {
          timing::Setup one = setup;
          apply(toml::table{{key, v}}, one);
          r.measurements.push_back(one);
        }
      }
    } else {
      r.measurements.push_back(setup);
    }
    if (const toml::table* minus = t["minus"].as_table()) {
      apply(*minus, setup);
      r.measurements.push_back(setup);
    }
    if (const toml::table* against = t["against"].as_table()) {
      apply(*against, setup);
      r.measurements.push_back(setup);
    }
    if ((r.unit == "x") != t.contains("against")) refuse(t.source(), "against: goes with unit x");
    if ((r.unit == "%") != t.contains("over")) refuse(t.source(), "over: goes with unit %");
    for (const timing::Setup& s : r.measurements) {
      try {
        (void)s.resolved();
      } catch (const timing::SetupError& e) {
        refuse(t.source(), e.what());
      }
    }
    return r;
  }

 private:
  const std::string file_;
};

double one(const std::string& unit, const timing::Result& r) {
  return unit == "us" ? r.median / 1000 : unit == "Gb/s" ? r.gbps() : r.mops();
}

}  // namespace

double PublishedRow::simulated(const std::vector<timing::Result>& results) const {
  if (unit == "%") {
    double least = 0, most = 0;
    for (const timing::Result& r : results) {
      const double figure = r.median > 0 ? r.median : r.rate;
      least = least == 0 ? figure : std::min(least, figure);
      most = std::max(most, figure);
    }
    return most > 0 ? (most - least) / most * 100 : 0;
  }
  if (unit == "x") return results.at(0).rate / results.at(1).rate;
  double value = one(unit, results.at(0));
  if (results.size() > 1) value -= one(unit, results[1]);
  return value;
}

double PublishedRow::error(double simulated) const { return (simulated - published) / published * 100; }

bool PublishedRow::within(double simulated) const {
  if (at_most) return simulated <= published;
  return std::abs(error(simulated)) <= tolerance;
}

std::string PublishedRow::figure() const {
  if (low != high) return fmt::format("{:g}-{:g} {}", low, high, unit);
  return fmt::format("{}{:g} {}", at_most ? "up to " : "", published, unit);
}

std::vector<PublishedRow> load_published(const std::string& file) {
  std::vector<PublishedRow> rows;
  const Reader reader(file);
  try {
    std::string text, why;
    if (!read_text(file, kMostBytes, text, why) || !plain_toml(text, file, why, true))
      throw std::runtime_error(why);
    const toml::table root = toml::parse(text, file);
    const toml::array* list = root["row"].as_array();
    if (!list || list->empty() || root.size() != 1) throw std::runtime_error(file + ": a list of [[row]]");
    for (const toml::node& node : *list) {
      const toml::table* table = node.as_table();
      if (!table) reader.refuse(node.source(), "row: a table");
      rows.push_back(reader.row(*table));
    }
  } catch (const toml::parse_error& e) {
    reader.refuse(e.source(), std::string(e.description()));
  }
  return rows;
}

}  // namespace hcasim::bench
