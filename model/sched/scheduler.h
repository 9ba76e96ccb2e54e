// SPDX-License-Identifier: BSD-3-Clause
// The QP scheduler: takes doorbells, gives each ready QP a turn (round robin), and does the same for QPs
// whose responder owes read or atomic responses.
#ifndef HCASIM_MODEL_SCHED_SCHEDULER_H
#define HCASIM_MODEL_SCHED_SCHEDULER_H

#include <cstdint>
#include <systemc>

#include "model/timed_queue.h"

namespace hcasim {

class Hca;
struct Qp;

class Scheduler : public sc_core::sc_module {
 public:
  Scheduler(const sc_core::sc_module_name& name, Hca& hca);

  // The first 8 bytes of a control segment reached a doorbell register: wqe_index is its WQEBB counter.
  // False: no QP with a send queue has this number (the caller counts it).
  bool doorbell(Time t, std::uint32_t qpn, std::uint16_t wqe_index);
  // A BlueFlame burst: the WQE itself, len bytes from the control segment on. Implies doorbell().
  bool blueflame(Time t, std::uint32_t qpn, const std::uint8_t* bytes, unsigned len);

  // The QP's send side may have work at or after t (doorbell, ACK that opens the window, retry).
  void wake(Time t, Qp& qp);
  // The QP's responder has responses to send at or after t.
  void wake_responder(Time t, Qp& qp);
  void clear();

  std::uint64_t doorbells() const { return doorbells_; }

 private:
  struct Turn {
    std::uint32_t qpn;
    bool responder;
    std::uint64_t epoch;  // RequesterState::epoch: turns of a QP that was reset meanwhile are void
  };
  void run(Time due, const Turn& turn);

  Hca& hca_;
  Time free_at_ = 0;
  std::uint64_t doorbells_ = 0;
  TimedQueue<Turn> ready_;
};

}  // namespace hcasim
#endif
