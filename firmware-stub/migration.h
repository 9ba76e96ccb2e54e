// SPDX-License-Identifier: BSD-3-Clause
// What the firmware keeps of a virtual function's migration.
#ifndef HCASIM_FIRMWARE_STUB_MIGRATION_H
#define HCASIM_FIRMWARE_STUB_MIGRATION_H

#include <cstdint>

#include "firmware-stub/image_stream.h"
#include "model/state/fields.h"

namespace hcasim::fw {

struct MigrationState {
  bool at_rest = false;    // SUSPEND_VHCA of its responder has been answered
  bool tracking = false;   // an image was asked for while it runs: further ones are incremental
  bool in_chunks = false;  // its manager's driver takes the last image in records
  ImageSender sender;
  ImageReceiver receiver;
  std::uint64_t saved = 0, loaded = 0, refused = 0;  // records: refused ones are those that were not loaded

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, at_rest, tracking);
    HCASIM_FIELDS_SINCE(2, a, in_chunks, sender, receiver);
    a.lasting("saved", saved);
    a.lasting("loaded", loaded);
    a.lasting("refused", refused);
  }
};

}  // namespace hcasim::fw
#endif
