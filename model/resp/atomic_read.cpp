// SPDX-License-Identifier: BSD-3-Clause
// RDMA READ and atomic operations at the responder (IBTA 9.7.4.1.4, 9.7.5.1).
#include <algorithm>

#include "model/hca.h"
#include "model/resp/responder.h"

namespace hcasim {

using prm::Aeth;
using prm::BthOp;
using prm::EqeType;
using prm::NakCode;
using traces::Point;

// Makes room for one more read or atomic: the oldest answered one is forgotten, also when a late duplicate
// has it sent again: that the requester asks for more says that it has its answer.
bool Responder::room_for_resource(Qp& qp) {
  ResponderState& s = qp.resp;
  if (s.resources.size() < 1u << qp.log_rra_max) return true;
  if (!s.resources.front().answered) return false;
  s.resources.pop_front();
  return true;
}

bool Responder::take_read(Time t, Qp& qp, const Packet& p) {
  ResponderState& s = qp.resp;
  hca_.tracer().record(Point::kReadReqRx, t, p.trace_qpn, p.wqe_serial, p.psn, p.dma_len);
  if (!qp.rre || p.dma_len > 1u << 31 || !room_for_resource(qp)) {
    fail(t, qp, p, NakCode::kInvalidReq, EqeType::kWqInvalidReq);
    return false;
  }
  TptStatus status = TptStatus::kOk;
  if (p.dma_len) status = hca_.tpt().check(p.rkey, qp.pd, qp.qpn, Access::kRemoteRead, p.va, p.dma_len);
  if (status != TptStatus::kOk) {
    ++hca_.q_counter(qp.counter_set).resp_remote_access_errors;
    hca_.tracer().record(Point::kAccessErr, t, p.trace_qpn, p.wqe_serial, p.rkey, p.va);
    fail(t, qp, p, NakCode::kRemoteAccess, EqeType::kWqAccess);
    return false;
  }
  ++hca_.q_counter(qp.counter_set).rx_read_requests;
  ResponderResource r;
  r.first_psn = p.psn;
  r.packets = std::max<std::uint32_t>(
      1, static_cast<std::uint32_t>((std::uint64_t{p.dma_len} + qp.mtu - 1) / qp.mtu));
  r.va = p.va;
  r.rkey = p.rkey;
  r.length = p.dma_len;
  s.msn = (s.msn + 1) & 0xffffff;
  r.msn = s.msn;
  r.ready = t;
  r.trace_qpn = p.trace_qpn;
  r.wqe_serial = p.wqe_serial;
  s.expected_psn = (s.expected_psn + r.packets) & kPsnMask;
  s.resources.push_back(r);
  hca_.scheduler().wake_responder(t, qp);
  return true;
}

bool Responder::take_atomic(Time t, Qp& qp, const Packet& p) {
  ResponderState& s = qp.resp;
  if (!qp.rae || (p.va & 7) || !room_for_resource(qp)) {
    fail(t, qp, p, NakCode::kInvalidReq, EqeType::kWqInvalidReq);
    return false;
  }
  std::vector<Fragment> where;
  const Translation tr =
      hca_.tpt().translate(t, p.rkey, qp.pd, qp.qpn, Access::kRemoteAtomic, p.va, 8, where);
  TptStatus status = tr.status;
  if (status == TptStatus::kOk && where.size() != 1) status = TptStatus::kBadList;
  if (status != TptStatus::kOk) {
    ++hca_.q_counter(qp.counter_set).resp_remote_access_errors;
    hca_.tracer().record(Point::kAccessErr, t, p.trace_qpn, p.wqe_serial, p.rkey, p.va);
    fail(t, qp, p, NakCode::kRemoteAccess, EqeType::kWqAccess);
    return false;
  }
  // Operand in memory: host order of a little-endian host (atomic_req_8B_endianness_mode 1).
  std::uint8_t bytes[8];
  Time& free = atomic_free_[(where[0].addr >> 3) % atomic_free_.size()];
  const ReadDone d = hca_.dma().read_flush(std::max(tr.ready, free), where[0].addr, bytes, sizeof bytes);
  if (!d.ok) {
    fail(t, qp, p, NakCode::kRemoteOp, EqeType::kWqCatas);
    return false;
  }
  std::uint64_t old = 0;
  for (unsigned i = 0; i < 8; ++i) old |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
  std::uint64_t value = old;
  if (static_cast<BthOp>(p.opcode) == BthOp::kFetchAdd)
    value = old + p.swap_add;
  else if (old == p.compare)
    value = p.swap_add;
  const Time done = d.at + hca_.profile().engine.atomic;
  free = done;
  if (value != old) {
    for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<std::uint8_t>(value >> (8 * i));
    hca_.dma().post_write(done, where[0].addr, bytes, sizeof bytes, WriteOwner{WriteOwner::kQp, qp.qpn});
  }
  hca_.tracer().record(Point::kAtomicExec, done, p.trace_qpn, p.wqe_serial, p.va, old);
  ++hca_.q_counter(qp.counter_set).rx_atomic_requests;
  ResponderResource r;
  r.atomic = true;
  r.first_psn = p.psn;
  r.original = old;
  s.msn = (s.msn + 1) & 0xffffff;
  r.msn = s.msn;
  r.ready = done;
  r.trace_qpn = p.trace_qpn;
  r.wqe_serial = p.wqe_serial;
  s.expected_psn = (s.expected_psn + 1) & kPsnMask;
  s.resources.push_back(r);
  hca_.scheduler().wake_responder(done, qp);
  return true;
}

// One response packet. False: the memory may not be read any more; the QP has been failed.
bool Responder::send_response(Time& engine, Qp& qp, ResponderResource& r) {
  const Profile::Engine& e = hca_.profile().engine;
  const bool first = r.sent == 0, last = r.sent + 1 == r.packets;
  BthOp op = BthOp::kAtomicAck;
  if (!r.atomic)
    op = first && last ? BthOp::kReadRespOnly
         : first       ? BthOp::kReadRespFirst
         : last        ? BthOp::kReadRespLast
                       : BthOp::kReadRespMiddle;
  PacketRef p = make_reply(qp, static_cast<std::uint8_t>(op), r.first_psn + r.sent);
  p->msn = r.msn;
  p->aeth = Aeth::kAck | Aeth::kInvalidCredits;
  p->trace_qpn = r.trace_qpn;
  p->wqe_serial = r.wqe_serial;
  engine += e.tx_packet;
  Time ready = std::max(engine, r.ready);
  if (r.atomic) {
    p->swap_add = r.original;
  } else {
    const std::uint64_t offset = static_cast<std::uint64_t>(r.sent) * qp.mtu;
    p->payload_len = offset < r.length
                         ? static_cast<std::uint32_t>(std::min<std::uint64_t>(qp.mtu, r.length - offset))
                         : 0;
    if (p->payload_len) {
      const MoveResult m = mover_.read_remote(ready, qp, r.rkey, r.va + offset, p->payload_len, p->data());
      if (!m.ok()) {
        const NakCode code = m.dma_ok ? NakCode::kRemoteAccess : NakCode::kRemoteOp;
        hca_.tracer().record(Point::kAccessErr, ready, r.trace_qpn, r.wqe_serial, r.rkey, r.va);
        qp.resp.resources.clear();  // r is gone
        qp.resp.failing = false;
        fail(ready, qp, *p, code, EqeType::kWqAccess);
        return false;
      }
      ready = m.at;
    }
    hca_.tracer().record(Point::kReadRespTx, ready, r.trace_qpn, r.wqe_serial, p->psn, p->payload_len);
  }
  transmit(ready + e.tx_pipeline, qp, std::move(p));
  ++r.sent;
  r.answered = r.answered || r.done();
  return true;
}

Responder::TurnResult Responder::turn(Time t, Qp& qp) {
  ResponderState& s = qp.resp;
  const bool alive = qp.state == QpState::kRtr || qp.state == QpState::kRts || qp.state == QpState::kSqd;
  if (!alive) return {t, kNever};
  const Time backlog =
      hca_.port().backlog_limit() + hca_.profile().pcie.read_latency + hca_.profile().engine.tx_pipeline;
  const unsigned burst = hca_.profile().engine.burst_packets;
  Time engine = t;
  unsigned packets = 0;
  for (std::size_t i = 0; i < s.resources.size(); ++i) {
    while (!s.resources[i].done()) {
      if (packets >= burst) return {engine, engine};
      if (hca_.port().tx_free() > engine + backlog) return {engine, hca_.port().tx_free() - backlog};
      if (s.resources[i].ready > engine + hca_.profile().pcie.read_latency) {
        return {engine, s.resources[i].ready};
      }
      ++packets;
      if (!send_response(engine, qp, s.resources[i])) return {engine, kNever};
    }
  }
  finish_pending(engine, qp);
  return {engine, kNever};
}

}  // namespace hcasim
