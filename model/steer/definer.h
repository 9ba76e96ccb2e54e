// SPDX-License-Identifier: BSD-3-Clause
// Match definers: header fields of a frame in one of the fixed layouts (match_definer_format_* of
// mlx5_ifc.h), and a mask of those that count. A flow group that splits by hash spreads frames over its
// entries by them.
#ifndef HCASIM_MODEL_STEER_DEFINER_H
#define HCASIM_MODEL_STEER_DEFINER_H

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/state/fields.h"
#include "prm/prm.h"

namespace hcasim {

struct SteeredFrame;
struct SteSource;

struct MatchDefiner {
  using Tag = std::array<std::uint8_t, prm::match_definer::match_mask_format::bytes>;  // big-endian
  static constexpr std::size_t kFields = 32;  // where the fixed layouts begin
  std::uint16_t format = 0;
  Tag mask{};

  // A format of which there is a layout, and a mask of fields that are known in it.
  bool known() const;
  // The masked fields of the frame; those that it does not have are 0. source: what the formats ask of it
  // that only software's entries use.
  Tag tag(const SteeredFrame& frame, const SteSource& source) const;
  // Of these.
  std::uint64_t hash(const SteeredFrame& frame) const;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, format, mask);
  }
};

// Adds what entries of software ask of a format beside what flow groups hash, or all of a format that these
// do not know; ones into all known fields if there is no frame. False: the format has no such fields.
bool fill_software_definer(std::uint16_t format, const SteeredFrame* frame, const SteSource& source,
                           std::uint8_t* tag);

// match_definer_format_supported: a bit each.
std::uint64_t definer_formats();

}  // namespace hcasim
#endif
