// SPDX-License-Identifier: BSD-3-Clause
// A sub-function as its manager sees it (vhca_state_context): whether it exists, may be used, is in use.
#ifndef HCASIM_FIRMWARE_STUB_SUB_FUNCTION_H
#define HCASIM_FIRMWARE_STUB_SUB_FUNCTION_H

#include <cstdint>

#include "model/state/fields.h"
#include "prm/vhca_state.h"

namespace hcasim::fw {

struct SubFunction {
  prm::VhcaState state = prm::VhcaState::kInvalid;
  std::uint32_t number = 0;  // what its manager's software calls it (sw_function_id)
  // The next change makes an event, one only; and there has been one since the last.
  bool armed = false, changed = false;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, state, number, armed, changed);
  }
};

}  // namespace hcasim::fw
#endif
