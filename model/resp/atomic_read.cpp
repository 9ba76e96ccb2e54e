// SPDX-License-Identifier: BSD-3-Clause
// RDMA READ and atomic operations at the responder (IBTA 9.7.4.1.4, 9.7.5.1).
#include <algorithm>

#include "model/cc/congestion.h"
#include "model/ctx/context_gate.h"
#include "model/ctx/q_counters.h"
#include "model/pcie/dma.h"
#include "model/profile.h"
#include "model/resp/responder.h"
#include "model/rules.h"
#include "model/sched/qos.h"
#include "model/sched/scheduler.h"
#include "model/tpt/tpt.h"
#include "prm/prm.h"
#include "traces/tracer.h"

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
  blocks_.tracer.record(Point::kReadReqRx, t, {qp.function, p.trace_qpn}, p.wqe_serial, p.psn, p.dma_len);
  if (!qp.rre || p.dma_len > 1u << 31 || !room_for_resource(qp)) {
    if (!qp.rre)
      broke_access(blocks_.tracer, Rule::kQpRights, t, RuleObject::kQp, qp.subject(), p.va, p.rkey,
                   p.dma_len);
    fail(t, qp, p, NakCode::kInvalidReq, EqeType::kWqInvalidReq);
    return false;
  }
  TptStatus status = TptStatus::kOk;
  if (p.dma_len) status = blocks_.tpt.check(p.rkey, rights_user(qp), Access::kRemoteRead, p.va, p.dma_len);
  if (status != TptStatus::kOk) {
    ++blocks_.q_counters[qp.function][qp.counter_set].resp_remote_access_errors;
    broke_access(blocks_.tracer, remote_rule(status), t, RuleObject::kQp, qp.subject(), p.va, p.rkey,
                 p.dma_len);
    blocks_.tracer.record(Point::kAccessErr, t, {qp.function, p.trace_qpn}, p.wqe_serial, p.rkey, p.va);
    fail(t, qp, p, NakCode::kRemoteAccess, EqeType::kWqAccess);
    return false;
  }
  ++blocks_.q_counters[qp.function][qp.counter_set].rx_read_requests;
  ResponderResource r;
  r.first_psn = p.psn;
  r.packets = packets_of(p.dma_len, qp.mtu);
  r.va = p.va;
  r.rkey = p.rkey;
  r.length = p.dma_len;
  r.pd = rights_pd(qp);
  s.msn = (s.msn + 1) & 0xffffff;
  r.msn = s.msn;
  r.ready = blocks_.contexts.read_usable_at(t, qp, s.msn);
  r.written = not_before_data(0, qp);
  r.trace_qpn = p.trace_qpn;
  r.wqe_serial = p.wqe_serial;
  s.expected_psn = (s.expected_psn + r.packets) & kPsnMask;
  s.resources.push_back(r);
  blocks_.scheduler.wake_responder(t, qp);
  return true;
}

namespace {

constexpr unsigned kLockBytes = 8;

// Of 2^n bytes for mode n, or up to as many; the first mode is the IB specification's own, without masks.
bool mode_allows(std::uint8_t mode, bool masked, unsigned bytes) {
  if (!masked) return true;
  if (mode == prm::k::QPC_ATOMIC_MODE_ONLY_8B) return bytes == 8;
  return mode >= prm::k::QPC_ATOMIC_MODE_UP_TO_8B && bytes <= 1u << mode;
}

// False: lengths that no requester sends.
bool operands_of(const Packet& p, AtomicOperands& op, bool& masked) {
  const auto code = static_cast<BthOp>(p.opcode & prm::bth::kOpMask);
  masked = code == BthOp::kMaskedCmpSwap || code == BthOp::kMaskedFetchAdd;
  op.compare_swap = code == BthOp::kCmpSwap || code == BthOp::kMaskedCmpSwap;
  if (!masked) {
    op.swap_add[0] = p.swap_add;
    op.compare[0] = p.compare;
    op.swap_mask[0] = op.compare_mask[0] = ~0ULL;
    return true;
  }
  op.bytes = p.dma_len;
  if (op.bytes < 4 || op.bytes > prm::kMaxAtomicBytes || (op.bytes & (op.bytes - 1)) != 0) return false;
  if (p.payload_len != op.bytes * prm::masked_atomic_operands(op.compare_swap)) return false;
  const std::uint8_t* at = p.data();
  load_words(at, op.bytes, op.swap_add);
  load_words(at + op.bytes, op.bytes, op.compare_swap ? op.compare : op.boundary);
  if (op.compare_swap) {
    load_words(at + 2 * op.bytes, op.bytes, op.swap_mask);
    load_words(at + 3 * op.bytes, op.bytes, op.compare_mask);
  }
  return true;
}

}  // namespace

