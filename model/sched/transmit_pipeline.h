// SPDX-License-Identifier: BSD-3-Clause
// What all transmit units share: the stage that packets pass one by one, on their way from the requester and
// the responder to the port.
#ifndef HCASIM_MODEL_SCHED_TRANSMIT_PIPELINE_H
#define HCASIM_MODEL_SCHED_TRANSMIT_PIPELINE_H

#include <algorithm>

#include "model/occupancy.h"
#include "model/profile.h"
#include "model/state/fields.h"
#include "model/time.h"
#include "traces/tracer.h"

namespace hcasim {

class TransmitPipeline {
 public:
  TransmitPipeline(const Profile& profile, traces::Tracer& tracer) : profile_(profile), tracer_(tracer) {}

  // A packet that is whole at `ready` goes through; returns when it comes out.
  Time pass(Time ready) {
    const Time start = stage_.reserve(ready, profile_.engine.tx_packet, profile_.engine.tx_packet),
               end = start + profile_.engine.tx_packet;
    traces::trace_busy(tracer_, traces::Unit::kTransmit, 0, start, end);
    return end;
  }
  // The same of n packets of a queue one behind the other; at: when each is whole, then when it comes out: no
  // sooner than `last`, as the one before them did. Returns when the last one does.
  Time pass_run(Time last, Time* at, unsigned n) {
    const Time lasts = profile_.engine.tx_packet, pipeline = profile_.engine.tx_pipeline;
    const bool behind = stage_.appends(std::max(last, at[0] + pipeline), lasts);
    for (unsigned i = 0; i < n; ++i) {
      const Time ready = std::max(last, at[i] + pipeline);
      at[i] = last =
          behind ? stage_.append(ready, lasts, lasts) : stage_.reserve(ready, lasts, lasts) + lasts;
      traces::trace_busy(tracer_, traces::Unit::kTransmit, 0, last - lasts, last);
    }
    return last;
  }
  void clear() { stage_.clear(); }
  void prefetch() const { stage_.prefetch(); }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, stage_);
  }

 private:
  const Profile& profile_;
  traces::Tracer& tracer_;
  Occupancy stage_;
};

}  // namespace hcasim
#endif
