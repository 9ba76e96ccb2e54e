// SPDX-License-Identifier: BSD-3-Clause
// CREATE_QP, DESTROY_QP, QUERY_QP.
#include <algorithm>
#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/objects/qp_context.h"
#include "firmware-stub/objects/ring.h"
#include "firmware-stub/objects/time_format.h"
#include "prm/ipoib.h"
#include "prm/umem.h"

namespace hcasim::fw {

namespace {

using In = prm::create_qp_in;
using C = In::qpc;

enum : std::uint32_t { kRqOwn = 0, kRqSrq = 1, kRqNone = 3 };  // qpc.rq_type
constexpr std::uint32_t kOffloadRendezvous = 1;                // qpc.offload_type
constexpr unsigned kWqebb = 64;                                // bytes
constexpr std::uint64_t kMinRq = 64;                           // bytes: an RQ is a whole number of these

bool type_offered(const Caps& caps, const Command& cmd, std::uint32_t st) {
  switch (static_cast<QpType>(st)) {
    case QpType::kRc:
      return caps.get<prm::cmd_hca_cap::rc>() != 0;
    case QpType::kUc:
      return caps.get<prm::cmd_hca_cap::uc>() != 0;
    case QpType::kUd:
      return caps.get<prm::cmd_hca_cap::ud>() != 0;
    case QpType::kXrc:
      return caps.get<prm::cmd_hca_cap::xrc>() != 0;
    case QpType::kDci:
      return caps.get<prm::cmd_hca_cap::dct>() != 0;
    case QpType::kQp0:
    case QpType::kQp1:
    case QpType::kRegUmr:  // which changes keys of any PD
      return cmd.uid == 0;
    default:
      return false;
  }
}

// Asks for what no capability promises.
bool wants_feature(const Command& cmd) {
  return cmd.get<C::wq_signature>() != 0 || cmd.get<C::cd_master>() != 0 ||
         cmd.get<C::cd_slave_send>() != 0 || cmd.get<C::cd_slave_receive>() != 0 ||
         cmd.get<C::offload_type>() > kOffloadRendezvous || cmd.get<C::isolate_vl_tc>() != 0 ||
         cmd.get<C::req_e2e_credit_mode>() != 0 || cmd.get<C::end_padding_mode>() != 0;
}

// IPoIB's enhanced offloads: the kernel's UD QP, in whose name queues of frames send, and which has none.
bool stateless_mode_offered(const Caps& caps, const Command& cmd, QpType type) {
  const std::uint32_t mode = cmd.get<C::ulp_stateless_offload_mode>();
  return mode == 0 || (mode == prm::kStatelessEnhanced && type == QpType::kUd && cmd.uid == 0 &&
                       caps.get<prm::cmd_hca_cap::ipoib_enhanced_offloads>() != 0);
}

// Streams are a DCI's.
bool streams_offered(const Caps& caps, const Command& cmd, bool dci) {
  const unsigned streams = cmd.get<C::log_num_dci_stream_channels>();
  const unsigned errored = cmd.get<C::log_num_dci_errored_streams>();
  if (!dci) return streams == 0 && errored == 0;
  return streams <= caps.get<prm::cmd_hca_cap::log_max_dci_stream_channels>() &&
         errored <= caps.get<prm::cmd_hca_cap::log_max_dci_errored_streams>();
}

// cs_req has the same in both halves; what they are apart is nowhere said.
bool scatter_offered(const Caps& caps, const Command& cmd) {
  const std::uint32_t req = cmd.get<C::cs_req>(), res = cmd.get<C::cs_res>();
  if (req == 0 && res == 0) return true;
  constexpr auto kMost = static_cast<std::uint32_t>(prm::InlineScatter::k64);
  return caps.get<prm::cmd_hca_cap::sctr_data_cqe>() != 0 && (req & 0xf) == req >> 4 && req >> 4 <= kMost &&
         res <= kMost;
}

struct Geometry {
  bool has_rq = false, has_sq = false, names_srq = false;
  unsigned log_rq_size = 0, log_rq_stride = 4, log_sq_size = 0;
  std::uint64_t rq_bytes = 0, sq_bytes = 0;
};

Syndrome read_geometry(const Caps& caps, const Command& cmd, Geometry& g) {
  const std::uint32_t rq_type = cmd.get<C::rq_type>();
  if (rq_type != kRqOwn && rq_type != kRqSrq && rq_type != kRqNone) return Syndrome::kQpRqType;
  g.has_rq = rq_type == kRqOwn;
  g.names_srq = rq_type == kRqSrq;
  g.has_sq = cmd.get<C::no_sq>() == 0;
  const unsigned limit = caps.get<prm::cmd_hca_cap::log_max_qp_sz>();
  if (g.has_rq) {
    g.log_rq_size = cmd.get<C::log_rq_size>();
    g.log_rq_stride = cmd.get<C::log_rq_stride>() + 4;
    if (g.log_rq_size > limit) return Syndrome::kQpSize;
    g.rq_bytes = std::max(kMinRq, std::uint64_t{1} << (g.log_rq_size + g.log_rq_stride));
  }
  if (g.has_sq) {
    g.log_sq_size = cmd.get<C::log_sq_size>();
    if (g.log_sq_size > limit) return Syndrome::kQpSize;
    g.sq_bytes = std::uint64_t{kWqebb} << g.log_sq_size;
  }
  return Syndrome::kOk;
}

// CREATE_QP's input as it is checked, step by step; nothing is changed before all of it is found good.
struct Request {
  Syndrome check_type(const Caps& caps, const Command& cmd);
  Syndrome find_objects(Firmware& fw, const Command& cmd);
  Syndrome read_memory(Firmware& fw, const Command& cmd);
  void fill(const Command& cmd, Qp& qp);

