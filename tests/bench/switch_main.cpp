// SPDX-License-Identifier: BSD-3-Clause
// `./hcasim bench switch`: HCAs on one modelled switch in one process, each writing to each other one; how
// its cost grows, and that two runs are the same. Few HCAs do it more often, each time to other memory, so
// that each number of HCAs writes to as much of it: what a packet costs then tells of the model, and not of
// whose memory the processor's caches hold. (--own-memory: as much as each number of HCAs takes for once.)
// Beside it stands what the same copies take by themselves, which no model could do without.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "all_to_all.h"
#include "chart/output_file.h"
#include "command/parse.h"
#include "driver/bare/rules.h"
#include "plot.h"

namespace {

using hcasim::bare::AllToAll;
using hcasim::bare::AllToAllOptions;
using nlohmann::json;

// One size, in this process; a line of JSON.
int run_one(const AllToAllOptions& options, unsigned writes, unsigned rounds) {
  try {
    const hcasim::bare::RuleWatch watch;
    AllToAll fabric(options);
    fabric.run(writes);  // caches, pools
    fabric.clear();
    const std::uint64_t packets = fabric.packets();
    const std::int64_t simulated = fabric.now();
    const auto start = std::chrono::steady_clock::now();
    std::size_t done = 0;
    for (unsigned round = 0; round < rounds; ++round) done += fabric.run(writes);
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    fabric.check();
    const auto copy_start = std::chrono::steady_clock::now();
    for (unsigned round = 0; round < rounds; ++round) fabric.copy(writes);
    const std::chrono::duration<double> copies = std::chrono::steady_clock::now() - copy_start;
    watch.must_be_none();
    std::cout << json{{"hcas", options.hcas},
                      {"times", rounds},
                      {"writes", done / rounds},
                      {"packets", static_cast<double>(fabric.packets() - packets) / rounds},
                      {"simulated_us", static_cast<double>(fabric.now() - simulated) / 1000 / rounds},
                      {"wall_s", wall.count() / rounds},
                      {"copy_s", copies.count() / rounds},
                      {"digest", fabric.digest()}}
              << std::endl;
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "bench switch: " << options.hcas << " HCAs: " << e.what() << "\n";
    return 1;
  }
}

// HCAs cannot be added once time has started, so each size has a process of its own.
json run_apart(const std::string& arguments) {
  const std::string command = "'/proc/" + std::to_string(getpid()) + "/exe' " + arguments;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (!pipe) throw std::runtime_error("cannot run " + command);
  std::string text;
  std::array<char, 512> part;
  while (std::fgets(part.data(), part.size(), pipe.get())) text += part.data();
  const json answer = json::parse(text, nullptr, false);
  if (answer.is_discarded()) throw std::runtime_error("no result from " + command);
  return answer;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("HCAs on one modelled switch, all to all", "hcasim bench switch");
  std::vector<std::size_t> sizes{2, 4, 8, 16, 32, 64};
  AllToAllOptions options;
  std::string link = "eth", svg;
  unsigned writes = 2, rounds = 1;
  std::size_t one = 0;
  bool as_json = false, own_memory = false;
  app.add_option("--hcas", sizes, "numbers of HCAs, 2 to 64")->delimiter(',')->check(CLI::Range(2, 64));
  app.add_option("--link", link, "eth or ib")->check(CLI::IsMember({"eth", "ib"}));
  app.add_option("--bytes", options.bytes, "of each write")->check(CLI::Range(1, 1 << 20));
  app.add_option("--writes", writes, "of each HCA to each other one")->check(CLI::Range(1, 16));
  app.add_option("--profile", options.profile, "timing profile of the HCAs and the switch");
  app.add_option("--svg", svg, "file for a plot of wall time over packets");
  app.add_flag("--json", as_json, "results as JSON");
  app.add_flag("--own-memory", own_memory, "each number of HCAs writes once, to so much less memory");
  app.add_option("--one", one, "this number of HCAs, in this process")->group("");
  app.add_option("--rounds", rounds, "so many times")->group("");
  if (const auto status = hcasim::command::parse(app, argc, argv)) return *status;
  options.ethernet = link == "eth";
  if (one != 0) {
    options.hcas = one;
    options.areas = rounds = std::max(1u, rounds);
    return run_one(options, writes, rounds);
  }
  try {
    std::optional<hcasim::chart::OutputFile> file;
    if (!svg.empty()) file.emplace(svg);
    json all = json::array();
    hcasim::bench::Plot plot{"Writes of all to all, " + std::to_string(options.bytes) + " B, link=" + link,
                             "packets",
                             "wall time, s",
                             {}};
    if (!as_json)
      std::printf("%6s %8s %9s %14s %9s %14s %14s  %s\n", "HCAs", "writes", "packets", "simulated us",
                  "wall s", "wall ns/packet", "memcpy of it", "two runs");
    bool same = true;
    const std::size_t most = *std::max_element(sizes.begin(), sizes.end());
    for (const std::size_t n : sizes) {
      const std::size_t often = own_memory ? 1 : most * (most - 1) / (n * (n - 1));
      const std::string arguments = "--one " + std::to_string(n) + " --link " + link + " --bytes " +
                                    std::to_string(options.bytes) + " --writes " + std::to_string(writes) +
                                    " --rounds " + std::to_string(often) + " --profile '" + options.profile +
                                    "'";
      json first = run_apart(arguments);
      const json second = run_apart(arguments);
      const bool equal = first["digest"] == second["digest"];
      same = same && equal;
      const double wall = std::min(first["wall_s"].get<double>(), second["wall_s"].get<double>()),
                   copy = std::min(first["copy_s"].get<double>(), second["copy_s"].get<double>()),
                   packets = first["packets"];
      first["wall_s"] = wall;
      first["copy_s"] = copy;
      first["same"] = equal;
      plot.points.emplace_back(packets, wall);
      if (!as_json) {
        std::printf("%6zu %8zu %9.0f %14.1f %9.3f %14.0f %14.0f  %s\n", n, first["writes"].get<std::size_t>(),
                    packets, first["simulated_us"].get<double>(), wall, wall * 1e9 / packets,
                    copy * 1e9 / packets, equal ? "same" : "DIFFER");
        std::fflush(stdout);
      }
      all.push_back(std::move(first));
    }
    if (as_json) std::cout << all.dump(2) << "\n";
    if (file) file->write(hcasim::bench::svg(plot));
    return same ? 0 : 1;
  } catch (const std::exception& e) {
    std::cerr << "bench switch: " << e.what() << "\n";
    return 1;
  }
}
