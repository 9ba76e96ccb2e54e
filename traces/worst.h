// SPDX-License-Identifier: BSD-3-Clause
/// Which WQEs and commands to look at first.
#pragma once

#include <cstddef>
#include <vector>

#include "traces/analysis.h"

namespace hcasim::traces {

/// WQEs that ended with an error, or had not ended though others of their queue that came later had, by time;
/// first one of each kind (status and queue), those that failed by themselves before those that were flushed.
std::vector<const WqeRow*> failed_wqes(const Analysis& a, std::size_t most);

struct SlowWqe {
  const WqeRow* wqe;
  std::int64_t median;   ///< ps, of the successful WQEs that are like it (story.h)
  double times() const;  ///< how many medians it took
};
/// Successful WQEs that took longer than their like, those that exceed the median by the greatest factor
/// first; of each HCA, QP and opcode no more than `of_each`.
std::vector<SlowWqe> slow_wqes(const Analysis& a, std::size_t most, std::size_t of_each = 1);

/// Those that failed or were never answered, by time; first one of each opcode and status.
std::vector<const CommandRow*> failed_commands(const Analysis& a, std::size_t most);
/// The slowest first.
std::vector<const CommandRow*> slow_commands(const Analysis& a, std::size_t most);

}  // namespace hcasim::traces
