// SPDX-License-Identifier: BSD-3-Clause
// The requester: fetches and executes send WQEs, makes packets of them, takes acknowledgements and responses,
// retries, completes (IBTA vol. 1, 9.7.2-9.7.6, 9.9.2; 10.8).
#ifndef HCASIM_MODEL_REQ_REQUESTER_H
#define HCASIM_MODEL_REQ_REQUESTER_H

#include <cstdint>
#include <systemc>
#include <vector>

#include "model/ctx/qp.h"
#include "model/port/packet.h"
#include "model/tpt/tpt.h"
#include "model/timed_queue.h"

namespace hcasim {

class Hca;

class Requester : public sc_core::sc_module {
 public:
  struct TurnResult {
    Time engine_free;  // when the transmit pipeline can take the next QP
    Time again;        // when this QP wants its next turn; kNever: only after an event
  };

  Requester(const sc_core::sc_module_name& name, Hca& hca);

  TurnResult turn(Time t, Qp& qp);
  // ACK, NAK, read response or atomic response for this QP.
  void receive(Time t, Qp& qp, PacketRef& packet);
  // Firmware changed the state (see Hca::qp_changed).
  void qp_changed(Time t, Qp& qp, QpState old);
  // Completes everything that is posted with "flushed" (the QP is in kErr or kSqErr).
  void flush(Time t, Qp& qp);
  void clear();

  std::uint64_t wqes() const { return wqes_; }
  std::uint64_t retransmits() const { return retransmits_; }
  std::uint64_t timeouts() const { return timeouts_; }

 private:
  struct Timer {
    std::uint32_t qpn;
    std::uint64_t epoch;
  };
  // How a WQE's attempt to make progress in a turn ended.
  enum class Step : std::uint8_t { kSent, kBlocked, kFailed };
  struct Pace;

  // fetch.cpp: SQ to window
  bool fetch(Time& t, Qp& qp);
  bool read_doorbell_record(Time t, Qp& qp);
  void bad_doorbell_record(Time t, Qp& qp);

  // requester.cpp: window to packets
  Step send_message(Pace& pace, Qp& qp, SendWqe& wqe);
  Step send_read_or_atomic(Pace& pace, Qp& qp, SendWqe& wqe);
  Step send_datagram(Pace& pace, Qp& qp, SendWqe& wqe);
  Step run_local(Pace& pace, Qp& qp, SendWqe& wqe);
  Time gather(Time t, Qp& qp, SendWqe& wqe, std::uint32_t offset, std::uint32_t len, Packet& packet);
  PacketRef make_packet(const Qp& qp, const SendWqe& wqe) const;
  Time transmit(Time ready, Qp& qp, PacketRef packet);
  bool wants_ack(Qp& qp, const SendWqe& wqe, std::size_t index) const;
  bool check_wqe(Qp& qp, SendWqe& wqe) const;

  // ack.cpp: responses to completions
  void take_ack(Time t, Qp& qp, std::uint32_t psn);
  void take_nak(Time t, Qp& qp, const Packet& packet);
  void take_read_response(Time t, Qp& qp, PacketRef& packet);
  void take_atomic_response(Time t, Qp& qp, const Packet& packet);
  void acknowledge_before(Time t, Qp& qp, std::uint32_t psn);
  void complete_front(Time t, Qp& qp);
  void complete(Time t, Qp& qp, const SendWqe& wqe, std::uint8_t syndrome, std::uint8_t vendor);
  void fail_front(Time t, Qp& qp, std::uint8_t syndrome, std::uint8_t vendor);
  void after_progress(Time t, Qp& qp);
  void rewind(Time t, Qp& qp, std::uint32_t psn);
  void retry(Time t, Qp& qp, std::uint32_t psn, bool timed_out);
  void arm_timer(Time t, Qp& qp);
  void on_timer(Time due, const Timer& timer);
  void finish_drain(Time t, Qp& qp);

  Hca& hca_;
  std::uint64_t wqes_ = 0, retransmits_ = 0, timeouts_ = 0;
  std::vector<Fragment> fragments_;  // scratch
  TimedQueue<Timer> timers_;
};

}  // namespace hcasim
#endif
