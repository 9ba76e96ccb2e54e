// SPDX-License-Identifier: BSD-3-Clause
// Speed of the model alone: WQEs and bytes per second of wall time, activations per WQE, the cost of
// tracing, and what the model says that lone operations take. Ends with a table of all of it.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "compare.h"
#include "driver/bare/rules.h"
#include "workloads.h"

namespace {

using namespace hcasim::bare;

constexpr const char* kWindow = "0";  // ns: each event on its own

enum { kPlain, kTraced, kExact, kUntimed, kNear, kFar, kDevices };  // exact: each event on its own
Device* g_device[kDevices];
std::map<std::string, double> g_result;

// The same bytes, moved by the CPU.
class Copies {
 public:
  explicit Copies(Device& device)
      : from_(device.memory().allocate(kArea)), to_(device.memory().allocate(kArea)) {
    std::memcpy(to_.data(), from_.data(), kArea);
  }
  void operator()() {
    for (unsigned i = 0; i < kLargeBatch; ++i) {
      std::memcpy(to_.data() + off_, from_.data() + off_, kLarge);
      off_ = (off_ + kLarge) % kArea;
    }
    benchmark::ClobberMemory();
  }

 private:
  Buffer from_, to_;
  std::size_t off_ = 0;
};

void inline_writes(benchmark::State& state, Device& device, std::size_t qps, unsigned batch,
                   const std::string& name) {
  InlineWrites round(device, qps, batch);
  const std::uint64_t activations = hca_sim_activations(), turns = hca_sim_turns();
  const std::int64_t t0 = device.machine().now();
  std::uint64_t wqes = 0;
  for (auto _ : state) {
    round();
    wqes += round.wqes();
  }
  const double n = static_cast<double>(wqes);
  state.SetItemsProcessed(static_cast<std::int64_t>(wqes));
  const double per_wqe = static_cast<double>(hca_sim_activations() - activations) / n;
  state.counters["activations/WQE"] = per_wqe;
  state.counters["turns/WQE"] = static_cast<double>(hca_sim_turns() - turns) / n;
  state.counters["simulated_ns/WQE"] = static_cast<double>(device.machine().now() - t0) / n;
  state.counters["WQE/s"] = benchmark::Counter(n, benchmark::Counter::kIsRate);
  g_result[name + ".activations"] = per_wqe;
  g_result[name + ".turns"] = state.counters["turns/WQE"];
}

void large_writes(benchmark::State& state, Device& device, Device& peer) {
  LargeWrites round(device, peer);
  std::int64_t bytes = 0;
  const std::uint64_t activations = hca_sim_activations(), turns = hca_sim_turns();
  for (auto _ : state) {
    round();
    bytes += kLargeBatch * kLarge;
  }
  const double n = static_cast<double>(bytes) / kLarge;
  state.SetBytesProcessed(bytes);
  state.counters["activations/WQE"] = static_cast<double>(hca_sim_activations() - activations) / n;
  state.counters["turns/WQE"] = static_cast<double>(hca_sim_turns() - turns) / n;
}

void plain_memcpy(benchmark::State& state) {
  Copies round(*g_device[kPlain]);
  std::int64_t bytes = 0;
  for (auto _ : state) {
    round();
    bytes += kLargeBatch * kLarge;
  }
  state.SetBytesProcessed(bytes);
}

// The default profile with every time at zero and every link at its fastest, in a file: what is left is the
// model's function.
std::string untimed_profile(const std::filesystem::path& file) {
  std::ifstream in(std::string(HCASIM_PROFILE_DIR) + "/default.toml");
  std::ofstream out(file);
  for (std::string line; std::getline(in, line);) {
    const std::string key = line.substr(0, line.find_first_of(" ="));
    if (key.size() > 3 && key.compare(key.size() - 3, 3, "_ns") == 0 && key != "batch_window_ns")
      line = key + " = 0";
    if (key == "rate_gbps") line = key + " = 3200";
    if (key == "generation" && line.find('"') == line.npos) line = key + " = 5";
    out << line << "\n";
  }
  if (!in.eof() || !out.flush()) throw BareError("cannot write " + file.string());
  return file.string();
}

struct Ratios {
  double traced = 0, traced_all = 0, untimed = 0, untimed_large = 0, copied = 0, cable = 0;
};

Ratios compare() {
  using hcasim::bench::slowdown;
  InlineWrites plain(*g_device[kPlain], 1, kBatch), traced(*g_device[kTraced], 1, kBatch),
      untimed(*g_device[kUntimed], 1, kBatch);
  LargeWrites large(*g_device[kPlain], *g_device[kPlain]), cable(*g_device[kNear], *g_device[kFar]),
      untimed_large(*g_device[kUntimed], *g_device[kUntimed]);
  Copies copies(*g_device[kPlain]);
  const auto of = [](auto& round) { return [&round] { round(); }; };
  Ratios r;
  const auto tracing = slowdown(of(plain), of(traced));
  r.traced = tracing.own;
  r.traced_all = tracing.all;
  r.untimed = slowdown(of(untimed), of(plain)).own;
  r.untimed_large = slowdown(of(untimed_large), of(large)).own;
  r.copied = 1 / slowdown(of(copies), of(large)).own;
  r.cable = 1 / slowdown(of(copies), of(cable)).own;
  return r;
}

// Keeps what the table at the end needs beside the usual output.
class Collect : public benchmark::ConsoleReporter {
 public:
  using ConsoleReporter::ConsoleReporter;
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& r : runs) {
      for (const char* c : {"items_per_second", "bytes_per_second"}) {
        const auto it = r.counters.find(c);  // one that failed has none
        if (it != r.counters.end()) g_result[r.run_name.function_name] = it->second;
      }
    }
    ConsoleReporter::ReportRuns(runs);
  }
};

