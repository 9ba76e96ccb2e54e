// SPDX-License-Identifier: BSD-3-Clause
// QPNs with their HCA's number (traces/qp_tag.h) in saved states.
#ifndef HCASIM_MODEL_STATE_QP_TAGS_H
#define HCASIM_MODEL_STATE_QP_TAGS_H

#include <cstdint>

#include "traces/qp_tag.h"

namespace hcasim::state {

// For a list_state(), behind the fields: states of versions before 10 have the HCA's number from bit 24 on.
template <class Archive, class... Tags>
void qp_tags(Archive& a, Tags&... tags) {
  if constexpr (Archive::kLoads) {
    constexpr unsigned kFormerQpnBits = 24;
    const auto now = [](std::uint32_t tag) {
      return tag >> kFormerQpnBits == 0
                 ? tag
                 : traces::QpTag::of((tag >> kFormerQpnBits) - 1, tag & ((1u << kFormerQpnBits) - 1));
    };
    if (a.version() < 10) ((tags = now(tags)), ...);
  }
}

}  // namespace hcasim::state
#endif
