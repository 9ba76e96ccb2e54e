// SPDX-License-Identifier: BSD-3-Clause
// `./hcasim bench timing`: perftest's figures in simulated time: beside the published ones, or any by
// themselves.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <map>
#include <thread>

#include "chart/output_file.h"
#include "command/files.h"
#include "command/parse.h"
#include "driver/bare/machine.h"
#include "fit.h"
#include "perftest.h"
#include "profile_export.h"
#include "report.h"

namespace {

using namespace hcasim::bench;
using hcasim::timing::Result;
using hcasim::timing::Setup;
using hcasim::timing::SetupError;

struct Arguments {
  std::vector<std::string> sets, sweeps, rows;
  std::vector<std::string> over;
  std::string published = HCASIM_PUBLISHED, json, csv, svg, exported, fit, out;
  std::vector<std::pair<std::string, std::string>> keys;  // --size 8 and the like, as given
  unsigned jobs = 1;
  bool list = false, perftest = false;
  std::map<std::string, hcasim::chart::OutputFile> files;  // that are written, opened before the measurements

  // Whether `key` has one value for all, as --KEY VALUE or --set KEY=VALUE.
  bool gives(const std::string& key) const {
    return std::any_of(keys.begin(), keys.end(), [&](const auto& k) { return k.first == key; }) ||
           std::any_of(sets.begin(), sets.end(), [&](const auto& s) { return s.rfind(key + "=", 0) == 0; });
  }
  // The published rows have patterns and sizes of their own; other keys of --set are for all of them.
  bool one_measurement() const {
    return !sweeps.empty() || gives("pattern") || gives("size") ||
           std::any_of(keys.begin(), keys.end(), [](const auto& k) { return k.first != "profile"; });
  }
};

// A key has one value or one list of them: of two, one would go unseen. Throws SetupError.
void check_keys(const Arguments& a) {
  std::map<std::string, std::string> given;  // key: as it was given
  const auto take = [&](const std::string& key, const std::string& text) {
    const auto [first, is_new] = given.try_emplace(key, text);
    if (!is_new) throw SetupError(first->second + " and " + text + " both say what " + key + " is: give one");
  };
  for (const auto& [key, value] : a.keys) take(key, "--" + key + " " + value);
  for (const std::string& pair : a.sets) take(pair.substr(0, pair.find('=')), "--set " + pair);
  for (const std::string& pair : a.sweeps) take(pair.substr(0, pair.find('=')), "--sweep " + pair);
}

// Before anything is measured or opened: throws SetupError.
void check_files(const Arguments& a) {
  std::vector<std::string> read{a.published, a.fit};
  for (const auto& [key, value] : a.keys)
    if (key == "profile") read.push_back(value);
  for (const std::vector<std::string>* const pairs : {&a.sets, &a.sweeps})
    for (const std::string& pair : *pairs)
      if (pair.rfind("profile=", 0) == 0)
        for (const std::string& file : CLI::detail::split(pair.substr(8), ',')) read.push_back(file);
  const std::string wrong = hcasim::command::check_outputs(
      {{"--json", a.json}, {"--csv", a.csv}, {"--svg", a.svg}, {"--out", a.out}}, read);
  if (!wrong.empty()) throw SetupError(wrong);
}

void open_files(Arguments& a) {
  for (const std::string& file : {a.json, a.csv, a.svg, a.out})
    if (!file.empty() && file != "-") a.files.try_emplace(file, file);
}

void write(Arguments& a, const std::string& file, const std::string& text) {
  if (file == "-")
    std::cout << text;
  else
    a.files.at(file).write(text);
}

// A file's name need not be UTF-8.
template <class Json>
std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// How far it has got, where somebody sees it.
class Progress {
 public:
  explicit Progress(std::size_t all) : all_(all), shown_(isatty(2) != 0 && all > 1) { show(); }
  ~Progress() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }
  void step() {
    ++done_;
    show();
  }