void row(const char* what, const std::string& value, const std::string& beside = "") {
  std::printf("%-48s %14s   %s\n", what, value.c_str(), beside.c_str());
}

std::string number(double v, const char* unit, double scale = 1) {
  if (v == 0) return "-";
  char buf[64];
  std::snprintf(buf, sizeof buf, "%.2f %s", v / scale, unit);
  return buf;
}

void table(const Latencies& l, const Ratios& r) {
  const auto at = [](const char* name) { return g_result.count(name) ? g_result[name] : 0; };
  std::printf("\n%-48s %14s\n", "hcasim bench", "");
  std::printf("%s\n", std::string(84, '-').c_str());
  const double one = at("inline_64B/1_QP"), many = at("inline_64B/64_QPs"), lone = at("inline_64B/lone");
  row("64 B inline writes, 1 QP, 32 a doorbell", number(one, "M WQE/s", 1e6), "aim: 4");
  row("64 B inline writes, 64 QPs, 32 a doorbell", number(many, "M WQE/s", 1e6), "aim: 4");
  row("64 B inline writes, 1 QP, one at a time", number(lone, "M WQE/s", 1e6));
  row("activations of the model per WQE, one at a time", number(at("inline_64B/lone.activations"), ""),
      "aim: 3; turns of blocks: " + number(at("inline_64B/lone.turns"), ""));
  row("activations of the model per WQE, batch of 32", number(at("inline_64B/1_QP.activations"), ""),
      "aim: 0.5; turns of blocks: " + number(at("inline_64B/1_QP.turns"), ""));
  row("64 B inline writes, 1 QP, batch_window_ns=0", number(at("inline_64B/1_QP/exact"), "M WQE/s", 1e6),
      number(at("inline_64B/1_QP/exact.turns"), "turns per WQE"));
  row("64 KiB writes, to another HCA", number(at("write_64KiB/cable"), "GB/s", 1e9));
  row("64 KiB writes, of an HCA to itself", number(at("write_64KiB"), "GB/s", 1e9),
      "memcpy: " + number(at("memcpy_64KiB"), "GB/s", 1e9));
  row("64 B inline writes, 1 QP, tracing on", number(at("inline_64B/1_QP/traced"), "M WQE/s", 1e6));
  std::printf("\nBoth in turns, medians:\n");
  row("64 KiB writes / memcpy, to another HCA", number(r.cable, "x"), "aim: 0.7");
  row("64 KiB writes / memcpy, of an HCA to itself", number(r.copied, "x"), "aim: 0.6");
  row("Tracing on / off, time", number(r.traced, "x"),
      "with the time of the thread that writes: " + number(r.traced_all, "x") + "  aim: 1.15");
  row("Timed / all delays zero, time, 64 B inline", number(r.untimed, "x"), "aim: 1.5");
  row("Timed / all delays zero, time, 64 KiB", number(r.untimed_large, "x"), "aim: 1.5");
  std::printf("\nSimulated, doorbell to visible completion:\n");
  row("RDMA WRITE 64 B inline, to the receiver's memory", std::to_string(l.write64_landed) + " ns");
  row("RDMA WRITE 64 B inline", std::to_string(l.write64) + " ns");
  row("RDMA WRITE 4 KiB", std::to_string(l.write4k) + " ns");
  row("RDMA READ 64 B", std::to_string(l.read64) + " ns");
  row("RDMA READ 4 KiB", std::to_string(l.read4k) + " ns");
  row("FETCH_ADD", std::to_string(l.atomic) + " ns");
  row("SEND 64 B inline, to the receiver's completion", std::to_string(l.send64) + " ns");
}

}  // namespace

