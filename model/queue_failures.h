// SPDX-License-Identifier: BSD-3-Clause
// Failures that are found apart from the work of a queue, and belong to one all the same: posted writes that
// the host refused (from the DMA engine), CQs that can take no more (from the CQ unit), signatures that do
// not match (from translation). Each goes to the queues that it means.
#ifndef HCASIM_MODEL_QUEUE_FAILURES_H
#define HCASIM_MODEL_QUEUE_FAILURES_H

#include <cstdint>

#include "model/function/id.h"
#include "model/pcie/dma.h"
#include "model/time.h"

namespace hcasim {

namespace traces {
class Tracer;
}
class CqUnit;
class EqUnit;
class EthRx;
class QpErrors;
class QpTable;
class Requester;
class EthTable;
struct Cq;
struct Mkey;
struct SigError;

class QueueFailures {
 public:
  struct Blocks {
    traces::Tracer& tracer;
    PerFunction<QpTable> qps;
    PerFunction<EthTable> eth;
    CqUnit& cqs;
    EqUnit& eqs;
    QpErrors& errors;
    Requester& requester;
    EthRx& eth_rx;
  };
  explicit QueueFailures(const Blocks& blocks) : blocks_(blocks) {}

  void write_refused(Time t, WriteOwner owner);
  void cq_failed(Time t, const Cq& cq);
  // requester: found in what QP qpn sends, else in what it receives.
  void signature_error(Time t, std::uint32_t qpn, const Mkey& mkey, const SigError& e, bool requester);

 private:
  Blocks blocks_;
};

}  // namespace hcasim
#endif
