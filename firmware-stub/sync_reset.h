// SPDX-License-Identifier: BSD-3-Clause
// The reset of the card that its host agrees to (register MFRL, general events, mlx5_core's fw_reset.c): a
// host, or the firmware, asks for it; every host's driver is asked, and answers; then all are notified that
// it is now, take the interface down, and the card starts anew. `devlink dev reload action fw_activate` is
// this.
//
//   MFRL start (waits) -> event RESET_REQUEST -> MFRL answer: yes -> start is answered, event RESET_NOW ->
//     TEARDOWN_HCA (fast), nic_interface = DISABLED -> the card resets
//   answer: no, or none within 5 s -> start is refused, event RESET_ABORT
#ifndef HCASIM_FIRMWARE_STUB_SYNC_RESET_H
#define HCASIM_FIRMWARE_STUB_SYNC_RESET_H

#include <cstdint>

#include <systemc>

#include "firmware-stub/syndromes.h"
#include "model/state/fields.h"
#include "model/timed_queue.h"

namespace hcasim::fw {

class Firmware;

class SyncReset : public sc_core::sc_module {
 public:
  // mfrl_reg.reset_state
  enum class State : std::uint8_t {
    kIdle = 0,
    kNegotiation = 1,
    kInProgress = 2,
    kTimeout = 3,
    kRefused = 4
  };
  SyncReset(const sc_core::sc_module_name& name, Firmware& fw);

  // By the command number `seq`, which waits for what the driver says to it.
  Syndrome start(Time t, std::uint32_t seq);
  // By the firmware itself, for somebody else. False: one is under way, or nobody listens.
  bool request(Time t);
  Syndrome answer(bool yes);
  // The driver has taken the interface down. True: so that the card resets now.
  bool interface_down();

  State state() const { return state_; }
  std::uint64_t done() const { return done_; }  // resets that were agreed on, and made

  // A reset of the card, whoever asked for it, ends what is under way.
  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, due_, serial_, state_, asked_by_command_, seq_, now_pending_);
    a.lasting("done", done_);
  }

 private:
  void ask(Time t);
  void tell(Time t, std::uint8_t what);
  void due(Time t, std::uint64_t serial);
  bool listened() const;

  Firmware& fw_;
  TimedQueue<std::uint64_t> due_;  // serial numbers of the time limits
  std::uint64_t serial_ = 0, done_ = 0;
  State state_ = State::kIdle;
  bool asked_by_command_ = false;
  std::uint32_t seq_ = 0;     // of that command
  bool now_pending_ = false;  // RESET_NOW is still to be said
};

}  // namespace hcasim::fw
#endif
