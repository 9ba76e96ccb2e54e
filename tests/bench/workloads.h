// SPDX-License-Identifier: BSD-3-Clause
// Workloads of the benchmarks: each call is one round of WQEs, posted, rung and waited for.
#ifndef HCASIM_TESTS_BENCH_WORKLOADS_H
#define HCASIM_TESTS_BENCH_WORKLOADS_H

#include "rig.h"

namespace hcasim::bare {

constexpr unsigned kBatch = 32;        // WQEs per doorbell
constexpr std::uint32_t kInline = 64;  // bytes
constexpr std::uint32_t kLarge = 64 << 10;
constexpr unsigned kLargeBatch = 8;                              // WQEs per doorbell
constexpr std::size_t kArea = 16 << 20;                          // larger than the caches, on both sides
constexpr unsigned kLargeRounds = kArea / kLarge / kLargeBatch;  // rounds that go once over the area

// 64-byte inline RDMA WRITEs, `batch` to a doorbell, the last of each signalled. The first round, which fills
// the context caches, is made by the constructor.
class InlineWrites {
 public:
  InlineWrites(Device& device, std::size_t qps, unsigned batch) : InlineWrites(device, device, qps, batch) {}
  InlineWrites(Device& device, Device& peer, std::size_t qps, unsigned batch);
  void operator()();
  std::size_t wqes() const { return batch_ * rig_.tx.size(); }  // in a round

 private:
  Rig rig_;
  unsigned batch_;
  std::uint8_t data_[kInline];
};

// RDMA WRITEs of 64 KiB, all over an area; from one HCA to another, or itself. The constructor goes over the
// area once, so that every page was touched.
class LargeWrites {
 public:
  LargeWrites(Device& device, Device& peer);
  void operator()();  // kLargeBatch WQEs

 private:
  Rig rig_;
  std::size_t off_ = 0;
};

}  // namespace hcasim::bare
#endif