bool Responder::take_atomic(Time t, Qp& qp, const Packet& p) {
  ResponderState& s = qp.resp;
  AtomicOperands op;
  bool masked = false;
  if (!operands_of(p, op, masked) || !qp.rae || !mode_allows(qp.atomic_mode, masked, op.bytes) ||
      (p.va & (op.bytes - 1)) != 0 || !room_for_resource(qp)) {
    if (!qp.rae)
      broke_access(blocks_.tracer, Rule::kQpRights, t, RuleObject::kQp, qp.subject(), p.va, p.rkey, op.bytes);
    fail(t, qp, p, NakCode::kInvalidReq, EqeType::kWqInvalidReq);
    return false;
  }
  std::vector<Fragment> where;
  const Translation tr =
      blocks_.tpt.translate(t, p.rkey, rights_user(qp), Access::kRemoteAtomic, p.va, op.bytes, where);
  if (tr.status == TptStatus::kFault && remote_fault(t, qp, p, p.rkey, p.va, op.bytes, 0)) return false;
  TptStatus status = tr.status;
  if (status == TptStatus::kOk && where.size() != 1) status = TptStatus::kBadList;
  if (status != TptStatus::kOk) {
    ++blocks_.q_counters[qp.function][qp.counter_set].resp_remote_access_errors;
    broke_access(blocks_.tracer, remote_rule(status), t, RuleObject::kQp, qp.subject(), p.va, p.rkey,
                 p.dma_len);
    blocks_.tracer.record(Point::kAccessErr, t, {qp.function, p.trace_qpn}, p.wqe_serial, p.rkey, p.va);
    fail(t, qp, p, NakCode::kRemoteAccess, EqeType::kWqAccess);
    return false;
  }
  std::uint8_t bytes[prm::kMaxAtomicBytes];
  const auto lock = [&](unsigned i) -> Time& {
    return atomic_free_[(where[0].addr / kLockBytes + i) % atomic_free_.size()];
  };
  const unsigned locks = (op.bytes + kLockBytes - 1) / kLockBytes;
  const Time asked = std::max(tr.ready, blocks_.contexts.read_usable_at(t, qp, s.msn));
  const ReadDone d =
      blocks_.dma.read_flush(asked, where[0].addr, bytes, op.bytes, where[0].space, WriteOwner(qp.function));
  if (!d.ok) {
    fail(t, qp, p, NakCode::kRemoteOp, EqeType::kWqCatas);
    return false;
  }
  // The operand in memory is in the host's order: little-endian (register HOST_ENDIANNESS).
  AtomicOperands::Words old, now;
  swap_words(bytes, op.bytes);
  load_words(bytes, op.bytes, old);
  const bool write = execute(op, old, now) && now != old;
  const Time alu = blocks_.profile.engine.atomic;
  const Time executed = alu_.reserve(d.at, alu) + alu;
  traces::trace_busy(blocks_.tracer, traces::Unit::kAtomics, 0, executed - alu, executed, qp.qpn);
  // It takes the link and the unit now, also where it waits for its lock first: what was given ahead of that
  // nobody else could use until then.
  const Time takes = d.at - asked + alu;
  Time unlocked = executed;
  for (unsigned i = 0; i < locks; ++i) unlocked = std::max(unlocked, lock(i) + takes);
  for (unsigned i = 0; i < locks; ++i) lock(i) = unlocked;
  // Those of one QP are executed one after the other, wherever they go to. The locks are not held for that:
  // they are given in the order in which requests come, and would stand idle.
  const Time done = std::max(unlocked, s.atomic_done + takes);
  s.atomic_done = done;
  if (write) {
    store_words(now, op.bytes, bytes);
    swap_words(bytes, op.bytes);
    const Time landed =
        blocks_.dma.post_write_later(executed, done - executed, where[0].addr, bytes, op.bytes,
                                     WriteOwner{WriteOwner::kQp, qp.function, qp.qpn}, where[0].space);
    s.landed = std::max(s.landed, landed);
  }
  blocks_.tracer.record(Point::kAtomicExec, done, {qp.function, p.trace_qpn}, p.wqe_serial, p.va, old[0]);
  ++blocks_.q_counters[qp.function][qp.counter_set].rx_atomic_requests;
  ResponderResource r;
  r.atomic = true;
  r.masked = masked;
  r.first_psn = p.psn;
  r.length = op.bytes;
  r.original = old;
  s.msn = (s.msn + 1) & 0xffffff;
  r.msn = s.msn;
  r.ready = done;
  r.written = not_before_data(0, qp);
  r.trace_qpn = p.trace_qpn;
  r.wqe_serial = p.wqe_serial;
  s.expected_psn = (s.expected_psn + 1) & kPsnMask;
  s.resources.push_back(r);
  blocks_.scheduler.wake_responder(done, qp);
  return true;
}

