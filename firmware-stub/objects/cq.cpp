// SPDX-License-Identifier: BSD-3-Clause
// CREATE_CQ, DESTROY_CQ, QUERY_CQ, MODIFY_CQ.
#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/objects/ring.h"
#include "prm/umem.h"

namespace hcasim::fw {

namespace {

// cqc.cqe_sz: 0 = 64 bytes, 1 = 128, 2 = 128 all of which are written always; 0 bytes: unknown.
constexpr std::uint32_t kCqe128Padded = 2;
constexpr std::uint32_t kLayoutBasic = 0;  // cqc.cqe_compression_layout
unsigned cqe_bytes(unsigned code) { return code == 0 ? 64 : code == 1 || code == 2 ? 128 : 0; }

bool compression_offered(const Caps& caps, const Command& cmd) {
  using c = prm::create_cq_in::cq_context;
  using cap = prm::cmd_hca_cap;
  if (cmd.get<c::cqe_comp_en>() == 0) return true;
  if (cmd.get<c::cqe_compression_layout>() != kLayoutBasic) return false;
  switch (static_cast<prm::MiniFormat>(cmd.get<c::mini_cqe_res_format>())) {
    case prm::MiniFormat::kHash:
    case prm::MiniFormat::kChecksum:
      break;
    case prm::MiniFormat::kChecksumStride:
      if (caps.get<cap::mini_cqe_resp_stride_index>() == 0) return false;
      break;
    default:
      return false;
  }
  return (cmd.get<c::cqe_sz>() == 0 ? caps.get<cap::cqe_compression>()
                                    : caps.get<cap::cqe_compression_128>()) != 0;
}

// MODIFY_CQ (mlx5 cq.h): fields with op_mod 0, and those of a resize with op_mod 1.
enum : std::uint32_t { kPeriod = 1 << 0, kCount = 1 << 1, kOverrun = 1 << 2, kPeriodMode = 1 << 4 };
enum : std::uint32_t { kLogSize = 1 << 0, kPageOffset = 1 << 1, kPageSize = 1 << 2 };
constexpr std::uint32_t kStartFromCqe = 1;  // cqc.cq_period_mode; 0: from the event
constexpr std::uint32_t kCqcArmedSolicited = 6, kCqcArmed = 9, kCqcFired = 0xa;
constexpr std::uint32_t kCqcOverflow = 9, kCqcWriteFail = 0xa;

}  // namespace

Syndrome create_cq(Firmware& fw, Command& cmd) {
  using in = prm::create_cq_in;
  using c = in::cq_context;
  Objects& o = fw.objects();
  const unsigned log_size = cmd.get<c::log_cq_size>();
  const unsigned cqe_size = cqe_bytes(cmd.get<c::cqe_sz>());
  if (cmd.get<c::cc>() != 0 || cmd.get<c::apu_cq>() != 0 || !compression_offered(fw.caps(), cmd) ||
      cmd.get<c::cq_period_mode>() > kStartFromCqe)
    return Syndrome::kCqFeature;
  if (cqe_size == 0) return Syndrome::kCqeSize;
  if (cmd.get<c::cqe_sz>() == kCqe128Padded && fw.caps().get<prm::cmd_hca_cap::cqe_128_always>() == 0)
    return Syndrome::kCqeSize;
  if (log_size > fw.caps().get<prm::cmd_hca_cap::log_max_cq_sz>()) return Syndrome::kCqSize;
  const std::uint32_t eqn = cmd.get<c::c_eqn_or_apu_element>();
  EqObject* eq = o.eqs.find(eqn);
  if (eq == nullptr) return Syndrome::kCqEq;
  if (o.uars.find(cmd.get<c::uar_page>()) == nullptr) return Syndrome::kUarNumber;
  std::uint64_t dbr = cmd.get<c::dbr_addr>();
  GuestRing ring;
  UmemRefs umems;
  if (cmd.get<c::dbr_umem_valid>() != 0) {
    umems.doorbell = cmd.get<prm::umem_ref::cqc_dbr_id<c>>();
    const Syndrome s = umem_doorbell(fw, cmd, umems.doorbell, dbr, 8, dbr);
    if (s != Syndrome::kOk) return s;
  }
  if ((dbr & 7) != 0) return Syndrome::kCqDbr;
  if (cmd.get<in::cq_umem_valid>() != 0) {
    umems.buffer = cmd.get<prm::umem_ref::cq_id>();
    const Syndrome s = umem_ring(fw, cmd, umems.buffer, cmd.get<prm::umem_ref::cq_offset>(),
                                 std::uint64_t{cqe_size} << log_size, cqe_size, true, ring);
    if (s != Syndrome::kOk) return s;
  } else {
    const Syndrome s =
        read_ring(fw, cmd, in::pas::bit_off / 8, cmd.get<c::log_page_size>(), cmd.get<c::page_offset>(),
                  std::uint64_t{cqe_size} << log_size, Syndrome::kCqPages, ring);
    if (s != Syndrome::kOk) return s;
  }
  if (o.cqs.full()) return Syndrome::kCqLimit;
  if (!fw.pages().charge(kIcmCq)) return Syndrome::kWaitPages;

  std::uint32_t cqn = 0;
  CqObject* object = o.cqs.create(cqn);
  Cq* cq = fw.function().cqs().create(cqn);
  if (cq == nullptr) {
    o.cqs.destroy(cqn);
    fw.pages().release(kIcmCq);
    return Syndrome::kCqLimit;
  }
  std::memcpy(object->cqc.data(), prm::ptr<c>(cmd.in.data()), object->cqc.size());
  object->eq = Ref(eq);
  o.take_list(ring.pages.size());
  cq->ring = std::move(ring);
  cq->log_size = log_size;
  cq->cqe_size = cqe_size;
  if (cmd.get<c::cqe_comp_en>() != 0) {
    cq->block = std::make_unique<CqeBlock>();
    cq->block->format = static_cast<prm::MiniFormat>(cmd.get<c::mini_cqe_res_format>());
  }
  cq->padded = cmd.get<c::cqe_sz>() == kCqe128Padded;
  cq->eqn = eqn;
  cq->dbr_addr = dbr;
  cq->uar_page = cmd.get<c::uar_page>();
  cq->overrun_ignore = cmd.get<c::oi>() != 0;
  cq->period_us = cmd.get<c::cq_period>();
  cq->max_count = cmd.get<c::cq_max_count>();
  cq->period_from_cqe = cmd.get<c::cq_period_mode>() == kStartFromCqe;
  cmd.put<prm::create_cq_out::cqn>(cqn);
  fw.trace_create(ObjType::kCq, cqn, cmd.uid);
  hold_umems(fw, ObjType::kCq, cqn, umems);
  return Syndrome::kOk;
}

Syndrome destroy_cq(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  const std::uint32_t cqn = cmd.get<prm::destroy_cq_in::cqn>();
  const CqObject* object = o.cqs.find(cqn);
  if (object == nullptr) return Syndrome::kCqNumber;
  if (object->referred()) return Syndrome::kCqBusy;
  fw.device().dma().flush(fw.function().id());  // CQEs and events posted so far
  if (const Cq* cq = fw.function().cqs().find(cqn)) o.return_list(cq->ring.pages.size());
  fw.device().cqs().destroy(fw.function().id(), cqn);
  o.cqs.destroy(cqn);
  fw.pages().release(kIcmCq);
  fw.trace_destroy(ObjType::kCq, cqn, cmd.uid);
  return Syndrome::kOk;
}

Syndrome query_cq(Firmware& fw, Command& cmd) {
  using c = prm::query_cq_out::cq_context;
  const std::uint32_t cqn = cmd.get<prm::query_cq_in::cqn>();
  const CqObject* object = fw.objects().cqs.find(cqn);
  Cq* cq = fw.function().cqs().find(cqn);
  if (object == nullptr || cq == nullptr) return Syndrome::kCqNumber;
  fw.device().cqs().settle(cmd.now, *cq);
  std::memcpy(prm::ptr<c>(cmd.out.data()), object->cqc.data(), object->cqc.size());
  const bool full = cq->producer - cq->consumer >= 1u << cq->log_size;
  cmd.put<c::status>(!cq->error ? 0 : full ? kCqcOverflow : kCqcWriteFail);
  cmd.put<c::st>(cq->armed ? (cq->armed_solicited ? kCqcArmedSolicited : kCqcArmed) : kCqcFired);
  cmd.put<c::oi>(cq->overrun_ignore ? 1 : 0);
  cmd.put<c::log_cq_size>(cq->log_size);
  cmd.put<c::cq_period>(cq->period_us);
  cmd.put<c::cq_max_count>(cq->max_count);
  cmd.put<c::cq_period_mode>(cq->period_from_cqe ? kStartFromCqe : 0);
  cmd.put<c::consumer_counter>(cq->consumer & 0xffffff);
  cmd.put<c::producer_counter>(cq->producer & 0xffffff);
  return Syndrome::kOk;
}

Syndrome modify_cq(Firmware& fw, Command& cmd) {
  using in = prm::modify_cq_in;
  using c = in::cq_context;
  const std::uint32_t cqn = cmd.get<in::cqn>();
  CqObject* object = fw.objects().cqs.find(cqn);
  Cq* cq = fw.function().cqs().find(cqn);
  if (object == nullptr || cq == nullptr) return Syndrome::kCqNumber;
  const std::uint32_t mask =
      cmd.get<in::modify_field_select_resize_field_select::modify_field_select::modify_field_select>();
  if (cmd.op_mod == 0) {
    if ((mask & ~(kPeriod | kCount | kOverrun | kPeriodMode)) != 0) return Syndrome::kCqModifyMask;
    if ((mask & kPeriodMode) != 0) {
      if (cmd.get<c::cq_period_mode>() > kStartFromCqe) return Syndrome::kCqFeature;
      cq->period_from_cqe = cmd.get<c::cq_period_mode>() == kStartFromCqe;
    }
    if ((mask & kPeriod) != 0) cq->period_us = cmd.get<c::cq_period>();
    if ((mask & kCount) != 0) cq->max_count = cmd.get<c::cq_max_count>();
    if ((mask & kOverrun) != 0) cq->overrun_ignore = cmd.get<c::oi>() != 0;
    return Syndrome::kOk;
  }
  if (cmd.op_mod != 1) return Syndrome::kOpMod;
  if ((mask & ~(kLogSize | kPageOffset | kPageSize)) != 0 || (mask & kLogSize) == 0)
    return Syndrome::kCqModifyMask;
  const unsigned log_size = cmd.get<c::log_cq_size>();
  if (log_size > fw.caps().get<prm::cmd_hca_cap::log_max_cq_sz>()) return Syndrome::kCqSize;
  if (cqe_bytes(cmd.get<c::cqe_sz>()) != cq->cqe_size) return Syndrome::kCqeSize;
  const unsigned log_page = (mask & kPageSize) != 0 ? cmd.get<c::log_page_size>() : cq->ring.log_page - 12;
  const unsigned offset = (mask & kPageOffset) != 0 ? cmd.get<c::page_offset>() : 0;
  GuestRing ring;
  const std::uint64_t bytes = std::uint64_t{cq->cqe_size} << log_size;
  std::uint32_t umem = 0;
  if (cmd.get<in::cq_umem_valid>() != 0) {
    umem = cmd.get<prm::umem_ref::cq_id>();
    const Syndrome s =
        umem_ring(fw, cmd, umem, cmd.get<prm::umem_ref::cq_offset>(), bytes, cq->cqe_size, true, ring);
    if (s != Syndrome::kOk) return s;
  } else {
    const Syndrome s =
        read_ring(fw, cmd, in::pas::bit_off / 8, log_page, offset, bytes, Syndrome::kCqPages, ring);
    if (s != Syndrome::kOk) return s;
  }
  const std::uint64_t words = ring.pages.size(), words_before = cq->ring.pages.size();
  if (!fw.device().cqs().resize(cmd.now, *cq, std::move(ring), log_size)) return Syndrome::kCqResize;
  fw.objects().take_list(words);
  fw.objects().return_list(words_before);
  fw.objects().umem_users.hold(fw.objects(), ObjType::kCq, cqn, UmemUsers::kBuffer, umem);
  prm::set<prm::cqc::log_cq_size>(object->cqc.data(), log_size);
  prm::set<prm::cqc::log_page_size>(object->cqc.data(), log_page);
  prm::set<prm::cqc::page_offset>(object->cqc.data(), offset);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
