// SPDX-License-Identifier: BSD-3-Clause
// The gateway behind a function's vendor specific PCI capability (VSC): a window of configuration registers
// through which software that has no driver to ask reaches into the card: takes semaphores, reads the card's
// registers, and hands commands to the firmware (ICMD). Sources: Linux' mlx5 lib/pci_vsc.c, mstflint's
// mtcr_ul_com.c.
//
//   +0x04 control: space [15:0], syndrome [27:24], size valid [28], status [31:29], 0 = this space is not
//   there +0x08 counter: another value at each read, a ticket for the semaphore +0x0c semaphore of the window
//   itself: free at 0, taken by a write of a ticket, freed by a write of 0 +0x10 address [29:0], failed [30],
//   flag [31]; writing it starts an access: flag 1 = write, done when it is 0;
//         flag 0 = read, done when it is 1
//   +0x14 data
// A space whose size is valid has it in the address when it is chosen; a read there leaves the address of the
// next register.
//
// Whoever shows the capability in its configuration space forwards accesses to these registers, as whole
// dwords. The PCI header (ID, next, length, type 0) at +0 is its own.
#ifndef HCASIM_MODEL_PCIE_VSC_GATEWAY_H
#define HCASIM_MODEL_PCIE_VSC_GATEWAY_H

#include <array>
#include <cstdint>
#include <optional>

#include "model/firmware_port.h"
#include "model/pcie/cr_scan.h"
#include "model/pcie/cr_space.h"
#include "model/state/fields.h"

namespace hcasim {

class VscGateway {
 public:
  static constexpr unsigned kLength = 0x18;  // of the capability, bytes, with its header
  static constexpr unsigned kSemaphores = 64;
  enum Register : unsigned {
    kControl = 0x04,
    kCounter = 0x08,
    kSemaphore = 0x0c,
    kAddress = 0x10,
    kData = 0x14
  };
  enum Space : std::uint32_t { kIcmdExt = 0x1, kCr = 0x2, kIcmd = 0x3, kScan = 0x7, kSemaphoreSpace = 0xa };
  // Fields of control and address
  static constexpr std::uint32_t kSpaceMask = 0xffff, kStatusOk = 1u << 29, kSizeValid = 1u << 28;
  static constexpr std::uint32_t kSyndromeMask = 0xfu << 24, kOutOfRange = 3u << 24;
  static constexpr std::uint32_t kFlag = 1u << 31, kFailed = 1u << 30, kAddressMask = 0x3fffffff;
  // What a read brings where nothing answers (Linux' mlx5 diag/crdump.c, BAD_ACCESS).
  static constexpr std::uint32_t kNothing = 0xbadacce5;

  // firmware: what the ICMD spaces lead to.
  VscGateway(const Generation& generation, FirmwarePort& firmware) : cr_(generation), firmware_(firmware) {}

  // offset: bytes from the start of the capability; one that is no register reads as 0, and takes no write.
  std::uint32_t read(unsigned offset);
  void write(unsigned offset, std::uint32_t value);

  // Accesses to spaces and addresses where nothing is.
  std::uint64_t unanswered() const { return unanswered_; }

  // All semaphores are free. Tickets stay unique.
  void reset();

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, control_, semaphore_, address_, data_, semaphores_, scan_, unanswered_);
    a.lasting("counter", counter_);
  }

 private:
  void choose(std::uint32_t space);
  void access(std::uint32_t value);
  void scan(std::uint32_t address);
  std::optional<std::uint32_t> read_space(std::uint32_t address);
  bool write_space(std::uint32_t address, std::uint32_t value);

  const CrSpace cr_;
  FirmwarePort& firmware_;
  std::uint32_t control_ = 0, semaphore_ = 0, address_ = 0, data_ = 0;
  std::uint32_t counter_ = 0;
  std::array<std::uint32_t, kSemaphores> semaphores_{};
  CrScan scan_;  // of the card when the space was chosen
  std::uint64_t unanswered_ = 0;
};

}  // namespace hcasim
#endif
