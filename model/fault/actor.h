// SPDX-License-Identifier: BSD-3-Clause
// Does what faults ask for that strike no event of their own: timed ones, from the injector, and those of
// QPs, which strike at a doorbell. What they break is the hardware's here, or handed to the firmware.
#ifndef HCASIM_MODEL_FAULT_ACTOR_H
#define HCASIM_MODEL_FAULT_ACTOR_H

#include "model/cq/cq.h"
#include "model/fault/spec.h"
#include "model/function/id.h"
#include "model/sched/turn.h"
#include "model/time.h"

namespace hcasim {

class EqUnit;
class FaultSink;
class FirmwarePort;
class HostPort;
class Injector;
class Port;
class QpErrors;
class QpTable;

class FaultActor final : public DoorbellWatcher {
 public:
  struct Blocks {
    Injector& injector;
    FaultSink& faults;
    PerFunction<HostPort> hosts;
    PerFunction<QpTable> qps;
    PerFunction<CqTable> cq_tables;
    QpErrors& errors;
    CqUnit& cqs;
    EqUnit& eqs;
    Port& port;
    PerFunction<FirmwarePort> firmware;
  };
  explicit FaultActor(const Blocks& blocks) : blocks_(blocks) {}

  // A timed fault begins, or is over.
  void act(Time t, const FaultSpec& fault, bool begin);
  // A send doorbell of a QP, while there are faults of QPs.
  void doorbell(Time t, Qp& qp) override;

 private:
  void plug(Time t, bool in);
  void break_qps(Time t, const FaultSpec& fault);
  void break_cqs(Time t, const FaultSpec& fault);
  void break_qp(Time t, Qp& qp, FaultAction how);

  Blocks blocks_;
};

}  // namespace hcasim
#endif
