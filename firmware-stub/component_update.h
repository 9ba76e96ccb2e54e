// SPDX-License-Identifier: BSD-3-Clause
// The update of firmware components under a handle (register MCC): who holds it, and how far it has come.
// This card's one component, the image that runs, is neither written nor read by hosts, so that an update is
// refused once it names it, with an error code that tools print.
#ifndef HCASIM_FIRMWARE_STUB_COMPONENT_UPDATE_H
#define HCASIM_FIRMWARE_STUB_COMPONENT_UPDATE_H

#include <cstdint>

#include "firmware-stub/syndromes.h"
#include "model/state/fields.h"
#include "model/time.h"

namespace hcasim::fw {

class ComponentUpdate {
 public:
  // mcc: register data. Executes its instruction, and shows what comes of it, refused or not.
  Syndrome instruct(Time t, std::uint8_t* mcc);
  // The state, into register data.
  void show(Time t, std::uint8_t* mcc) const;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, handle_, error_, last_instruction_);
    a.lasting("last_handle", last_handle_);  // no two the same
  }

 private:
  Syndrome execute(std::uint32_t instruction, std::uint32_t handle);

  std::uint32_t handle_ = 0;  // 0: idle
  std::uint8_t error_ = 0;    // of the last instruction
  Time last_instruction_ = 0;
  std::uint32_t last_handle_ = 0;
};

}  // namespace hcasim::fw
#endif
