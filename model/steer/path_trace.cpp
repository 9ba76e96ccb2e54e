// SPDX-License-Identifier: BSD-3-Clause
#include "model/steer/path_trace.h"

#include <algorithm>

namespace hcasim {

using traces::FunctionTracer;
using traces::Point;

namespace {

// The frame's next step; returns the one before, for bits 63:32.
std::uint64_t advance(const FunctionTracer& tracer, SteeredFrame& frame) {
  const std::uint64_t before = frame.trail.step;
  frame.trail.step = tracer.card().next_step();
  if (frame.trail.path == 0) frame.trail.path = frame.trail.step;
  return before << 32;
}

}  // namespace

void trace_entry(const FunctionTracer& tracer, Time t, SteeredFrame& frame, FlowTableType where,
                 std::uint32_t from) {
  const std::uint64_t before = advance(tracer, frame);
  const Packet& p = *frame.packet;
  tracer.record_blob(Point::kFrameEnters, t, frame.trail.path, frame.trail.step,
                     before | (from & 0xffffff) << 8 | static_cast<std::uint8_t>(where),
                     p.trace_qpn | std::uint64_t{p.wqe_serial} << 32, frame.bytes(),
                     std::min(frame.len(), traces::kFrameHead));
}

void trace_table(const FunctionTracer& tracer, Time t, SteeredFrame& frame, const FlowTable& table,
                 const FlowEntry* entry) {
  const std::uint64_t before = advance(tracer, frame);
  const std::uint64_t index = entry ? entry->index & 0xffffff : traces::kNoFlowIndex;
  tracer.record(Point::kFrameTable, t, frame.trail.path, frame.trail.step,
                before | std::uint32_t{static_cast<std::uint8_t>(table.type)} << 24 | (table.id & 0xffffff),
                index << 40 | std::uint64_t{table.vport} << 24 | std::uint32_t{table.level} << 16 |
                    (entry ? entry->action : 0u));
}

void trace_end(const FunctionTracer& tracer, Time t, SteeredFrame& frame, traces::FrameEnd how,
               std::uint32_t to) {
  const std::uint64_t before = advance(tracer, frame);
  tracer.record(Point::kFrameLeaves, t, frame.trail.path, frame.trail.step, before | to,
                std::uint64_t{frame.len()} << 32 | static_cast<std::uint8_t>(how));
}

}  // namespace hcasim
