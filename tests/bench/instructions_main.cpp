// SPDX-License-Identifier: BSD-3-Clause
// Instructions in user mode that this process spends on a WQE, a line a path: what stays the same from
// machine to machine while rates do not. Posting, the model and the completion's poll are in it.
//
// Each path runs in processes of its own, so that none sees what another left in the allocator and in the
// caches of contexts. By the processor's counter one process counts `rounds` rounds after a warm-up. By
// valgrind, which counts a process from start to end, two processes run `rounds` and twice `rounds`, and the
// difference is the figure: start, set-up and warm-up are the same in both.
//
// The C library chooses its memcpy by the processor it finds, and valgrind shows it another than the
// machine's own: every process is told to leave the newest ones alone (kSameLibrary), or 64 KiB would cost a
// quarter less on some. Then both ways agree: a processor that steps through a path instruction by
// instruction (ptrace) takes within 0.3 % on four paths as many as valgrind says.
#include <fmt/format.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>

#include "command/parse.h"
#include "driver/bare/rules.h"
#include "instruction_count.h"
#include "workloads.h"

namespace {

using namespace hcasim::bare;
using namespace hcasim::bench;

constexpr double kTolerance = 5;  // %
constexpr int kSkipped = 77;      // exit status of --check if there is nothing to compare with
constexpr const char* kSameLibrary = "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-ERMS,-FSRM";
constexpr const char* kTableHead =
    R"(# SPDX-License-Identifier: BSD-3-Clause
# Instructions in user mode a WQE, written by `./hcasim bench instructions --update`. A test compares within 5 %, if the build is
# the one named here.
)";

struct Path {
  const char *name, *what;
  bool cable;  // two HCAs, not one that writes to itself
  std::size_t qps;
  unsigned batch;   // 64-byte inline WQEs a doorbell; 0: 64 KiB, kLargeBatch a doorbell
  unsigned rounds;  // that are measured; 64 KiB: whole areas, as the first page of each is like no other
};
constexpr Path kPaths[] = {
    {"inline_64B/1_QP", "64 B inline writes, 1 QP, 32 a doorbell", false, 1, kBatch, 256},
    {"inline_64B/64_QPs", "64 B inline writes, 64 QPs, 32 a doorbell", false, 64, kBatch, 8},
    {"inline_64B/lone", "64 B inline writes, 1 QP, one at a time", false, 1, 1, 2048},
    {"write_64KiB/cable", "64 KiB writes, to another HCA", true, 1, 0, 4 * kLargeRounds},
    {"write_64KiB", "64 KiB writes, of an HCA to itself", false, 1, 0, 4 * kLargeRounds},
};

std::size_t wqes(const Path& p) { return p.batch != 0 ? p.qps * p.batch : kLargeBatch; }  // in a round

std::string this_build() { return std::string(HCASIM_COMPILER) + ", " + HCASIM_BUILD; }

// ---- one process of a measurement ----

// Instructions of `rounds` rounds after the warm-up, by the processor's counter; without one 0.
template <class Round>
std::uint64_t measured(Round& round, unsigned rounds, InstructionCounter* counter) {
  if (counter) counter->start();
  for (unsigned i = 0; i < rounds; ++i) round();
  return counter ? counter->stop() : 0;
}

// Each with its driver, and idle.
std::vector<std::unique_ptr<Device>> start_virtuals(Machine& machine, Function& physical, Device& manager,
                                                    unsigned count) {
  std::vector<std::unique_ptr<Device>> devices;
  for (unsigned vf = 1; vf <= count; ++vf) {
    Mailbox in(hcasim::prm::op::ENABLE_HCA, hcasim::prm::enable_hca_in::bytes);
    manager.exec(in.set<hcasim::prm::enable_hca_in::function_id>(vf)).must();
    DeviceOptions o;
    o.wait_active = false;
    devices.push_back(std::make_unique<Device>(machine.add_virtual(physical, vf), o));
    devices.back()->probe();
  }
  return devices;
}

