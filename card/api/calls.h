// SPDX-License-Identifier: BSD-3-Clause
// What the C API's functions have in common: how a call enters the model.
#ifndef HCASIM_CARD_API_CALLS_H
#define HCASIM_CARD_API_CALLS_H

#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "card/api/instance.h"
#include "card/api/simulation.h"

namespace hcasim::api {

// All HCAs ever made: SystemC modules cannot be deleted after elaboration.
inline std::vector<std::unique_ptr<hca>>& all() {
  static auto* list = new std::vector<std::unique_ptr<hca>>;
  return *list;
}

// Copies the text to a caller's buffer, cut to its size.
inline void tell(char* err, std::size_t len, const std::string& text) {
  if (err && len) std::snprintf(err, len, "%s", text.c_str());
}

// Runs one call into the model.
template <class F>
void enter(hca* h, const char* where, F body) noexcept {
  Simulation::Entry entry(Simulation::instance());
  try {
    body();
  } catch (const std::exception& e) {
    h->model.model_fault(where, e.what());
  } catch (...) {
    h->model.model_fault(where, "unknown exception");
  }
}

// It can be called: made, not destroyed, and simulated time has begun.
inline bool usable(const hca* h) { return h && h->in_service && Simulation::instance().started(); }

class Recorder;
// The state of all HCAs into the recording; between two calls of the API.
void note_state(Recorder& recorder, std::int64_t now);

}  // namespace hcasim::api
#endif
