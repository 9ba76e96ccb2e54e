// SPDX-License-Identifier: BSD-3-Clause
// Event queues (eqc of mlx5_ifc.h; EQE in prm/eqe.h): writes EQEs, keeps arm state, raises MSI-X.
#ifndef HCASIM_MODEL_EQ_EQ_H
#define HCASIM_MODEL_EQ_EQ_H

#include <array>
#include <cstdint>
#include <memory>

#include "model/ctx/guest_ring.h"
#include "model/doorbell.h"
#include "model/eq/interrupt_pace.h"
#include "model/fault/injector.h"
#include "model/function/id.h"
#include "model/function/number_table.h"
#include "model/occupancy.h"
#include "model/pcie/dma.h"
#include "model/state/fields.h"
#include "prm/eqe.h"

namespace hcasim {

struct Eq {
  std::uint32_t eqn = 0;
  FunctionId function = 0;
  GuestRing ring;
  unsigned log_size = 0;                // EQEs
  unsigned vector = 0;                  // MSI-X
  bool overrun_ignore = false;          // eqc.oi
  std::array<std::uint64_t, 4> mask{};  // [0] = event types 63..0, bit n = type n
  std::uint32_t producer = 0;           // free-running EQE count
  std::uint32_t consumer = 0;           // from the doorbell, 24 bits extended
  bool armed = false;
  std::uint32_t uar_page = kAnyUarPage;  // eqc.uar_page
  bool overrun = false;                  // eqc.status = 0xa: no further EQE is written

  traces::Subject subject() const { return {function, eqn}; }
  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, eqn, ring, log_size, vector, overrun_ignore, mask, producer, consumer, armed, overrun);
    HCASIM_FIELDS_SINCE(18, a, uar_page);
  }
};

// The EQs of a function.
using EqTable = NumberTable<Eq, &Eq::eqn, 256>;

// Writes events of all functions; each into EQs of its own.
class EqUnit {
 public:
  EqUnit(const Profile& profile, Dma& dma, traces::Tracer& tracer, PerFunction<EqTable> tables,
         PerFunction<InterruptPace> paces);

  Eq* find(FunctionId f, std::uint32_t eqn) const { return tables_[f].find(eqn); }
  // After what has been posted to it has been written. False: there is none.
  bool destroy(FunctionId f, std::uint32_t eqn);
  void clear();

  // UAR page `page`, +0x40 (arm) and +0x48 (no arm): ci is 24 bits. Armed with EQEs waiting: MSI-X at once.
  DoorbellFate doorbell(Time t, FunctionId f, std::uint32_t eqn, std::uint32_t ci, bool arm,
                        std::uint32_t page);

  // An EQE of `type` to every EQ of the function whose mask has it (completion and command events: to_eq()).
  // data: up to 28 bytes for EQE offset 0x20. Returns when the EQE is visible, or t when nobody subscribed.
  Time post(Time t, FunctionId f, std::uint8_t type, std::uint8_t subtype, const void* data, std::size_t len);
  // behind: whose writes the event reports; nobody: all that are queued.
  Time to_eq(Time t, FunctionId f, std::uint32_t eqn, std::uint8_t type, std::uint8_t subtype,
             const void* data, std::size_t len, WriteOwner behind = {});

  // Whether somebody takes events of the type, and has room for one.
  bool listening(FunctionId f, std::uint8_t type) const;

  // Affiliated events: fills the EQE as bring-up map 5.2 has it.
  // queue: what the number is of, kEvQp, kEvRq or kEvSq of prm/eqe.h.
  Time qp_event(Time t, FunctionId f, std::uint8_t type, std::uint32_t qpn, std::uint8_t queue = prm::kEvQp);
  Time srq_event(Time t, FunctionId f, std::uint8_t type, std::uint32_t srqn);
  Time cq_error(Time t, FunctionId f, std::uint32_t cqn, std::uint8_t syndrome);
  // To the function that manages the E-Switch: the lists of that vport have changed.
  Time vport_event(Time t, FunctionId manager, std::uint16_t vport);
  // To the function that manages sub-functions: the state of that one has changed.
  Time vhca_event(Time t, FunctionId manager, std::uint16_t function_id);
  // Something to be told of general object `number`.
  Time object_event(Time t, FunctionId f, std::uint16_t type, std::uint32_t number);
  Time port_event(Time t, FunctionId f, std::uint8_t subtype, unsigned port);

  void take_faults_from(Injector& injector) { gate_.attach(injector); }
  // The host refused to take an EQE.
  void write_refused(FunctionId f, std::uint32_t eqn);

  std::uint64_t overruns() const { return overruns_; }
  std::uint64_t interrupts() const { return interrupts_; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, writer_, overruns_, interrupts_);
  }

 private:
  // What its vector's pace and faults make of an interrupt.
  struct Fate {
    bool lost = false;
    Time delay = 0;
  };
  Fate fate(Time t, const Eq& eq);
  Time raise(Time t, Eq& eq, Fate fate);

  const Profile& profile_;
  Dma& dma_;
  traces::Tracer& tracer_;
  const PerFunction<EqTable> tables_;
  const PerFunction<InterruptPace> paces_;
  FaultGate gate_;
  Occupancy writer_;
  std::uint64_t overruns_ = 0, interrupts_ = 0;
};

}  // namespace hcasim
#endif