// Makes the HCAs of a path, the first with so many virtual functions, and runs it. Prints the count, if it is
// to count.
void run(const Path& path, unsigned rounds, bool count, unsigned virtuals) {
  std::optional<InstructionCounter> counter;
  if (count) counter.emplace();
  if (counter && !counter->why_not().empty()) throw BareError(counter->why_not());
  const RuleWatch watch;
  auto* machine = new Machine(std::size_t{128} << 20);  // stays, like the SystemC kernel
  const std::string vfs = virtuals != 0 ? ",vfs=" + std::to_string(virtuals) : std::string();
  std::vector<Function*> functions = {&machine->add_hca("link=ib,name=near" + vfs)};
  if (path.cable) functions.push_back(&machine->add_hca("link=ib,name=far,cable=near"));
  machine->start();
  std::vector<std::unique_ptr<Device>> devices;
  for (Function* f : functions) {
    DeviceOptions o;
    o.wait_active = false;  // a cable has carrier when both ends are there
    devices.push_back(std::make_unique<Device>(*f, o));
    devices.back()->probe();
  }
  const auto active = [&] {
    for (const auto& d : devices)
      if (d->port_state() != 4) return false;
    return true;
  };
  if (!machine->run_until(active, 10'000'000'000)) throw BareError("a port does not come up");
  const auto idle = start_virtuals(*machine, *functions.front(), *devices.front(), virtuals);
  std::uint64_t instructions = 0;
  if (path.batch != 0) {
    InlineWrites round(*devices.front(), path.qps, path.batch);
    instructions = measured(round, rounds, counter ? &*counter : nullptr);
  } else {
    LargeWrites round(*devices.front(), *devices.back());
    instructions = measured(round, rounds, counter ? &*counter : nullptr);
  }
  for (const auto& d : idle) d->teardown();
  for (unsigned vf = 1; vf <= virtuals; ++vf) {
    Mailbox in(hcasim::prm::op::DISABLE_HCA, hcasim::prm::disable_hca_in::bytes);
    devices.front()->exec(in.set<hcasim::prm::disable_hca_in::function_id>(vf)).must();
  }
  for (auto& d : devices) d->teardown();
  watch.must_be_none();
  std::cout << instructions << "\n";
}

// ---- all of it ----

enum class Source { kCounter, kValgrind };
const char* name_of(Source s) { return s == Source::kCounter ? "counter" : "valgrind"; }

double per_wqe(const Path& path, Source source, const std::string& self, unsigned virtuals) {
  const auto command = [&](unsigned rounds) {
    Command c;
    c.words = {self, "--run", path.name, "--rounds", std::to_string(rounds)};
    if (virtuals != 0) c.words.insert(c.words.end(), {"--virtuals", std::to_string(virtuals)});
    if (source == Source::kCounter) c.words.emplace_back("--count");
    c.environment = {kSameLibrary};
    return c;
  };
  std::uint64_t instructions = 0;
  if (source == Source::kCounter) {
    instructions = std::stoull(run_commands({command(path.rounds)}).front());
  } else {
    const auto once_and_twice = valgrind_instructions({command(path.rounds), command(2 * path.rounds)});
    if (once_and_twice[1] <= once_and_twice[0]) throw std::runtime_error("twice the rounds took no more");
    instructions = once_and_twice[1] - once_and_twice[0];
  }
  return static_cast<double>(instructions) / static_cast<double>(path.rounds * wqes(path));
}

// What is committed.
struct Table {
  std::string build, source;
  std::map<std::string, double> instructions;  // a WQE, by path
};

Table load(const std::string& file) {
  try {
    const toml::table t = toml::parse_file(file);
    Table table;
    table.build = t["build"].value_or("");
    table.source = t["source"].value_or("");
    const toml::table* paths = t["instructions"].as_table();
    if (table.build.empty() || !paths)
      throw std::runtime_error(file + ": build and [instructions] are needed");
    for (const auto& [key, value] : *paths) {
      const auto n = value.value<double>();
      if (!n || !(*n > 0))
        throw std::runtime_error(fmt::format("{}:{}: {}: a number above 0", file, value.source().begin.line,
                                             std::string(key.str())));
      table.instructions[std::string(key.str())] = *n;
    }
    return table;
  } catch (const toml::parse_error& e) {
    throw std::runtime_error(
        fmt::format("{}:{}: {}", file, e.source().begin.line, std::string(e.description())));
  }
}

void save(const std::string& file, const std::map<std::string, double>& figures, Source source) {
  std::ofstream out(file);
  out << kTableHead
      << fmt::format("build = \"{}\"\nsource = \"{}\"\n\n[instructions]\n", this_build(), name_of(source));
  for (const Path& p : kPaths) out << fmt::format("\"{}\" = {:.1f}\n", p.name, figures.at(p.name));
  if (!out.flush()) throw std::runtime_error("cannot write " + file);
}

struct Arguments {
  std::string table = HCASIM_INSTRUCTIONS, source = "auto", run;
  unsigned rounds = 1, virtuals = 0;
  bool update = false, check = false, count = false;
};

// Empty: none can count here, and `why` says it.
std::optional<Source> choose(const std::string& asked, std::string& why) {
  if (asked != "valgrind") {
    const InstructionCounter counter;
    if (counter.why_not().empty()) return Source::kCounter;
    why = "no counter of instructions (" + counter.why_not() + ")";
    if (asked == "counter") return std::nullopt;
  }
  if (has_valgrind()) return Source::kValgrind;
  why += std::string(why.empty() ? "" : ", ") + "no valgrind (apt-get install valgrind)";
  return std::nullopt;
}

// Prints the figures beside the committed ones, if these are of this build. Returns whether all are near.
bool report(const std::map<std::string, double>& figures, const std::optional<Table>& committed,
            Source source) {
  bool good = true;
  fmt::print("{:<42} {:>12}  {:<9} {:>10} {:>9}\n", "", "instructions", "source", "committed", "%");
  for (const Path& p : kPaths) {
    const double n = figures.at(p.name);
    std::string beside;
    if (committed && committed->instructions.count(p.name) == 0) {
      beside = fmt::format("{:>10} {:>9}  OFF", "none", "");
      good = false;
    } else if (committed) {
      const double was = committed->instructions.at(p.name), off = 100 * (n / was - 1);
      const bool near = std::fabs(off) <= kTolerance;
      beside = fmt::format("{:>10.1f} {:>+9.2f}{}", was, off, near ? "" : "  OFF");
      good &= near;
    }
    fmt::print("{:<42} {:>12.1f}  {:<9} {}\n", p.what, n, name_of(source), beside);
  }
  return good;
}

int compare(const Arguments& a, const std::string& self) {
  std::string why;
  std::optional<Table> committed;
  if (!a.update) {
    committed = load(a.table);
    if (committed->build != this_build()) {
      why = fmt::format("the committed figures are of another build: {}; this is {}", committed->build,
                        this_build());
      committed.reset();
      if (a.check) {
        fmt::print("skipped: {}\n", why);
        return kSkipped;
      }
      fmt::print("{}\n", why);
    }
  }
  const std::optional<Source> source = choose(a.source, why);
  if (!source) {
    fmt::print("{}: {}\n", a.check ? "skipped" : "nothing can count", why);
    return a.check ? kSkipped : 2;
  }
  std::map<std::string, double> figures;
  for (const Path& p : kPaths) figures[p.name] = per_wqe(p, *source, self, a.virtuals);
  const bool good = report(figures, committed, *source);
  if (a.update) {
    save(a.table, figures, *source);
    fmt::print("written: {}\n", a.table);
  } else if (!good) {
    fmt::print("More than {} % off. If that is meant: ./hcasim bench instructions --update\n", kTolerance);
  }
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Instructions in user mode a WQE, a line a path, beside the committed figures. Exit status 1 if one is "
      "more than 5 % off.",
      "hcasim bench instructions");
  Arguments a;
  app.add_option("--table", a.table, "the committed figures");
  app.add_option("--source", a.source, "who counts: the processor's counter, else valgrind")
      ->check(CLI::IsMember({"auto", "counter", "valgrind"}));
  app.add_flag("--update", a.update, "write the figures to the table");
  app.add_flag("--check", a.check,
               "as a test: exit status 77 if the table is of another build, or nothing here can count");
  app.add_option("--virtuals", a.virtuals,
                 "the card has so many virtual functions, each with its driver, idle")
      ->check(CLI::Range(0, 127))
      ->excludes("--update");
  std::vector<std::string> names;
  for (const Path& p : kPaths) names.emplace_back(p.name);
  app.add_option("--run", a.run, "only run this path, and print nothing but a count")
      ->check(CLI::IsMember(names))
      ->group("What it starts itself with");
  app.add_option("--rounds", a.rounds, "rounds of --run")->group("What it starts itself with");
  app.add_flag("--count", a.count, "--run counts by the processor's counter")
      ->group("What it starts itself with");
  if (const auto status = hcasim::command::parse(app, argc, argv)) return *status;
  try {
    if (a.run.empty()) return compare(a, std::filesystem::read_symlink("/proc/self/exe").string());
    for (const Path& p : kPaths)
      if (a.run == p.name) run(p, a.rounds, a.count, a.virtuals);
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "bench instructions: " << e.what() << "\n";
    return 2;
  }
}