// One response packet. False: the memory may not be read any more; the QP has been failed.
bool Responder::send_response(Time& engine, Qp& qp, ResponderResource& r) {
  const Profile::Engine& e = blocks_.profile.engine;
  const bool first = r.sent == r.asked_from, last = r.sent + 1 + r.unasked == r.packets;
  BthOp op = r.masked ? BthOp::kMaskedAtomicAck : BthOp::kAtomicAck;
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
  Time ready = std::max(engine, r.ready);
  engine += first ? e.tx_response : e.tx_response_more != 0 ? e.tx_response_more : e.tx_more;
  if (r.masked) {
    p->payload_len = r.length;
    store_words(r.original, r.length, p->data());
  } else if (r.atomic) {
    p->swap_add = r.original[0];
  } else {
    const std::uint64_t offset = static_cast<std::uint64_t>(r.sent) * qp.mtu;
    p->payload_len = offset < r.length
                         ? static_cast<std::uint32_t>(std::min<std::uint64_t>(qp.mtu, r.length - offset))
                         : 0;
    if (p->payload_len) {
      ready = qp.resp.pages.begin(ready, offset, blocks_.profile);
      const MoveResult m =
          mover_.read_remote(ready, qp, r.pd, r.rkey, r.va + offset, p->payload_len, p->data());
      if (m.status == TptStatus::kFault && read_fault(ready, qp, r, p->payload_len)) return false;
      if (!m.ok()) {
        broke_access(blocks_.tracer, remote_rule(m.status), ready, RuleObject::kQp, qp.subject(), r.va,
                     r.rkey, r.length);
        const NakCode code = m.dma_ok ? NakCode::kRemoteAccess : NakCode::kRemoteOp;
        blocks_.tracer.record(Point::kAccessErr, ready, {qp.function, r.trace_qpn}, r.wqe_serial, r.rkey,
                              r.va);
        qp.resp.resources.clear();  // r is gone
        qp.resp.failing = false;
        fail(ready, qp, *p, code, EqeType::kWqAccess);
        return false;
      }
      if (m.local)
        ready = m.at;
      else
        ready = std::max(ready, qp.resp.pages.end(m.at, offset, p->payload_len, blocks_.profile) -
                                    blocks_.port.ahead_of_end(p->payload_len, gather_ps_));
    }
    blocks_.tracer.record(Point::kReadRespTx, ready, {qp.function, r.trace_qpn}, r.wqe_serial, p->psn,
                          p->payload_len);
  }
  transmit(std::max(ready + e.tx_pipeline, r.written), qp, std::move(p));
  ++r.sent;
  r.answered = r.answered || r.done();
  return true;
}

TurnResult Responder::turn(Time t, Qp& qp) {
  ResponderState& s = qp.resp;
  const bool alive = qp.state == QpState::kRtr || qp.state == QpState::kRts || qp.state == QpState::kSqd;
  if (!alive) return {t, kNever};
  const unsigned burst = blocks_.profile.engine.burst_packets;
  Time engine = t;
  unsigned packets = 0;
  for (std::size_t i = 0; i < s.resources.size(); ++i) {
    while (!s.resources[i].done()) {
      if (s.resources[i].parked) return {engine, kNever};
      if (packets >= burst) return {engine, engine};
      const Time allowed = blocks_.qos[qp.function].earliest(engine, qp, true);
      if (allowed > engine) return {engine, allowed};
      const ResponderResource& r = s.resources[i];
      const Time lead = r.atomic ? 0 : PagePace::lead(r.length, blocks_.profile);
      if (const Time open = blocks_.scheduler.port_open(qp.affinity) - lead; open > engine)
        return {engine, open, true};
      if (s.resources[i].ready > engine + blocks_.profile.pcie.read_latency) {
        return {engine, s.resources[i].ready};
      }
      if (!r.atomic && r.sent == r.asked_from && r.length != 0) {
        const Time soon = s.pages.room(blocks_.profile) - blocks_.profile.pcie.read_latency;
        if (soon > engine) return {engine, soon};
      }
      const Time paced = blocks_.cc.earliest(engine, qp);
      if (paced > engine) return {engine, paced};
      ++packets;
      if (!send_response(engine, qp, s.resources[i])) return {engine, kNever};
    }
  }
  finish_pending(engine, qp);
  return {engine, kNever};
}

}  // namespace hcasim
