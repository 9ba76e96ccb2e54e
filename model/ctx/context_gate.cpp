// SPDX-License-Identifier: BSD-3-Clause
#include "model/ctx/context_gate.h"

#include <algorithm>

#include "model/ctx/fetch.h"
#include "model/health.h"
#include "model/port/traits.h"
#include "model/profile.h"
#include "model/state/state.h"
#include "traces/tracer.h"

namespace hcasim {

ContextGate::ContextGate(const Blocks& blocks)
    : blocks_(blocks),
      cache_(blocks.profile.cache.qpc, blocks.profile.cache.ways),
      reads_(std::max(1u, blocks.profile.cache.reads), blocks.profile.cache.ways),
      reads_share_(blocks.profile.pcie.read_latency / blocks.profile.cache.reads_outstanding),
      parked_(
          "parked", [this](Time due, Item& item) { pass(due, item); }, blocks.faults,
          blocks.profile.engine.batch_window) {}

Time ContextGate::usable_at(Time t, const Qp& qp) {
  const ContextFetch::Got got =
      blocks_.fetch.get(t, cache_, context_id(qp.function, qp.qpn), blocks_.profile.cache.qpc_bytes);
  if (got.missed)
    blocks_.tracer.record(traces::Point::kCtxMiss, t, qp.subject(), 0, traces::kCacheQpc, got.at - t);
  return got.at;
}

Time ContextGate::read_usable_at(Time t, const Qp& qp, std::uint32_t number) {
  if (blocks_.profile.cache.reads == 0) return t;
  if (reads_.touch(context_id(qp.function, qp.qpn) * kReads + number % kReads))
    return std::max(t, reads_.there());
  const Time at =
      blocks_.fetch.read(reads_issue_.reserve(t, reads_share_), blocks_.profile.cache.reads_bytes);
  reads_.arrives(at);
  blocks_.tracer.record(traces::Point::kCtxMiss, t, qp.subject(), 0, traces::kCacheReads, at - t);
  return at;
}

bool ContextGate::wait(Time t, const Qp& qp, Parked& parked, const PacketRef& packet) {
  const Time there = usable_at(t, qp);
  if (there <= t && parked.count == 0) return false;
  ++parked.count;
  parked.until = std::max(parked.until, there);
  if (packet->packets > 1)
    for (unsigned i = 0; i < packet->packets; ++i) packet->at[i] = std::max(packet->at[i], parked.until);
  parked_.push(parked.until, Item{qp.qpn, qp.function, qp.req.epoch, packet});
  return true;
}

void ContextGate::pass(Time due, Item& item) {
  Qp* qp = blocks_.qps[item.function].find(item.qpn);
  if (!qp || qp->req.epoch != item.epoch || blocks_.health[item.function].fatal()) return;
  const bool request = traits_of(item.packet->opcode).request;
  --(request ? qp->resp.parked : qp->req.parked).count;
  (request ? requests_ : answers_)->take(due, *qp, item.packet);
}

void ContextGate::clear() { reset_state(*this); }

}  // namespace hcasim
