// SPDX-License-Identifier: BSD-3-Clause
#include "model/migration.h"

#include "model/cc/congestion.h"
#include "model/ctx/context_gate.h"
#include "model/eth/rx.h"
#include "model/pcie/dma.h"
#include "model/req/requester.h"
#include "model/resp/responder.h"
#include "model/sched/scheduler.h"
#include "model/tpt/fault.h"
#include "model/tpt/tpt.h"
#include "prm/cqe.h"
#include "traces/tracer.h"

namespace hcasim {

void Migration::hold_initiator(FunctionId f) { suspension(f).initiator = true; }

void Migration::hold_responder(FunctionId f) { suspension(f).responder = true; }

// Queues, flows and meters that have times begin anew, with what is under way elsewhere for them void.
void Migration::forget_times(Function& function) {
  function.qps().for_each_qp([](Qp& qp) {
    Requester::stop(qp);
    Responder::stop(qp);
    CongestionControl::forget(qp);
    qp.qos.clock.next = 0;
    qp.dc_last_used = 0;
  });
  function.qos().begin_anew();
  for (auto& [number, rq] : function.eth().rqs) {
    rq.epoch = next_epoch();
    if (rq.split) rq.split->session.reset();
  }
  for (auto& [number, object] : function.flows().meters)
    for (std::size_t i = 0; i < object.meters.size(); ++i)
      object.meters[i].set(object.parameters.data() + i * FlowMeter::kBytes);
}

void Migration::bring_to_rest(FunctionId f) {
  const Time now = sim_now();
  blocks_.eth_rx.settle(now, f);
  blocks_.cqs.settle_all_of(now, f);
  blocks_.scheduler.leave_line(now, f);
  blocks_.dma.flush(f);
  blocks_.dma.loans().settle_all(f);
  forget_times(blocks_.functions[f]);
}

void Migration::loaded(FunctionId f) {
  Function& function = blocks_.functions[f];
  forget_times(function);
  function.cqs().for_each([](Cq& cq) { cq.timer = 0; });
  restored(f);
}

void Migration::restored(FunctionId f) {
  Function& function = blocks_.functions[f];
  blocks_.contexts.invalidate_all_of(f);
  blocks_.cqs.invalidate_all_of(f);
  blocks_.tpt.invalidate_all_of(f);
  blocks_.page_faults.forget_all_of(f);
  function.qps().for_each_qp([this](const Qp& qp) { blocks_.page_faults.expect(qp); });
}

void Migration::free_responder(FunctionId f) {
  const Time now = sim_now();
  Suspension& s = suspension(f);
  s.responder = false;
  blocks_.functions[f].qps().for_each_qp([&](Qp& qp) { blocks_.responder.restart(now, qp); });
  if (s.port_event != 0) blocks_.eqs.port_event(now, f, s.port_event, 1);
  s.port_event = 0;
}

void Migration::free_initiator(FunctionId f) {
  const Time now = sim_now();
  suspension(f).initiator = false;
  blocks_.functions[f].qps().for_each_qp([&](Qp& qp) { blocks_.requester.restart(now, qp); });
}

bool Migration::misses_port_event(FunctionId f, std::uint8_t subtype) {
  Suspension& s = suspension(f);
  if (s.responder) s.port_event = subtype;
  return s.responder;
}

bool Migration::misses_doorbell(FunctionId f, std::uint64_t offset, const std::uint8_t* bytes, unsigned len) {
  Suspension& s = suspension(f);
  if (!s.responder || offset % kUarPageSize >= prm::uar::kSqDoorbell) return false;
  ++s.lost_doorbells;
  std::uint64_t value = 0;
  for (unsigned i = 0; i < len && i < 8; ++i) value = value << 8 | bytes[i];
  traces::trace(blocks_.functions[f].tracer(), traces::Point::kDoorbellBad, sim_now(),
                static_cast<std::uint32_t>(offset / kUarPageSize),
                traces::bad_store(traces::RuleObject::kUar), offset, value);
  return true;
}

}  // namespace hcasim
