// SPDX-License-Identifier: BSD-3-Clause
// What a wire between processes costs: two HCAs joined by one, here both in this process, beside two on a
// cable, which carries packets as they are. Real time, one core.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "command/parse.h"
#include "driver/bare/rules.h"
#include "workloads.h"

namespace {

using namespace hcasim::bare;

struct Ends {
  std::string wire;
  std::unique_ptr<Device> near, far;
};

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  return of[of.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What a wire between two HCAs costs in real time, by its kind", "hcasim bench wire");
  unsigned rounds = 9;
  std::string only;
  app.add_option("--rounds", rounds, "of all kinds in turn; medians are printed")
      ->check(CLI::Range(1u, 1000u));
  app.add_option("--only", only, "one kind of wire")->check(CLI::IsMember({"cable", "shm", "unix"}));
  if (const auto status = hcasim::command::parse(app, argc, argv)) return *status;
  const std::string folder =
      (std::filesystem::temp_directory_path() / "hcasim-bench-wire.").string() + std::to_string(::getpid());
  std::filesystem::create_directory(folder);
  int status = 0;
  try {
    const RuleWatch watch;
    auto* machine = new Machine(std::size_t{512} << 20);  // stays, like the SystemC kernel
    std::vector<Ends> all;
    std::vector<std::pair<Function*, Function*>> functions;
    unsigned number = 0;
    for (const char* wire : {"cable", "unix", "shm"}) {
      if (!only.empty() && only != wire) continue;
      all.push_back({wire, nullptr, nullptr});
      Function* ends[2];
      for (int end = 0; end < 2; ++end) {
        std::string options = std::string("link=ib,name=") + wire + (end == 0 ? "-near" : "-far") +
                              ",node_guid=000000000000001" + std::to_string(number++);
        if (all.back().wire != "cable")
          options += std::string(",wire=") + wire + ":" + folder + "/" + wire;
        else if (end == 1)
          options += ",cable=cable-near";
        ends[end] = &machine->add_hca(options);
      }
      functions.emplace_back(ends[0], ends[1]);
    }
    machine->start();
    for (std::size_t i = 0; i < all.size(); ++i) {
      DeviceOptions o;
      o.wait_active = false;
      all[i].near = std::make_unique<Device>(*functions[i].first, o);
      all[i].far = std::make_unique<Device>(*functions[i].second, o);
      for (Device* d : {all[i].near.get(), all[i].far.get()}) d->probe();
      if (!machine->wait_real(
              [&] { return all[i].near->port_state() == 4 && all[i].far->port_state() == 4; }))
        throw BareError(all[i].wire + ": the ends do not find each other");
    }
    std::printf("%-8s %16s %16s %16s\n", "wire", "64 KiB, us", "64 B, 32 at once", "64 B, one");
    std::vector<std::unique_ptr<LargeWrites>> large;
    std::vector<std::unique_ptr<InlineWrites>> many, lone;
    for (Ends& e : all) {
      large.push_back(std::make_unique<LargeWrites>(*e.near, *e.far));
      many.push_back(std::make_unique<InlineWrites>(*e.near, *e.far, 1, kBatch));
      lone.push_back(std::make_unique<InlineWrites>(*e.near, *e.far, 1, 1));
    }
    std::vector<std::vector<double>> took(3 * all.size());
    for (unsigned r = 0; r < rounds; ++r) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        took[3 * i].push_back(seconds_of([&] {
                                for (unsigned n = 0; n < 64; ++n) (*large[i])();
                              }) /
                              (64 * kLargeBatch));
        took[3 * i + 1].push_back(seconds_of([&] {
                                    for (unsigned n = 0; n < 256; ++n) (*many[i])();
                                  }) /
                                  (256 * kBatch));
        took[3 * i + 2].push_back(seconds_of([&] {
                                    for (unsigned n = 0; n < 1024; ++n) (*lone[i])();
                                  }) /
                                  1024);
      }
    }
    for (std::size_t i = 0; i < all.size(); ++i)
      std::printf("%-8s %16.2f %16.3f %16.3f\n", all[i].wire.c_str(), 1e6 * median(took[3 * i]),
                  1e6 * median(took[3 * i + 1]), 1e6 * median(took[3 * i + 2]));
    large.clear();
    many.clear();
    lone.clear();
    for (Ends& e : all)
      for (Device* d : {e.near.get(), e.far.get()}) d->teardown();
    watch.must_be_none();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "hcasim-bench-wire: %s\n", e.what());
    status = 1;
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return status;
}
