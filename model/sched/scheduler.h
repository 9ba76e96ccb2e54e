// SPDX-License-Identifier: BSD-3-Clause
// The QP scheduler: takes doorbells, gives each ready QP a turn (round robin) at one of the transmit units,
// and does the same for QPs whose responder owes read or atomic responses. No QP has two units at a time. Who
// finds the port busy waits in line for it. Doorbells come from the UAR block, wake-ups from the engines and
// the tag-matching unit, resume() from the port.
#ifndef HCASIM_MODEL_SCHED_SCHEDULER_H
#define HCASIM_MODEL_SCHED_SCHEDULER_H

#include <cstdint>
#include <deque>
#include <systemc>

#include "model/doorbell.h"
#include "model/function/id.h"
#include "model/packet/packet.h"
#include "model/sched/traffic_classes.h"
#include "model/sched/turn.h"
#include "model/state/fields.h"
#include "model/timed_queue.h"
#include "model/unit_pool.h"

namespace hcasim {

namespace traces {
class Tracer;
}
class Injector;
class Port;
class QpTable;
class Qos;
struct Profile;

class Scheduler final : public sc_core::sc_module {
 public:
  struct Blocks {
    // The chip's
    const Profile& profile;
    traces::Tracer& tracer;
    FaultSink& faults;
    Port& port;  // whose room turns wait for
    PerFunction<Qos> qos;
    TrafficClasses& classes;  // whose queues have the port next
    Injector& injector;
    TurnTaker& requester;
    TurnTaker& responder;
    DoorbellWatcher& prefetcher;       // sees each doorbell first,
    DoorbellWatcher& doorbell_faults;  // and this one while there are faults of QPs
    // The function's
    PerFunction<QpTable> qps;
  };
  Scheduler(const sc_core::sc_module_name& name, const Blocks& blocks);

  // The first 8 bytes of a control segment reached a doorbell register: wqe_index is its WQEBB counter.
  // page: of the UAR register that was written. The caller counts what is not taken.
  DoorbellFate doorbell(Time t, FunctionId f, std::uint32_t qpn, std::uint16_t wqe_index, std::uint32_t page);
  // A BlueFlame burst: the WQE itself, len bytes from the control segment on. Implies doorbell().
  DoorbellFate blueflame(Time t, FunctionId f, std::uint32_t qpn, const std::uint8_t* bytes, unsigned len,
                         std::uint32_t page);

  // The QP's send side may have work at or after t (doorbell, ACK that opens the window, retry).
  void wake(Time t, Qp& qp);
  // The QP's responder has responses to send at or after t.
  void wake_responder(Time t, Qp& qp);
  // What stopped the port is over: turns that wait for it come now.
  void resume(Time t);
  // From when on the port has room for what a turn makes. Packets wait for their payload before they wait for
  // the port, so a turn may be that much ahead of it.
  // affinity: of the queue; requester: as of Port::tx_free(), or the responder.
  static constexpr std::uint32_t kResponder = 0;
  Time port_open(PortAffinity affinity, std::uint32_t requester = kResponder) const;
  // Nobody waits for the port, but for the send queue of this QP, whose turn it is. (It may wait there and
  // have a turn all the same: an acknowledgement gave it one.)
  bool alone(const Qp& qp) const { return port_queue_.empty() || alone_in_line(qp); }
  // Nobody of the function waits for the port any more.
  void leave_line(Time t, FunctionId f);
  // Scheduling elements have been made or destroyed: those above a queue in line may be others than when it
  // began to wait, and what waits below an element has to be what leaves it.
  void recount_line();
  void clear();

  std::uint64_t doorbells() const { return doorbells_; }

  // (model/prefetch.h)
  void prefetch() const {
    prefetch_line(&doorbells_);
    ready_.prefetch();
  }
  void prefetch_targets() const { ready_.prefetch_targets(); }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, units_, ready_, port_queue_);
    a("port_armed", port_armed_, kNever);
    HCASIM_FIELDS(a, port_turns_);
    a.lasting("doorbells", doorbells_);
  }

 private:
  struct Turn {
    std::uint32_t qpn;
    FunctionId function;
    bool responder;
    std::uint64_t epoch;  // RequesterState::epoch: turns of a QP that was reset meanwhile are void

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, qpn, function, responder, epoch);
    }
  };
  // Queues that the port keeps waiting, in the order in which they found it busy: each has its turn when
  // there is room, and nobody else is asked. Among queues of several traffic classes the class is chosen
  // first.
  struct Waiting {
    Turn turn;
    std::uint32_t group;  // of scheduling elements; 0: none
    Time open;            // what it asked for: alone, it gets room for as much as it wanted
    PortAffinity affinity;
    std::uint8_t tc;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, turn, group, open, affinity, tc);
      if constexpr (Archive::kLoads) a.check(tc < TrafficClasses::kCount, "there is no such traffic class");
    }
  };
  Qp* qp_of(const Turn& turn) const;
  DoorbellFate sender(Time t, FunctionId f, std::uint32_t qpn, std::uint32_t page, Qp*& qp) const;
  void ring(Time t, Qp& qp, std::uint16_t wqe_index);
  bool alone_in_line(const Qp& qp) const;
  void run(Time due, const Turn& turn);
  bool beyond(Time due, Time free) const;
  void take(Time due, const Turn& turn, Qp& qp);
  void wait_for_port(const Turn& turn, Qp& qp, Time open);
  void port_turn(Time due);
  std::deque<Waiting>::iterator first_in_line();
  std::deque<Waiting>::iterator first_of_other_port(const Waiting& than);
  Time room_for(const Waiting& w) const;
  void arm_port(Time t);
  void prefetch_next() const;

  Blocks blocks_;
  UnitPool units_;
  std::uint64_t doorbells_ = 0;
  TimedQueue<Turn> ready_;
  std::deque<Waiting> port_queue_;
  Time port_armed_ = kNever;
  TimedQueue<bool> port_turns_;
};

}  // namespace hcasim
#endif
