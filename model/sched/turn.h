// SPDX-License-Identifier: BSD-3-Clause
// What the scheduler calls: the engines that have turns, and who else looks at doorbells.
#ifndef HCASIM_MODEL_SCHED_TURN_H
#define HCASIM_MODEL_SCHED_TURN_H

#include "model/time.h"

namespace hcasim {

struct Qp;

struct TurnResult {
  Time engine_free;   // when the transmit pipeline can take the next QP
  Time again;         // when this QP wants its next turn; kNever: only after an event
  bool port = false;  // it waits for the port, which has room for it then
};

// The send side of QPs (the requester), or the side that answers (the responder).
class TurnTaker {
 public:
  // The QP has a transmit unit from t on.
  virtual TurnResult turn(Time t, Qp& qp) = 0;

 protected:
  ~TurnTaker() = default;
};

class DoorbellWatcher {
 public:
  // A doorbell for the QP's send queue arrived at t.
  virtual void doorbell(Time t, Qp& qp) = 0;

 protected:
  ~DoorbellWatcher() = default;
};

}  // namespace hcasim
#endif
