// SPDX-License-Identifier: BSD-3-Clause
/// Where two traces diverge: compares two runs that should be the same, record by record.
#pragma once

#include <cstdint>
#include <cstdio>

#include "traces/reader.h"

namespace hcasim::traces {

struct DiffOptions {
  unsigned context = 5;  ///< records shown before the first difference, and of each trace after it
};

enum class DiffResult : std::uint8_t {
  kSame,
  kPart,  ///< a record differs, or one trace ends first
};

/// Compares complete records, points by name, up to the first difference, and prints where that is: the last
/// common records, then the next ones of each trace, commands by name and mailbox fields. A trace that was
/// cut off counts as one that ends there; the caller has to look at the reader's warning().
DiffResult diff(Reader& a, Reader& b, const DiffOptions& options, std::FILE* out);

}  // namespace hcasim::traces
