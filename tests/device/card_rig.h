// SPDX-License-Identifier: BSD-3-Clause
// What a test needs that builds a card with several functions: the host behind each, the way to its BAR, and
// SystemC's clock.
#ifndef HCASIM_TESTS_DEVICE_CARD_RIG_H
#define HCASIM_TESTS_DEVICE_CARD_RIG_H

#include <algorithm>
#include <cstdint>
#include <vector>

#include "driver/bare/machine.h"
#include "model/device.h"

namespace hcasim {

// The host behind one function: memory of the machine, reached with this function's requester ID.
class FunctionHost final : public HostPort {
 public:
  explicit FunctionHost(bare::HostMemory& memory) : memory_(memory) {}
  bool dma_read(std::uint64_t addr, void* dst, std::size_t len) noexcept override {
    ++accesses;
    return bus_master && memory_.dma_read(addr, dst, len);
  }
  bool dma_write(std::uint64_t addr, const void* src, std::size_t len) noexcept override {
    ++accesses;
    return bus_master && memory_.dma_write(addr, src, len);
  }
  void msix(unsigned vector) noexcept override {
    ++interrupts;
    if (function != nullptr) function->raise(vector);
    for (bare::Function* sf : sub_functions) sf->raise(vector);
  }
  void log(int, const char*) noexcept override {}

  bool bus_master = true;
  std::uint64_t accesses = 0, interrupts = 0;
  bare::Function* function = nullptr;
  std::vector<bare::Function*> sub_functions;  // which share its vectors

 private:
  bare::HostMemory& memory_;
};

class FunctionPcie final : public bare::Pcie {
 public:
  FunctionPcie(Device& card, FunctionId f) : card_(card), f_(f) {}
  void read(std::uint64_t offset, void* bytes, unsigned len) override {
    card_.bar_read(f_, offset, static_cast<std::uint8_t*>(bytes), len);
  }
  void write(std::uint64_t offset, const void* bytes, unsigned len) override {
    card_.bar_write(f_, offset, static_cast<const std::uint8_t*>(bytes), len);
  }
  void reset() override { card_.reset(f_); }
  // Another function is behind these BARs from now on: what a migration comes to for a machine.
  void lead_to(FunctionId f) { f_ = f; }

 private:
  Device& card_;
  FunctionId f_;
};

class SystemcClock final : public bare::Clock {
 public:
  std::int64_t now() const override { return sim_now() / 1000; }
  void wait(std::int64_t until) override {
    constexpr std::int64_t kStep = 500;  // ns
    sc_core::sc_start(to_sc(from_ns(static_cast<double>(std::min(until - now(), kStep) + 1))),
                      sc_core::SC_RUN_TO_TIME);
    while (sc_core::sc_pending_activity_at_current_time()) sc_core::sc_start(sc_core::SC_ZERO_TIME);
  }
};

}  // namespace hcasim
#endif
