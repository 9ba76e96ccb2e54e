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

Time ReceivePipeline::admit(Time t, Time& own, Time service) {
  const Profile::Engine& e = blocks_.profile.engine;
  // What the link to the host has not taken fills the buffer of posted writes; then nothing more comes in.
  free_ = std::max({free_, t, blocks_.dma.stalled_until()}) + e.rx_packet;
  Time begin = std::max(free_, own);
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
  if (run.of_messages) {
    for (unsigned i = 0; i < run.packets; ++i) run.at[i] = admit(run.at[i], own, e.rx_message);
    return run.at[run.packets - 1];
  }
  const Time stalled = blocks_.dma.stalled_until();
  const bool first = traits_of(run.opcode).first;
  const Time packet = e.rx_packet, more = e.rx_more, pipeline = e.rx_pipeline;
  // All in one unit.
  Time free = std::max({free_, run.at[0], stalled}) + packet;
  Time begin = std::max(free, own);
  Time& unit = units_.best(begin);
  begin = std::max(begin, unit);
  Time until = begin + (first ? e.rx_message : more);
  run.at[0] = begin + pipeline;
  for (unsigned i = 1; i < run.packets; ++i) {
    free = std::max(free, run.at[i]) + packet;
    begin = std::max(free, until);
    until = begin + more;
    run.at[i] = begin + pipeline;
  }
  free_ = free;
  own = unit = until;
  return begin + pipeline;
}

void ReceivePipeline::clear() { reset_state(*this); }

}  // namespace hcasim
