// SPDX-License-Identifier: BSD-3-Clause
/// Where two traces part: two runs that should be the same are looked at record by record.
#pragma once

#include <cstdint>
#include <cstdio>

#include "traces/reader.h"

namespace hcasim::traces {

struct DiffOptions {
  unsigned context = 5;  ///< records shown before the first one that differs, and from each trace after it
};

enum class DiffResult : std::uint8_t {
  kSame,
  kPart,  ///< a record differs, or one of the two ends before the other
};

/// Compares all that the records hold, points by their names, up to the first difference, and says where that
/// is: the last common records, then what comes in either trace, commands by name and mailbox fields. What a
/// reader warns of is the caller's to look at: a trace that was cut off counts as one that ends there.
DiffResult diff(Reader& a, Reader& b, const DiffOptions& options, std::FILE* out);

}  // namespace hcasim::traces
