// SPDX-License-Identifier: BSD-3-Clause
#include "model/ctx/qp_states.h"

#include "model/cc/congestion.h"
#include "model/ctx/context_gate.h"
#include "model/eq/eq.h"
#include "model/firmware_port.h"
#include "prm/eqe.h"
#include "traces/tracer.h"

namespace hcasim {

void QpStates::changed(Qp& qp, QpState old) {
  const Time t = sim_now();
  blocks_.contexts.invalidate(qp);
  if (qp.state == QpState::kRst) CongestionControl::forget(qp);
  requester_->qp_changed(t, qp, old);
  responder_->qp_changed(t, qp, old);
}

void QpStates::qp_error(Time t, Qp& qp, std::uint8_t event_type) {
  if (qp.state == QpState::kErr || qp.state == QpState::kRst) return;
  ++errors_;
  qp.state = QpState::kErr;
  traces::trace(blocks_.tracer, traces::Point::kQpError, t, qp.subject(), 0u, qp.state, event_type);
  requester_->flush(t, qp);
  responder_->flush(t, qp);
  if (qp.dctn != 0) return;  // one connection of a DC target: the target goes on
  blocks_.firmware[qp.function].qp_failed(qp.qpn);
  if (event_type)
    blocks_.eqs.qp_event(t, qp.function, event_type, qp.qpn,
                         qp.type == QpType::kSq ? prm::kEvSq : prm::kEvQp);
}

}  // namespace hcasim
