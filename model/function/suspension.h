// SPDX-License-Identifier: BSD-3-Clause
// How far a function is held while it is migrated (SUSPEND_VHCA), and what was lost for it meanwhile.
#ifndef HCASIM_MODEL_FUNCTION_SUSPENSION_H
#define HCASIM_MODEL_FUNCTION_SUSPENSION_H

#include <cstdint>

#include "model/state/fields.h"

namespace hcasim {

struct Suspension {
  bool initiator = false;       // begins nothing: no WQE is fetched, no request leaves
  bool responder = false;       // nor answers: what comes for it is lost
  std::uint8_t port_event = 0;  // the last change of its port that it was not told of; 0: none
  std::uint64_t lost_packets = 0, lost_doorbells = 0;

  bool any() const { return initiator || responder || lost_packets != 0 || lost_doorbells != 0; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, initiator, responder, port_event, lost_packets, lost_doorbells);
  }
};

}  // namespace hcasim
#endif
