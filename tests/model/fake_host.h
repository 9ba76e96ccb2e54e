// SPDX-License-Identifier: BSD-3-Clause
// A host made of an array, and a sink that turns faults of the model into failures of the test.
#ifndef HCASIM_TESTS_MODEL_FAKE_HOST_H
#define HCASIM_TESTS_MODEL_FAKE_HOST_H

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "model/pcie/host_port.h"
#include "model/time.h"
#include "model/timed_queue.h"

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
    if (on_write) on_write(addr);
    return true;
  }
  void msix(unsigned vector) noexcept override { events.push_back({true, vector, 0, sim_now()}); }
  void log(int, const char*) noexcept override {}

  // Each access takes so much longer than the profile says.
  void slow_down(Time t) { took_ = t; }
  std::function<void(std::uint64_t)> on_write;  // from inside a write

  void clear() {
    took_ = 0;
    on_write = nullptr;
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

}  // namespace hcasim::test
#endif
