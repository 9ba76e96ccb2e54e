// SPDX-License-Identifier: BSD-3-Clause
// The option of Geneve headers that rules look at (GENEVE_TLV_OPT): one at a time, its first four bytes of
// data.
#ifndef HCASIM_MODEL_STEER_GENEVE_OPTION_H
#define HCASIM_MODEL_STEER_GENEVE_OPTION_H

#include <cstdint>

#include "model/state/fields.h"
#include "model/steer/actions.h"

namespace hcasim {

struct GeneveOption {
  bool used = false;  // there is such an object
  std::uint16_t option_class = 0;
  std::uint8_t type = 0;

  // Offset of the option's data in the frame, four bytes at least; 0: it has none such.
  std::uint32_t find(const SteeredFrame& frame) const;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, used, option_class, type);
  }
};

}  // namespace hcasim
#endif
