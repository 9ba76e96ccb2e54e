// SPDX-License-Identifier: BSD-3-Clause
#include "traces/broken_rules.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "command/parse.h"
#include "traces/names.h"
#include "traces/reader.h"
#include "traces/rules.h"
#include "traces/story.h"

namespace hcasim::traces {
namespace {

void print(const Record& r, const char* mark) {
  fmt::print("{} {:>16.3f} us hca {}  {}\n", mark, static_cast<double>(r.time_ps) / 1e6, place_of(r),
             in_words(r));
}

void print_broken(const Record& r, const std::vector<std::uint8_t>& blob) {
  print(r, "=>");
  std::string bytes;
  for (std::size_t i = 0; i < blob.size(); ++i)
    bytes += fmt::format(i % 4 == 0 ? " {:02x}" : "{:02x}", blob[i]);
  if (!bytes.empty()) fmt::print("       bytes{}\n", bytes);
  if (const RuleInfo* rule = find_rule(r.index))
    fmt::print("       {}; source: {}\n", severity_name(rule->severity), rule->source);
}

}  // namespace

int rules_main(int argc, char** argv) {
  CLI::App app(
      "The validation rules that the driver broke, in order, each with the records around it.\n"
      "Status 0: none was broken, 1: some were.",
      "hcasim trace rules");
  std::string path, name;
  std::size_t around = 8;
  app.add_option("FILE", path, "trace file")->required();
  app.add_option("--rule", name, "only this one")->check(check_rule, "NAME");
  app.add_option("--around", around,
                 "number of records shown before each violation, and half as many after it; 0: none")
      ->check(command::whole(0, 1'000'000))
      ->capture_default_str();
  if (const auto parsed = command::parse(app, argc, argv)) return *parsed;
  std::deque<Record> before;
  std::size_t behind = 0;
  std::uint64_t broken = 0;
  const int status = read_records(path, [&](const Record& r, const std::vector<std::uint8_t>& blob) {
    const RuleInfo* rule = r.p() == Point::kRuleBroken ? find_rule(r.index) : nullptr;
    const bool wanted =
        r.p() == Point::kRuleBroken && (name.empty() || (rule != nullptr && name == rule->name));
    if (wanted) {
      if (broken++ != 0 && behind == 0) fmt::print("\n");
      for (const Record& b : before) print(b, "  ");
      before.clear();
      print_broken(r, blob);
      behind = around / 2;
    } else if (r.p() == Point::kCount) {
      return;  // a point of another version of the format
    } else if (behind != 0) {
      print(r, "  ");
      --behind;
    } else if (around != 0) {
      if (before.size() == around) before.pop_front();
      before.push_back(r);
    }
  });
  if (status != 0) return status;
  if (broken == 0) fmt::print("no rule was broken\n");
  return broken == 0 ? 0 : 1;
}

}  // namespace hcasim::traces
