// SPDX-License-Identifier: BSD-3-Clause
// Datagrams at the responder: UD QPs and the port's management QPs (IBTA 9.8.3).
#include <algorithm>
#include <cstring>

#include "model/ctx/q_counters.h"
#include "model/ctx/qp_states.h"
#include "model/port/codec.h"
#include "model/port/port.h"
#include "model/port/traits.h"
#include "model/resp/datagram_flags.h"
#include "model/resp/responder.h"
#include "traces/tracer.h"

namespace hcasim {

using prm::CqeOp;
using prm::CqeSyndrome;
using traces::Point;

namespace {

constexpr std::uint32_t kGsiQkey = 0x80010000;  // IBTA 10.2.5: well-known Q_Key of QP1

}  // namespace

void Responder::receive_ud(Time t, Qp& qp, PacketRef& packet) {
  ResponderState& s = qp.resp;
  const Packet& p = *packet;
  const auto drop = [&](DropReason reason) { trace_drop(blocks_.tracer, t, p, reason); };
  const std::uint32_t qkey = qp.type == QpType::kQp1 ? kGsiQkey : qp.qkey;
  if (qp.type != QpType::kQp0 && p.qkey != qkey) return blocks_.port.drop(t, p, DropReason::kQkey);
  if (s.fault.active) return drop(DropReason::kPageFault);
  if (!s.wqe.valid) {
    switch (take_wqe(t, qp, p)) {
      case Take::kTaken:
        break;
      case Take::kEmpty:
        ++blocks_.q_counters[qp.function][qp.counter_set].out_of_buffer;
        return drop(DropReason::kNoBuffer);
      case Take::kBroken:
        if (s.wqe.valid) receive_error(t, qp, CqeSyndrome::kLocalQpOp, 0);
        blocks_.errors.qp_error(t, qp, static_cast<std::uint8_t>(prm::EqeType::kWqCatas));
        return;
    }
  }
  if (std::uint64_t{p.payload_len} + kGrhArea > s.wqe.capacity) {
    ++blocks_.q_counters[qp.function][qp.counter_set].resp_local_length_error;
    receive_error(t, qp, CqeSyndrome::kLocalLength, 0);
    blocks_.errors.qp_error(t, qp, 0);
    return;
  }
  MoveResult r;
  if (p.has_grh) {
    PacketRef head = PacketPool::make();
    network_header(p, head->data());
    head->payload_len = kGrhArea;
    r = mover_.scatter(t, qp, s.wqe.pd, s.wqe.sges, 0, head, 0, kGrhArea, true);
  }
  if (r.ok() && p.payload_len)
    r = mover_.scatter(t, qp, s.wqe.pd, s.wqe.sges, kGrhArea, packet, 0, p.payload_len, true);
  s.received = 0;
  if (r.status == TptStatus::kFault && receive_fault(t, qp, p, 0)) return;
  if (!r.ok()) {
    blocks_.tracer.record(Point::kAccessErr, t, {qp.function, p.trace_qpn}, p.wqe_serial,
                          s.wqe.sges.empty() ? 0 : s.wqe.sges[0].lkey, 0);
    receive_error(t, qp, CqeSyndrome::kLocalProt, static_cast<std::uint8_t>(r.status));
    blocks_.errors.qp_error(t, qp, 0);
    return;
  }
  blocks_.tracer.record(Point::kScattered, r.at, {qp.function, p.trace_qpn}, p.wqe_serial, p.payload_len,
                        qp.qpn);

  const bool imm = traits_of(p.opcode).imm;
  Completion c;
  c.opcode = static_cast<std::uint8_t>(imm ? CqeOp::kRespSendImm : CqeOp::kRespSend);
  c.byte_cnt = p.payload_len + kGrhArea;
  // The driver of the GSI QP looks its P_Key up by value here.
  c.imm = imm ? p.imm : qp.type == QpType::kQp1 ? p.pkey : 0;
  c.solicited = p.solicited;
  c.slid = p.slid;
  c.flags_rqpn = (p.src_qpn & 0xffffff) | header_flags(p);
  c.has_vlan = p.has_vlan;
  c.vlan = p.vlan_tci;
  c.ml_path = static_cast<std::uint8_t>(p.dlid & 0x7f);
  c.trace_qpn = p.trace_qpn;
  c.wqe_serial = p.wqe_serial;
  post_receive(t, qp, s.wqe, c);
  s.wqe.valid = false;
}

}  // namespace hcasim
