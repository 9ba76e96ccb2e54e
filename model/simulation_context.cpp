// SPDX-License-Identifier: BSD-3-Clause
#include "model/simulation_context.h"

#include "model/agenda.h"
#include "model/time.h"

namespace hcasim {

// A constant, so that no constructor runs.
constexpr SimulationContext kFresh{};
SimulationContext g_simulation = kFresh;

Time SimulationContext::now() { return sim_now(); }

void SimulationContext::go_to(Time t) const {
  if (agenda) agenda->go_to(t);
}

bool SimulationContext::renew() {
  copies.make();
  if (agenda && !agenda->renew()) return false;
  last_epoch = last_frame_version = 0;
  return true;
}

}  // namespace hcasim