int main(int argc, char** argv) {
  std::string options;  // --hca=KEY=VALUE,...: of hca_create(), for all HCAs
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--hca=", 6) != 0) continue;
    options = std::string(",") + (argv[i] + 6);
    std::copy(argv + i + 1, argv + argc, argv + i);
    --argc;
    --i;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const auto file = std::filesystem::temp_directory_path() / ("hcasim-bench-" + std::to_string(::getpid()));
  const auto trace = file.string() + ".trace", untimed_toml = file.string() + ".toml";
  int status = 0;
  try {
    const RuleWatch watch;
    auto* machine = new Machine(std::size_t{512} << 20);  // stays, like the SystemC kernel
    Function& plain = machine->add_hca("link=ib,name=plain" + options);
    Function& traced = machine->add_hca("link=ib,name=traced,trace=" + trace + options);
    Function& exact = machine->add_hca("link=ib,name=exact" + options + ",batch_window_ns=" + kWindow);
    Function& untimed = machine->add_hca("link=ib,name=untimed,profile=" + untimed_profile(untimed_toml));
    Function& near = machine->add_hca("link=ib,name=near" + options);
    Function& far = machine->add_hca("link=ib,name=far,cable=near" + options);
    machine->start();
    std::vector<std::unique_ptr<Device>> devices;
    for (Function* f : {&plain, &traced, &exact, &untimed, &near, &far}) {
      DeviceOptions o;
      o.wait_active = f != &near && f != &far;  // a cable has carrier when both ends are there
      devices.push_back(std::make_unique<Device>(*f, o));
      devices.back()->probe();
      g_device[devices.size() - 1] = devices.back().get();
    }
    const auto active = [](int device) { return g_device[device]->port_state() == 4; };
    if (!machine->run_until([&] { return active(kNear) && active(kFar); }, 10'000'000'000))
      throw BareError("the cable has no carrier");
    struct Case {
      const char* name;
      int device;
      std::size_t qps;
      unsigned batch;
    };
    for (const Case c :
         {Case{"inline_64B/1_QP", kPlain, 1, kBatch}, Case{"inline_64B/64_QPs", kPlain, 64, kBatch},
          Case{"inline_64B/lone", kPlain, 1, 1}, Case{"inline_64B/1_QP/traced", kTraced, 1, kBatch},
          Case{"inline_64B/1_QP/exact", kExact, 1, kBatch}})
      benchmark::RegisterBenchmark(c.name, [c](benchmark::State& s) {
        inline_writes(s, *g_device[c.device], c.qps, c.batch, c.name);
      });
    benchmark::RegisterBenchmark("inline_64B/1_QP/untimed", [](benchmark::State& s) {
      inline_writes(s, *g_device[kUntimed], 1, kBatch, "inline_64B/1_QP/untimed");
    });
    benchmark::RegisterBenchmark("write_64KiB/untimed", [](benchmark::State& s) {
      large_writes(s, *g_device[kUntimed], *g_device[kUntimed]);
    });
    benchmark::RegisterBenchmark(
        "write_64KiB/cable", [](benchmark::State& s) { large_writes(s, *g_device[kNear], *g_device[kFar]); });
    benchmark::RegisterBenchmark(
        "write_64KiB", [](benchmark::State& s) { large_writes(s, *g_device[kPlain], *g_device[kPlain]); });
    benchmark::RegisterBenchmark("memcpy_64KiB", [](benchmark::State& s) { plain_memcpy(s); });
    const std::string filter = benchmark::GetBenchmarkFilter();
    const bool whole = filter.empty() || filter == "." || filter == "all";
    Collect reporter(isatty(1) ? benchmark::ConsoleReporter::OO_Defaults
                               : benchmark::ConsoleReporter::OO_None);
    benchmark::RunSpecifiedBenchmarks(&reporter);
    table(measure_latencies(*g_device[kPlain]), whole ? compare() : Ratios{});
    for (auto& d : devices) d->teardown();
    watch.must_be_none();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "hcasim-bench: %s\n", e.what());
    status = 1;
  }
  std::error_code ignored;
  std::filesystem::remove(trace, ignored);
  std::filesystem::remove(untimed_toml, ignored);
  return status;
}
