// SPDX-License-Identifier: BSD-3-Clause
#include "model/rx/receive_pipeline.h"

#include <algorithm>

#include "model/pcie/dma.h"
#include "model/port/traits.h"
#include "model/profile.h"
#include "model/state/state.h"
#include "traces/tracer.h"

namespace hcasim {

ReceivePipeline::ReceivePipeline(const Blocks& blocks)
    : blocks_(blocks), units_(blocks.profile.engine.rx_units) {}

// Packets come in the order of their times, but those of a run together: who comes between is let between.
inline Time ReceivePipeline::shared(Time t) {
  const Time lasts = blocks_.profile.engine.rx_packet;
  return stage_.reserve(t, lasts, lasts) + lasts;
}

Time ReceivePipeline::admit(Time t, Time& own, Time service) {
  const Profile::Engine& e = blocks_.profile.engine;
  // What the link to the host has not taken fills the buffer of posted writes; then nothing more comes in.
  const Time free = shared(std::max(t, blocks_.dma.stalled_until()));
  Time begin = std::max(free, own);
  if (service != 0) {
    Time& unit = units_.best(begin);
    begin = std::max(begin, unit);
    unit = begin + service;
    traces::trace_busy(blocks_.tracer, traces::Unit::kReceive, units_.number(unit), begin, unit);
  }
  own = begin + service;
  return begin + e.rx_pipeline;
}

Time ReceivePipeline::admit_run(Packet& run, Time& own) {
  const Profile::Engine& e = blocks_.profile.engine;
  const Time stalled = blocks_.dma.stalled_until();
  const bool first = traits_of(run.opcode).first;
  const Time lasts = e.rx_packet;
  // Between the packets of a long message nobody is let: their bytes keep the stage busy.
  const Time shortest = run.of_messages ? lasts : kNever;
  const bool behind = stage_.appends(std::max(run.at[0], stalled), lasts);
  Time begin = own, until = own;
  Time* unit = nullptr;  // all in one
  for (unsigned i = 0; i < run.packets; ++i) {
    const Time t = std::max(run.at[i], stalled);
    begin = std::max(behind ? stage_.append(t, lasts, shortest) : shared(t), until);
    if (!unit) {
      unit = &units_.best(begin);
      begin = std::max(begin, *unit);
    }
    until = begin + ((i == 0 ? first : run.of_messages) ? e.rx_message : e.rx_more);
    run.at[i] = begin + e.rx_pipeline;
  }
  own = *unit = until;
  return begin + e.rx_pipeline;
}

void ReceivePipeline::clear() { reset_state(*this); }

}  // namespace hcasim
