// SPDX-License-Identifier: BSD-3-Clause
// hcasim-faults: the table of faults that can be injected, and a look at scenario files.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <string>

#include "command/parse.h"
#include "command/run.h"
#include "model/fault/spec.h"

namespace {

using namespace hcasim;

int check(const std::string& path) {
  std::string text, err;
  Scenario s;
  if (!read_scenario(path, text, err) || !parse_scenario(text, path, s, err)) {
    std::fprintf(stderr, "hcasim-faults: %s\n", err.c_str());
    return 1;
  }
  fmt::print("{}: seed {}, {} faults\n", path, s.seed, s.faults.size());
  for (std::size_t i = 0; i < s.faults.size(); ++i)
    fmt::print("  {}  {}\n", i + 1, fault_name(s.faults[i].kind, s.faults[i].action));
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app(
      "The faults that can be injected into an HCA: from a scenario file (its option faults=FILE) or while "
      "it runs.",
      "hcasim faults");
  std::string kind, file;
  bool page = false;
  app.add_option("KIND", kind, "only this kind");
  app.add_flag("--page", page, "the documentation page, in Markdown");
  app.add_option("--check", file, "reads a scenario file, and says what is wrong with it");
  if (const auto status = hcasim::command::parse(app, argc, argv)) return *status;
  if (!file.empty()) return check(file);
  if (page) {
    fmt::print("{}", fault_page());
    return 0;
  }
  if (kind.empty()) {
    fmt::print("{}", fault_text());
    return 0;
  }
  for (unsigned i = 0; i < traces::kFaultKinds; ++i) {
    const auto k = static_cast<FaultType>(i);
    if (kind != traces::info(k).name) continue;
    fmt::print("{}", fault_text(&k));
    return 0;
  }
  std::fprintf(stderr, "hcasim-faults: there is no kind \"%s\"; `hcasim faults` lists them\n", kind.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) { return hcasim::command::run("hcasim-faults", run, argc, argv); }
