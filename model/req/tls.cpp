// SPDX-License-Identifier: BSD-3-Clause
// The requester's WQEs for TLS: UMR and SET_PSV with a TIS's or TIR's parameters, GET_PSV, DUMP.
#include <array>
#include <cstring>
#include <vector>

#include "model/crypto/engine.h"
#include "model/pcie/dma.h"
#include "model/profile.h"
#include "model/req/requester.h"
#include "model/tpt/tpt.h"
#include "prm/crypto.h"
#include "traces/tracer.h"

namespace hcasim {

using prm::CqeSyndrome;
using prm::WqeOp;

bool Requester::is_tls(const Qp& qp, const SendWqe& wqe) {
  if (!qp.tls) return false;
  const bool parameters = wqe.opcode == WqeOp::kUmr || wqe.opcode == WqeOp::kSetPsv;
  return (parameters && wqe.opmod != 0) || wqe.opcode == WqeOp::kGetPsv || wqe.opcode == WqeOp::kDump;
}

Requester::Step Requester::run_tls(Time& done, Qp& qp, SendWqe& wqe) {
  const auto bad = static_cast<std::uint8_t>(WqeFault::kTls);
  switch (wqe.opcode) {
    case WqeOp::kGetPsv:
      return get_psv(done, qp, wqe);
    case WqeOp::kDump:
      return run_dump(done, qp, wqe);
    case WqeOp::kUmr:
      if (!blocks_.crypto.set_static(done, qp, wqe)) return refuse(wqe, CqeSyndrome::kMwBind, bad);
      break;
    default:
      if (!blocks_.crypto.set_progress(done, qp, wqe)) return refuse(wqe, CqeSyndrome::kMwBind, bad);
      break;
  }
  done += blocks_.profile.engine.umr;
  return Step::kSent;
}

// Where a TIR's tracker is, to memory.
Requester::Step Requester::get_psv(Time& done, Qp& qp, SendWqe& wqe) {
  prm::GetPsvSeg seg{};
  std::array<std::uint8_t, prm::kTlsProgressWrite> bytes{};
  if (wqe.bytes.size() >= sizeof seg) std::memcpy(&seg, wqe.bytes.data(), sizeof seg);
  if (wqe.opmod != prm::kTlsOfTir || seg.num_psv >> 4 != 1 ||
      !blocks_.crypto.get_progress(qp, seg.index[0] & 0xffffff, bytes.data()))
    return refuse(wqe, CqeSyndrome::kLocalQpOp, static_cast<std::uint8_t>(WqeFault::kTls));
  const PacketRef p = PacketPool::make();
  std::memcpy(p->data(), bytes.data(), bytes.size());
  const std::vector<Sge> to{{seg.va, seg.lkey, prm::kTlsProgressWrite}};
  const MoveResult m = mover_.scatter(done, qp, qp.pd, to, 0, p, 0, prm::kTlsProgressWrite, true);
  if (m.status != TptStatus::kOk)
    return refuse(wqe, CqeSyndrome::kLocalProt, static_cast<std::uint8_t>(m.status));
  done = m.at;
  return Step::kSent;
}

// Bytes that have left before, so that what follows is encrypted behind them; they go nowhere.
Requester::Step Requester::run_dump(Time& done, Qp& qp, SendWqe& wqe) {
  const PacketRef p = PacketPool::make();
  const auto len = static_cast<std::uint32_t>(wqe.length);
  done += blocks_.profile.engine.gather;
  const MoveResult m = mover_.gather(done, qp, wqe.sges, 0, len, p->data());
  if (m.status != TptStatus::kOk)
    return refuse(wqe, CqeSyndrome::kLocalProt, static_cast<std::uint8_t>(m.status));
  if (!m.dma_ok) return refuse(wqe, CqeSyndrome::kLocalQpOp, static_cast<std::uint8_t>(WqeFault::kFetch));
  done = m.at;
  if (!blocks_.crypto.encrypt(done, qp, wqe.imm >> 8, p->data(), len))
    return refuse(wqe, CqeSyndrome::kLocalQpOp, static_cast<std::uint8_t>(WqeFault::kTls));
  return Step::kSent;
}

}  // namespace hcasim
