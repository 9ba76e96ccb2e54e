// SPDX-License-Identifier: BSD-3-Clause
// DC targets: CREATE_DCT, DRAIN_DCT, DESTROY_DCT, QUERY_DCT, ARM_DCT_FOR_KEY_VIOLATION. They share the
// numbers of QPs. In the model a DCT is a QP of type kDct that owns no queue; its connections are
// model/resp/dc.cpp's.
#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/objects/qp_context.h"
#include "prm/eqe.h"

namespace hcasim::fw {

namespace {

using In = prm::create_dct_in;
using C = In::dct_context_entry;

enum : std::uint32_t { kActive = 0, kDrained = 2 };  // dctc.state; nothing stays in DRAINING here

bool find(Firmware& fw, std::uint32_t dctn, QpObject*& object, Qp*& dct) {
  object = fw.objects().qps.find(dctn);
  dct = fw.function().qps().find(dctn);
  return object != nullptr && dct != nullptr && object->is_dct();
}

Syndrome check_path(Firmware& fw, const Command& cmd) {
  const Vport& vport = fw.function().vport();
  // Of a card whose ports are aggregated: the one that answers leave by, as lag_tx_port_affinity of a QP.
  const std::uint32_t port = cmd.get<C::port>();
  if (cmd.get<C::pkey_index>() >= vport.pkeys.size() || (port > 1 && !affinity_offered(fw.caps(), port)))
    return Syndrome::kQpPath;
  const std::uint32_t index = cmd.get<C::my_addr_index>();
  const bool valid = fw.device().port().link() == LinkType::kEthernet ? vport.roce_address(index).valid
                                                                      : index < vport.gids.size();
  return valid ? Syndrome::kOk : Syndrome::kQpPath;
}

// has_ports: the physical function of a card of two; its port is an affinity. Drivers of others always name
// the first.
void fill(Qp& dct, const Command& cmd, bool ethernet, bool has_ports) {
  dct.type = QpType::kDct;
  dct.state = QpState::kRtr;
  dct.has_sq = dct.has_rq = false;
  dct.pd = cmd.get<C::pd>();
  dct.rcq = cmd.get<C::cqn>();
  dct.cs_res = static_cast<prm::InlineScatter>(cmd.get<C::cs_res>());
  dct.use_srq = true;
  dct.srqn = cmd.get<C::srqn_xrqn>();
  dct.user_index = cmd.get<C::user_index>();
  dct.counter_set = static_cast<std::uint8_t>(cmd.get<C::counter_set_id>());
  dct.rre = cmd.get<C::rre>() != 0;
  dct.rwe = cmd.get<C::rwe>() != 0;
  dct.rae = cmd.get<C::rae>() != 0;
  dct.atomic_mode = static_cast<std::uint8_t>(cmd.get<C::atomic_mode>());
  dct.min_rnr_nak = static_cast<std::uint8_t>(cmd.get<C::min_rnr_nak>());
  dct.mtu = mtu_bytes(cmd.get<C::mtu>());
  dct.dc_key = cmd.get<C::dc_access_key>();
  dct.path.grh = ethernet;
  dct.path.pkey_index = static_cast<std::uint16_t>(cmd.get<C::pkey_index>());
  dct.path.sgid_index = static_cast<std::uint8_t>(cmd.get<C::my_addr_index>());
  dct.path.tclass = static_cast<std::uint8_t>(cmd.get<C::tclass>());
  dct.path.dscp = dct.path.tclass >> 2;
  dct.path.flow_label = cmd.get<C::flow_label>();
  dct.path.hop_limit = static_cast<std::uint8_t>(cmd.get<C::hop_limit>());
  if (dct.path.hop_limit == 0) dct.path.hop_limit = kDefaultHops;
  dct.path.eth_prio = static_cast<std::uint8_t>(cmd.get<C::eth_prio>());
  if (has_ports) dct.affinity.port = static_cast<std::uint8_t>(cmd.get<C::port>());
}

}  // namespace

Syndrome create_dct(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  Device& device = fw.device();
  Function& function = fw.function();
  if (cmd.get<C::state>() != kActive) return Syndrome::kQpState;
  if (cmd.get<C::rlky>() != 0 || cmd.get<C::cs_res>() > static_cast<std::uint32_t>(prm::InlineScatter::k64))
    return Syndrome::kQpFeature;
  const unsigned mtu = mtu_bytes(cmd.get<C::mtu>());
  if (mtu == 0 || mtu > device.profile().port.max_mtu) return Syndrome::kQpMtu;
  if (cmd.get<C::rae>() != 0 && !atomic_mode_offered(fw.caps(), cmd.get<C::atomic_mode>(), true))
    return Syndrome::kQpAtomicMode;
  PlainObject* pd = o.pds.find(cmd.get<C::pd>());
  if (pd == nullptr) return Syndrome::kQpPd;
  CqObject* cq = o.cqs.find(cmd.get<C::cqn>());
  if (cq == nullptr) return Syndrome::kQpRecvCq;
  const std::uint32_t srqn = cmd.get<C::srqn_xrqn>();
  SrqObject* srq = o.srqs.find(srqn);
  if (srq == nullptr) return Syndrome::kQpSrq;
  if (srq->kind == ObjType::kXrcSrq) return Syndrome::kSrqKind;
  const std::uint32_t counter = cmd.get<C::counter_set_id>();
  PlainObject* counters = o.q_counters.find(counter);
  if (counter != 0 && counters == nullptr) return Syndrome::kQpCounter;
  const Syndrome path = check_path(fw, cmd);
  if (path != Syndrome::kOk) return path;
  if (o.qps.full()) return Syndrome::kQpLimit;
  if (!fw.pages().charge(kIcmQp)) return Syndrome::kWaitPages;

  std::uint32_t dctn = 0;
  QpObject* object = o.qps.create(dctn);
  Qp* dct = function.qps().create(dctn);
  if (dct == nullptr) {
    o.qps.destroy(dctn);
    fw.pages().release(kIcmQp);
    return Syndrome::kQpModelRefused;
  }
  object->dctc.assign(prm::ptr<C>(cmd.in.data()), prm::ptr<C>(cmd.in.data()) + C::bytes);
  object->pd = Ref(pd);
  object->rcq = Ref(cq);
  object->srq = Ref(srq);
  object->counter_set = Ref(counters);
  fill(*dct, cmd, device.port().link() == LinkType::kEthernet, fw.options().ports != 1 && !fw.options().vf);
  dct->log_rra_max = fw.caps().get<prm::cmd_hca_cap::log_max_ra_res_dc>();
  cmd.put<prm::create_dct_out::dctn>(dctn);
  fw.trace_create(ObjType::kDct, dctn, cmd.uid);
  return Syndrome::kOk;
}

// No connection is served any more, and the driver's event says so.
Syndrome drain_dct(Firmware& fw, Command& cmd) {
  const std::uint32_t dctn = cmd.get<prm::drain_dct_in::dctn>();
  QpObject* object = nullptr;
  Qp* dct = nullptr;
  if (!find(fw, dctn, object, dct)) return Syndrome::kQpNumber;
  dct->state = QpState::kErr;
  fw.device().responder().end_dc(cmd.now, fw.function().id(), dctn);
  fw.device().eqs().qp_event(cmd.now, fw.function().id(),
                             static_cast<std::uint8_t>(prm::EqeType::kDctDrained), dctn, prm::kEvDct);
  return Syndrome::kOk;
}

Syndrome destroy_dct(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  Function& function = fw.function();
  const std::uint32_t dctn = cmd.get<prm::destroy_dct_in::dctn>();
  QpObject* object = nullptr;
  Qp* dct = nullptr;
  if (!find(fw, dctn, object, dct)) return Syndrome::kQpNumber;
  if (dct->state != QpState::kErr) return Syndrome::kDctNotDrained;
  fw.quiesce();
  function.qps().destroy(dctn);
  o.qps.destroy(dctn);
  fw.pages().release(kIcmQp);
  fw.trace_destroy(ObjType::kDct, dctn, cmd.uid);
  return Syndrome::kOk;
}

Syndrome query_dct(Firmware& fw, Command& cmd) {
  using c = prm::query_dct_out::dct_context_entry;
  QpObject* object = nullptr;
  Qp* dct = nullptr;
  if (!find(fw, cmd.get<prm::query_dct_in::dctn>(), object, dct)) return Syndrome::kQpNumber;
  std::memcpy(prm::ptr<c>(cmd.out.data()), object->dctc.data(), object->dctc.size());
  cmd.put<c::state>(dct->state == QpState::kErr ? kDrained : kActive);
  cmd.put<c::dc_access_key_violation_count>(dct->dc_key_violations);
  return Syndrome::kOk;
}

// The next violation raises the event once more.
Syndrome arm_dct(Firmware& fw, Command& cmd) {
  QpObject* object = nullptr;
  Qp* dct = nullptr;
  if (!find(fw, cmd.get<prm::arm_dct_in::dct_number>(), object, dct)) return Syndrome::kQpNumber;
  dct->dc_key_armed = true;
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
