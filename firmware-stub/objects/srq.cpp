// SPDX-License-Identifier: BSD-3-Clause
// Shared receive queues in their three forms: RMP (ISSI 1), XRC SRQ, SRQ (ISSI 0). One space of numbers.
#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/objects/ring.h"
#include "firmware-stub/objects/srq.h"
#include "prm/umem.h"

namespace hcasim::fw {

namespace {

constexpr std::uint32_t kRmpReady = 1, kRmpError = 3;  // rmpc.state
constexpr unsigned kMinLogStride = 5,
                   kMaxLogStride = 11;  // bytes: next segment and one data segment at least
constexpr std::uint32_t kSrqError = 1;  // srqc.state, xrc_srqc.state

}  // namespace

namespace srqs {

Syndrome create(Firmware& fw, Command& cmd, const Attributes& a, std::uint32_t& srqn) {
  Objects& o = fw.objects();
  if (a.feature) return Syndrome::kSrqFeature;
  if (a.log_size > fw.caps().get<prm::cmd_hca_cap::log_max_srq_sz>()) return Syndrome::kSrqSize;
  if (a.log_stride < kMinLogStride || a.log_stride > kMaxLogStride) return Syndrome::kSrqStride;
  if (a.limit > 1u << a.log_size) return Syndrome::kSrqArm;
  PlainObject* pd = o.pds.find(a.pd);
  if (pd == nullptr) return Syndrome::kSrqPd;
  PlainObject* xrcd = nullptr;
  CqObject* cq = nullptr;
  if (a.kind == ObjType::kXrcSrq) {
    xrcd = o.xrcds.find(a.xrcd);
    if (xrcd == nullptr) return Syndrome::kSrqXrcd;
  }
  if (a.kind == ObjType::kXrcSrq || a.kind == ObjType::kXrq) {
    cq = o.cqs.find(a.cqn);
    if (cq == nullptr) return Syndrome::kSrqCq;
  }
  const std::uint64_t bytes = std::uint64_t{1} << (a.log_size + a.log_stride);
  GuestRing ring;
  UmemRefs umems;
  std::uint64_t dbr = a.dbr;
  if (a.dbr_umem) {
    umems.doorbell = a.dbr_umem_id;
    const Syndrome s = umem_doorbell(fw, cmd, umems.doorbell, a.dbr, 4, dbr);
    if (s != Syndrome::kOk) return s;
  }
  if ((dbr & 3) != 0) return Syndrome::kSrqDbr;
  if (a.buffer_umem) {
    umems.buffer = a.buffer_umem_id;
    const Syndrome s = umem_ring(fw, cmd, umems.buffer, a.umem_offset, bytes, 64, false, ring);
    if (s != Syndrome::kOk) return s;
  } else {
    const Syndrome s =
        read_ring(fw, cmd, a.pas_offset, a.log_page_size, a.page_offset, bytes, Syndrome::kSrqPages, ring);
    if (s != Syndrome::kOk) return s;
  }
  if (o.srqs.full()) return Syndrome::kSrqLimit;
  if (!fw.pages().charge(kIcmSrq)) return Syndrome::kWaitPages;

  SrqObject* object = o.srqs.create(srqn);
  Srq* srq = fw.function().qps().create_srq(srqn);
  if (srq == nullptr) {
    o.srqs.destroy(srqn);
    fw.pages().release(kIcmSrq);
    return Syndrome::kSrqLimit;
  }
  object->kind = a.kind;
  std::memcpy(object->context.data(), a.context, a.context_len);
  object->pd = Ref(pd);
  object->xrcd = Ref(xrcd);
  object->cq = Ref(cq);
  srq->xrc = a.kind == ObjType::kXrcSrq;
  srq->xrq = a.kind == ObjType::kXrq;
  srq->rendezvous = a.rendezvous;
  if (a.log_tags != 0) srq->tags = std::make_unique<TagList>(a.log_tags);
  o.take_list(ring.pages.size());
  srq->ring = std::move(ring);
  srq->log_size = a.log_size;
  srq->log_stride = a.log_stride;
  srq->pd = a.pd;
  srq->xrcd = a.xrcd;
  srq->cqn = a.cqn;
  srq->user_index = a.user_index;
  srq->dbr_addr = dbr;
  srq->limit = a.limit;
  srq->cyclic = a.cyclic;
  fw.trace_create(a.kind, srqn, cmd.uid);
  hold_umems(fw, a.kind, srqn, umems);
  return Syndrome::kOk;
}

// Both halves of the SRQ, of the kind asked for.
Syndrome find(Firmware& fw, std::uint32_t srqn, ObjType kind, SrqObject*& object, Srq*& srq) {
  object = fw.objects().srqs.find(srqn);
  srq = fw.function().qps().find_srq(srqn);
  if (object == nullptr || srq == nullptr) return Syndrome::kSrqNumber;
  return object->kind == kind ? Syndrome::kOk : Syndrome::kSrqKind;
}

Syndrome destroy(Firmware& fw, Command& cmd, std::uint32_t srqn, ObjType kind) {
  SrqObject* object = nullptr;
  Srq* srq = nullptr;
  const Syndrome s = find(fw, srqn, kind, object, srq);
  if (s != Syndrome::kOk) return s;
  if (object->referred()) return Syndrome::kSrqBusy;
  Objects& o = fw.objects();
  fw.quiesce();
  o.return_list(srq->ring.pages.size());
  fw.function().qps().destroy_srq(srqn);
  o.srqs.destroy(srqn);
  fw.pages().release(kIcmSrq);
  fw.trace_destroy(kind, srqn, cmd.uid);
  return Syndrome::kOk;
}

// The event comes once, when fewer than lwm WQEs are left.
Syndrome arm(Firmware& fw, std::uint32_t srqn, ObjType kind, std::uint32_t lwm) {
  SrqObject* object = nullptr;
  Srq* srq = nullptr;
  const Syndrome s = find(fw, srqn, kind, object, srq);
  if (s != Syndrome::kOk) return s;
  if (lwm > 1u << srq->log_size) return Syndrome::kSrqArm;
  srq->limit = lwm;
  return Syndrome::kOk;
}

}  // namespace srqs

using namespace srqs;

Syndrome create_srq(Firmware& fw, Command& cmd) {
  using in = prm::create_srq_in;
  using c = in::srq_context_entry;
  Attributes a{ObjType::kSrq};
  a.log_size = cmd.get<c::log_srq_size>();
  a.log_stride = cmd.get<c::log_rq_stride>() + 4;
  a.log_page_size = cmd.get<c::log_page_size>();
  a.page_offset = cmd.get<c::page_offset>();
  a.pd = cmd.get<c::pd>();
  a.limit = cmd.get<c::lwm>();
  a.dbr = cmd.get<c::dbr_addr>();
  a.pas_offset = in::pas::bit_off / 8;
  take_context<c>(cmd, a);
  a.feature = cmd.get<c::wq_signature>() != 0 || cmd.get<c::cont_srq>() != 0;
  return create_numbered<prm::create_srq_out::srqn>(fw, cmd, a);
}

Syndrome create_xrc_srq(Firmware& fw, Command& cmd) {
  using in = prm::create_xrc_srq_in;
  using c = in::xrc_srq_context_entry;
  Attributes a{ObjType::kXrcSrq};
  a.log_size = cmd.get<c::log_xrc_srq_size>();
  a.log_stride = cmd.get<c::log_rq_stride>() + 4;
  a.log_page_size = cmd.get<c::log_page_size>();
  a.page_offset = cmd.get<c::page_offset>();
  a.pd = cmd.get<c::pd>();
  a.xrcd = cmd.get<c::xrcd>();
  a.cqn = cmd.get<c::cqn>();
  a.user_index = cmd.get<c::user_index>();
  a.limit = cmd.get<c::lwm>();
  a.dbr = std::uint64_t{cmd.get<c::db_record_addr_h>()} << 32 | cmd.get<c::db_record_addr_l>() << 2;
  a.pas_offset = in::pas::bit_off / 8;
  take_context<c>(cmd, a);
  a.feature = cmd.get<c::wq_signature>() != 0 || cmd.get<c::cont_srq>() != 0 ||
              cmd.get<c::basic_cyclic_rcv_wqe>() != 0;
  if (cmd.get<c::dbr_umem_valid>() != 0) return Syndrome::kUmem;
  a.buffer_umem = cmd.get<in::xrc_srq_umem_valid>() != 0;
  a.buffer_umem_id = cmd.get<prm::umem_ref::xrc_srq_id>();
  a.umem_offset = cmd.get<prm::umem_ref::xrc_srq_offset>();
  return create_numbered<prm::create_xrc_srq_out::xrc_srqn>(fw, cmd, a);
}

Syndrome create_rmp(Firmware& fw, Command& cmd) {
  using in = prm::create_rmp_in;
  using c = in::ctx;
  using w = c::wq;
  if (cmd.get<c::state>() != kRmpReady) return Syndrome::kSrqState;
  Attributes a{ObjType::kRmp};
  take_wq<w>(cmd, a);
  take_context<c>(cmd, a);
  a.feature = a.feature || cmd.get<c::basic_cyclic_rcv_wqe>() != 0;
  return create_numbered<prm::create_rmp_out::rmpn>(fw, cmd, a);
}

Syndrome destroy_srq(Firmware& fw, Command& cmd) {
  return destroy(fw, cmd, cmd.get<prm::destroy_srq_in::srqn>(), ObjType::kSrq);
}
Syndrome destroy_xrc_srq(Firmware& fw, Command& cmd) {
  return destroy(fw, cmd, cmd.get<prm::destroy_xrc_srq_in::xrc_srqn>(), ObjType::kXrcSrq);
}
Syndrome destroy_rmp(Firmware& fw, Command& cmd) {
  return destroy(fw, cmd, cmd.get<prm::destroy_rmp_in::rmpn>(), ObjType::kRmp);
}

Syndrome arm_srq(Firmware& fw, Command& cmd) {
  using in = prm::arm_rq_in;
  if (cmd.op_mod == prm::k::ARM_RQ_IN_OP_MOD_XRQ && has_xrq(fw.caps()))
    return arm(fw, cmd.get<in::srq_number>(), ObjType::kXrq, cmd.get<in::lwm>());
  if (cmd.op_mod != prm::k::ARM_RQ_IN_OP_MOD_SRQ) return Syndrome::kOpMod;
  return arm(fw, cmd.get<in::srq_number>(), ObjType::kSrq, cmd.get<in::lwm>());
}
Syndrome arm_xrc_srq(Firmware& fw, Command& cmd) {
  using in = prm::arm_xrc_srq_in;
  if (cmd.op_mod != 1) return Syndrome::kOpMod;  // 1: XRC SRQ
  return arm(fw, cmd.get<in::xrc_srqn>(), ObjType::kXrcSrq, cmd.get<in::lwm>());
}
Syndrome modify_rmp(Firmware& fw, Command& cmd) {
  using in = prm::modify_rmp_in;
  if (cmd.get<in::rmp_state>() != kRmpReady || cmd.get<in::ctx::state>() != kRmpReady)
    return Syndrome::kSrqState;
  if (cmd.get<in::bitmask::lwm>() == 0) return Syndrome::kSrqFeature;
  return arm(fw, cmd.get<in::rmpn>(), ObjType::kRmp, cmd.get<in::ctx::wq::lwm>());
}

namespace {

// SRQs and XRC SRQs: their contexts have the same fields, without a wq.
template <class Context>
Syndrome query_flat(Firmware& fw, Command& cmd, std::uint32_t srqn, ObjType kind) {
  Srq* srq = nullptr;
  const Syndrome s = query<Context>(fw, cmd, srqn, kind, srq);
  if (s != Syndrome::kOk) return s;
  cmd.put<typename Context::state>(srq->error ? kSrqError : 0);
  cmd.put<typename Context::lwm>(srq->limit);
  cmd.put<typename Context::wqe_cnt>(static_cast<std::uint16_t>(srq->producer - srq->consumed));
  return Syndrome::kOk;
}

}  // namespace

Syndrome query_srq(Firmware& fw, Command& cmd) {
  return query_flat<prm::query_srq_out::srq_context_entry>(fw, cmd, cmd.get<prm::query_srq_in::srqn>(),
                                                           ObjType::kSrq);
}

Syndrome query_xrc_srq(Firmware& fw, Command& cmd) {
  return query_flat<prm::query_xrc_srq_out::xrc_srq_context_entry>(
      fw, cmd, cmd.get<prm::query_xrc_srq_in::xrc_srqn>(), ObjType::kXrcSrq);
}

Syndrome query_rmp(Firmware& fw, Command& cmd) {
  using c = prm::query_rmp_out::rmp_context;
  Srq* srq = nullptr;
  const Syndrome s = query<c>(fw, cmd, cmd.get<prm::query_rmp_in::rmpn>(), ObjType::kRmp, srq);
  if (s != Syndrome::kOk) return s;
  cmd.put<c::state>(srq->error ? kRmpError : kRmpReady);
  put_wq<c::wq>(cmd, *srq);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
