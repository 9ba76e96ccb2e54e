// SPDX-License-Identifier: BSD-3-Clause
// What the firmware's tracer writes into host memory: blocks of 256 bytes, each of 32 entries of 8 bytes, the
// last one a time stamp. Source: Linux' mlx5 diag/fw_tracer.h, which mlx5_ifc.h lacks.
#ifndef HCASIM_PRM_FW_TRACER_H
#define HCASIM_PRM_FW_TRACER_H

#include "prm/field.h"

namespace hcasim::prm {

constexpr std::size_t kTraceEntryBytes = 8, kTraceBlockEntries = 32,
                      kTraceBlockBytes = kTraceEntryBytes * kTraceBlockEntries;
constexpr std::size_t kTracePageBytes = 4096;  // unit of mtrc_conf.log_trace_buffer_size, log2

// A piece of a message: its text's address, then one of its values each.
struct tracer_string_event {
  using lost = Field<0, 1>;  // messages before it were lost
  using timestamp = Field<1, 7>;
  using event_id = Field<8, 8>;
  using tmsn = Field<16, 13>;  // the message's number
  using tdsn = Field<29, 3>;   // 0: the text, 1 to 7: a value
  using string_param = Field<32, 32>;
  static constexpr std::size_t bytes = kTraceEntryBytes;
};

// The time of the messages before it, of whose own times it has the upper bits.
struct tracer_timestamp_event {
  using timestamp7_0 = Field<0, 8>;
  using event_id = Field<8, 8>;
  using urts = Field<16, 3>;  // not reliable
  using timestamp52_40 = Field<19, 13>;
  using timestamp39_8 = Field<32, 32>;
  static constexpr std::size_t bytes = kTraceEntryBytes;
};
enum : std::uint8_t { kTraceTimestamp = 0xff };  // event_id

// Eqe::sub_type of kDeviceTracer.
enum : std::uint8_t { kTracerOwnership = 0, kTracerTraces = 1 };

}  // namespace hcasim::prm
#endif