 private:
  void show() const {
    if (shown_) std::fprintf(stderr, "\r%zu of %zu measurements", done_, all_);
  }
  const std::size_t all_;
  std::size_t done_ = 0;
  const bool shown_;
};

std::vector<Result> measured(const std::vector<Setup>& setups, unsigned jobs) {
  Progress progress(setups.size());
  return measure_all(setups, jobs, [&](std::size_t) { progress.step(); });
}

bool compare(Arguments& a) {
  std::vector<PublishedRow> rows = load_published(a.published);
  if (!a.rows.empty()) {
    std::string ids;
    for (const PublishedRow& row : rows) ids += (ids.empty() ? "" : ", ") + row.id;
    for (const std::string& id : a.rows) {
      if (std::none_of(rows.begin(), rows.end(), [&](const PublishedRow& r) { return r.id == id; }))
        throw SetupError("there is no row " + id + "; there are " + ids);
    }
    rows.erase(std::remove_if(rows.begin(), rows.end(),
                              [&](const PublishedRow& r) {
                                return std::find(a.rows.begin(), a.rows.end(), r.id) == a.rows.end();
                              }),
               rows.end());
  }
  std::vector<Setup> all;
  for (PublishedRow& row : rows) {
    for (Setup& s : row.measurements) {
      for (const auto& [key, value] : a.keys) s.set(key, value);  // --profile
      for (const std::string& pair : a.sets) s.set(pair);
      all.push_back(s);
    }
  }
  open_files(a);
  const Comparison table(std::move(rows), measured(all, a.jobs));
  if (a.csv != "-" && a.json != "-") std::cout << table.text();
  if (!a.csv.empty()) write(a, a.csv, table.csv());
  if (!a.json.empty()) write(a, a.json, json_text(table.json()));
  return table.good();
}

Setup base_of(const Arguments& a) {
  Setup setup;
  for (const auto& [key, value] : a.keys) setup.set(key, value);
  for (const std::string& pair : a.sets) setup.set(pair);
  return setup;
}

void run(Grid& grid, Arguments& a) {
  if (!a.svg.empty()) (void)grid.x_key();
  open_files(a);
  grid.results = measured(grid.setups(), a.jobs);
  if (a.perftest) {
    std::cout << perftest_text(grid.setups(), grid.results);
  } else if (a.csv != "-" && a.json != "-" && a.svg != "-") {
    std::cout << grid.heading();
    for (std::size_t i = 0; i < grid.setups().size(); ++i) std::cout << grid.line(i);
  }
  if (!a.csv.empty()) write(a, a.csv, grid.csv());
  if (!a.json.empty()) write(a, a.json, json_text(grid.json()));
  if (!a.svg.empty()) write(a, a.svg, svg(grid.charts()));
}

// A pattern over size, or without one latency and bandwidth of those there are.
void plot(Arguments& a) {
  const Setup base = base_of(a);
  if (base.atomic()) throw SetupError("--svg: atomics have one size: give --sweep");
  if (a.gives("size")) throw SetupError("--svg plots over size: give no size, or --sweep of something else");
  // Of several messages at a time there is no latency.
  const std::string all =
      std::string(base.several() ? "" : "write_lat,send_lat,read_lat,") + "write_bw,send_bw,read_bw";
  Grid grid(base, {base.udp() ? "size=2,8,32,128,256,512,1024,1472"
                              : "size=2,8,32,128,512,2K,4K,8K,16K,32K,64K,256K,1M",
                   "pattern=" + (a.gives("pattern") ? base.pattern() : all)});
  run(grid, a);
}

