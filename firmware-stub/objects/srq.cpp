// SPDX-License-Identifier: BSD-3-Clause
// Shared receive queues in their three forms: RMP (ISSI 1), XRC SRQ, SRQ (ISSI 0). One space of numbers.
#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/objects/ring.h"

namespace hcasim::fw {

namespace {

constexpr std::uint32_t kWqLinkedList = 0;             // wq.wq_type
constexpr std::uint32_t kRmpReady = 1, kRmpError = 3;  // rmpc.state
constexpr unsigned kMinLogStride = 5,
                   kMaxLogStride = 11;  // bytes: next segment and one data segment at least
constexpr std::uint32_t kSrqError = 1;  // srqc.state, xrc_srqc.state

// What the three contexts have in common, read out of one of them.
struct Attributes {
  ObjType kind;
  unsigned log_size = 0, log_stride = 0, log_page_size = 0, page_offset = 0;
  std::uint32_t pd = 0, xrcd = 0, cqn = 0, user_index = 0xffffff, limit = 0;
  std::uint64_t dbr = 0;
  std::size_t pas_offset = 0;
  const std::uint8_t* context = nullptr;
  std::size_t context_len = 0;
  bool feature = false;  // asks for something that is not offered
};

Syndrome create(Firmware& fw, Command& cmd, const Attributes& a, std::uint32_t& srqn) {
  Objects& o = fw.objects();
  if (a.feature) return Syndrome::kSrqFeature;
  if (a.log_size > fw.caps().get<prm::cmd_hca_cap::log_max_srq_sz>()) return Syndrome::kSrqSize;
  if (a.log_stride < kMinLogStride || a.log_stride > kMaxLogStride) return Syndrome::kSrqStride;
  if (a.limit > 1u << a.log_size) return Syndrome::kSrqArm;
  if ((a.dbr & 3) != 0) return Syndrome::kSrqDbr;
  PlainObject* pd = o.pds.find(a.pd);
  if (pd == nullptr) return Syndrome::kSrqPd;
  PlainObject* xrcd = nullptr;
  CqObject* cq = nullptr;
  if (a.kind == ObjType::kXrcSrq) {
    xrcd = o.xrcds.find(a.xrcd);
    if (xrcd == nullptr) return Syndrome::kSrqXrcd;
    cq = o.cqs.find(a.cqn);
    if (cq == nullptr) return Syndrome::kSrqCq;
  }
  GuestRing ring;
  if (!read_ring(cmd, a.pas_offset, a.log_page_size, a.page_offset,
                 std::uint64_t{1} << (a.log_size + a.log_stride), ring))
    return Syndrome::kSrqPages;
  if (o.srqs.full()) return Syndrome::kSrqLimit;
  if (!fw.pages().charge(kIcmSrq)) return Syndrome::kWaitPages;

  SrqObject* object = o.srqs.create(srqn);
  Srq* srq = fw.hca().qps().create_srq(srqn);
  if (srq == nullptr) {
    o.srqs.destroy(srqn);
    fw.pages().release(kIcmSrq);
    return Syndrome::kSrqLimit;
  }
  object->kind = a.kind;
  std::memcpy(object->context.data(), a.context, a.context_len);
  object->pd = a.pd;
  object->xrcd = a.xrcd;
  object->cqn = a.cqn;
  ++pd->refs;
  if (xrcd != nullptr) ++xrcd->refs;
  if (cq != nullptr) {
    ++cq->refs;
    if (Cq* hw = fw.hca().cqs().find(a.cqn)) ++hw->refs;
  }
  srq->xrc = a.kind == ObjType::kXrcSrq;
  srq->ring = std::move(ring);
  srq->log_size = a.log_size;
  srq->log_stride = a.log_stride;
  srq->pd = a.pd;
  srq->xrcd = a.xrcd;
  srq->cqn = a.cqn;
  srq->user_index = a.user_index;
  srq->dbr_addr = a.dbr;
  srq->limit = a.limit;
  fw.trace_create(a.kind, srqn, cmd.uid);
  return Syndrome::kOk;
}

// Both halves of the SRQ, of the kind asked for.
Syndrome find(Firmware& fw, std::uint32_t srqn, ObjType kind, SrqObject*& object, Srq*& srq) {
  object = fw.objects().srqs.find(srqn);
  srq = fw.hca().qps().find_srq(srqn);
  if (object == nullptr || srq == nullptr) return Syndrome::kSrqNumber;
  return object->kind == kind ? Syndrome::kOk : Syndrome::kSrqKind;
}

Syndrome destroy(Firmware& fw, Command& cmd, std::uint32_t srqn, ObjType kind) {
  SrqObject* object = nullptr;
  Srq* srq = nullptr;
  const Syndrome s = find(fw, srqn, kind, object, srq);
  if (s != Syndrome::kOk) return s;
  if (object->refs != 0) return Syndrome::kSrqBusy;
  Objects& o = fw.objects();
  if (PlainObject* pd = o.pds.find(object->pd)) --pd->refs;
  if (kind == ObjType::kXrcSrq) {
    if (PlainObject* xrcd = o.xrcds.find(object->xrcd)) --xrcd->refs;
    if (CqObject* cq = o.cqs.find(object->cqn)) --cq->refs;
    if (Cq* hw = fw.hca().cqs().find(object->cqn)) --hw->refs;
  }
  fw.hca().quiesce();
  fw.hca().qps().destroy_srq(srqn);
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

}  // namespace

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
  a.context = prm::ptr<c>(cmd.in.data());
  a.context_len = c::bytes;
  a.feature = cmd.get<c::wq_signature>() != 0 || cmd.get<c::cont_srq>() != 0;
  std::uint32_t srqn = 0;
  const Syndrome s = create(fw, cmd, a, srqn);
  if (s == Syndrome::kOk) cmd.put<prm::create_srq_out::srqn>(srqn);
  return s;
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
  a.context = prm::ptr<c>(cmd.in.data());
  a.context_len = c::bytes;
  a.feature = cmd.get<c::wq_signature>() != 0 || cmd.get<c::cont_srq>() != 0 ||
              cmd.get<c::basic_cyclic_rcv_wqe>() != 0;
  if (cmd.get<in::xrc_srq_umem_valid>() != 0 || cmd.get<c::dbr_umem_valid>() != 0) return Syndrome::kUmem;
  std::uint32_t srqn = 0;
  const Syndrome s = create(fw, cmd, a, srqn);
  if (s == Syndrome::kOk) cmd.put<prm::create_xrc_srq_out::xrc_srqn>(srqn);
  return s;
}

Syndrome create_rmp(Firmware& fw, Command& cmd) {
  using in = prm::create_rmp_in;
  using c = in::ctx;
  using w = c::wq;
  if (cmd.get<c::state>() != kRmpReady) return Syndrome::kSrqState;
  if (cmd.get<w::wq_umem_valid>() != 0 || cmd.get<w::dbr_umem_valid>() != 0) return Syndrome::kUmem;
  Attributes a{ObjType::kRmp};
  a.log_size = cmd.get<w::log_wq_sz>();
  a.log_stride = cmd.get<w::log_wq_stride>();
  a.log_page_size = cmd.get<w::log_wq_pg_sz>();
  a.page_offset = cmd.get<w::page_offset>();
  a.pd = cmd.get<w::pd>();
  a.limit = cmd.get<w::lwm>();
  a.dbr = cmd.get<w::dbr_addr>();
  a.pas_offset = w::pas::bit_off / 8;
  a.context = prm::ptr<c>(cmd.in.data());
  a.context_len = c::bytes;
  a.feature = cmd.get<w::wq_type>() != kWqLinkedList || cmd.get<w::wq_signature>() != 0 ||
              cmd.get<w::cd_slave>() != 0 || cmd.get<c::basic_cyclic_rcv_wqe>() != 0;
  std::uint32_t rmpn = 0;
  const Syndrome s = create(fw, cmd, a, rmpn);
  if (s == Syndrome::kOk) cmd.put<prm::create_rmp_out::rmpn>(rmpn);
  return s;
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
  if (cmd.op_mod != 1) return Syndrome::kOpMod;  // 1: SRQ
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

Syndrome query_srq(Firmware& fw, Command& cmd) {
  using c = prm::query_srq_out::srq_context_entry;
  SrqObject* object = nullptr;
  Srq* srq = nullptr;
  const Syndrome s = find(fw, cmd.get<prm::query_srq_in::srqn>(), ObjType::kSrq, object, srq);
  if (s != Syndrome::kOk) return s;
  std::memcpy(prm::ptr<c>(cmd.out.data()), object->context.data(), c::bytes);
  cmd.put<c::state>(srq->error ? kSrqError : 0);
  cmd.put<c::lwm>(srq->limit);
  cmd.put<c::wqe_cnt>(static_cast<std::uint16_t>(srq->producer - srq->consumed));
  return Syndrome::kOk;
}

Syndrome query_xrc_srq(Firmware& fw, Command& cmd) {
  using c = prm::query_xrc_srq_out::xrc_srq_context_entry;
  SrqObject* object = nullptr;
  Srq* srq = nullptr;
  const Syndrome s = find(fw, cmd.get<prm::query_xrc_srq_in::xrc_srqn>(), ObjType::kXrcSrq, object, srq);
  if (s != Syndrome::kOk) return s;
  std::memcpy(prm::ptr<c>(cmd.out.data()), object->context.data(), c::bytes);
  cmd.put<c::state>(srq->error ? kSrqError : 0);
  cmd.put<c::lwm>(srq->limit);
  cmd.put<c::wqe_cnt>(static_cast<std::uint16_t>(srq->producer - srq->consumed));
  return Syndrome::kOk;
}

Syndrome query_rmp(Firmware& fw, Command& cmd) {
  using c = prm::query_rmp_out::rmp_context;
  SrqObject* object = nullptr;
  Srq* srq = nullptr;
  const Syndrome s = find(fw, cmd.get<prm::query_rmp_in::rmpn>(), ObjType::kRmp, object, srq);
  if (s != Syndrome::kOk) return s;
  std::memcpy(prm::ptr<c>(cmd.out.data()), object->context.data(), c::bytes);
  cmd.put<c::state>(srq->error ? kRmpError : kRmpReady);
  cmd.put<c::wq::lwm>(srq->limit);
  cmd.put<c::wq::hw_counter>(srq->consumed);
  cmd.put<c::wq::sw_counter>(srq->producer);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
