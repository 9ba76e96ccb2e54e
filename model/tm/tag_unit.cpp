// SPDX-License-Identifier: BSD-3-Clause
#include "model/tm/tag_unit.h"

#include <algorithm>
#include <cstring>

#include "model/cq/cq.h"
#include "model/ctx/qp.h"
#include "model/sched/scheduler.h"
#include "prm/wqe.h"
#include "traces/tracer.h"

namespace hcasim {

using prm::CqeOp;
using prm::TmhOp;
using prm::TmListOp;
using prm::TmOp;
using traces::Point;

namespace {
constexpr std::uint16_t kNoEntry = 0xffff;
constexpr std::uint32_t kRendezvousHeaders = sizeof(prm::Tmh) + sizeof(prm::Rvh);
}  // namespace

Srq* TagUnit::queue_of(const Qp& qp) {
  Srq* srq = qp.use_srq ? blocks_.qps[qp.function].find_srq(qp.srqn) : nullptr;
  return srq && srq->tags ? srq : nullptr;
}

void TagUnit::post(Time t, const Qp& qp, const Srq& xrq, Completion& c, TmOp op, std::uint16_t index) {
  Cq* cq = blocks_.cqs.find(xrq.function, xrq.cqn);
  if (!cq) return;
  c.tm_op = static_cast<std::uint8_t>(op);
  c.tm_index = index;
  c.qpn = qp.qpn;
  c.behind = {WriteOwner::kQp, qp.function, qp.qpn};
  c.user_index = xrq.user_index != 0xffffff ? xrq.user_index : xrq.srqn;
  blocks_.cqs.post(t, *cq, c);
}

bool TagUnit::execute(Time t, Qp& qp, const SendWqe& wqe) {
  Srq* xrq = queue_of(qp);
  prm::TmSeg seg;
  if (!xrq || wqe.bytes.size() < sizeof seg) return false;
  std::memcpy(&seg, wqe.bytes.data(), sizeof seg);
  TagList& list = *xrq->tags;
  const auto op = static_cast<TmListOp>(seg.opcode >> 4);
  std::uint16_t index = seg.index;
  if (op > TmListOp::kRemove) return false;
  if (seg.flags & prm::TmSeg::kSwCnt) list.synchronize(seg.sw_cnt);

  bool good = true;
  TmOp completed = TmOp::kNoop;
  if (op == TmListOp::kAppend) {
    completed = TmOp::kAppend;
    TagEntry e;
    e.tag = seg.append_tag;
    e.mask = seg.append_mask;
    prm::DataSeg data;
    if (wqe.bytes.size() < sizeof seg + sizeof data) return false;
    std::memcpy(&data, wqe.bytes.data() + sizeof seg, sizeof data);
    if (data.byte_count & prm::InlineSeg::kFlag) return false;
    if (data.byte_count != 0) {
      e.addr = data.addr;
      e.lkey = data.lkey;
      e.len = data.byte_count;
    }
    index = list.next_index();
    if (!list.append(e, seg.index)) return false;
  } else if (op == TmListOp::kRemove) {
    completed = TmOp::kRemove;
    good = list.remove(index);  // a message may have taken it meanwhile
  }
  blocks_.tracer.record(Point::kTagOp, t, xrq->subject(), 0, static_cast<std::uint64_t>(op), index);
  if (!(seg.flags & prm::TmSeg::kCqeReq)) return true;
  Completion c;
  c.opcode = static_cast<std::uint8_t>(CqeOp::kNoPacket);
  c.wqe_counter = wqe.counter;
  prm::TmCqe head{};
  head.success = good ? prm::TmCqe::kSuccess : 0;
  head.hw_phase_cnt = list.hw_phase();
  c.tm_head = reinterpret_cast<const std::uint8_t*>(&head);
  c.tm_head_len = sizeof head;
  post(t, qp, *xrq, c, completed, op == TmListOp::kNop ? 0 : index);
  return true;
}

TagUnit::Arrival TagUnit::arrive(Time t, Qp& qp, const Packet& packet, bool last) {
  ResponderState& s = qp.resp;
  s.tagged = {};
  Srq* xrq = queue_of(qp);
  if (!xrq || xrq->error) return Arrival::kNotForTags;
  prm::Tmh tmh{};
  if (packet.payload_len >= sizeof tmh) std::memcpy(&tmh, packet.data(), sizeof tmh);
  const auto op = static_cast<TmhOp>(tmh.opcode);
  if (op != TmhOp::kEager && (op != TmhOp::kRndv || packet.payload_len < kRendezvousHeaders)) {
    s.tagged.op = TmOp::kNoTag;
    return Arrival::kUnmatched;
  }
  const std::optional<TagEntry> entry = xrq->tags->match(tmh.tag);
  blocks_.tracer.record(Point::kTagMatch, t, xrq->subject(), 0, tmh.tag, entry ? entry->index : kNoEntry);
  if (!entry) {
    s.tagged.op = TmOp::kUnexpected;
    return Arrival::kUnmatched;
  }
  ++matched_;
  s.tagged.matched = true;
  s.tagged.index = entry->index;
  std::memcpy(s.tagged.header.data(), &tmh, sizeof tmh);

  // That a match was made is reported at once, in the order of the matches; the data may take longer.
  const auto consumed = [&](TmOp what) {
    Completion c;
    c.opcode = static_cast<std::uint8_t>(CqeOp::kNoPacket);
    c.tm_head = s.tagged.header.data();
    c.tm_head_len = sizeof tmh;
    c.flags_rqpn = qp.remote_qpn;
    c.trace_qpn = packet.trace_qpn;
    c.wqe_serial = packet.wqe_serial;
    post(t, qp, *xrq, c, what, entry->index);
  };
  const bool rendezvous = op == TmhOp::kRndv;
  if (rendezvous && last && start_rendezvous(t, qp, *xrq, *entry, packet)) {
    consumed(TmOp::kConsumed);
    s.tagged = {};
    return Arrival::kDone;
  }
  // Eager data go to the buffer without their header; of a rendezvous that software must do, the headers too.
  s.tagged.skip = rendezvous ? 0 : sizeof tmh;
  if (last) {
    s.tagged.op = rendezvous ? TmOp::kConsumedMsgSwRndv : TmOp::kConsumedMsg;
  } else {
    consumed(rendezvous ? TmOp::kConsumedSwRndv : TmOp::kConsumed);
    s.tagged.op = TmOp::kExpected;
  }
  s.wqe.valid = true;
  s.wqe.counter = 0;
  s.wqe.pd = xrq->pd;
  s.wqe.srqn = xrq->srqn;
  s.wqe.sges.clear();
  if (entry->len) s.wqe.sges.push_back(Sge{entry->addr, entry->lkey, entry->len});
  s.wqe.capacity = entry->len;
  return Arrival::kMatched;
}

void TagUnit::accepted(Qp& qp) {
  if (qp.resp.tagged.op != TmOp::kUnexpected) return;
  ++unexpected_;
  if (Srq* xrq = queue_of(qp)) xrq->tags->unexpected();
}

void TagUnit::complete_message(Qp& qp, Completion& c) {
  const ResponderState::Tagged& m = qp.resp.tagged;
  if (m.op == TmOp{}) return;
  c.tm_op = static_cast<std::uint8_t>(m.op);
  c.tm_index = m.index;
  if (m.matched && m.op != TmOp::kExpected) {
    c.tm_head = m.header.data();
    c.tm_head_len = static_cast<std::uint32_t>(m.header.size());
  }
}

void TagUnit::cancel(Time t, Qp& qp, std::uint16_t index) {
  const Srq* xrq = queue_of(qp);
  if (!xrq) return;
  ++refused_;
  blocks_.tracer.record(Point::kTagRefused, t, xrq->subject(), 0, static_cast<std::uint64_t>(TmOp::kCanceled),
                        index);
  Completion c;
  c.opcode = static_cast<std::uint8_t>(CqeOp::kNoPacket);
  post(t, qp, *xrq, c, TmOp::kCanceled, index);
}

constexpr std::size_t kMostReads = 1024;  // of a QP that wait: more would come than its peer answers

// False: software must do it.
bool TagUnit::start_rendezvous(Time t, Qp& qp, const Srq& xrq, const TagEntry& entry, const Packet& packet) {
  prm::Rvh rvh;
  std::memcpy(&rvh, packet.data() + sizeof(prm::Tmh), sizeof rvh);
  if (!xrq.rendezvous || !qp.rendezvous || qp.state != QpState::kRts || rvh.len > entry.len ||
      rvh.len > 1ULL << std::min(qp.log_msg_max, 31u) || qp.req.own.size() >= kMostReads)
    return false;
  SendWqe w;
  w.opcode = prm::WqeOp::kRdmaRead;
  w.signaled = true;
  w.rendezvous = SendWqe::Rendezvous::kRead;
  w.tag_index = entry.index;
  w.raddr = rvh.va;
  w.rkey = rvh.rkey;
  w.length = rvh.len;
  if (rvh.len) w.sges.push_back(Sge{entry.addr, entry.lkey, rvh.len});
  w.bytes.assign(packet.data(), packet.data() + kRendezvousHeaders);
  qp.req.own.push_back(std::move(w));
  blocks_.scheduler.wake(t, qp);
  return true;
}

void TagUnit::request_done(Time t, Qp& qp, const SendWqe& wqe, bool good) {
  if (wqe.rendezvous != SendWqe::Rendezvous::kRead) return;  // the data have been reported
  Srq* xrq = queue_of(qp);
  if (!good) {
    cancel(t, qp, wqe.tag_index);
    return;
  }
  if (xrq) {
    Completion c;
    c.opcode = static_cast<std::uint8_t>(CqeOp::kRespSend);
    c.byte_cnt = static_cast<std::uint32_t>(wqe.length);
    c.flags_rqpn = qp.remote_qpn;
    post(t, qp, *xrq, c, TmOp::kExpected, wqe.tag_index);
  }
  SendWqe w;
  w.opcode = prm::WqeOp::kSend;
  w.signaled = true;
  w.rendezvous = SendWqe::Rendezvous::kFin;
  w.tag_index = wqe.tag_index;
  w.inline_data = true;
  w.bytes = wqe.bytes;
  w.bytes[offsetof(prm::Tmh, opcode)] = static_cast<std::uint8_t>(TmhOp::kFin);
  w.length = w.bytes.size();
  qp.req.own.push_back(std::move(w));
  blocks_.scheduler.wake(t, qp);
}

}  // namespace hcasim
