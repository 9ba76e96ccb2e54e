// SPDX-License-Identifier: BSD-3-Clause
// The responder: checks requests, takes receive WQEs, scatters payload, acknowledges, answers reads and
// atomics (IBTA vol. 1, 9.7.3-9.7.5, 9.9.3; 10.8.2). The receiver gives it requests, the scheduler turns to
// send responses in; state changes come from QpStates, packets that waited for a context from the context
// gate. What it calls: Responder::Blocks.
#ifndef HCASIM_MODEL_RESP_RESPONDER_H
#define HCASIM_MODEL_RESP_RESPONDER_H

#include <cstdint>
#include <systemc>
#include <vector>

#include "model/cq/cq.h"
#include "model/ctx/context_gate.h"
#include "model/ctx/qp.h"
#include "model/ctx/qp_states.h"
#include "model/function/id.h"
#include "model/occupancy.h"
#include "model/packet/packet.h"
#include "model/sched/turn.h"
#include "model/state/fields.h"
#include "model/timed_queue.h"
#include "model/tpt/fault.h"
#include "model/wqe/scatter.h"
#include "prm/cqe.h"
#include "prm/eqe.h"
#include "prm/packet.h"

namespace hcasim {

namespace traces {
class Tracer;
}
class CongestionControl;
class Dma;
class EqUnit;
class Port;
class QCounters;
class Qos;
class RdmaSteering;
class ReceivePipeline;
class Scheduler;
class TagUnit;
class Tpt;
class TransmitPipeline;
class Vport;
struct Profile;

class Responder final : public sc_core::sc_module,
                        public TurnTaker,
                        public PacketTaker,
                        public QpEngine,
                        public FaultWaiter {
 public:
  struct Blocks {
    // The chip's
    const Profile& profile;
    traces::Tracer& tracer;
    FaultSink& faults;
    Scheduler& scheduler;  // when a QP has responses to send
    TransmitPipeline& tx;
    ReceivePipeline& rx;
    ContextGate& contexts;
    CongestionControl& cc;
    PerFunction<Qos> qos;
    Dma& dma;
    Port& port;          // its LID, and what room it has
    RdmaSteering& rdma;  // where packets leave
    Tpt& tpt;
    TagUnit& tags;
    // The function's
    PerFunction<Vport> vports;
    PerFunction<QpTable> qps;
    CqUnit& cqs;
    EqUnit& eqs;
    PageFaults& page_faults;
    PerFunction<QCounters> q_counters;
    QpErrors& errors;
  };
  Responder(const sc_core::sc_module_name& name, const Blocks& blocks);

  // A request packet for this DC target: finds or makes the context that serves its sender.
  void receive_dc(Time t, Qp& dct, PacketRef& packet);
  // The target serves nobody any more: receive WQEs of messages that came in part are flushed.
  void end_dc(Time t, FunctionId f, std::uint32_t dctn);
  // A request packet for this QP.
  void receive(Time t, Qp& qp, PacketRef& packet);
  // The same when the pipeline and the QP's context are passed.
  void take(Time t, Qp& qp, PacketRef& packet) override;
  // Sends read and atomic responses that are due, then acknowledgements held back behind them.
  TurnResult turn(Time t, Qp& qp) override;
  void qp_changed(Time t, Qp& qp, QpState old) override;
  // Completes all posted receive WQEs with "flushed"; own RQs only. SRQ: last WQE reached event.
  void flush(Time t, Qp& qp) override;
  void fault_resumed(Time t, Qp& qp, PendingFault& fault, bool error) override;
  // As the requester's: stop() comes behind its.
  static void stop(Qp& qp);
  void restart(Time t, Qp& qp);
  void clear();

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, polls_, acks_);
    a.kept("atomic_free", atomic_free_);
    HCASIM_FIELDS(a, alu_);
  }

 private:
  struct Poll {
    std::uint32_t qpn;
    FunctionId function;
    std::uint64_t epoch;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, qpn, function, epoch);
    }
  };
  struct AckDue {
    std::uint32_t qpn;
    FunctionId function;
    std::uint64_t epoch;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, qpn, function, epoch);
    }
  };
  using Traits = prm::BthTraits;
  // Of a receive WQE
  enum class Take : std::uint8_t { kTaken, kEmpty, kBroken };

  // responder.cpp: requests of connected QPs
  void receive_rc(Time t, Qp& qp, PacketRef& packet, const Traits& traits);
  void receive_uc(Time t, Qp& qp, PacketRef& packet, const Traits& traits);
  // run.cpp: those that came as one (Packet::packets)
  bool in_sequence_run(const Qp& qp, const Packet& run, const Traits& traits) const;
  void receive_run(Time t, Qp& qp, PacketRef& run, const Traits& traits);
  void take_each(Qp& qp, PacketRef& run);
  bool take_messages(Qp& qp, PacketRef& run, const Traits& traits);
  void duplicate(Time t, Qp& qp, const Packet& packet, const Traits& traits);
  bool in_sequence(const Qp& qp, const Packet& packet, const Traits& traits) const;

  // send.cpp, write.cpp: requests with data, one packet or a run. False: it was refused (a NAK is under way,
  // or the QP failed); of a run, nothing has been reported: its packets are to be taken one by one.
  bool take_send(Time t, Qp& qp, PacketRef& packet, const Traits& traits);
  bool take_write(Time t, Qp& qp, PacketRef& packet, const Traits& traits);
  // What such a request does is planned without any effect on the QP, counters, traces or memory. A commit
  // may still fail: a page is not there, or a key was taken away since the message began.
  struct SendPlan {
    std::uint64_t offset;  // in the receive WQE's list, bytes
    std::uint32_t skip;    // bytes of the payload that are not for the list
    std::uint32_t length;  // bytes of the payload that are
    bool fits;             // into the list; otherwise it is refused
    bool in_cqe;           // they go into the CQE
  };
  SendPlan plan_send(const Qp& qp, const Packet& packet, const Traits& traits) const;
  bool commit_send(Time t, Qp& qp, const PacketRef& packet, const Traits& traits, const SendPlan& plan);
  struct WritePlan {
    enum class Refusal : std::uint8_t { kNone, kQpRights, kKey, kLength } refusal;
    std::uint32_t rkey;
    std::uint64_t va;      // of the message
    std::uint64_t length;  // of the message, bytes
    std::uint64_t offset;  // of this payload in the message, bytes
  };
  TptStatus check_write(const Qp& qp, const WritePlan& plan) const;  // the key, against the whole message
  WritePlan plan_write(const Qp& qp, const Packet& packet, const Traits& traits) const;
  void refuse_write(Time t, Qp& qp, const Packet& packet, const WritePlan& plan);
  bool commit_write(Time t, Qp& qp, const PacketRef& packet, const Traits& traits, const WritePlan& plan);
  void send_not_moved(Time t, Qp& qp, const Packet& packet, const SendPlan& plan, TptStatus status);
  void write_not_moved(Time t, Qp& qp, const Packet& packet, const WritePlan& plan, TptStatus status);
  void write_denied(Time t, const Qp& qp, const Packet& packet, const WritePlan& plan, TptStatus status);
  bool take_untagged(Time t, Qp& qp, const Packet& packet);
  void finish_receive(Time t, Qp& qp, const Packet& packet, prm::CqeOp opcode);
  bool into_cqe(const Qp& qp, const Packet& packet) const;
  bool invalidate(Qp& qp, std::uint32_t rkey);

  // xrc.cpp
  bool select_xrc_srq(Qp& qp, const Packet& packet);

  // dc.cpp
  Qp* dc_context(Time t, Qp& dct, const Packet& packet);
  void dc_refuse(Time t, Qp& dct, const Packet& packet, std::uint32_t psn, std::uint8_t syndrome);

  // fault.cpp: on-demand paging. False: no driver listens, or the QP waits for another page already.
  // done: bytes of the message before this packet.
  bool receive_fault(Time t, Qp& qp, const Packet& packet, std::uint64_t done);
  bool remote_fault(Time t, Qp& qp, const Packet& packet, std::uint32_t rkey, std::uint64_t va,
                    std::uint64_t len, std::uint64_t done);
  bool read_fault(Time t, Qp& qp, ResponderResource& resource, std::uint32_t packet_len);
  void while_faulted(Time t, Qp& qp, const Packet& packet);
  void not_ready(Time t, Qp& qp, const Packet& packet);

  // datagram.cpp
  void receive_ud(Time t, Qp& qp, PacketRef& packet);

  // atomic_read.cpp: READ and atomic requests, their responses
  bool take_read(Time t, Qp& qp, const Packet& packet);
  bool take_atomic(Time t, Qp& qp, const Packet& packet);
  bool room_for_resource(Qp& qp);
  bool send_response(Time& engine, Qp& qp, ResponderResource& resource);
  void finish_pending(Time t, Qp& qp);

  // receive_queue.cpp
  Take take_wqe(Time t, Qp& qp, const Packet& packet);
  Take take_from_rq(Time t, Qp& qp);
  Take take_from_srq(Time t, Qp& qp, Srq& srq);
  void refuse_without_wqe(Time t, Qp& qp, const Packet& packet, Take got);
  bool read_count(Time t, FunctionId f, std::uint64_t dbr_addr, std::uint16_t& count);
  void check_srq_limit(Time t, Srq& srq);
  void flush_rq(Time t, Qp& qp);
  Cq* receive_cq(const Qp& qp, const RecvWqe& wqe) const;
  void post_receive(Time t, Qp& qp, const RecvWqe& wqe, Completion c);
  void on_poll(Time due, const Poll& poll);

  // reply.cpp: acknowledgements and refusals
  void receive_error(Time t, Qp& qp, prm::CqeSyndrome syndrome, std::uint8_t vendor);
  void acknowledge(Time t, Qp& qp, const Packet& packet);
  void send_pending_ack(Time t, Qp& qp);
  void send_ack(Time t, Qp& qp, std::uint32_t psn, std::uint8_t syndrome, std::uint32_t trace_qpn,
                std::uint32_t serial);
  void nak_sequence(Time t, Qp& qp, const Packet& packet);
  void nak_rnr(Time t, Qp& qp, const Packet& packet);
  // The NAK leaves behind the responses that are still owed, and takes the QP to ERR. event: EQE type, 0 =
  // none.
  void fail(Time t, Qp& qp, const Packet& packet, prm::NakCode code, prm::EqeType event);
  Time not_before_data(Time t, const Qp& qp) const;
  PacketRef make_reply(const Qp& qp, std::uint8_t opcode, std::uint32_t psn) const;
  void transmit(Time ready, Qp& qp, PacketRef&& packet);
  void on_ack(Time due, const AckDue& ack);

  Blocks blocks_;
  Mover mover_;
  const double gather_ps_;  // a byte
  // Atomics take a lock, chosen by the low bits of the address, from the read of the memory to the write:
  // when each is free again. The ALU is one for all.
  std::vector<Time> atomic_free_;
  Occupancy alu_;
  TimedQueue<Poll> polls_;
  TimedQueue<AckDue> acks_;
};

}  // namespace hcasim
#endif
