// SPDX-License-Identifier: BSD-3-Clause
// The rig of the benchmarks: what two sides of a measurement need of one HCA, or of two.
#ifndef HCASIM_TESTS_BENCH_RIG_H
#define HCASIM_TESTS_BENCH_RIG_H

#include <memory>
#include <string>
#include <vector>

#include "driver/bare/qp.h"

namespace hcasim::bare {

// Pairs of connected RC QPs with memory on both sides: of `device`, and of `peer`, which may be the same.
class Rig {
 public:
  Rig(Device& device, Device& peer, std::size_t qps, std::size_t bytes);
  Rig(Device& device, std::size_t qps, std::size_t bytes) : Rig(device, device, qps, bytes) {}

  Device& device;
  Pd pd, peer_pd;
  Cq cq;  // all send completions
  Cq rcq;
  Buffer from, to;
  Mr from_mr, to_mr;
  std::vector<std::unique_ptr<Qp>> tx, rx;

  // Lets time pass until n send completions have been taken; throws BareError when they do not come.
  void drain(std::size_t n, std::int64_t quantum);
};

// Simulated ns from doorbell to visible completion (landed: to the last byte in the receiver's memory), idle
// device, contexts cached.
struct Latencies {
  std::int64_t write64_landed = 0, write64 = 0, write4k = 0, read64 = 0, read4k = 0, send64 = 0, atomic = 0;
};
Latencies measure_latencies(Device& device);

}  // namespace hcasim::bare
#endif
