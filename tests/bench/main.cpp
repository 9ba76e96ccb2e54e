// SPDX-License-Identifier: BSD-3-Clause
// Speed of the model alone: WQEs and bytes per second of wall time, SystemC activations per WQE, the cost of
// tracing, and what the model says that lone operations take. Ends with a table of all of it.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>

#include "rig.h"

namespace {

using namespace hcasim::bare;

constexpr unsigned kBatch = 32;        // WQEs per doorbell
constexpr std::uint32_t kInline = 64;  // bytes
constexpr std::uint32_t kLarge = 64 << 10;
constexpr std::size_t kArea = 16 << 20;  // larger than the caches, on both sides
constexpr const char* kWindow = "0";     // ns: each event on its own
constexpr std::int64_t kQuantum = 1000;  // ns of simulated time run at a time

Device* g_device[3];  // plain, traced, each event on its own
std::map<std::string, double> g_result;

// 64-byte inline RDMA WRITEs, `batch` to a doorbell, the last of each signalled.
void inline_writes(benchmark::State& state, Device& device, std::size_t qps, unsigned batch,
                   const std::string& name) {
  Rig rig(device, qps, 1 << 20);
  std::uint8_t data[kInline];
  std::memset(data, 0x5a, sizeof data);
  const auto round = [&] {
    for (std::size_t q = 0; q < qps; ++q) {
      Qp& qp = *rig.tx[q];
      for (unsigned i = 0; i < batch; ++i)
        qp.post_inline_write(data, kInline, rig.to_mr.start() + 64 * (q * batch + i), rig.to_mr.key(),
                             i + 1 == batch);
      qp.ring_doorbell();
    }
    rig.drain(qps, kQuantum);
  };
  round();  // contexts are cached from here
  const std::uint64_t activations = hca_sim_activations();
  const std::int64_t t0 = device.machine().now();
  std::uint64_t wqes = 0;
  for (auto _ : state) {
    round();
    wqes += batch * qps;
  }
  const double n = static_cast<double>(wqes);
  state.SetItemsProcessed(static_cast<std::int64_t>(wqes));
  const double per_wqe = static_cast<double>(hca_sim_activations() - activations) / n;
  state.counters["activations/WQE"] = per_wqe;
  state.counters["simulated_ns/WQE"] = static_cast<double>(device.machine().now() - t0) / n;
  state.counters["WQE/s"] = benchmark::Counter(n, benchmark::Counter::kIsRate);
  g_result[name + ".activations"] = per_wqe;
}

void large_writes(benchmark::State& state, Device& device) {
  Rig rig(device, 1, kArea);
  std::size_t off = 0;
  const auto round = [&] {
    for (int i = 0; i < 8; ++i) {
      SendWr w;
      w.op = WqeOp::kRdmaWrite;
      w.sges = {{rig.from_mr.start() + off, rig.from_mr.key(), kLarge}};
      w.raddr = rig.to_mr.start() + off;
      w.rkey = rig.to_mr.key();
      rig.tx[0]->post(w, false);
      off = (off + kLarge) % kArea;
    }
    rig.tx[0]->ring_doorbell();
    rig.drain(8, 10 * kQuantum);
  };
  for (std::size_t i = 0; i < kArea / kLarge / 8; ++i) round();  // every page was touched once
  std::int64_t bytes = 0;
  const std::uint64_t activations = hca_sim_activations();
  for (auto _ : state) {
    round();
    bytes += 8 * kLarge;
  }
  state.SetBytesProcessed(bytes);
  state.counters["activations/WQE"] =
      static_cast<double>(hca_sim_activations() - activations) / (static_cast<double>(bytes) / kLarge);
}

// The same bytes, moved by the CPU.
void plain_memcpy(benchmark::State& state) {
  Buffer from = g_device[0]->memory().allocate(kArea), to = g_device[0]->memory().allocate(kArea);
  std::memcpy(to.data(), from.data(), kArea);
  std::size_t off = 0;
  std::int64_t bytes = 0;
  for (auto _ : state) {
    for (int i = 0; i < 8; ++i) {
      std::memcpy(to.data() + off, from.data() + off, kLarge);
      off = (off + kLarge) % kArea;
    }
    benchmark::ClobberMemory();
    bytes += 8 * kLarge;
  }
  state.SetBytesProcessed(bytes);
}

// Keeps what the table at the end needs beside the usual output.
class Collect : public benchmark::ConsoleReporter {
 public:
  using ConsoleReporter::ConsoleReporter;
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& r : runs) {
      for (const char* c : {"items_per_second", "bytes_per_second"}) {
        const auto it = r.counters.find(c);
        if (!r.error_occurred && it != r.counters.end()) g_result[r.run_name.function_name] = it->second;
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

void table(const Latencies& l) {
  const auto at = [](const char* name) { return g_result.count(name) ? g_result[name] : 0; };
  const auto ratio = [](double a, double b) { return a != 0 && b != 0 ? number(a / b, "x") : std::string(); };
  std::printf("\n%-48s %14s\n", "hcasim bench", "");
  std::printf("%s\n", std::string(84, '-').c_str());
  const double one = at("inline_64B/1_QP"), many = at("inline_64B/64_QPs"), lone = at("inline_64B/lone");
  row("64 B inline writes, 1 QP, 32 a doorbell", number(one, "M WQE/s", 1e6), "aim: 1");
  row("64 B inline writes, 64 QPs, 32 a doorbell", number(many, "M WQE/s", 1e6), "aim: 1");
  row("64 B inline writes, 1 QP, one at a time", number(lone, "M WQE/s", 1e6));
  row("SystemC activations per WQE, one at a time", number(at("inline_64B/lone.activations"), ""), "aim: 3");
  row("SystemC activations per WQE, batch of 32", number(at("inline_64B/1_QP.activations"), ""), "aim: 0.5");
  row("64 B inline writes, 1 QP, batch_window_ns=0", number(at("inline_64B/1_QP/exact"), "M WQE/s", 1e6),
      number(at("inline_64B/1_QP/exact.activations"), "activations per WQE"));
  row("64 KiB writes", number(at("write_64KiB"), "GB/s", 1e9),
      "memcpy: " + number(at("memcpy_64KiB"), "GB/s", 1e9) + ", ratio " +
          ratio(at("write_64KiB"), at("memcpy_64KiB")));
  row("64 B inline writes, 1 QP, tracing on", number(at("inline_64B/1_QP/traced"), "M WQE/s", 1e6),
      "off / on: " + ratio(one, at("inline_64B/1_QP/traced")));
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
  const auto trace =
      std::filesystem::temp_directory_path() / ("hcasim-bench-" + std::to_string(::getpid()) + ".trace");
  int status = 0;
  try {
    auto* machine = new Machine(std::size_t{512} << 20);  // stays, like the SystemC kernel
    Function& plain = machine->add_hca("link=ib,name=plain" + options);
    Function& traced = machine->add_hca("link=ib,name=traced,trace=" + trace.string() + options);
    Function& exact = machine->add_hca("link=ib,name=exact" + options + ",batch_window_ns=" + kWindow);
    machine->start();
    std::vector<std::unique_ptr<Device>> devices;
    for (Function* f : {&plain, &traced, &exact}) {
      devices.push_back(std::make_unique<Device>(*f));
      devices.back()->probe();
      g_device[devices.size() - 1] = devices.back().get();
    }
    struct Case {
      const char* name;
      int device;
      std::size_t qps;
      unsigned batch;
    };
    for (const Case c : {Case{"inline_64B/1_QP", 0, 1, kBatch}, Case{"inline_64B/64_QPs", 0, 64, kBatch},
                         Case{"inline_64B/lone", 0, 1, 1}, Case{"inline_64B/1_QP/traced", 1, 1, kBatch},
                         Case{"inline_64B/1_QP/exact", 2, 1, kBatch}})
      benchmark::RegisterBenchmark(c.name, [c](benchmark::State& s) {
        inline_writes(s, *g_device[c.device], c.qps, c.batch, c.name);
      });
    benchmark::RegisterBenchmark("write_64KiB", [](benchmark::State& s) { large_writes(s, *g_device[0]); });
    benchmark::RegisterBenchmark("memcpy_64KiB", [](benchmark::State& s) { plain_memcpy(s); });
    Collect reporter(isatty(1) ? benchmark::ConsoleReporter::OO_Defaults
                               : benchmark::ConsoleReporter::OO_None);
    benchmark::RunSpecifiedBenchmarks(&reporter);
    table(measure_latencies(*g_device[0]));
    for (auto& d : devices) d->teardown();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "hcasim-bench: %s\n", e.what());
    status = 1;
  }
  std::error_code ignored;
  std::filesystem::remove(trace, ignored);
  return status;
}
