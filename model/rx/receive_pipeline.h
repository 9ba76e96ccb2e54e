// SPDX-License-Identifier: BSD-3-Clause
// The receive pipeline of transport packets: what all units share of a packet, then one of the receive units.
// The responder takes requests through it, the requester their answers.
#ifndef HCASIM_MODEL_RX_RECEIVE_PIPELINE_H
#define HCASIM_MODEL_RX_RECEIVE_PIPELINE_H

#include "model/occupancy.h"
#include "model/packet/packet.h"
#include "model/prefetch.h"
#include "model/state/fields.h"
#include "model/time.h"
#include "model/unit_pool.h"

namespace hcasim {

namespace traces {
class Tracer;
}
class Dma;
struct Profile;

class ReceivePipeline {
 public:
  struct Blocks {
    const Profile& profile;
    traces::Tracer& tracer;
    Dma& dma;  // whose buffer of posted writes holds packets up when it is full
  };
  explicit ReceivePipeline(const Blocks& blocks);

  // Takes a packet that has arrived at t into the pipeline: what all units share of it, then a unit for
  // `service` (0: none is needed). own: until when the one QP's earlier packets take; moved on. Returns when
  // the packet is looked at.
  Time admit(Time t, Time& own, Time service);
  // The same with all packets of a run, each at its own time; returns when the last one is looked at.
  Time admit_run(Packet& run, Time& own);
  // When the pipeline has taken all that came.
  Time free_at() const { return stage_.free_at(); }
  void clear();
  void prefetch() const { stage_.prefetch(); }

  template <class Archive>
  void list_state(Archive& a) {
    if constexpr (Archive::kLoads) {
      if (a.version() < 12) {  // whose stage had no gaps
        Time free_ = 0;
        HCASIM_FIELDS(a, free_);
        stage_.clear();
        stage_.taken_until(free_);
      }
    }
    HCASIM_FIELDS_SINCE(12, a, stage_);
    HCASIM_FIELDS(a, units_);
  }

 private:
  // When what all units share is done with a packet that comes at t.
  Time shared(Time t);

  Blocks blocks_;
  Occupancy stage_;  // what all units share
  UnitPool units_;
};

}  // namespace hcasim
#endif
