// SPDX-License-Identifier: BSD-3-Clause
// The blocks under test around a host made of an array: made once, before SystemC elaborates, reset for each
// test.
#ifndef HCASIM_TESTS_MODEL_BENCH_H
#define HCASIM_TESTS_MODEL_BENCH_H

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "model/cq/cq.h"
#include "model/eq/eq.h"
#include "model/pcie/dma.h"
#include "model/port/port.h"
#include "model/profile.h"

namespace hcasim::test {

// Memory from 0 to kSize; everything else refuses. Keeps the order of what reached it.
class FakeHost : public HostPort {
 public:
  static constexpr std::uint64_t kSize = 1 << 20;
  struct Event {
    bool msix;
    std::uint64_t addr;  // MSI-X: vector
    std::size_t len;
    Time at;
  };

  bool dma_read(std::uint64_t addr, void* dst, std::size_t len) noexcept override {
    ++reads;
    if (addr >= kSize || len > kSize - addr) return false;
    std::memcpy(dst, &memory[addr], len);
    return true;
  }
  bool dma_write(std::uint64_t addr, const void* src, std::size_t len) noexcept override {
    if (addr >= kSize || len > kSize - addr) return false;
    std::memcpy(&memory[addr], src, len);
    events.push_back({false, addr, len, sim_now()});
    return true;
  }
  void msix(unsigned vector) noexcept override { events.push_back({true, vector, 0, sim_now()}); }
  void log(int, const char*) noexcept override {}

  void clear() {
    std::fill(memory.begin(), memory.end(), 0);
    events.clear();
    reads = 0;
  }
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(kSize);
  std::vector<Event> events;
  unsigned reads = 0;
};

struct Faults : FaultSink {
  explicit Faults(int& expected_faults) : expected(expected_faults) {}
  int& expected;
  void model_fault(const char* where, const char* what) noexcept override {
    if (expected > 0) {
      --expected;
      return;
    }
    ADD_FAILURE() << "model fault in " << where << ": " << what;
  }
};

class Platform;
struct SchedulerRig;

// What else may be in a platform: a process with an event of its own.
class Stranger : public sc_core::sc_module {
 public:
  explicit Stranger(const sc_core::sc_module_name& name) : sc_module(name) {
    SC_HAS_PROCESS(Stranger);
    SC_METHOD(run);
    dont_initialize();
    sensitive << event;
  }
  sc_core::sc_event event;
  std::function<void()> body;

 private:
  void run() {
    if (body) body();
  }
};

struct Bench {
  Bench();
  Profile profile;
  Profile few_tags;  // two of them, and a batch window of 200 ns
  FakeHost host;
  int expected_faults = 0;
  Faults faults{expected_faults};
  traces::Tracer tracer;
  Dma dma, dma_few_tags;
  ContextFetch contexts{profile, [this](Time t, unsigned bytes) { return dma.context_read(t, bytes); }};
  EqUnit eqs;
  CqUnit cqs;
  Port port;
  TimedQueue<int> queue;
  TimedQueue<int> other;  // a second one, the same in all
  Stranger stranger{"stranger"};
  std::function<void(Time, int)> on_item;
  std::vector<std::pair<Time, int>> taken;
  SchedulerRig* schedulers;
  Platform* platform;  // with an Hca of its own; lives as long as the SystemC kernel
  std::vector<std::pair<Time, WriteOwner>> write_errors;
  std::vector<std::pair<Time, PacketRef>> received;

  // Runs the simulation for a time, with everything that is due at its end.
  static void run(Time duration);
  static void run_ns(double ns) { run(from_ns(ns)); }
  void reset();
};

Bench& bench();

class BlockTest : public ::testing::Test {
 protected:
  void SetUp() override { b.reset(); }
  void TearDown() override { b.reset(); }
  Bench& b = bench();
};

}  // namespace hcasim::test
#endif
