// SPDX-License-Identifier: BSD-3-Clause
// What a measurement counts, and what its results are made of.
#ifndef HCASIM_DRIVER_TIMING_TALLY_H
#define HCASIM_DRIVER_TIMING_TALLY_H

#include <cstdint>
#include <vector>

#include "driver/timing/cpu.h"
#include "driver/timing/measure.h"

namespace hcasim::timing {

// Digest of all recorded times, in order.
class Digest {
 public:
  void note(std::int64_t value) { sum_ = (sum_ ^ static_cast<std::uint64_t>(value)) * 1099511628211ull; }
  std::uint64_t value() const { return sum_; }

 private:
  std::uint64_t sum_ = 14695981039346656037ull;
};

// Progress of all QPs of a measurement. A completion stands for many messages, so each QP's count at both
// edges of the measured interval is interpolated in time.
class Tally {
 public:
  // begin: when the first message may be posted.
  Tally(const Setup& setup, std::size_t parties, Ps begin)
      : setup_(setup), lanes_(parties * setup.qps, Lane{begin}) {}
  // `messages` of a QP of party `who` completed at `time`.
  void note(std::size_t who, std::size_t number, std::uint64_t messages, Ps time);
  bool over() const { return over_; }
  Result result() const;

 private:
  struct Lane {
    Ps last = 0;          // completion; before the first: when traffic begins
    double messages = 0;  // completed within the measured interval
    double step = 0;      // messages of the last completion
    // Including its share of the messages in flight at the end.
    double until(Ps start, Ps end) const;
  };
  const Setup& setup_;
  std::vector<Lane> lanes_;
  std::uint64_t all_ = 0, wanted_ = 0;
  Ps start_ = -1, end_ = 0;
  bool over_ = false;
  Digest digest_;
};

// Latencies from when each of setup.warmup + setup.iterations + 1 messages was posted; digest: what has been
// noted so far.
Result latencies(const Setup& setup, const std::vector<Ps>& posts, Digest digest);

// Non-zero counters of the function's HCA, each as "prefix" + its name.
void add_counters(bare::Function& f, const std::string& prefix, std::map<std::string, std::uint64_t>& out);

}  // namespace hcasim::timing
#endif
