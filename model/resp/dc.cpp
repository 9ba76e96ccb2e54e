// SPDX-License-Identifier: BSD-3-Clause
// The DC target: finds the context that serves a packet's initiator, or makes it when the initiator connects.
// A context is a responder of its own, with its own sequence, reads and atomics; the target goes on when one
// of them fails.
#include "model/ctx/q_counters.h"
#include "model/ctx/qp.h"
#include "model/eq/eq.h"
#include "model/function/vport.h"
#include "model/port/port.h"
#include "model/profile.h"
#include "model/resp/responder.h"
#include "model/rx/receive_pipeline.h"

namespace hcasim {

using prm::Aeth;
using prm::BthOp;
using prm::EqeType;
using prm::NakCode;

namespace {

// Index of the local address that the packet came for, or the target's own.
std::uint8_t address_index(const Packet& p, const Qp& dct, const Vport& vport) {
  if (p.kind == PacketKind::kIb) {
    for (std::size_t i = 0; i < vport.gids.size(); ++i)
      if (vport.gids[i] == p.dgid) return static_cast<std::uint8_t>(i);
    return dct.path.sgid_index;
  }
  for (unsigned i = 0; i < Vport::kRoceAddresses; ++i) {
    const RoceAddress& a = vport.roce_address(i);
    if (a.valid && a.gid == p.dgid && (a.version != 0) == (p.kind == PacketKind::kRoceV2) &&
        a.vlan_valid == p.has_vlan && (!a.vlan_valid || a.vlan_id == (p.vlan_tci & 0xfff)))
      return static_cast<std::uint8_t>(i);
  }
  return dct.path.sgid_index;
}

// What a context has of its target, and the way back to the initiator.
void set_up(Qp& c, const Qp& dct, const Packet& p, const Vport& vport) {
  c.type = QpType::kDct;
  c.function = dct.function;
  c.state = QpState::kRts;
  c.dctn = dct.qpn;
  c.pd = dct.pd;
  c.rcq = dct.rcq;
  c.cs_res = dct.cs_res;
  c.has_sq = c.has_rq = false;
  c.use_srq = true;
  c.srqn = dct.srqn;
  c.user_index = dct.user_index;
  c.mtu = dct.mtu;
  c.min_rnr_nak = dct.min_rnr_nak;
  c.log_rra_max = dct.log_rra_max;
  c.rre = dct.rre;
  c.rwe = dct.rwe;
  c.rae = dct.rae;
  c.atomic_mode = dct.atomic_mode;
  c.counter_set = dct.counter_set;
  c.path = dct.path;
  c.affinity = dct.affinity;
  c.remote_qpn = p.src_qpn;
  c.path.rlid = p.slid;
  c.path.mlid = static_cast<std::uint8_t>(p.dlid & 0x7f);
  c.path.sl = p.sl;
  c.path.grh = p.has_grh;
  c.path.rgid = p.sgid;
  c.path.rmac = p.smac;
  if (p.has_vlan) c.path.eth_prio = static_cast<std::uint8_t>(p.vlan_tci >> 13);
  if (p.has_grh) {
    c.path.sgid_index = address_index(p, dct, vport);
    c.path.source = vport.roce_address(c.path.sgid_index);
  }
  c.dc_session = p.dc_session;
  c.dc_first_psn = p.dc_first_psn;
  c.dc_closed = false;
  c.resp.expected_psn = p.dc_first_psn;
}

}  // namespace

void Responder::receive_dc(Time t, Qp& dct, PacketRef& packet) {
  const Packet& p = *packet;
  if (p.dc_key != dct.dc_key) {  // not answered: the initiator's retries run out
    ++dct.dc_key_violations;
    blocks_.port.drop(t, p, DropReason::kDcKey);
    if (dct.dc_key_armed) {
      dct.dc_key_armed = false;
      blocks_.eqs.qp_event(t, dct.function, static_cast<std::uint8_t>(EqeType::kDctKeyViolation), dct.qpn,
                           prm::kEvDct);
    }
    return;
  }
  if (Qp* context = dc_context(t, dct, p)) receive(t, *context, packet);
}

void Responder::end_dc(Time t, FunctionId f, std::uint32_t dctn) {
  DcContexts& all = blocks_.qps[f].dc_contexts();
  all.for_each_of(dctn, [&](const DcContexts::Address&, Qp& context) { flush_rq(t, context); });
  all.remove_all_of(dctn);
}

// The initiator gets its answer without a context.
void Responder::dc_refuse(Time t, Qp& dct, const Packet& p, std::uint32_t psn, std::uint8_t syndrome) {
  Qp back;
  set_up(back, dct, p, blocks_.vports[dct.function]);
  send_ack(blocks_.rx.admit(t, back.resp.rx_until, 0), back, psn, syndrome, p.trace_qpn, p.wqe_serial);
}

Qp* Responder::dc_context(Time t, Qp& dct, const Packet& p) {
  constexpr Time kStale = from_ns(1e6);  // no packet is under way for so long
  DcContexts& all = blocks_.qps[dct.function].dc_contexts();
  const DcContexts::Address from = DcContexts::source_of(p);
  Qp* c = all.find(dct.qpn, p.src_qpn, from);
  const bool same = c && c->dc_session == p.dc_session && c->dc_first_psn == p.dc_first_psn;
  if ((p.opcode & prm::bth::kOpMask) == static_cast<std::uint8_t>(BthOp::kDcDisconnect)) {
    if (same) {
      c->dc_closed = true;
      c->dc_last_used = t;
    }
    return nullptr;
  }
  if (same) {
    c->dc_closed = false;
    c->dc_last_used = t;
    return c;
  }
  // A late copy from an earlier connection of the initiator.
  if (c && t - c->dc_last_used < kStale && static_cast<std::int8_t>(p.dc_session - c->dc_session) < 0)
    return nullptr;
  if (!p.dc_connect) {
    dc_refuse(t, dct, p, p.psn, Aeth::kNak | static_cast<std::uint8_t>(NakCode::kDcNoConnection));
    return nullptr;
  }
  // The receive WQE of a message that came in part goes back to its owner.
  if (c) {
    flush_rq(t, *c);
    c->req = RequesterState{};  // a new epoch
    c->resp = new_responder_state();
  } else {
    if (Qp* const oldest = all.to_reclaim(t, blocks_.profile.engine.dc_contexts)) flush_rq(t, *oldest);
    c = all.create(t, blocks_.profile.engine.dc_contexts, dct.qpn, p.src_qpn, from);
    if (!c) {
      dc_refuse(t, dct, p, p.dc_first_psn,
                static_cast<std::uint8_t>(Aeth::kRnrNak | (dct.min_rnr_nak & Aeth::kValueMask)));
      return nullptr;
    }
  }
  set_up(*c, dct, p, blocks_.vports[dct.function]);
  c->dc_last_used = t;
  ++blocks_.q_counters[dct.function][dct.counter_set].rx_dct_connect;
  return c;
}

}  // namespace hcasim
