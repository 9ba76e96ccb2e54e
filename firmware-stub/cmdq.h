// SPDX-License-Identifier: BSD-3-Clause
// The command queue: fetches entries and mailbox chains on a doorbell, gives each command its turn on the
// firmware's one processor, writes the answer: output, owner bit, command event - in this order.
#ifndef HCASIM_FIRMWARE_STUB_CMDQ_H
#define HCASIM_FIRMWARE_STUB_CMDQ_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <systemc>

#include "firmware-stub/command.h"
#include "firmware-stub/opcodes.h"
#include "model/state/fields.h"
#include "model/timed_queue.h"
#include "prm/cmd_queue.h"

namespace hcasim::fw {

class CmdQueue : public sc_core::sc_module {
 public:
  static constexpr unsigned kLogSize = 5, kLogStride = 6;  // entries; bytes
  static constexpr unsigned kSlots = 1u << kLogSize;
  static_assert(Command::kIcmdSlot == kSlots);
  static constexpr std::size_t kMaxInput = 32u << 20;  // bytes; bounds the walk of a mailbox chain
  static constexpr std::size_t kMaxOutput = 1u << 20;

  struct Counters {
    std::uint64_t commands = 0, failed = 0, unknown_opcodes = 0, bad_deliveries = 0, bad_doorbells = 0;
    std::uint64_t over_limit = 0;  // of those that failed

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, commands, failed, unknown_opcodes, bad_deliveries, bad_doorbells, over_limit);
    }
  };

  CmdQueue(const sc_core::sc_module_name& name, Firmware& fw);

  std::uint32_t address_high() const { return static_cast<std::uint32_t>(address_ >> 32); }
  std::uint32_t address_low() const { return static_cast<std::uint32_t>(address_); }
  // The driver writes the high word first; the low one puts the address in force.
  void set_address_high(std::uint32_t v) { new_high_ = v; }
  void set_address_low(std::uint32_t v);
  // The queue went while a doorbell may be on its way (the driver's own fast teardown), or without the
  // driver's doing (a fault): until it gives a new address, its doorbells are no mistake.
  void excuse() { excused_ = true; }

  void doorbell(std::uint32_t vector);  // bit n: slot n
  // The firmware goes on after a stall.
  void resume();
  // Host pages came, or will not come, or the host has answered: commands that wait for it run again.
  void pages_changed();

  // A command is being worked on, and waits for nobody.
  bool busy() const;
  // The function is held no more (Suspension): what came meanwhile, and what it was loaded with.
  void go_on();
  // It has been loaded: commands that were under way elsewhere run when it goes on.
  void loaded();

  // The firmware's one processor, for what came by another way: until when it is busy with it from t on.
  Time occupy(Time t, Time service) { return free_at_ = std::max(t, free_at_) + service; }
  std::uint32_t new_seq() { return next_seq_++; }

  const Counters& counters() const { return counters_; }
  bool in_use() const { return address_ != 0; }

  // At reset commands in progress are forgotten, as is the queue's address.
  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, work_, jobs_, address_, new_high_, free_at_);
    if (Archive::kStores || Archive::kResets || held_ != 0) HCASIM_FIELDS(a, held_);
    a.lasting("excused", excused_);    // until the driver gives an address, whatever is reset meanwhile
    a.lasting("next_seq", next_seq_);  // names commands in traces: no two the same
    a.lasting("counters", counters_);
    if constexpr (Archive::kLoads)
      for (unsigned slot = 0; slot < kSlots; ++slot)
        a.check(!jobs_[slot] || jobs_[slot]->cmd.slot == slot, "a command is in another slot than its own");
  }
  // Of a function that is held: what goes with it to another card.
  template <class Archive>
  void list_image(Archive& a) {
    HCASIM_FIELDS(a, jobs_, address_, new_high_, held_, excused_);
    if constexpr (Archive::kLoads)
      for (unsigned slot = 0; slot < kSlots; ++slot)
        a.check(!jobs_[slot] || jobs_[slot]->cmd.slot == slot, "a command is in another slot than its own");
  }

 private:
  struct Job {
    Command cmd;
    prm::CmdEntry entry;
    const Opcode* opcode = nullptr;  // the row of cmd.opcode
    prm::CmdDelivery delivery = prm::CmdDelivery::kOk;
    std::vector<std::uint64_t> out_blocks;  // addresses of the output mailboxes that out_len needs
    std::vector<std::uint32_t> event_eqns;  // EQs that asked for command events when the command was taken
    bool checksum = false;
    bool waiting = false;  // for the host: pages, an answer
    // What faults make of it.
    bool lost = false, no_event = false, stalled = false;
    std::uint8_t fault_status = 0;  // refused with this; 0: not
    std::uint32_t fault_syndrome = 0;
    Time fault_delay = 0;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, cmd, entry, delivery, out_blocks, event_eqns, checksum, waiting, lost, no_event,
                    stalled, fault_status, fault_syndrome, fault_delay);
      if constexpr (Archive::kLoads) {
        find_row();
        a.check(sound(), "the command does not agree with its lengths");
      }
    }
    void find_row();
    bool sound() const;
  };

  void fetch(unsigned slot);
  void strike(Job& job, Time t);
  prm::CmdDelivery read_input(Job& job, Time& t);
  prm::CmdDelivery read_output_chain(Job& job, Time& t);
  void execute(Time t, unsigned slot);
  Syndrome dispatch(Command& cmd, const Opcode* op);
  void answer(Time t, unsigned slot, Syndrome syndrome);
  void check_entry(Time t, const Job& job, std::uint64_t at);

  Firmware& fw_;
  std::uint64_t address_ = 0;
  std::uint32_t new_high_ = 0;
  bool excused_ = false;
  std::uint32_t held_ = 0;  // doorbells while the function is held
  std::uint32_t next_seq_ = 0;
  Time free_at_ = 0;  // the firmware's processor
  std::array<std::unique_ptr<Job>, kSlots> jobs_;
  Counters counters_;
  TimedQueue<unsigned> work_;  // slots whose command is due
};

}  // namespace hcasim::fw
#endif
