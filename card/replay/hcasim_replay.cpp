// SPDX-License-Identifier: BSD-3-Clause
// hcasim-replay FILE: a recorded run of HCAs once more, without QEMU, checked against what was recorded.
// Exit status: 0 the same, 1 something was different, 2 not to be replayed.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "card/replay/replay.h"
#include "command/files.h"
#include "command/parse.h"

namespace {

// A damaged recording may hold anything where a text should be.
std::string plain(std::string text) {
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

int replay(const std::string& path, const hcasim::api::ReplayOptions& options, bool statistics) {
  using Clock = std::chrono::steady_clock;
  // Lives as long as the HCAs, whose host it is: to the end of the process.
  static hcasim::api::Replay run(options);
  std::string err;
  const auto began = Clock::now();
  const bool good = run.run(path, err);
  const double wall = std::chrono::duration<double>(Clock::now() - began).count();
  if (!good) {
    fmt::print(stderr, "hcasim-replay: {}\n", plain(err));
    return 2;
  }
  const double simulated = static_cast<double>(run.simulated() - run.began_at()) / 1e9;
  if (run.began_at() != 0)
    fmt::print("begins at {:.9f} s of simulated time\n", static_cast<double>(run.began_at()) / 1e9);
  fmt::print("{} events, {:.9f} s of simulated time in {:.3f} s: {:.0f} events/s, {:.3g} times as fast\n",
             run.events(), simulated, wall, static_cast<double>(run.events()) / wall, simulated / wall);
  if (statistics) {
    for (const std::string& json : run.statistics()) fmt::print("{}\n", json);
  }
  if (!run.early_end().empty()) fmt::print("the replay ends early: {}\n", plain(run.early_end()));
  if (!run.divergence().empty()) {
    fmt::print("NOT as recorded: {}\n", plain(run.divergence()));
    return 1;
  }
  fmt::print(
      "as recorded{}{}{}\n", run.early_end().empty() ? "" : ", so far",
      run.states() != 0 ? fmt::format("; {} state{} equal", run.states(), run.states() == 1 ? "" : "s") : "",
      run.compared() != 0
          ? fmt::format("; statistics of {} HCA{} equal", run.compared(), run.compared() == 1 ? "" : "s")
          : "");
  return 0;
}

int run(int argc, char** argv) {
  ::unsetenv("HCASIM_RULES_REPORT");  // which is for the recorded run
  CLI::App app{
      "Drives the model by a recording (option record=FILE of an HCA), and checks that it does the same.",
      "hcasim replay"};
  std::string path;
  hcasim::api::ReplayOptions options;
  bool statistics = false;
  app.add_option("FILE", path, "the recording")->required();
  app.add_option(
      "--trace", options.trace,
      "write the trace of the HCAs that had one, or of all: the same bytes if they had one file, no ring");
  app.add_option("--capture", options.capture, "likewise, what left and entered the ports (pcapng)");
  app.add_option("--until", options.until, "end at this simulated time, ns")
      ->check(hcasim::command::whole(0, INT64_MAX - 1));
  app.add_option("--stop-at", options.stop_at,
                 "end before the event of this number, as a difference names it")
      ->check(hcasim::command::whole());
  CLI::Option* const stop = app.get_option("--stop-at");
  app.add_option("--save", options.save,
                 "with --stop-at: write the state of the HCAs (hcasim state) before the first call from "
                 "there on; the event is named")
      ->needs(stop);
  CLI::Option* const from =
      app.add_option(
             "--from", options.from,
             "begin with the last state that the recording has until this simulated time, ns (record= "
             "with snapshot_every=)")
          ->check(hcasim::command::whole(0, INT64_MAX - 1));
  CLI::Option* const from_state =
      app.add_option("--from-state", options.from_state, "begin with a state that --save has written")
          ->excludes(from);
  app.add_option("--from-event", options.from_event, "the event that comes next then, as --save has named it")
      ->check(hcasim::command::whole())
      ->needs(from_state);
  app.add_option(
         "--reload", options.reload_every,
         "save and load the HCAs whenever so many events have passed, which must change nothing; 0: never")
      ->check(hcasim::command::whole());
  app.add_option("--trap", options.trap_at, "raise SIGTRAP before that event: a debugger stops there")
      ->check(hcasim::command::whole());
  app.add_option("--kernel", options.kernel, "the option kernel of all HCAs, in place of the recorded one")
      ->check(CLI::IsMember({"fast", "native"}))
      ->envname("HCASIM_KERNEL");
  app.add_flag("--log", options.echo_log, "print what the HCAs log");
  app.add_flag("--statistics", statistics, "print all counters at the end, a JSON object an HCA");
  if (const auto status = hcasim::command::parse(app, argc, argv)) return *status;
  if (const std::string wrong = hcasim::command::check_outputs(
          {{"--trace", options.trace}, {"--capture", options.capture}, {"--save", options.save}},
          {path, options.from_state});
      !wrong.empty()) {
    fmt::print(stderr, "hcasim-replay: {}\n", wrong);
    return hcasim::command::kUsageError;
  }
  return replay(path, options, statistics);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {  // the output cannot be written, or out of memory
    std::fprintf(stderr, "hcasim-replay: %s\n", e.what());
    return 2;
  }
}
