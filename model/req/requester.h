// SPDX-License-Identifier: BSD-3-Clause
// The requester: fetches and executes send WQEs, makes packets of them, takes acknowledgements and responses,
// retries, completes (IBTA vol. 1, 9.7.2-9.7.6, 9.9.2; 10.8).
#ifndef HCASIM_MODEL_REQ_REQUESTER_H
#define HCASIM_MODEL_REQ_REQUESTER_H

#include <cstdint>
#include <systemc>

#include "model/ctx/qp.h"
#include "model/port/packet.h"
#include "model/timed_queue.h"
#include "model/wqe/parse.h"
#include "model/wqe/scatter.h"
#include "prm/cqe.h"

namespace hcasim {

class Hca;

class Requester : public sc_core::sc_module {
 public:
  struct TurnResult {
    Time engine_free;   // when the transmit pipeline can take the next QP
    Time again;         // when this QP wants its next turn; kNever: only after an event
    bool port = false;  // it waits for the port, which has room for it then
  };

  Requester(const sc_core::sc_module_name& name, Hca& hca);

  TurnResult turn(Time t, Qp& qp);
  // ACK, NAK, read response or atomic response for this QP.
  void receive(Time t, Qp& qp, PacketRef& packet);
  // The same when the pipeline and the QP's context are passed.
  void take(Time t, Qp& qp, PacketRef& packet);
  // Firmware changed the state (see Hca::qp_changed).
  void qp_changed(Time t, Qp& qp, QpState old);
  // Completes everything that is posted with "flushed" (the QP is in kErr or kSqErr).
  void flush(Time t, Qp& qp);
  // The send queue stops behind what has begun, as RTS2SQD has it stop; what is posted behind may be changed
  // until it goes on.
  void stop_behind(Time t, Qp& qp);
  // The driver has dealt with a page fault; fault: the QP's (model/tpt/fault.h).
  void fault_resumed(Time t, Qp& qp, PendingFault& fault, bool error);
  void clear();

  void prefetch() const { prefetch_line(&wqes_); }
  std::uint64_t wqes() const { return wqes_; }
  std::uint64_t retransmits() const { return retransmits_; }
  std::uint64_t timeouts() const { return timeouts_; }

 private:
  struct Timer {
    std::uint32_t qpn;
    std::uint64_t epoch;
  };
  // How a WQE's attempt to make progress in a turn ended. kFailed: its syndrome is set.
  enum class Step : std::uint8_t { kSent, kBlocked, kFailed };
  // The time line of one turn: when the pipeline is free, and since when this QP's WQEs are there.
  struct Pace {
    Time engine;
    Time ready;
    unsigned packets = 0;
    unsigned run = 1;  // packets that go in one step
  };

  // fetch.cpp: from the SQ to the window
  bool fetch(Pace& pace, Qp& qp);
  bool read_doorbell_record(Time t, Qp& qp);
  bool read_sq(Pace& pace, Qp& qp, std::uint16_t counter, std::uint8_t* dst, std::uint32_t len);
  void add_to_window(Pace& pace, Qp& qp, const std::uint8_t* bytes, std::uint32_t len, WqeFault fault);
  void queue_broken(Time t, Qp& qp, std::uint64_t value);
  void flush_unfetched(Time t, Qp& qp);

  // fault.cpp: on-demand paging
  Step payload_fault(Time t, Qp& qp, SendWqe& wqe, std::uint64_t offset);
  void response_fault(Time t, Qp& qp, SendWqe& wqe, std::uint64_t offset, const Packet& packet);

  // requester.cpp: from the window to packets
  Step step(Pace& pace, Qp& qp, SendWqe& wqe);
  Step start(Qp& qp, SendWqe& wqe);
  Step send_packet(Pace& pace, Qp& qp, SendWqe& wqe);
  // run.cpp: packets of a message that go as one (Packet::packets)
  unsigned run_ahead(const Pace& pace, const Qp& qp) const;
  // How many go as one next, and when the port has room for them.
  Time port_open(Pace& pace, const Qp& qp) const;
  bool send_run(Pace& pace, Qp& qp, SendWqe& wqe);
  Step send_request(Pace& pace, Qp& qp, SendWqe& wqe);
  Step send_datagram(Pace& pace, Qp& qp, SendWqe& wqe);
  Step run_local(Pace& pace, Qp& qp, SendWqe& wqe);
  Step load_payload(Pace& pace, Qp& qp, SendWqe& wqe, std::uint64_t offset, Packet& packet, Time& ready);
  PacketRef make_packet(const Qp& qp, const SendWqe& wqe) const;
  void emit_frame(Time t, Qp& qp, const SendWqe& wqe, PacketRef packet);
  void transmit(Time ready, Qp& qp, PacketRef packet);
  bool wants_ack(Qp& qp, std::size_t index);
  bool fenced(const Qp& qp, const SendWqe& wqe) const;
  Step refuse(SendWqe& wqe, prm::CqeSyndrome syndrome, std::uint8_t vendor) const;

  // dc.cpp
  bool dc_connect(Time t, Qp& qp, const SendWqe& wqe);
  bool dc_same_target(const Qp& qp, const SendWqe& a, const SendWqe& b) const;
  void dc_fill(Packet& packet, const Qp& qp, const prm::AvSeg& av) const;
  void dc_reconnect(Time t, Qp& qp);

  // ethernet.cpp: frames
  Step send_frame(Pace& pace, Qp& qp, SendWqe& wqe);
  Step load_frame(Time& ready, Qp& qp, SendWqe& wqe, Packet& packet);

  // ack.cpp: from responses to completions
  void take_ack(Time t, Qp& qp, std::uint32_t psn);
  void take_nak(Time t, Qp& qp, const Packet& packet);
  void take_read_response(Time t, Qp& qp, PacketRef& packet);
  void take_atomic_response(Time t, Qp& qp, PacketRef& packet);
  bool into_cqe(const Qp& qp, SendWqe& wqe, const Packet& packet);
  void complete_front(Time t, Qp& qp);
  void complete(Time t, Qp& qp, const SendWqe& wqe, prm::CqeSyndrome syndrome, std::uint8_t vendor);
  void fail_front(Time t, Qp& qp, prm::CqeSyndrome syndrome, std::uint8_t vendor);
  void after_progress(Time t, Qp& qp, bool progress);
  // retry.cpp
  void rewind(Time t, Qp& qp, std::uint32_t psn);
  void retry(Time t, Qp& qp, std::uint32_t psn);
  bool outstanding(const Qp& qp) const;
  void arm_timer(Time t, Qp& qp);
  void on_timer(Time due, const Timer& timer);
  void finish_drain(Time t, Qp& qp);

  Hca& hca_;
  Mover mover_;
  std::uint64_t wqes_ = 0, retransmits_ = 0, timeouts_ = 0;
  TimedQueue<Timer> timers_;
};

}  // namespace hcasim
#endif