  bool xrc() const { return type == QpType::kXrc; }
  // Receives nothing: the SRQ that it names is a placeholder.
  bool dci() const { return type == QpType::kDci; }
  unsigned special_index() const { return type == QpType::kQp1 ? 1 : 0; }

  QpType type = QpType::kRc;
  Geometry g;
  bool rendezvous = false, carries_frames = false;
  PlainObject* pd = nullptr;
  PlainObject* xrcd = nullptr;
  CqObject* scq = nullptr;
  CqObject* rcq = nullptr;
  SrqObject* srq = nullptr;
  std::uint64_t dbr = 0;
  GuestRing ring;
  UmemRefs umems;
};

Syndrome Request::check_type(const Caps& caps, const Command& cmd) {
  if (cmd.get<In::input_qpn>() != 0) return Syndrome::kQpFeature;  // a number of the driver's choice
  const std::uint32_t st = cmd.get<C::st>();
  if (!type_offered(caps, cmd, st)) return Syndrome::kQpType;
  type = static_cast<QpType>(st);
  if (wants_feature(cmd) || !source_qp_offered(cmd, type, cmd.get<C::deth_sqpn>()) ||
      !stateless_mode_offered(caps, cmd, type) || !scatter_offered(caps, cmd) ||
      !streams_offered(caps, cmd, dci()) || !affinity_offered(caps, cmd.get<C::lag_tx_port_affinity>()) ||
      !free_running(static_cast<std::uint32_t>(cmd.get<C::ts_format>())))
    return Syndrome::kQpFeature;
  carries_frames = cmd.get<C::ulp_stateless_offload_mode>() == prm::kStatelessEnhanced;
  if (carries_frames) return Syndrome::kOk;
  const Syndrome s = read_geometry(caps, cmd, g);
  if (s != Syndrome::kOk) return s;
  if ((xrc() || dci()) && g.has_rq) return Syndrome::kQpRqType;
  const bool takes_srq = type == QpType::kRc || type == QpType::kUc || type == QpType::kUd || xrc() || dci();
  return g.names_srq && !takes_srq ? Syndrome::kQpRqType : Syndrome::kOk;
}

Syndrome Request::find_objects(Firmware& fw, const Command& cmd) {
  Objects& o = fw.objects();
  if (carries_frames) return Syndrome::kOk;
  // A UMR QP needs none yet: drivers name one in RST2INIT.
  pd = o.pds.find(cmd.get<C::pd>());
  if (pd == nullptr && !(type == QpType::kRegUmr && cmd.get<C::pd>() == 0)) return Syndrome::kQpPd;
  scq = o.cqs.find(cmd.get<C::cqn_snd>());
  rcq = o.cqs.find(cmd.get<C::cqn_rcv>());
  if (scq == nullptr && (g.has_sq || cmd.get<C::cqn_snd>() != 0)) return Syndrome::kQpSendCq;
  if (rcq == nullptr && (g.has_rq || g.names_srq || cmd.get<C::cqn_rcv>() != 0)) return Syndrome::kQpRecvCq;
  if (g.names_srq) {  // the number is a placeholder unless rq_type says SRQ
    srq = o.srqs.find(cmd.get<C::srqn_rmpn_xrqn>());
    if (srq == nullptr) return Syndrome::kQpSrq;
    if (srq->kind == ObjType::kXrcSrq && !xrc() && !dci()) return Syndrome::kSrqKind;
    // Tags are matched of messages that come whole and in order.
    if (srq->kind == ObjType::kXrq && (type == QpType::kUc || type == QpType::kUd)) return Syndrome::kSrqKind;
  }
  if (xrc()) {  // other types have a domain that means nothing
    xrcd = o.xrcds.find(cmd.get<C::xrcd>());
    if (xrcd == nullptr) return Syndrome::kQpXrcd;
  }
  rendezvous = cmd.get<C::offload_type>() == kOffloadRendezvous;
  if (rendezvous && (type != QpType::kRc || g.has_sq || srq == nullptr || srq->kind != ObjType::kXrq))
    return Syndrome::kQpFeature;
  return g.has_sq && o.uars.find(cmd.get<C::uar_page>()) == nullptr ? Syndrome::kQpUar : Syndrome::kOk;
}

Syndrome Request::read_memory(Firmware& fw, const Command& cmd) {
  if (carries_frames) return Syndrome::kOk;
  dbr = cmd.get<C::dbr_addr>();
  if (cmd.get<C::dbr_umem_valid>() != 0) {
    umems.doorbell = cmd.get<prm::umem_ref::qpc_dbr_id<C>>();
    const Syndrome s = umem_doorbell(fw, cmd, umems.doorbell, dbr, 8, dbr);
    if (s != Syndrome::kOk) return s;
  }
  if ((dbr & 7) != 0) return Syndrome::kQpDbr;
  if (cmd.get<In::wq_umem_valid>() != 0) {
    umems.buffer = cmd.get<In::wq_umem_id>();
    return umem_ring(fw, cmd, umems.buffer, cmd.get<In::wq_umem_offset>(), g.rq_bytes + g.sq_bytes, kWqebb,
                     false, ring);
  }
  return read_ring(fw, cmd, In::pas::bit_off / 8, cmd.get<C::log_page_size>(), cmd.get<C::page_offset>(),
                   g.rq_bytes + g.sq_bytes, Syndrome::kQpPages, ring);
}

void Request::fill(const Command& cmd, Qp& qp) {
  qp.type = type;
  qp.pd = type == QpType::kRegUmr ? kAnyPd : cmd.get<C::pd>();
  qp.scq = cmd.get<C::cqn_snd>();
  qp.rcq = cmd.get<C::cqn_rcv>();
  qp.has_sq = g.has_sq;
  qp.has_rq = g.has_rq;
  qp.use_srq = g.names_srq && !xrc() && !dci();  // XRC: each packet names one
  qp.srqn = qp.use_srq ? cmd.get<C::srqn_rmpn_xrqn>() : 0;
  qp.xrcd = xrcd != nullptr ? cmd.get<C::xrcd>() : 0;
  // Not that of a DCI which had this number before.
  qp.dc_session = static_cast<std::uint8_t>(qp.req.epoch);
  qp.ring = std::move(ring);
  qp.log_sq_size = g.log_sq_size;
  qp.log_rq_size = g.log_rq_size;
  qp.log_rq_stride = g.log_rq_stride;
  qp.sq_offset = g.rq_bytes;
  qp.dbr_addr = dbr;
  qp.user_index = cmd.get<C::user_index>();
  qp.uar_page = cmd.get<C::uar_page>();
  qp.reserved_lkey = cmd.uid == 0 && cmd.get<C::rlky>() != 0;
  qp.fast_registers = cmd.uid == 0 && cmd.get<C::fre>() != 0;
  qp.rendezvous = rendezvous;
  qp.carries_frames = carries_frames;
  qp.sends_as_qp1 = cmd.get<C::deth_sqpn>() != 0;
  qp.log_dci_errored = static_cast<std::uint8_t>(cmd.get<C::log_num_dci_errored_streams>());
  qp.affinity.port = static_cast<std::uint8_t>(cmd.get<C::lag_tx_port_affinity>());
  qp.block_own_multicast = cmd.get<C::block_lb_mc>() != 0;
  qp.cs_req = static_cast<prm::InlineScatter>(cmd.get<C::cs_req>() & 0xf);
  qp.cs_res = static_cast<prm::InlineScatter>(cmd.get<C::cs_res>());
}

// Whether a TIS sends in its name. The next QP of that number is another.
bool named_by_tis(const EthTable& eth, const Qp& qp) {
  return qp.carries_frames && std::any_of(eth.tises.begin(), eth.tises.end(),
                                          [&](const auto& tis) { return tis.second.underlay == qp.qpn; });
}

}  // namespace

Syndrome create_qp(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  Function& function = fw.function();
  Request r;
  Syndrome s = r.check_type(fw.caps(), cmd);
  if (s == Syndrome::kOk) s = r.find_objects(fw, cmd);
  if (s == Syndrome::kOk) s = r.read_memory(fw, cmd);
  if (s != Syndrome::kOk) return s;
  if (is_special(r.type) && function.steering().special(r.special_index()) != 0) return Syndrome::kQpSpecial;
  if (o.qps.full()) return Syndrome::kQpLimit;
  if (!fw.pages().charge(kIcmQp)) return Syndrome::kWaitPages;

  std::uint32_t qpn = 0;
  QpObject* object = o.qps.create(qpn);
  Qp* qp = function.qps().create(qpn);
  if (qp == nullptr) {
    o.qps.destroy(qpn);
    fw.pages().release(kIcmQp);
    return Syndrome::kQpModelRefused;
  }
  std::memcpy(object->qpc.data(), prm::ptr<C>(cmd.in.data()), object->qpc.size());
  object->pd = Ref(r.pd);
  object->scq = Ref(r.scq);
  object->rcq = Ref(r.rcq);
  object->srq = Ref(r.srq);
  object->xrcd = Ref(r.xrcd);
  o.take_list(r.ring.pages.size());
  r.fill(cmd, *qp);
  if (is_special(r.type)) function.steering().set_special(r.special_index(), qpn);
  cmd.put<prm::create_qp_out::qpn>(qpn);
  fw.trace_create(ObjType::kQp, qpn, cmd.uid);
  hold_umems(fw, ObjType::kQp, qpn, r.umems);
  return Syndrome::kOk;
}

Syndrome destroy_qp(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  Device& device = fw.device();
  Function& function = fw.function();
  const std::uint32_t qpn = cmd.get<prm::destroy_qp_in::qpn>();
  const QpObject* object = o.qps.find(qpn);
  Qp* qp = function.qps().find(qpn);
  if (object == nullptr || qp == nullptr || !object->is_qp()) return Syndrome::kQpNumber;
  if (object->referred() || named_by_tis(function.eth(), *qp)) return Syndrome::kQpBusy;
  if (qp->state != QpState::kRst) {  // engines let go of it first
    const QpState old = qp->state;
    qp->state = QpState::kRst;
    device.qp_changed(*qp, old);
  }
  fw.quiesce();
  if (is_special(qp->type)) function.steering().set_special(qp->type == QpType::kQp1 ? 1 : 0, 0);
  device.page_faults().forget(*qp);
  o.return_list(qp->ring.pages.size());
  function.qps().destroy(qpn);
  o.qps.destroy(qpn);
  fw.pages().release(kIcmQp);
  fw.trace_destroy(ObjType::kQp, qpn, cmd.uid);
  return Syndrome::kOk;
}

Syndrome query_qp(Firmware& fw, Command& cmd) {
  using out = prm::query_qp_out;
  using c = out::qpc;
  const std::uint32_t qpn = cmd.get<prm::query_qp_in::qpn>();
  const QpObject* object = fw.objects().qps.find(qpn);
  const Qp* qp = fw.function().qps().find(qpn);
  if (object == nullptr || qp == nullptr || !object->is_qp()) return Syndrome::kQpNumber;
  std::memcpy(prm::ptr<c>(cmd.out.data()), object->qpc.data(), object->qpc.size());
  cmd.put<out::opt_param_mask>(object->opt_param_mask);
  // What runs on by itself.
  constexpr std::uint32_t kDraining = 7;
  cmd.put<c::state>(qp->draining && qp->state == QpState::kSqd ? kDraining
                                                               : static_cast<std::uint32_t>(qp->state));
  cmd.put<c::next_send_psn>(qp->req.next_psn & kPsnMask);
  cmd.put<c::last_acked_psn>((qp->req.una_psn - 1) & kPsnMask);
  cmd.put<c::next_rcv_psn>(qp->resp.expected_psn & kPsnMask);
  cmd.put<c::rmsn>(qp->resp.msn & kPsnMask);
  cmd.put<c::cur_retry_count>(qp->req.retries_left & 7);
  cmd.put<c::cur_rnr_retry>(qp->req.rnr_left & 7);
  cmd.put<c::hw_sq_wqebb_counter>(qp->req.fetched);
  cmd.put<c::sw_sq_wqebb_counter>(qp->req.db_counter);
  cmd.put<c::hw_rq_counter>(qp->resp.rq_consumer);
  cmd.put<c::sw_rq_counter>(qp->resp.rq_producer);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
