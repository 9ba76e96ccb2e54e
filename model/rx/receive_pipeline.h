// SPDX-License-Identifier: BSD-3-Clause
// The receive pipeline of transport packets: what all units share of a packet, then one of the receive units.
// The responder takes requests through it, the requester their answers.
#ifndef HCASIM_MODEL_RX_RECEIVE_PIPELINE_H
#define HCASIM_MODEL_RX_RECEIVE_PIPELINE_H

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
  Time free_at() const { return free_; }
  void clear();
  void prefetch() const { prefetch_line(&free_); }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, free_, units_);
  }

 private:
  Blocks blocks_;
  Time free_ = 0;
  UnitPool units_;
};

}  // namespace hcasim
#endif
