// SPDX-License-Identifier: BSD-3-Clause
// The times in CQEs of a queue: its context's ts_format.
#ifndef HCASIM_FIRMWARE_STUB_OBJECTS_TIME_FORMAT_H
#define HCASIM_FIRMWARE_STUB_OBJECTS_TIME_FORMAT_H

#include <cstdint>

namespace hcasim::fw {

// Of the free-running counter: 0, or 1, the default, which is that. Real time (2) is not offered.
constexpr bool free_running(std::uint32_t ts_format) { return ts_format <= 1; }

}  // namespace hcasim::fw
#endif
