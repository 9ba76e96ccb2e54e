// SPDX-License-Identifier: BSD-3-Clause
#include "model/prefetcher.h"

#include "model/agenda.h"
#include "model/cq/cq.h"
#include "model/ctx/context_gate.h"
#include "model/ctx/q_counters.h"
#include "model/ctx/qp.h"
#include "model/pcie/dma.h"
#include "model/port/port.h"
#include "model/req/requester.h"
#include "model/rx/receive_pipeline.h"
#include "model/sched/scheduler.h"
#include "model/sched/transmit_pipeline.h"
#include "model/tpt/tpt.h"

namespace hcasim {

void Prefetcher::prefetch() {
  under_way_ = true;
  Agenda::instance().prefetch();
  PacketPool::prefetch();
  blocks_.scheduler.prefetch();
  blocks_.dma.prefetch();
  blocks_.contexts.prefetch();
  blocks_.tx.prefetch();
  blocks_.requester.prefetch();
  blocks_.tpt.prefetch();
  blocks_.port.prefetch();
  blocks_.rx.prefetch();
  blocks_.cqs.prefetch();
  blocks_.q_counters.for_each([](const QCounters& q) { q.prefetch(); });
}

void Prefetcher::prefetch_targets() {
  under_way_ = false;
  Agenda::instance().prefetch_targets();
  PacketPool::prefetch_targets();
  blocks_.scheduler.prefetch_targets();
  blocks_.dma.prefetch_targets();
  blocks_.port.prefetch_targets();
}

void Prefetcher::doorbell(Time, Qp& qp) {
  if (!under_way_) return;
  qp.req.prefetch();
  if (const Cq* cq = blocks_.cqs.find(qp.function, qp.scq)) cq->prefetch();
  // On a cable to itself the responder is here too.
  if (blocks_.port.connected()) return;
  if (const Qp* peer = blocks_.qps[qp.function].find(qp.remote_qpn)) {
    peer->resp.prefetch();
    if (const Cq* cq = blocks_.cqs.find(peer->function, peer->rcq)) cq->prefetch();
  }
}

}  // namespace hcasim
