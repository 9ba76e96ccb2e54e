// SPDX-License-Identifier: BSD-3-Clause
// ACCESS_ASO: objects that packets change, read and written by a queue.
#include <cstring>
#include <vector>

#include "model/crypto/engine.h"
#include "model/pcie/dma.h"
#include "model/req/requester.h"
#include "model/tpt/tpt.h"
#include "prm/wqe.h"

namespace hcasim {

using prm::CqeSyndrome;

Requester::Step Requester::access_aso(Time& done, Qp& qp, SendWqe& wqe) {
  const auto refused = [&] {
    return refuse(wqe, CqeSyndrome::kLocalQpOp, static_cast<std::uint8_t>(WqeFault::kAso));
  };
  if (wqe.opmod == prm::kAsoFlowMeter) {
    const bool ok =
        blocks_.flows[qp.function].access_meter(qp.pd, wqe.imm, wqe.bytes.data(), wqe.bytes.size());
    return ok ? Step::kSent : refused();
  }
  SaAso::Context before{};
  if (!blocks_.crypto.access_aso(qp, wqe, before)) return refused();
  prm::AsoCtrlSeg ctrl;
  std::memcpy(&ctrl, wqe.bytes.data(), sizeof ctrl);
  if ((ctrl.va_l & prm::kAsoReadEnable) == 0) return Step::kSent;
  const PacketRef p = PacketPool::make();
  std::memcpy(p->data(), before.data(), before.size());
  const std::uint64_t va = std::uint64_t{ctrl.va_h} << 32 | (ctrl.va_l & ~prm::kAsoReadEnable);
  const std::vector<Sge> to{{va, ctrl.lkey, SaAso::kBytes}};
  const MoveResult m = mover_.scatter(done, qp, qp.pd, to, 0, p, 0, SaAso::kBytes, true);
  if (m.status != TptStatus::kOk)
    return refuse(wqe, CqeSyndrome::kLocalProt, static_cast<std::uint8_t>(m.status));
  done = m.at;
  return Step::kSent;
}

}  // namespace hcasim
