// SPDX-License-Identifier: GPL-2.0-or-later
// `./hcasim fabric FILE.toml`: cards inside ns-3 (docs/fabric.md).
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <new>

#include "fabric/report.h"

namespace {

using namespace hcasim::fabric;

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

// One line on the terminal that is written over; nothing where there is none.
class ProgressLine {
 public:
  void show(const std::string& line) {
    if (!terminal_) return;
    std::fprintf(stderr, "\r\033[K%s", line.c_str());
    std::fflush(stderr);
    shown_ = true;
  }
  void clear() noexcept {
    if (shown_) std::fprintf(stderr, "\r\033[K");
    shown_ = false;
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
};

int run(int argc, char** argv, ProgressLine& line) {
  CLI::App app("Cards, links and switches in ns-3, as a file describes them");
  app.name("hcasim fabric");
  std::string file, json, svg;
  std::size_t links = 8;
  bool check = false;
  app.add_option("file", file, "the scenario, TOML (docs/fabric.md)")->required();
  app.add_option("--json", json, "the whole result, into this file");
  app.add_option("--svg", svg, "charts of queues, rate and times, into this file");
  app.add_option("--links", links, "how many of the busiest links to print")->capture_default_str();
  app.add_flag("--check", check, "read the file, say what is wrong, and run nothing");
  CLI11_PARSE(app, argc, argv);
  const Scenario scenario = read_scenario(file);
  if (check) {
    const Topology t = build_topology(scenario.topology);
    std::cout << file << ": " << t.cards << " cards, " << t.switches.size() << " switches, "
              << build_workload(scenario.workloads, t.cards).messages.size() << " messages\n";
    return 0;
  }
  const Result result = run_scenario(scenario, [&line](const std::string& text) { line.show(text); });
  line.clear();
  std::cout << report_text(result, links) << std::flush;
  if (!json.empty()) write_file(json, report_json(result));
  if (!svg.empty()) write_file(svg, report_svg(result));
  return result.failure.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  ProgressLine line;
  try {
    return run(argc, argv, line);
  } catch (const std::bad_alloc&) {
    line.clear();
    std::fputs("hcasim fabric: there is not enough memory\n", stderr);
  } catch (const std::exception& e) {
    line.clear();
    std::fprintf(stderr, "hcasim fabric: %s\n", e.what());
  }
  return 1;
}
