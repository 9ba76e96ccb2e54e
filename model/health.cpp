// SPDX-License-Identifier: BSD-3-Clause
#include "model/health.h"

#include <cstdio>

namespace hcasim {

void Health::model_fault(const char* where, const char* what) noexcept {
  traces::trace(tracer_, traces::Point::kModelFault, sim_now(), 0u, 0u);
  if (fatal_) return;
  fatal_ = true;
  char line[256];
  std::snprintf(line, sizeof line, "fault in the model, HCA out of service: %s: %s", where, what);
  host_.log(0, line);
  firmware_.fatal(what);
}

}  // namespace hcasim