// A profile fitted to a file of measured figures.
void fit_to(Arguments& a) {
  Setup base;
  bool profile = false;
  for (const auto& [key, value] : a.keys) {
    base.set(key, value);
    profile = profile || key == "profile";
  }
  std::vector<std::string> set;  // of the profile
  for (const std::string& pair : a.sets) {
    if (pair.find('.') < pair.find('='))
      set.push_back(pair);
    else
      base.set(pair);
  }
  const bool rows = a.fit.size() > 5 && a.fit.compare(a.fit.size() - 5, 5, ".toml") == 0;
  if (rows && (a.keys.size() > (profile ? 1 : 0) || set.size() < a.sets.size()))
    throw SetupError("--fit: the rows of " + a.fit +
                     " say how they are measured; beside it go --profile and --set SECTION.KEY=VALUE");
  const Measured measured = load_measured(a.fit, base, profile);
  for (const std::string& n : measured.notes) std::cerr << n << "\n";
  open_files(a);
  const bool seen = isatty(2) != 0;
  FitProgress progress;
  progress.round = [&](unsigned round, double rms) {
    std::fprintf(stderr, "%sround %u: root mean square of error / standard deviation %.2f\n",
                 seen ? "\r\033[K" : "", round, rms);
  };
  progress.measured = [&](std::size_t done, std::size_t all) {
    if (seen) std::fprintf(stderr, "\r\033[K%zu of %zu measurements", done, all);
    if (seen && done == all) std::fputs("\r\033[K", stderr);
  };
  const Fit found = fit(measured, a.over, set, HCASIM_PROFILES, a.jobs, progress);
  if (a.json != "-") std::cout << text(found);
  if (!a.json.empty()) write(a, a.json, json_text(json(found)));
  if (a.out.empty()) return;
  const std::string name = a.out.substr(a.out.rfind('/') + 1);
  write(a, a.out, fitted_profile(found, HCASIM_PROFILES, name.substr(0, name.find(".toml"))));
}

