// SPDX-License-Identifier: BSD-3-Clause
// What a WQE will touch, asked for ahead (model/prefetch.h): the blocks' own lines while whoever runs the
// model is only just coming in, what these point to a little later, and the QP's when a doorbell has named
// it. Each block and object says itself which lines these are: prefetch(), prefetch_targets().
#ifndef HCASIM_MODEL_PREFETCHER_H
#define HCASIM_MODEL_PREFETCHER_H

#include "model/function/id.h"
#include "model/sched/turn.h"

namespace hcasim {

class ContextGate;
class CqUnit;
class Dma;
class Port;
class QCounters;
class QpTable;
class ReceivePipeline;
class Requester;
class Scheduler;
class Tpt;
class TransmitPipeline;

class Prefetcher final : public DoorbellWatcher {
 public:
  struct Blocks {
    Scheduler& scheduler;
    Dma& dma;
    ContextGate& contexts;
    TransmitPipeline& tx;
    Requester& requester;
    Tpt& tpt;
    Port& port;
    ReceivePipeline& rx;
    CqUnit& cqs;
    PerFunction<QpTable> qps;
    PerFunction<QCounters> q_counters;
  };
  explicit Prefetcher(const Blocks& blocks) : blocks_(blocks) {}

  void prefetch();
  void prefetch_targets();
  // Between the two calls.
  bool under_way() const { return under_way_; }
  // Between the two: what a doorbell names is asked for as well.
  void doorbell(Time t, Qp& qp) override;

 private:
  Blocks blocks_;
  bool under_way_ = false;
};

}  // namespace hcasim
#endif
