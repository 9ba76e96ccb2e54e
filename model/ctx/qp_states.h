// SPDX-License-Identifier: BSD-3-Clause
// Changes of a QP's state, and who has to know: both engines, the firmware, the driver. Firmware comes here
// after it has changed a QP; engines, and whoever finds a queue broken, when one has to go to ERR.
#ifndef HCASIM_MODEL_CTX_QP_STATES_H
#define HCASIM_MODEL_CTX_QP_STATES_H

#include <cstdint>

#include "model/ctx/qp.h"
#include "model/state/fields.h"
#include "model/time.h"

namespace hcasim {

namespace traces {
class Tracer;
}
class ContextGate;
class EqUnit;
class FirmwarePort;

// What an engine asks for when it cannot go on with a QP.
class QpErrors {
 public:
  // The QP goes to ERR: its queues are flushed, firmware is notified, and the async event `event_type` is
  // raised (an EQE type; 0: none). One that is in ERR or RESET stays there, and nothing else happens.
  virtual void qp_error(Time t, Qp& qp, std::uint8_t event_type) = 0;

 protected:
  ~QpErrors() = default;
};

// An engine that works on QPs.
class QpEngine {
 public:
  // Firmware changed the state from `old` to qp.state: the engine starts, stops, drains, flushes or, in
  // RESET, forgets.
  virtual void qp_changed(Time t, Qp& qp, QpState old) = 0;
  // Completes everything that is posted with "flushed" (the QP is in kErr or kSqErr).
  virtual void flush(Time t, Qp& qp) = 0;

 protected:
  ~QpEngine() = default;
};

class QpStates final : public QpErrors {
 public:
  struct Blocks {
    traces::Tracer& tracer;
    EqUnit& eqs;
    ContextGate& contexts;
    PerFunction<FirmwarePort> firmware;
  };
  explicit QpStates(const Blocks& blocks) : blocks_(blocks) {}
  // In the order in which they are notified. Before the simulation starts.
  void connect(QpEngine& requester, QpEngine& responder) {
    requester_ = &requester;
    responder_ = &responder;
  }

  // Firmware has written attributes and state: from `old` to qp.state. CQEs of a QP that goes to RESET stay
  // in their CQs (the driver purges them).
  void changed(Qp& qp, QpState old);
  void qp_error(Time t, Qp& qp, std::uint8_t event_type) override;

  std::uint64_t errors() const { return errors_; }
  void clear() { errors_ = 0; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, errors_);
  }

 private:
  Blocks blocks_;
  QpEngine* requester_ = nullptr;
  QpEngine* responder_ = nullptr;
  std::uint64_t errors_ = 0;
};

}  // namespace hcasim
#endif
