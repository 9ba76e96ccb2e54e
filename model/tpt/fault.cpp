// SPDX-License-Identifier: BSD-3-Clause
#include "model/tpt/fault.h"

#include <algorithm>

#include "model/ctx/qp.h"
#include "model/eq/eq.h"
#include "model/state/state.h"
#include "prm/eqe.h"
#include "traces/tracer.h"

namespace hcasim {

using traces::Point;

namespace {

constexpr std::uint8_t kEvent = static_cast<std::uint8_t>(prm::EqeType::kPageFault);

std::uint32_t type_and(FaultKind kind, std::uint32_t number) {
  return static_cast<std::uint32_t>(kind) << 24 | (number & 0xffffff);
}

// The number that an event gives for the QP, and a resumption gives back: 24 bits. Responder contexts of DC
// targets, whose numbers lie above, take the upper half of them, where no QPN is.
constexpr std::uint32_t kContext = 1u << 23;
std::uint32_t token_of(const Qp& qp) {
  return qp.qpn < DcContexts::kFirst ? qp.qpn : kContext | (qp.qpn - DcContexts::kFirst);
}
Qp* of_token(QpTable& qps, std::uint32_t token) {
  Qp* qp = qps.find(token);
  return qp || !(token & kContext) ? qp : qps.find(DcContexts::kFirst + (token & (kContext - 1)));
}

// Fields narrower than what they tell of: a driver takes 0xffff as "at least".
std::uint16_t clip16(std::uint64_t v) {
  return static_cast<std::uint16_t>(std::min<std::uint64_t>(v, 0xffff));
}

// `what`: the WQE, or the address.
template <class Fault>
void trace(traces::Tracer& tracer, Time t, const Qp& qp, const Fault& f, std::uint64_t what) {
  tracer.record(
      Point::kPageFault, t, {qp.function, f.trace_qpn}, f.trace_serial,
      static_cast<std::uint64_t>(f.kind) | static_cast<std::uint64_t>(token_of(qp)) << 8 | f.done << 32,
      what);
}

}  // namespace

void PageFaults::clear() { reset_state(*this); }

void PageFaults::forget(const Qp& qp) { owed_.erase(context_id(qp.function, qp.qpn)); }

void PageFaults::forget_all_of(FunctionId f) {
  for (auto it = owed_.begin(); it != owed_.end();)
    it = it->first >> 32 == f ? owed_.erase(it) : std::next(it);
}

void PageFaults::expect(const Qp& qp) {
  const unsigned n = unsigned{qp.req.send_fault.active} + unsigned{qp.req.response_fault.active} +
                     unsigned{qp.resp.fault.active};
  if (n != 0) owed_[context_id(qp.function, qp.qpn)] = n;
}

bool PageFaults::post(Time t, const Qp& qp, std::uint8_t subtype, const void* data, std::size_t len) {
  if (!blocks_.eqs.listening(qp.function, kEvent)) {
    ++counters_.unheard;
    return false;
  }
  ++(subtype == prm::kFaultWqe ? counters_.wqe : counters_.rdma);
  ++owed_[context_id(qp.function, qp.qpn)];
  blocks_.eqs.post(t, qp.function, kEvent, subtype, data, len);
  return true;
}

bool PageFaults::raise(Time t, const Qp& qp, const Wqe& f) {
  trace(blocks_.tracer, t, qp, f, f.index);
  prm::EqePageFaultWqe data{};
  data.bytes_committed = static_cast<std::uint32_t>(f.done);
  data.wqe_index = f.index;
  data.packet_length = clip16(f.packet_len);
  data.token = token_of(qp);
  data.pftype_wq = type_and(f.kind, f.queue);
  return post(t, qp, prm::kFaultWqe, &data, sizeof data);
}

bool PageFaults::raise(Time t, const Qp& qp, const Rdma& f) {
  trace(blocks_.tracer, t, qp, f, f.va);
  prm::EqePageFaultRdma data{};
  data.bytes_committed = static_cast<std::uint32_t>(f.done);
  data.rkey = f.rkey;
  data.packet_length = clip16(f.packet_len);
  data.rdma_op_len = static_cast<std::uint32_t>(f.len);
  data.rdma_va = f.va;
  data.pftype_token = type_and(f.kind, token_of(qp));
  return post(t, qp, prm::kFaultRdma, &data, sizeof data);
}

PageFaults::Resumed PageFaults::resume(Time t, FunctionId f, FaultKind kind, std::uint32_t queue,
                                       std::uint32_t token, bool error) {
  const bool srq = kind == FaultKind::kSrqReceive;
  Qp* qp = of_token(blocks_.qps[f], token);
  if (!qp || (!srq && queue != token)) return Resumed::kNoQp;
  PendingFault& fault = !at_requester(kind)              ? qp->resp.fault
                        : kind == FaultKind::kReadAtomic ? qp->req.response_fault
                                                         : qp->req.send_fault;
  const bool waits = fault.active && fault.kind == kind && (!srq || fault.queue == queue);
  const auto owed = owed_.find(context_id(f, qp->qpn));
  if (!waits && owed == owed_.end()) return Resumed::kNoFault;
  if (owed != owed_.end() && --owed->second == 0) owed_.erase(owed);
  ++(error ? counters_.failed : counters_.resumed);
  blocks_.tracer.record(Point::kPageFaultDone, t, {f, fault.trace_qpn}, fault.trace_serial,
                        static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(token) << 8,
                        error ? 1 : 0);
  if (!waits) return Resumed::kOk;
  (at_requester(kind) ? requester_ : responder_)->fault_resumed(t, *qp, fault, error);
  return Resumed::kOk;
}

}  // namespace hcasim
