// SPDX-License-Identifier: BSD-3-Clause
// The responder: checks requests, takes receive WQEs, scatters payload, acknowledges, answers reads and atomics
// (IBTA vol. 1, 9.7.3-9.7.5, 9.9.3; 10.8.2).
#ifndef HCASIM_MODEL_RESP_RESPONDER_H
#define HCASIM_MODEL_RESP_RESPONDER_H

#include <cstdint>
#include <systemc>
#include <vector>

#include "model/cq/cq.h"
#include "model/ctx/qp.h"
#include "model/port/packet.h"
#include "model/timed_queue.h"
#include "model/tpt/tpt.h"

namespace hcasim {

class Hca;

class Responder : public sc_core::sc_module {
 public:
  struct TurnResult {
    Time engine_free;
    Time again;  // kNever: no response left to send
  };

  Responder(const sc_core::sc_module_name& name, Hca& hca);

  // A request packet for this QP.
  void receive(Time t, Qp& qp, PacketRef& packet);
  // Sends read and atomic responses that are due, then acknowledgements held back behind them.
  TurnResult turn(Time t, Qp& qp);
  void qp_changed(Time t, Qp& qp, QpState old);
  // Completes all posted receive WQEs with "flushed"; own RQs only. SRQ: last WQE reached event.
  void flush(Time t, Qp& qp);
  void clear();

 private:
  struct Poll {
    std::uint32_t qpn;
    std::uint64_t epoch;
    Time period;
  };
  struct AckDue {
    std::uint32_t qpn;
    std::uint64_t epoch;
  };

  // responder.cpp
  void receive_rc(Time t, Qp& qp, PacketRef& packet);
  void receive_uc(Time t, Qp& qp, PacketRef& packet);
  void receive_ud(Time t, Qp& qp, PacketRef& packet);
  void duplicate(Time t, Qp& qp, const Packet& packet);
  bool in_sequence(const Qp& qp, const Packet& packet) const;
  // False: the packet was refused (NAK sent, or the QP failed) and nothing more is to be done with it.
  bool take_send(Time t, Qp& qp, PacketRef& packet);
  bool take_write(Time t, Qp& qp, PacketRef& packet);
  bool take_read(Time t, Qp& qp, const Packet& packet);
  bool take_atomic(Time t, Qp& qp, const Packet& packet);

  // receive_queue.cpp
  enum class Take : std::uint8_t { kTaken, kEmpty, kBroken };
  Take take_wqe(Time& t, Qp& qp);
  Take take_from_rq(Time& t, Qp& qp);
  Take take_from_srq(Time& t, Qp& qp, Srq& srq);
  bool parse_segments(const std::uint8_t* bytes, std::size_t len, RecvWqe& out) const;
  // kOk, or what the translation refused. kOutOfRange is also "longer than the WQE's capacity" (too_long).
  bool scatter(Time& t, Qp& qp, PacketRef& packet, std::uint64_t offset, std::uint32_t skip, bool& too_long);

  // Endings
  void finish_receive(Time t, Qp& qp, const Packet& packet, std::uint8_t cqe_opcode);
  void receive_error(Time t, Qp& qp, std::uint8_t syndrome, std::uint8_t vendor);
  void acknowledge(Time t, Qp& qp, bool now);
  void send_ack(Time t, Qp& qp, std::uint32_t psn, std::uint8_t syndrome);
  void nak(Time t, Qp& qp, std::uint8_t code);
  void nak_and_fail(Time t, Qp& qp, std::uint8_t code, std::uint8_t event_type);
  PacketRef make_reply(const Qp& qp, std::uint8_t opcode, std::uint32_t psn) const;
  void on_poll(Time due, const Poll& poll);
  void on_ack(Time due, const AckDue& due_ack);
  std::uint32_t cq_user_index(const Qp& qp, const Srq* srq) const;

  Hca& hca_;
  Time rx_free_ = 0;
  std::vector<Fragment> fragments_;  // scratch
  TimedQueue<Poll> polls_;
  TimedQueue<AckDue> acks_;
};

}  // namespace hcasim
#endif
