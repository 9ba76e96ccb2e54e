// SPDX-License-Identifier: BSD-3-Clause
// The requester: fetches and executes send WQEs, makes packets of them, takes acknowledgements and responses,
// retries, completes (IBTA vol. 1, 9.7.2-9.7.6, 9.9.2; 10.8). The scheduler gives it turns, the receiver
// answers; state changes come from QpStates, packets that waited for a context from the context gate. What it
// calls: Requester::Blocks.
#ifndef HCASIM_MODEL_REQ_REQUESTER_H
#define HCASIM_MODEL_REQ_REQUESTER_H

#include <cstdint>
#include <systemc>
#include <vector>

#include "model/ctx/context_gate.h"
#include "model/ctx/qp.h"
#include "model/ctx/qp_states.h"
#include "model/function/id.h"
#include "model/packet/packet.h"
#include "model/port/run.h"
#include "model/sched/turn.h"
#include "model/state/fields.h"
#include "model/timed_queue.h"
#include "model/tpt/fault.h"
#include "model/wqe/parse.h"
#include "model/wqe/scatter.h"
#include "prm/cqe.h"

namespace hcasim {

namespace traces {
class Tracer;
}
class CongestionControl;
class CqUnit;
class CryptoEngine;
class Dma;
class EqUnit;
class FirmwarePort;
class FlowSteering;
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

class Requester final : public sc_core::sc_module,
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
    Scheduler& scheduler;  // when a QP wants another turn
    TransmitPipeline& tx;  // packets pass it on their way out,
    ReceivePipeline& rx;   // answers on their way in
    ContextGate& contexts;
    CongestionControl& cc;
    PerFunction<Qos> qos;
    Dma& dma;
    Port& port;                       // its LID, and what room it has
    RdmaSteering& rdma;               // where packets leave,
    PerFunction<FlowSteering> flows;  // and frames
    Tpt& tpt;
    TagUnit& tags;
    CryptoEngine& crypto;
    // The function's
    PerFunction<Vport> vports;
    PerFunction<QpTable> qps;
    CqUnit& cqs;
    EqUnit& eqs;
    PageFaults& page_faults;
    PerFunction<QCounters> q_counters;
    QpErrors& errors;
    PerFunction<FirmwarePort> firmware;  // learns of queues that stop by themselves
  };
  Requester(const sc_core::sc_module_name& name, const Blocks& blocks);

  TurnResult turn(Time t, Qp& qp) override;
  // ACK, NAK, read response or atomic response for this QP.
  void receive(Time t, Qp& qp, PacketRef& packet);
  // The same when the pipeline and the QP's context are passed.
  void take(Time t, Qp& qp, PacketRef& packet) override;
  void qp_changed(Time t, Qp& qp, QpState old) override;
  void flush(Time t, Qp& qp) override;
  // The send queue stops behind what has begun, as RTS2SQD has it stop; what is posted behind may be changed
  // until it goes on.
  void stop_behind(Time t, Qp& qp);
  void fault_resumed(Time t, Qp& qp, PendingFault& fault, bool error) override;
  // A SEND of the HCA itself, with immediate data.
  void send_own(Time t, Qp& qp, std::vector<std::uint8_t> message, std::uint32_t imm);
  // Of a QP of a function that is held: nothing is under way for it, and what is not acknowledged counts as
  // lost. restart(): it goes on with that.
  static void stop(Qp& qp);
  void restart(Time t, Qp& qp);
  void clear();

  void prefetch() const { prefetch_line(&wqes_); }
  std::uint64_t wqes() const { return wqes_; }
  std::uint64_t retransmits() const { return retransmits_; }
  std::uint64_t timeouts() const { return timeouts_; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, timers_);
    a.lasting("wqes", wqes_);
    a.lasting("retransmits", retransmits_);
    a.lasting("timeouts", timeouts_);
  }

 private:
  struct Timer {
    std::uint32_t qpn;
    FunctionId function;
    std::uint64_t epoch;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, qpn, function, epoch);
    }
  };
  // How a WQE's attempt to make progress in a turn ended. kFailed: its syndrome is set.
  enum class Step : std::uint8_t { kSent, kBlocked, kFailed };
  // The time line of one turn: when the pipeline is free, and since when this QP's WQEs are there.
  struct Pace {
    Time engine;
    Time ready;
    unsigned packets = 0;
    unsigned run = 1;  // packets that go in one step
    // Messages of one packet each that go as one (messages.cpp), while they come together; null: none do.
    PacketRef messages{};
    MessageSize message_size{};
    bool no_messages = false;  // they do not, in this turn
  };

  // fetch.cpp: from the SQ to the window
  bool fetch(Pace& pace, Qp& qp);
  bool fetch_posted(Pace& pace, Qp& qp);
  void trace_parsed(const Pace& pace, const Qp& qp, std::size_t from);
  bool runs_short(const RequesterState& s) const;
  bool read_doorbell_record(Time t, Qp& qp);
  bool read_sq(Pace& pace, Qp& qp, std::uint16_t counter, std::uint8_t* dst, std::uint32_t len);
  void add_to_window(Pace& pace, Qp& qp, const std::uint8_t* bytes, std::uint32_t len, WqeFault fault);
  void queue_broken(Time t, Qp& qp, std::uint64_t value);
  void flush_unfetched(Time t, Qp& qp);

  // fault.cpp: on-demand paging
  Step payload_fault(Time t, Qp& qp, SendWqe& wqe, std::uint64_t offset);
  void response_fault(Time t, Qp& qp, SendWqe& wqe, std::uint64_t offset, const Packet& packet);

  // requester.cpp: from the window to packets
  TurnResult progress(Pace& pace, Qp& qp);
  Step step(Pace& pace, Qp& qp, SendWqe& wqe);
  Step start(Qp& qp, SendWqe& wqe);
  Step send_packet(Pace& pace, Qp& qp, SendWqe& wqe);
  // Where payload goes: so many bytes. borrower: the packet that they are all of the payload of, if it may
  // borrow them (Packet::borrowed()).
  struct PayloadPlace {
    std::uint8_t* bytes;
    std::uint32_t len;
    Packet* borrower;
  };
  static PayloadPlace all_of(Packet& p) { return {p.data(), p.payload_len, &p}; }
  // What begins at `offset` of the message, out of the memory that the WQE names.
  MoveResult gather_message(Time ready, const Qp& qp, const SendWqe& wqe, std::uint64_t offset,
                            const PayloadPlace& to);
  // run.cpp: packets of a message that go as one (Packet::packets)
  bool runs_allowed(const Qp& qp) const;
  unsigned run_ahead(const Pace& pace, const Qp& qp) const {
    const SendWqe& w = qp.req.window[qp.req.next_to_send];
    return w.length <= qp.mtu || w.inline_data || w.inline_head != 0 ? 1 : run_of(pace, qp, w);
  }
  unsigned run_of(const Pace& pace, const Qp& qp, const SendWqe& w) const;
  // How many go as one next, and when the port has room for them.
  Time port_open(Pace& pace, const Qp& qp) const;
  // The packets of a message that go as one: known before anything is done, then made, then sent.
  struct RunPlan {
    unsigned packets = 0;
    bool first = false, last = false;  // it begins, it ends its message
    std::uint64_t offset = 0;          // bytes, in the message
    std::uint32_t bytes = 0;
  };
  static RunPlan plan_run(const Qp& qp, const SendWqe& wqe, unsigned packets);
  PacketRef make_run(const Qp& qp, const SendWqe& wqe, const RunPlan& plan) const;
  bool send_run(Pace& pace, Qp& qp, SendWqe& wqe);
  void pace_run(Time ready, Qp& qp, const RunPlan& plan, Packet& p);
  void commit_run(Pace& pace, Time ready, Qp& qp, SendWqe& wqe, const RunPlan& plan, PacketRef&& packet);
  // messages.cpp: short messages that go as one (Packet::of_messages)
  bool joins(Pace& pace, Qp& qp, const SendWqe& wqe);
  bool begin_messages(Pace& pace, Qp& qp, const SendWqe& wqe);
  Step add_message(Pace& pace, Qp& qp, SendWqe& wqe);
  void send_messages(Pace& pace);
  Step send_request(Pace& pace, Qp& qp, SendWqe& wqe);
  Step send_datagram(Pace& pace, Qp& qp, SendWqe& wqe);
  Step run_local(Pace& pace, Qp& qp, SendWqe& wqe);
  Step load_payload(Pace& pace, Qp& qp, SendWqe& wqe, std::uint64_t offset, const PayloadPlace& to,
                    Time& ready);
  PacketRef make_packet(const Qp& qp, const SendWqe& wqe) const;
  void emit_frame(Time t, Qp& qp, const SendWqe& wqe, PacketRef packet);
  // Says what is wrong with a datagram's address.
  void check_address(Time t, const Qp& qp, const prm::AvSeg& av) const;
  // IBTA 10.2.5: a Q_Key with its high bit set means the QP's own.
  static std::uint32_t datagram_qkey(const prm::AvSeg& av, const Qp& qp) {
    return av.qkey & 0x80000000u ? qp.qkey : static_cast<std::uint32_t>(av.qkey);
  }
  void transmit(Time ready, Qp& qp, PacketRef&& packet);
  bool wants_ack(Qp& qp, std::size_t index);
  bool fenced(const Qp& qp, const SendWqe& wqe) const;
  Step refuse(SendWqe& wqe, prm::CqeSyndrome syndrome, std::uint8_t vendor) const;

  // dc.cpp
  bool dc_connect(Time t, Qp& qp, const SendWqe& wqe);
  static bool dc_same_target(const SendWqe& a, const SendWqe& b);
  void dc_fill(Packet& packet, const Qp& qp, const prm::AvSeg& av) const;
  void dc_reconnect(Time t, Qp& qp);
  bool stream_failed(Time t, Qp& qp, std::uint16_t stream);

  // ethernet.cpp: frames
  Step send_frame(Pace& pace, Qp& qp, SendWqe& wqe);
  Step load_frame(Time& ready, Qp& qp, SendWqe& wqe, Packet& packet);
  MoveResult gather_pieces(Time t, const Qp& qp, const SendWqe& wqe, std::uint64_t offset, std::uint32_t len,
                           std::uint8_t* dst);
  WqeFault finish_frame(Time& ready, Qp& qp, const SendWqe& wqe, std::uint8_t* frame, std::uint32_t& len,
                        std::uint32_t offset);

  // ipoib.cpp
  void emit_datagram(Time t, Qp& qp, const SendWqe& wqe, const PacketRef& packet);

  // tls.cpp: parameters of TLS, and data that it is to have seen
  static bool is_tls(const Qp& qp, const SendWqe& wqe);
  Step run_tls(Time& done, Qp& qp, SendWqe& wqe);
  Step access_aso(Time& done, Qp& qp, SendWqe& wqe);
  Step get_psv(Time& done, Qp& qp, SendWqe& wqe);
  Step run_dump(Time& done, Qp& qp, SendWqe& wqe);

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
  void put_back(Qp& qp);
  void finish_drain(Time t, Qp& qp);

  Blocks blocks_;
  Mover mover_;
  const double gather_ps_;  // a byte
  std::uint64_t wqes_ = 0, retransmits_ = 0, timeouts_ = 0;
  TimedQueue<Timer> timers_;
};

}  // namespace hcasim
#endif