void list(const Arguments& a) {
  std::cout << "What a measurement can be told, --KEY VALUE, --set KEY=VALUE or --sweep KEY=A,B,C:\n";
  for (const auto& key : hcasim::timing::setup_keys())
    std::printf("  %-12s %s  [%s]\n", key.name, key.help, key.allowed);
  const Setup base = base_of(a);
  std::string options = "name=list,profile=" + base.profile;
  for (const std::string& p : base.parameters) options += "," + p;
  hcasim::bare::Machine machine(std::size_t{64} << 20);
  auto& function = machine.add_hca(options);
  const hca_pci_identity card = hca_get_pci_identity(function.handle());
  std::printf("\nProfile %s: generation %s (15b3:%04x): what the card says it is and offers; no time.\n",
              base.profile.c_str(), card.generation, card.device_id);
  std::printf("\nParameters of profile %s, --set SECTION.KEY=VALUE:\n", base.profile.c_str());
  for (unsigned i = 0; i < hca_parameter_count(); ++i)
    std::printf("  %-32s %g\n", hca_parameter_name(i), function.parameter(hca_parameter_name(i)));
  std::cout << "\nPublished figures, --row ID:\n";
  for (const PublishedRow& row : load_published(a.published)) {
    std::printf("  %-6s %s: %s (%s)\n", row.id.c_str(), row.setup.c_str(), row.figure().c_str(),
                row.source.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "perftest's figures in simulated time. Without a pattern: the published figures, what is simulated for "
      "each,\n"
      "and whether it is within its tolerance (exit status 1 if one is not). With one: that measurement, or "
      "a grid.",
      "hcasim bench timing");
  Arguments a;
  a.jobs = std::max(1u, std::thread::hardware_concurrency());
  app.add_option("--set", a.sets,
                 "KEY=VALUE: of the measurement (--list), or SECTION.KEY=VALUE of the profile; repeatable")
      ->allow_extra_args(false);
  app.add_option("--sweep", a.sweeps,
                 "KEY=A,B,C: one measurement for each value; repeated: for each combination")
      ->allow_extra_args(false);
  app.add_option("--row", a.rows, "only this row of the published figures; repeatable")
      ->allow_extra_args(false);
  app.add_option("--json", a.json, "file for the results as JSON, with counters; - is standard output");
  app.add_option("--csv", a.csv, "file for the results as CSV; - is standard output");
  app.add_option(
      "--svg", a.svg,
      "file for a plot: of the sweep, or of the pattern (without: latency and bandwidth) over size");
  app.add_option("--published", a.published, "table of published figures")->check(CLI::ExistingFile);
  app.add_option("--jobs", a.jobs, "measurements at a time")->check(CLI::Range(1, 256));
  app.add_option(
         "--fit", a.fit,
         "file of measured figures, to which a profile is fitted: perftest's output as it is printed, or "
         "rows as in published.toml (*.toml)")
      ->check(CLI::ExistingFile);
  app.add_option("--over", a.over, "SECTION.KEY,...: the parameters that --fit fits; without: the usual ones")
      ->delimiter(',')
      ->needs("--fit");
  app.add_option("--out", a.out, "file for the fitted profile, which --profile takes; NAME.toml")
      ->needs("--fit");
  app.add_flag("--perftest", a.perftest, "print measurements as perftest does");
  app.add_flag("--list", a.list, "keys, the profile's parameters and the published figures");
  app.add_option("--export", a.exported, "the profile, each field with its unit and what it is known from")
      ->check(CLI::IsMember({"json", "csv"}));
  for (const auto& key : hcasim::timing::setup_keys()) {
    app.add_option_function<std::string>(
           std::string("--") + key.name,
           [&a, name = key.name](const std::string& value) { a.keys.emplace_back(name, value); },
           std::string(key.help) + " [" + key.allowed + "]")
        ->type_name("")
        ->group("The measurement");
  }
  app.footer(
      "Examples:\n"
      "  ./hcasim bench timing --pattern write_lat --size 64 --set pcie.read_latency_ns=600\n"
      "  ./hcasim bench timing --pattern read_bw --sweep size=4K,64K,1M --sweep reads=1,4,16 --csv read.csv\n"
      "  ./hcasim bench timing --profile connectx5-edr --link ib --svg sizes.svg\n"
      "  ./hcasim bench timing --profile connectx5-edr --fit ib_write_lat.txt --over "
      "pcie.read_latency_ns,engine.gather_page_ns --out mine.toml");
  if (const auto status = hcasim::command::parse(app, argc, argv)) return *status;
  try {
    check_keys(a);
    check_files(a);
    if (a.list) {
      list(a);
      return 0;
    }
    if (!a.exported.empty()) {
      const Setup setup = base_of(a);
      std::cout << export_profile(setup.profile, HCASIM_PROFILES, setup.parameters, a.exported);
      return 0;
    }
    if (!a.fit.empty()) {
      if (!a.sweeps.empty() || !a.rows.empty() || !a.csv.empty() || !a.svg.empty() || a.perftest)
        throw SetupError(
            "--fit goes with --over, --out, --set, --json, --jobs and keys of the measurement only");
      if (!a.out.empty() && (a.out.size() < 6 || a.out.compare(a.out.size() - 5, 5, ".toml") != 0))
        throw SetupError("--out " + a.out + ": a profile's file is named NAME.toml");
      fit_to(a);
      return 0;
    }
    if (!a.rows.empty() && (a.one_measurement() || !a.svg.empty()))
      throw SetupError("--row is of the published figures, and goes with --set only");
    if (!a.svg.empty() && a.sweeps.empty()) {
      plot(a);
      return 0;
    }
    if (a.perftest && !a.one_measurement())
      throw SetupError("--perftest: of what is measured: give --pattern");
    if (!a.one_measurement()) return compare(a) ? 0 : 1;
    Grid grid(base_of(a), a.sweeps);
    run(grid, a);
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "hcasim bench timing: " << e.what() << "\n";
    return 2;
  }
}
