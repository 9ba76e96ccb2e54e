// SPDX-License-Identifier: BSD-3-Clause
/// A trace from afar, in a bounded amount of data: a time line without its idle stretches, counts by queue
/// and by time, and which WQEs to show one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "traces/analysis.h"

namespace hcasim::traces {

struct OverviewLimits {
  std::size_t bars = 12000;   ///< WQEs shown one by one
  std::size_t failed = 3000;  ///< of them: those with an error
  std::size_t slowest = 600;  ///< of them: those that took longest
  std::size_t lanes = 64;     ///< send queues
  std::size_t bins = 400;     ///< of time
  std::size_t cuts = 12000;   ///< idle stretches
};

/// From the first WQE's begin to the last one's end. Where no WQE is under way for long, time may be cut out.
struct Axis {
  struct Cut {
    std::int64_t at, length;  ///< ps
    std::int64_t before = 0;  ///< length of those before it, ps
  };
  std::int64_t first = 0, last = 0;  ///< ps
  std::vector<Cut> cuts;             ///< by time; none unless they are more than half of it
  std::int64_t bin = 1;              ///< ps of a bin; cut time belongs to none
  std::size_t bins = 0;

  std::int64_t busy() const;                       ///< what is not cut out, ps
  std::int64_t place(std::int64_t t) const;        ///< of a time, ps from `first` without what is cut out
  std::int64_t time_at(std::int64_t place) const;  ///< the inverse; behind a cut, not before it
  std::size_t bin_of(std::int64_t t) const;
};

/// A send queue.
struct Lane {
  struct Bin {
    std::uint64_t begun = 0, failed = 0, under_way = 0;  ///< WQEs
  };
  unsigned hca = 0;
  std::uint32_t qpn = 0;
  std::uint64_t wqes = 0, failed = 0, open = 0, bytes = 0;
  std::vector<Bin> bins;
};

/// What ended within a bin.
struct Rate {
  std::uint64_t done = 0, failed = 0, bytes = 0;  ///< bytes: of those without error
  std::int64_t length = 0;                        ///< ps of the bin, with what is cut out of it
};

struct Overview {
  Axis axis;
  std::vector<Lane> lanes;          ///< by HCA and QPN
  std::size_t lanes_left_out = 0;   ///< those with the fewest failed WQEs, then the fewest WQEs
  std::vector<Rate> rates;          ///< by bin
  std::vector<const WqeRow*> bars;  ///< by time
  std::size_t placed = 0;           ///< WQEs that have any time
  std::size_t bars_failed = 0, all_failed = 0;
};

/// The last time that is known of a WQE in the HCAs, ps: when the driver looks at its CQE does not count.
std::int64_t last_time(const WqeRow& w);

/// `told`: WQEs that are shown in any case.
Overview overview(const Analysis& a, const OverviewLimits& limits, const std::vector<const WqeRow*>& told);

/// Logarithmic bins, eight a decade: 0 holds what took no time, n what took from 10^((n - 1) / 8) ps on.
std::size_t log_bin(std::int64_t ps);

}  // namespace hcasim::traces
