// SPDX-License-Identifier: BSD-3-Clause
// On-demand paging: page faults of the transport's scheme. An access to an MTT entry without the flags it
// needs, or to the null key of an indirect list, stops the queue that made it; an event notifies the driver,
// which brings the pages in and resumes the queue (EQE: prm/eqe.h; kernel mlx5 driver.h and device.h). Both
// engines raise faults here, firmware brings resumptions, and the engine that waits is notified.
#ifndef HCASIM_MODEL_TPT_FAULT_H
#define HCASIM_MODEL_TPT_FAULT_H

#include <cstdint>
#include <unordered_map>

#include "model/function/id.h"
#include "model/state/fields.h"
#include "model/state/qp_tags.h"
#include "model/time.h"

namespace hcasim {

namespace traces {
class Tracer;
}
class EqUnit;
class QpTable;
struct Qp;

// What faulted: the type of the event and of its resumption. Bit 0: at the requester, bit 2: named by R_Key
// and address instead of by WQE.
enum class FaultKind : std::uint8_t {
  kSrqReceive = 0,  // a WQE of an SRQ
  kSend = 1,        // the payload of a SEND or WRITE
  kReceive = 2,     // a receive WQE of the QP's own
  kReadAtomic = 3,  // where a READ or atomic puts its answer
  kRdmaRead = 4,
  kRdmaWrite = 6,  // and atomics
};
constexpr bool at_requester(FaultKind k) { return (static_cast<unsigned>(k) & 1) != 0; }

// A fault that an engine of a QP waits for.
struct PendingFault {
  bool active = false;
  FaultKind kind = FaultKind::kSend;
  std::uint32_t psn = 0;     // of the packet that waits
  std::uint32_t serial = 0;  // requester: of its WQE
  std::uint32_t packet = 0;  // kSend: its number in the message
  std::uint32_t queue = 0;   // kSrqReceive: SRQN
  std::uint32_t trace_qpn = 0, trace_serial = 0;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, active, kind, psn, serial, packet, queue, trace_qpn, trace_serial);
    state::qp_tags(a, trace_qpn);
  }
};

// An engine whose QPs wait for pages.
class FaultWaiter {
 public:
  // The driver has dealt with the page fault, which is one of the QP's and active; error: it could not.
  virtual void fault_resumed(Time t, Qp& qp, PendingFault& fault, bool error) = 0;

 protected:
  ~FaultWaiter() = default;
};

class PageFaults {
 public:
  struct Blocks {
    traces::Tracer& tracer;
    PerFunction<QpTable> qps;
    EqUnit& eqs;
  };
  explicit PageFaults(const Blocks& blocks) : blocks_(blocks) {}
  // Before the simulation starts.
  void connect(FaultWaiter& requester, FaultWaiter& responder) {
    requester_ = &requester;
    responder_ = &responder;
  }

  struct Wqe {
    FaultKind kind;
    std::uint32_t queue;  // QPN or SRQN
    std::uint16_t index;  // WQEBB counter of the send queue, or number of the receive WQE
    std::uint64_t done;   // bytes of the message before the packet that faulted
    std::uint32_t packet_len = 0;
    std::uint32_t trace_qpn, trace_serial;
  };
  struct Rdma {
    FaultKind kind;
    std::uint32_t rkey;
    std::uint64_t va, len, done;  // of the operation; bytes of it before the packet that faulted
    std::uint32_t packet_len;
    std::uint32_t trace_qpn, trace_serial;
  };
  // Notifies the driver. False: nobody listens, or the event queue is full; no resumption will come.
  bool raise(Time t, const Qp& qp, const Wqe& fault);
  bool raise(Time t, const Qp& qp, const Rdma& fault);

  enum class Resumed : std::uint8_t { kOk, kNoQp, kNoFault };
  // queue: as in the event; token: the event's, the QPN but for DC targets. Of a QP whose fault was forgotten
  // on the way to an error state or to reset it is good, and does nothing.
  Resumed resume(Time t, FunctionId f, FaultKind kind, std::uint32_t queue, std::uint32_t token, bool error);
  // The QP is no more: a resumption finds none.
  void forget(const Qp& qp);
  // The function is reset.
  void forget_all_of(FunctionId f);
  // As many resumptions as the QP waits for are to come: it has been loaded.
  void expect(const Qp& qp);
  void clear();

  struct Counters {
    std::uint64_t wqe = 0, rdma = 0;        // events
    std::uint64_t unheard = 0;              // faults that no event queue took
    std::uint64_t resumed = 0, failed = 0;  // without and with error

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, wqe, rdma, unheard, resumed, failed);
    }
  };
  const Counters& counters() const { return counters_; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, owed_, counters_);
  }

 private:
  bool post(Time t, const Qp& qp, std::uint8_t subtype, const void* data, std::size_t len);

  Blocks blocks_;
  FaultWaiter* requester_ = nullptr;
  FaultWaiter* responder_ = nullptr;
  std::unordered_map<std::uint64_t, unsigned> owed_;  // by context_id() of the QP: resumptions to come
  Counters counters_;
};

}  // namespace hcasim
#endif
