// SPDX-License-Identifier: BSD-3-Clause
// Event queues (eqc of mlx5_ifc.h; EQE in prm/eqe.h): writes EQEs, keeps arm state, raises MSI-X.
#ifndef HCASIM_MODEL_EQ_EQ_H
#define HCASIM_MODEL_EQ_EQ_H

#include <array>
#include <cstdint>
#include <memory>

#include "model/ctx/guest_ring.h"
#include "model/fault/injector.h"
#include "model/occupancy.h"
#include "model/pcie/dma.h"
#include "model/state/fields.h"
#include "prm/eqe.h"

namespace hcasim {

struct Eq {
  std::uint32_t eqn = 0;
  GuestRing ring;
  unsigned log_size = 0;                // EQEs
  unsigned vector = 0;                  // MSI-X
  bool overrun_ignore = false;          // eqc.oi
  std::array<std::uint64_t, 4> mask{};  // [0] = event types 63..0, bit n = type n
  std::uint32_t producer = 0;           // free-running EQE count
  std::uint32_t consumer = 0;           // from the doorbell, 24 bits extended
  bool armed = false;
  bool overrun = false;  // eqc.status = 0xa: no further EQE is written

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, eqn, ring, log_size, vector, overrun_ignore, mask, producer, consumer, armed, overrun);
  }
};

class EqUnit {
 public:
  EqUnit(const Profile& profile, Dma& dma, traces::Tracer& tracer);

  Eq* create(std::uint32_t eqn);  // null when taken or eqn > 255
  Eq* find(std::uint32_t eqn);
  bool destroy(std::uint32_t eqn);
  void clear();
  std::size_t count() const;

  // UAR +0x40 (arm) and +0x48 (no arm): ci is 24 bits. Armed with EQEs waiting: MSI-X at once. False: no such
  // EQ.
  bool doorbell(Time t, std::uint32_t eqn, std::uint32_t ci, bool arm);

  // An EQE of `type` to every EQ whose mask has it (completion and command events: to_eq()). data: up to 28
  // bytes for EQE offset 0x20. Returns when the EQE is visible, or t when nobody subscribed.
  Time post(Time t, std::uint8_t type, std::uint8_t subtype, const void* data, std::size_t len);
  // behind: whose writes the event tells of; nobody: all that are queued.
  Time to_eq(Time t, std::uint32_t eqn, std::uint8_t type, std::uint8_t subtype, const void* data,
             std::size_t len, WriteOwner behind = {});

  // Whether somebody takes events of the type, and has room for one.
  bool listening(std::uint8_t type) const;

  // Affiliated events: fills the EQE as bring-up map 5.2 has it.
  // queue: what the number is of, kEvQp, kEvRq or kEvSq of prm/eqe.h.
  Time qp_event(Time t, std::uint8_t type, std::uint32_t qpn, std::uint8_t queue = prm::kEvQp);
  Time srq_event(Time t, std::uint8_t type, std::uint32_t srqn);
  Time cq_error(Time t, std::uint32_t cqn, std::uint8_t syndrome);
  Time port_event(Time t, std::uint8_t subtype, unsigned port);

  void take_faults_from(Injector& injector) { gate_.attach(injector); }
  // The host refused to take an EQE.
  void write_refused(std::uint32_t eqn);

  std::uint64_t overruns() const { return overruns_; }
  std::uint64_t interrupts() const { return interrupts_; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, table_, writer_, overruns_, interrupts_);
  }

 private:
  // What faults make of an interrupt.
  struct Fate {
    bool lost = false;
    Time delay = 0;
  };
  Fate fate(Time t, const Eq& eq);
  Time raise(Time t, Eq& eq, Fate fate);

  const Profile& profile_;
  Dma& dma_;
  traces::Tracer& tracer_;
  std::array<std::unique_ptr<Eq>, 256> table_;
  FaultGate gate_;
  Occupancy writer_;
  std::uint64_t overruns_ = 0, interrupts_ = 0;
};

}  // namespace hcasim
#endif
