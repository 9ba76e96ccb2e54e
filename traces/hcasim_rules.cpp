// SPDX-License-Identifier: BSD-3-Clause
/// hcasim-rules: prints the table of validation rules.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <string>

#include "command/parse.h"
#include "command/run.h"
#include "traces/rules.h"

namespace {

using namespace hcasim::traces;

int run(int argc, char** argv) {
  CLI::App app(
      "The rules that a driver of the HCA has to keep. An HCA checks them while it runs (rules=report, "
      "strict\n"
      "or off); `hcasim trace rules FILE` shows those that were broken.",
      "hcasim rules");
  bool page = false, json = false;
  std::string word;
  app.add_option("WORD", word, "only rules with this in their name");
  app.add_flag("--page", page, "the documentation page: all of them, in Markdown");
  app.add_flag("--json", json, "as JSON");
  if (const auto status = hcasim::command::parse(app, argc, argv)) return *status;
  if (page) {
    fmt::print("{}", rules_page());
    return 0;
  }
  auto list = nlohmann::json::array();
  bool any = false;
  for (const RuleInfo& r : kRuleInfo) {
    if (std::string(r.name).find(word) == std::string::npos) continue;
    any = true;
    if (json)
      list.push_back({{"number", r.number},
                      {"name", r.name},
                      {"severity", severity_name(r.severity)},
                      {"source", r.source},
                      {"text", r.text}});
    else
      fmt::print("{:<28} {:<8} {}\n{:<38}{}\n", r.name, severity_name(r.severity), r.text, "", r.source);
  }
  if (json) fmt::print("{}\n", list.dump(2));
  if (!any) {
    std::fprintf(stderr, "hcasim-rules: no rule has \"%s\" in its name\n", word.c_str());
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return hcasim::command::run("hcasim-rules", run, argc, argv); }
