// SPDX-License-Identifier: BSD-3-Clause
// The blocks under test around a host made of an array: made once, before SystemC elaborates, reset for each
// test.
#ifndef HCASIM_TESTS_MODEL_BENCH_H
#define HCASIM_TESTS_MODEL_BENCH_H

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "fake_host.h"
#include "model/cq/cq.h"
#include "model/eq/eq.h"
#include "model/function/vport.h"
#include "model/function/vports.h"
#include "model/pcie/dma.h"
#include "model/port/port.h"
#include "model/port/switch.h"
#include "model/profile.h"
#include "two_functions.h"

namespace hcasim::test {

class Platform;

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

// What a switch tells an HCA's port.
struct SwitchStation {
  struct Room {
    Time t;
    unsigned lane;
    std::uint32_t bytes;
  };
  std::vector<std::pair<Time, PacketRef>> arrived;
  std::vector<Room> rooms;
  VirtualLanes shares;
};

// The cable behind an output: a picosecond a byte.
struct OutputCable {
  struct Gone {
    Time ready, start;
    PacketRef packet;
    std::uint32_t tag;
  };
  std::uint32_t go(Time ready, PacketRef packet, std::uint32_t tag);
  Time free = 0;
  std::vector<Gone> gone;
  VirtualLanes shares;
};

struct Bench {
  Bench();
  Profile profile;
  Profile few_tags;      // two of them, and a batch window of 200 ns
  Profile behind_iommu;  // of 64 translations; eight lanes, a read every 16 ns
  FakeHost host;
  int expected_faults = 0;
  Faults faults{expected_faults};
  traces::Tracer tracer;
  Dma dma, dma_few_tags, dma_behind_iommu;
  TwoFunctions two{profile, tracer, faults};
  ContextFetch contexts{profile, [this](Time t, unsigned bytes) { return dma.context_read(t, bytes); }};
  EqTable eq_table;
  InterruptPace interrupt_pace;
  CqTable cq_table;
  EqUnit eqs;
  CqUnit cqs;
  Vport vport;
  Vports vports{vport};
  Port port;
  TimedQueue<int> queue;
  TimedQueue<int> other;  // a second one, the same in all
  Stranger stranger{"stranger"};
  // InfiniBand, 100 Gb/s, with 1024 bytes for each lane at inputs and HCAs. LIDs 1 to 3.
  Switch lanes;
  std::array<SwitchStation, 3> stations;
  OutputLanes output;
  OutputCable cable;
  std::function<void(Time, int)> on_item;
  std::vector<std::pair<Time, int>> taken;
  Platform* platform;  // with a Device of its own; lives as long as the SystemC kernel
  std::vector<std::pair<Time, WriteOwner>> write_errors;
  std::vector<std::pair<Time, PacketRef>> received;

  // Runs the simulation for a time, with everything that is due at its end.
  static void run(Time duration);
  static void run_ns(double ns) { run(from_ns(ns)); }
  void reset();

 private:
  static Switch::Config lanes_config();
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
