// SPDX-License-Identifier: BSD-3-Clause
// What there is in the card's registers and in its firmware's memory, to be read from end to end through the
// gateway (space 7): what drivers save of a card that has failed (Linux' mlx5 diag/crdump.c). Taken when it
// is asked for, so that what is read piece by piece belongs together.
//
// The chip's ID and the boot status lie where they do in CR space (CrSpace). Where the rest lies is our own:
//   +0x10000  the initialization segment: versions, command queue, health buffer, timers
//   +0x30000  the tools' mailbox: its control, its size, its bytes (from +0x30100 on)
//   +0x40000  what the firmware has counted, 64 bits each (Firmware::counters())
#ifndef HCASIM_MODEL_PCIE_CR_SCAN_H
#define HCASIM_MODEL_PCIE_CR_SCAN_H

#include <cstdint>
#include <map>
#include <optional>

#include "model/firmware_port.h"
#include "model/pcie/cr_space.h"
#include "model/state/fields.h"

namespace hcasim {

class CrScan {
 public:
  static constexpr std::uint32_t kBytes = 1u << 20;  // of the space
  static constexpr std::uint32_t kInitSegment = 0x10000, kMailbox = 0x30000, kMailboxData = 0x30100,
                                 kCore = 0x40000;

  void take(const CrSpace& cr, FirmwarePort& firmware);
  void clear() { words_.clear(); }
  std::optional<std::uint32_t> read(std::uint32_t address) const;
  // Where the next register behind that address is; kBytes: there is none.
  std::uint32_t next(std::uint32_t address) const;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, words_);
  }

 private:
  std::map<std::uint32_t, std::uint32_t> words_;  // by address
};

}  // namespace hcasim
#endif
