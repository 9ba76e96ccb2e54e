// SPDX-License-Identifier: BSD-3-Clause
// The way of a frame through flow tables and the E-Switch as trace records (traces/points.h: frame_*). Each
// step names the one before it, so that copies part like the branches of a tree. Blocks ask
// FlowSteering::tracer() first: without one nothing is recorded.
#ifndef HCASIM_MODEL_STEER_PATH_TRACE_H
#define HCASIM_MODEL_STEER_PATH_TRACE_H

#include <cstdint>

#include "model/steer/flow.h"
#include "model/time.h"
#include "traces/frame_end.h"
#include "traces/tracer.h"

namespace hcasim {

// where: kFdb for the E-Switch. from: a vport there, else the function.
void trace_entry(const traces::FunctionTracer& tracer, Time t, SteeredFrame& frame, FlowTableType where,
                 std::uint32_t from);
// entry null: none matched.
void trace_table(const traces::FunctionTracer& tracer, Time t, SteeredFrame& frame, const FlowTable& table,
                 const FlowEntry* entry);
void trace_end(const traces::FunctionTracer& tracer, Time t, SteeredFrame& frame, traces::FrameEnd how,
               std::uint32_t to = 0);

}  // namespace hcasim
#endif
