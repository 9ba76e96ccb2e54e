// SPDX-License-Identifier: BSD-3-Clause
// The card's configuration registers (CR space), as far as they exist here: which chip it is, and that its
// boot code is through. Tools read these before they talk to the firmware.
#ifndef HCASIM_MODEL_PCIE_CR_SPACE_H
#define HCASIM_MODEL_PCIE_CR_SPACE_H

#include <cstdint>
#include <optional>

#include "model/generation.h"

namespace hcasim {

class CrSpace {
 public:
  explicit CrSpace(const Generation& generation) : generation_(generation) {}
  // The register at a byte address; none: nothing is there. All registers are read-only.
  std::optional<std::uint32_t> read(std::uint32_t address) const;
  // All of them, by address.
  template <class F>
  void for_each(F f) const {
    for (const std::uint32_t address : {generation_.boot_status_at, kChipId}) f(address, *read(address));
  }

  // Bits 15:0 the chip's ID, 23:16 its revision (mstflint, tools_dev_types.c).
  static constexpr std::uint32_t kChipId = 0xf0014;

 private:
  const Generation& generation_;
};

}  // namespace hcasim
#endif
