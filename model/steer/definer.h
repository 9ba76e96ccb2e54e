// SPDX-License-Identifier: BSD-3-Clause
// Match definers: header fields of a frame in one of the fixed layouts (match_definer_format_* of
// mlx5_ifc.h), and a mask of those that count. A flow group that splits by hash spreads frames over its
// entries by them.
#ifndef HCASIM_MODEL_STEER_DEFINER_H
#define HCASIM_MODEL_STEER_DEFINER_H

#include <array>
#include <cstdint>

#include "model/state/fields.h"
#include "prm/prm.h"

namespace hcasim {

struct SteeredFrame;

struct MatchDefiner {
  using Tag = std::array<std::uint8_t, prm::match_definer::match_mask_format::bytes>;  // big-endian
  std::uint16_t format = 0;
  Tag mask{};

  // A format of which there is a layout, and a mask of fields that are known in it.
  bool known() const;
  // Of the masked fields of the frame; those that it does not have are 0.
  std::uint64_t hash(const SteeredFrame& frame) const;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, format, mask);
  }
};

// match_definer_format_supported: a bit each.
std::uint64_t definer_formats();

}  // namespace hcasim
#endif
