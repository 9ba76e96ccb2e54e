// SPDX-License-Identifier: BSD-3-Clause
// What the firmware keeps of a virtual function's migration.
#ifndef HCASIM_FIRMWARE_STUB_MIGRATION_H
#define HCASIM_FIRMWARE_STUB_MIGRATION_H

#include <cstdint>

#include "model/state/fields.h"

namespace hcasim::fw {

struct MigrationState {
  bool at_rest = false;   // SUSPEND_VHCA of its responder has been answered
  bool tracking = false;  // an image was asked for while it runs: further ones may be incremental
  std::uint64_t saved = 0, loaded = 0, refused = 0;  // images: refused ones are those that were not loaded

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, at_rest, tracking);
    a.lasting("saved", saved);
    a.lasting("loaded", loaded);
    a.lasting("refused", refused);
  }
};

}  // namespace hcasim::fw
#endif
