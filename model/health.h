// SPDX-License-Identifier: BSD-3-Clause
// Whether a function is in service. Broken invariants are reported here; the firmware hears of them, and
// shows them to the driver in its health buffer.
#ifndef HCASIM_MODEL_HEALTH_H
#define HCASIM_MODEL_HEALTH_H

#include "model/firmware_port.h"
#include "model/pcie/host_port.h"
#include "model/state/fields.h"
#include "model/timed_queue.h"
#include "traces/tracer.h"

namespace hcasim {

class Health final : public FaultSink {
 public:
  Health(HostPort& host, const traces::FunctionTracer& tracer, FirmwarePort& firmware)
      : host_(host), tracer_(tracer), firmware_(firmware) {}

  // Out of service until reset(): doorbells and packets are ignored.
  bool fatal() const { return fatal_; }
  void reset() { fatal_ = false; }
  // The first one since reset() takes the function out of service; all are traced.
  void model_fault(const char* where, const char* what) noexcept override;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, fatal_);
  }

 private:
  HostPort& host_;
  const traces::FunctionTracer& tracer_;
  FirmwarePort& firmware_;
  bool fatal_ = false;
};

}  // namespace hcasim
#endif
