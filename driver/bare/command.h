// SPDX-License-Identifier: BSD-3-Clause
// The driver's side of the command interface: queue page, mailbox chains, polling and event mode.
#ifndef HCASIM_DRIVER_BARE_COMMAND_H
#define HCASIM_DRIVER_BARE_COMMAND_H

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "driver/bare/machine.h"
#include "prm/prm.h"
#include "prm/wire_formats.h"

namespace hcasim::bare {

using prm::CmdDelivery;
using prm::CmdStatus;

// An input mailbox under construction, opcode and size set.
class Mailbox : public std::vector<std::uint8_t> {
 public:
  Mailbox(std::uint16_t opcode, std::size_t bytes, std::uint16_t op_mod = 0) : vector(bytes) {
    prm::store32(data(), static_cast<std::uint32_t>(opcode) << 16);
    prm::store32(data() + 4, op_mod);
  }
  std::uint16_t opcode() const { return static_cast<std::uint16_t>(prm::load32(data()) >> 16); }
  template <class F>
  Mailbox& set(std::uint64_t value) {
    prm::set<F>(data(), static_cast<typename F::type>(value));
    return *this;
  }
};

struct CommandResult {
  bool done = false;  // false: the device did not answer in time
  CmdDelivery delivery = CmdDelivery::kOk;
  CmdStatus status = CmdStatus::kOk;
  std::uint32_t syndrome = 0;
  std::vector<std::uint8_t> out;
  std::uint16_t opcode = 0;

  bool ok() const { return done && delivery == CmdDelivery::kOk && status == CmdStatus::kOk; }
  std::string text() const;
  template <class F>
  typename F::type get() const {
    return prm::get<F>(out.data());
  }
  const CommandResult& must() const;  // throws BareError unless ok()
};

class CommandQueue {
 public:
  // A command just before the device gets it, for tests that tamper with it: the entry, the mailbox blocks of
  // input and output in memory, and the blocks' bus addresses.
  struct Raw {
    prm::CmdEntry* entry;
    std::vector<prm::CmdMailbox*> in, out;
    std::vector<std::uint64_t> in_bus, out_bus;
    // Recomputes all signatures after changes.
    void sign() const;
  };
  using Tamper = std::function<void(Raw&)>;
  using Done = std::function<void(const CommandResult&)>;

  explicit CommandQueue(Function& function);
  ~CommandQueue();
  CommandQueue(const CommandQueue&) = delete;
  CommandQueue& operator=(const CommandQueue&) = delete;

  // Handshake with the initialization segment: waits for the device, checks the revision, writes the address.
  void start();
  // The device has lost the queue (FLR): commands in flight are abandoned.
  void stop();

  // Executes and waits. timeout: simulated ns.
  CommandResult exec(const Mailbox& in, std::size_t out_len, std::int64_t timeout = 5'000'000'000,
                     const Tamper& tamper = {});
  // Called for each command of exec(), with its result.
  using Observer = std::function<void(const Mailbox& in, const CommandResult& result)>;
  void set_observer(Observer observer) { observer_ = std::move(observer); }
  // Starts a command and returns its slot; `done` is called when it completes. The slot is chosen when < 0.
  int submit(const Mailbox& in, std::size_t out_len, Done done, int slot = -1, const Tamper& tamper = {},
             bool ring = true);
  // Writes this value to the doorbell register.
  void ring(std::uint32_t vector);
  // Polls the owner bits of all slots in flight. Event mode calls complete() instead.
  void poll();
  void complete(std::uint32_t vector);
  // Abandons a slot whose command was tampered with so that no answer comes.
  void abandon(int slot);

  void use_events(bool on) { events_ = on; }
  bool events() const { return events_; }
  unsigned slots() const { return 1u << log_size_; }
  unsigned in_flight() const;
  std::uint64_t queue_bus() const { return queue_.bus(); }

 private:
  struct Slot {
    bool busy = false;
    std::uint16_t opcode = 0;
    std::size_t out_len = 0;
    Buffer boxes;  // input chain, then output chain, 1 KiB apart
    std::size_t in_blocks = 0, out_blocks = 0;
    Done done;
  };
  prm::CmdEntry* entry(int slot) const {
    return reinterpret_cast<prm::CmdEntry*>(queue_.data() + (static_cast<std::size_t>(slot) << log_stride_));
  }
  void finish(int slot);

  Function& function_;
  Buffer queue_;
  unsigned log_size_ = 5, log_stride_ = 6;
  bool events_ = false;
  std::uint8_t token_ = 0;
  std::array<Slot, 32> slots_;
  Observer observer_;
};

}  // namespace hcasim::bare
#endif
