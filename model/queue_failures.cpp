// SPDX-License-Identifier: BSD-3-Clause
#include "model/queue_failures.h"

#include "model/cq/cq.h"
#include "model/ctx/eth.h"
#include "model/ctx/qp_states.h"
#include "model/eq/eq.h"
#include "model/eth/rx.h"
#include "model/req/requester.h"
#include "model/tpt/mkey.h"
#include "model/tpt/signature.h"
#include "prm/eqe.h"
#include "traces/tracer.h"

namespace hcasim {

namespace {
constexpr auto kCatastrophic = static_cast<std::uint8_t>(prm::EqeType::kWqCatas);
}  // namespace

void QueueFailures::signature_error(Time t, std::uint32_t qpn, const Mkey& mkey, const SigError& e,
                                    bool requester) {
  Qp* qp = blocks_.qps[mkey.function].find(qpn);
  if (qp == nullptr) return;
  traces::trace(blocks_.tracer, traces::Point::kAccessErr, t, qp->subject(), 0u, mkey.wire_key(), e.offset);
  if (Cq* cq = blocks_.cqs.find(qp->function, requester ? qp->scq : qp->rcq)) {
    SignatureCompletion s;
    s.mkey = mkey.wire_key();
    s.memory = e.memory;
    s.syndrome = e.syndrome;
    s.expected = e.expected;
    s.actual = e.actual;
    s.offset = e.offset;
    Completion c;
    c.opcode = static_cast<std::uint8_t>(prm::CqeOp::kSigErr);
    c.qpn = c.trace_qpn = qp->number();
    c.signature = &s;
    blocks_.cqs.post(t, *cq, c);
  }
  if (requester && qp->drain_sigerr) blocks_.requester.stop_behind(t, *qp);
}

// A queue whose completions have nowhere to go has failed too (IBTA 11.6.3.1: with the CQ, its QPs).
void QueueFailures::cq_failed(Time t, const Cq& cq) {
  const FunctionId f = cq.function;
  const std::uint32_t cqn = cq.cqn;
  blocks_.qps[f].for_each_qp([&](Qp& qp) {
    const bool sends = qp.has_sq && qp.scq == cqn, receives = (qp.has_rq || qp.use_srq) && qp.rcq == cqn;
    if ((!sends && !receives) || qp.state == QpState::kInit) return;
    if (qp.type != QpType::kDct || qp.dctn != 0) {
      blocks_.errors.qp_error(t, qp, kCatastrophic);
    } else if (qp.state != QpState::kErr) {
      qp.state = QpState::kErr;
      blocks_.eqs.qp_event(t, f, kCatastrophic, qp.qpn, prm::kEvDct);
    }
  });
  blocks_.qps[f].for_each_srq([&](Srq& srq) {
    if (!srq.has_cq() || srq.cqn != cqn || srq.error) return;
    srq.error = true;
    blocks_.eqs.srq_event(t, f, static_cast<std::uint8_t>(prm::EqeType::kSrqCatas), srq.srqn);
  });
  for (auto& entry : blocks_.eth[f].rqs)
    if (entry.second.cqn == cqn) blocks_.eth_rx.rq_failed(t, entry.second);
}

void QueueFailures::write_refused(Time t, WriteOwner owner) {
  switch (owner.kind) {
    case WriteOwner::kQp:
      if (Qp* qp = blocks_.qps[owner.function].find(owner.number))
        blocks_.errors.qp_error(t, *qp, kCatastrophic);
      break;
    case WriteOwner::kRq:
      if (Rq* rq = EthTable::find(blocks_.eth[owner.function].rqs, owner.number))
        blocks_.eth_rx.rq_failed(t, *rq);
      break;
    case WriteOwner::kCq:
      blocks_.cqs.write_refused(t, owner.function, owner.number);
      break;
    case WriteOwner::kEq:
      blocks_.eqs.write_refused(owner.function, owner.number);
      break;
    case WriteOwner::kFirmware:
    case WriteOwner::kNone:
      break;
  }
}

}  // namespace hcasim
