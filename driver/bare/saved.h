// SPDX-License-Identifier: BSD-3-Clause
// The state of all HCAs of the process as bytes (hca_sim_save(), hca_sim_load()). The machine's memory and
// its clock are the caller's business.
#ifndef HCASIM_DRIVER_BARE_SAVED_H
#define HCASIM_DRIVER_BARE_SAVED_H

#include <cstddef>
#include <string>

#include "driver/bare/machine.h"

namespace hcasim::bare {

// Throws BareError with the reason if there is none now.
inline std::string save_state() {
  char err[512] = "";
  std::size_t len = 0;
  const void* const state = hca_sim_save(&len, err, sizeof err);
  if (!state) throw BareError(std::string("the state cannot be saved: ") + err);
  return {static_cast<const char*>(state), len};
}

// Empty: loaded. Else why not; then the HCAs are as they were.
inline std::string load_state(const std::string& state) {
  char err[512] = "";
  return hca_sim_load(state.data(), state.size(), err, sizeof err) == 0 ? "" : err;
}

}  // namespace hcasim::bare
#endif
