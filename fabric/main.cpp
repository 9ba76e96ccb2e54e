// SPDX-License-Identifier: GPL-2.0-or-later
// `./hcasim fabric FILE.toml`: cards inside ns-3 (docs/fabric.md).
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>
#include <optional>

#include "chart/output_file.h"
#include "command/files.h"
#include "command/parse.h"
#include "fabric/card_check.h"
#include "fabric/estimate.h"
#include "fabric/report.h"

namespace {

using namespace hcasim::fabric;

constexpr const char* kShow = "HCASIM_FABRIC_PROGRESS";  // mpirun has the terminal, the ranks have not

// One line on the terminal that is written over; nothing where there is none. Of several ranks, the first's.
class ProgressLine {
 public:
  void allow(bool shown) { terminal_ = shown; }
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
  bool terminal_ = isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
};

// What can be said of a run without making it. Throws ScenarioError. In a process that makes no cards.
Extent checked(const Scenario& scenario, const Topology& topology, unsigned ranks) {
  const std::vector<unsigned> rank_of = partition(topology, ranks);
  if (ranks > 1) check_files(scenario, rank_of, topology.cards);
  check_cards(scenario, topology.cards);
  return extent_of(topology, build_workload(scenario.workloads, topology.cards));
}

int run(int argc, char** argv, const Ranks& all, ProgressLine& line) {
  CLI::App app("Cards, links and switches in ns-3, as a file describes them");
  app.name("hcasim fabric");
  std::string file, json, svg;
  std::size_t links = 8;
  unsigned ranks = 1;
  bool check = false;
  app.add_option("file", file, "the scenario, TOML (docs/fabric.md)")->required();
  app.add_option("--json", json,
                 "the whole result, into this file; - is standard output, in place of the report");
  app.add_option("--svg", svg, "charts of queues, rate and times, into this file");
  app.add_option("--links", links, "how many of the busiest links to print; 0: none")
      ->check(hcasim::command::whole(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--ranks", ranks,
                 "processes that share the work, each with some of the pods or racks, by MPI (mpirun)")
      ->check(CLI::Range(1u, 1024u))
      ->capture_default_str();
  app.add_flag("--check", check,
               "read the file, say what is wrong and what memory it takes, and run nothing");
  if (const auto status = hcasim::command::parse(app, argc, argv)) return *status;
  if (const std::string wrong = hcasim::command::check_outputs({{"--json", json}, {"--svg", svg}}, {file});
      !wrong.empty()) {
    std::fprintf(stderr, "hcasim fabric: %s\n", wrong.c_str());
    return hcasim::command::kUsageError;
  }
  const Scenario scenario = read_scenario(file);
  if (check) {
    const Topology t = build_topology(scenario.topology);
    const Extent extent = checked(scenario, t, ranks);
    std::cout << "workloads begin at " << planned_begin(extent) / (1000 * kMs) << " s of simulated time\n"
              << file << ": " << t.cards << " cards, " << t.switches.size() << " switches, "
              << extent.messages << " messages, about " << (memory_of(extent, ranks) >> 20) << " MiB\n";
    return 0;
  }
  const bool first = all.number() == 0;
  std::optional<hcasim::chart::OutputFile> json_file, svg_file;
  if (first && !json.empty() && json != "-") json_file.emplace(json);
  if (first && !svg.empty()) svg_file.emplace(svg);
  if (ranks > 1 && all.count() == 1) {
    const Extent extent = checked(scenario, build_topology(scenario.topology), ranks);
    // All ranks are of this machine.
    check_memory(extent, memory_of(extent, ranks), "on " + std::to_string(ranks) + " ranks");
    if (isatty(STDERR_FILENO) == 1) setenv(kShow, "1", 1);
    json_file.reset();  // the first rank's
    svg_file.reset();
    throw std::runtime_error(start_by_mpi(ranks, argv));
  }
  if (ranks > 1 && ranks != all.count())
    throw std::runtime_error("--ranks " + std::to_string(ranks) + ", but mpirun has started " +
                             std::to_string(all.count()));
  line.allow(first && (isatty(STDERR_FILENO) == 1 || std::getenv(kShow) != nullptr));
  const Result result = run_scenario(scenario, all, [&line](const std::string& text) { line.show(text); });
  line.clear();
  if (!first) return result.failure.empty() ? 0 : 1;
  std::cout << (json == "-" ? report_json(result) : report_text(result, links)) << std::flush;
  if (json_file) json_file->write(report_json(result));
  if (svg_file) svg_file->write(report_svg(result));
  return result.failure.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  ProgressLine line;
  const Ranks ranks;
  try {
    return run(argc, argv, ranks, line);
  } catch (const std::bad_alloc&) {
    line.clear();
    std::fputs("hcasim fabric: there is not enough memory\n", stderr);
  } catch (const std::exception& e) {
    line.clear();
    std::fprintf(stderr, "hcasim fabric: %s\n", e.what());
  }
  ranks.abort();
  return 1;
}
