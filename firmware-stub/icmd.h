// SPDX-License-Identifier: BSD-3-Clause
// The command mailbox of tools (ICMD), behind a function's gateway (model/pcie/vsc_gateway.h): data are
// written into the mailbox, then the control register sets the firmware to work, which clears its busy bit
// when the answer stands there. It needs neither driver nor command queue, and takes turns with the latter on
// the firmware's processor. Its commands stand in the table of icmd.cpp. The access to registers has the
// handlers of ACCESS_REG, and traces show it as that, in slot Command::kIcmdSlot.
//
//   0x0       control (prm/icmd.h)
//   0x1000    size of the mailbox, bytes
//   0x100000  mailbox
#ifndef HCASIM_FIRMWARE_STUB_ICMD_H
#define HCASIM_FIRMWARE_STUB_ICMD_H

#include <array>
#include <cstdint>
#include <optional>

#include <systemc>

#include "firmware-stub/command.h"
#include "model/state/fields.h"
#include "model/timed_queue.h"
#include "prm/icmd.h"

namespace hcasim::fw {

class Icmd : public sc_core::sc_module {
 public:
  static constexpr std::uint32_t kControl = 0x0, kSize = 0x1000, kMailbox = 0x100000;
  static constexpr std::uint32_t kMailboxBytes = 0x340;  // mstflint: ICMD_MAX_CMD_SIZE

  Icmd(const sc_core::sc_module_name& name, Firmware& fw);

  // Aligned 32-bit words (FirmwarePort::icmd_read). While a command is under way writes change nothing.
  std::optional<std::uint32_t> read(std::uint32_t address) const;
  bool write(std::uint32_t address, std::uint32_t value);

  // The firmware goes on after a stall; the host has answered.
  void resume();
  void host_answered();

  std::uint64_t commands() const { return commands_; }
  std::uint64_t failed() const { return failed_; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, due_, serial_, control_, mailbox_, cmd_, stalled_, waiting_);
    a.lasting("commands", commands_);
    a.lasting("failed", failed_);
    // The command is what lies in the mailbox, which nothing changes meanwhile.
    if constexpr (Archive::kLoads)
      a.check((cmd_.opcode == 0 && !waiting_) || sound(), "the access does not agree with its mailbox");
  }

 private:
  struct Opcode {
    std::uint16_t opcode;
    void (Icmd::*run)(Time t);
  };
  static const Opcode kOpcodes[];

  bool busy() const { return prm::get<prm::icmd_control::busy>(control_.data()) != 0; }
  void start();
  void go_on();
  void execute(Time t, std::uint32_t serial);
  void get_fw_info(Time t);
  void query_cap(Time t);
  void access_register(Time t);
  prm::RegisterStatus read_tlvs();
  Syndrome run_access();
  bool sound();
  void answer(prm::RegisterStatus status);
  void reply(prm::RegisterStatus status);
  void done(prm::IcmdStatus status);

  Firmware& fw_;
  TimedQueue<std::uint32_t> due_;  // serial numbers of commands
  std::uint32_t serial_ = 0;
  std::array<std::uint8_t, prm::icmd_control::bytes> control_{};
  std::array<std::uint8_t, kMailboxBytes> mailbox_{};
  Command cmd_;  // the access under way
  bool stalled_ = false, waiting_ = false;
  std::uint64_t commands_ = 0, failed_ = 0;
};

}  // namespace hcasim::fw
#endif
