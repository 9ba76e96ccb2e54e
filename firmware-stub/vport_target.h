// SPDX-License-Identifier: BSD-3-Clause
// Whose vport a command is about.
#ifndef HCASIM_FIRMWARE_STUB_VPORT_TARGET_H
#define HCASIM_FIRMWARE_STUB_VPORT_TARGET_H

#include <cstdint>

#include "firmware-stub/command.h"
#include "firmware-stub/firmware.h"

namespace hcasim::fw {

// The function's own, which is also vport 0 of those that it manages, or that of a function which it manages.
// Null: neither, or it manages none and speaks of others all the same (kFunction).
template <class In>
Firmware* vport_of(Firmware& fw, const Command& cmd) {
  const std::uint32_t number = cmd.get<typename In::vport_number>();
  const bool other = cmd.get<typename In::other_vport>() != 0;
  if (other && !fw.manages()) return nullptr;
  return number == 0 ? &fw : other ? fw.managed(number) : nullptr;
}

}  // namespace hcasim::fw
#endif
