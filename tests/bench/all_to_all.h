// SPDX-License-Identifier: BSD-3-Clause
// Many HCAs on one modelled switch, each writing to each other one: what the benchmark of the switch and its
// test run. One machine, so one of these a process.
#ifndef HCASIM_TESTS_BENCH_ALL_TO_ALL_H
#define HCASIM_TESTS_BENCH_ALL_TO_ALL_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "driver/bare/qp.h"

namespace hcasim::bare {

struct AllToAllOptions {
  std::size_t hcas = 4;  // 2 to 64
  bool ethernet = true;
  std::uint32_t bytes = 65536;  // of each write
  std::size_t areas = 1;        // each run() writes to the next of so many places at the receivers
  std::string profile = "default";
};

class AllToAll {
 public:
  explicit AllToAll(const AllToAllOptions& options);  // throws BareError
  ~AllToAll();

  // Each HCA writes its buffer to each other one: all at once, or (incast) all to the first only. Returns the
  // number of writes. Throws when a completion is missing or tells of an error.
  std::size_t run(unsigned writes_each, bool incast = false);
  // The same in two steps: what it posts, and that all of it is done.
  std::size_t post(unsigned writes_each, bool incast = false);
  void finish();
  // What run() copies, by the CPU alone, in pieces of a packet's size and about in the order in which packets
  // arrive: senders in turn.
  void copy(unsigned writes_each);
  // Throws when a byte that was written is not what its writer has. clear(): none is any more.
  void check(bool incast = false) const;
  void clear();

  std::uint64_t packets() const;  // that have left the HCAs' ports so far
  std::int64_t now() const { return machine_.now(); }
  // Of simulated times of all completions and of all counters: equal for equal runs.
  std::uint64_t digest() const { return digest_; }
  // A counter of an HCA's statistics.
  std::uint64_t counter(std::size_t hca, const std::string& name) const;
  Machine& machine() { return machine_; }

 private:
  struct Node;
  void note(std::uint64_t value);
  // In the receiver's memory.
  std::size_t place(std::size_t from, std::size_t run) const {
    return (run % options_.areas * options_.hcas + from) * options_.bytes;
  }

  AllToAllOptions options_;
  Machine machine_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::size_t runs_ = 0;           // since clear()
  std::vector<std::size_t> open_;  // writes of each HCA that were posted and are not done
  std::uint64_t digest_ = 14695981039346656037ull;
};

}  // namespace hcasim::bare
#endif
