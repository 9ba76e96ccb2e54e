// SPDX-License-Identifier: BSD-3-Clause
#include "model/cq/cq.h"

#include <algorithm>

#include "model/prm/cqe.h"
#include "model/prm/eqe.h"

namespace hcasim {

using traces::Point;

namespace {
constexpr std::uint32_t kIndexMask = 0xffffff;  // consumer indices on the bus have 24 bits
constexpr std::uint32_t kCqnEnd = 1u << 24;

bool is_error(std::uint8_t opcode) {
  return opcode == static_cast<std::uint8_t>(prm::CqeOp::kReqErr) ||
         opcode == static_cast<std::uint8_t>(prm::CqeOp::kRespErr);
}
}  // namespace

CqUnit::CqUnit(const sc_core::sc_module_name& name, const Profile& profile, Dma& dma, EqUnit& eqs,
               traces::Tracer& tracer, FaultSink& faults)
    : sc_module(name),
      profile_(profile),
      dma_(dma),
      eqs_(eqs),
      tracer_(tracer),
      cache_(profile.cache.cqc, profile.cache.ways),
      periods_(
          "periods", [this](Time due, const Period& p) { on_period(due, p); }, faults) {}

Cq* CqUnit::create(std::uint32_t cqn) {
  if (cqn >= kCqnEnd) return nullptr;
  if (cqn >= table_.size()) table_.resize(cqn + 1);
  if (table_[cqn]) return nullptr;
  table_[cqn] = std::make_unique<Cq>();
  table_[cqn]->cqn = cqn;
  ++count_;
  return table_[cqn].get();
}

Cq* CqUnit::find(std::uint32_t cqn) { return cqn < table_.size() ? table_[cqn].get() : nullptr; }

bool CqUnit::destroy(std::uint32_t cqn) {
  if (!find(cqn)) return false;
  dma_.flush();
  table_[cqn].reset();
  cache_.invalidate(cqn);
  --count_;
  return true;
}

void CqUnit::clear() {
  table_.clear();
  count_ = 0;
  cache_.clear();
  unit_.clear();
  periods_.clear();
  completions_ = overruns_ = 0;
}

// Takes notice of a consumer index (24 bits). One beyond the producer is none.
void CqUnit::consumed(Time t, Cq& cq, std::uint32_t ci) {
  const std::uint32_t waiting = (cq.producer - ci) & kIndexMask;
  if (waiting > 1u << cq.log_size) return;
  const std::uint32_t consumer = cq.producer - waiting;
  cq.consumer = consumer;
  trace_consumed(t, cq, consumer);
}

void CqUnit::trace_consumed(Time t, Cq& cq, std::uint32_t consumer) {
  if (consumer == cq.traced) return;
  cq.traced = consumer;
  traces::trace(tracer_, Point::kCqConsumed, t, cq.cqn, consumer);
}

// The doorbell record is read only when the index known so far says "full".
bool CqUnit::has_room(Time t, Cq& cq) {
  const std::uint32_t size = 1u << cq.log_size;
  if (cq.overrun_ignore || cq.producer - cq.consumer < size) return true;
  prm::be32 ci;
  if (!dma_.read(t, cq.dbr_addr, &ci, sizeof ci).ok) return false;
  consumed(t, cq, ci & kIndexMask);
  return cq.producer - cq.consumer < size;
}

bool CqUnit::write(Time t, Cq& cq, prm::Cqe& cqe, bool group, Time& visible) {
  const std::uint32_t size = 1u << cq.log_size;
  cqe.op_own = static_cast<std::uint8_t>(cqe.op_own | (cq.producer >> cq.log_size & 1));
  std::uint64_t addr = 0, run = 0;
  // A 128-byte entry's CQE is its second half.
  const std::uint64_t offset =
      static_cast<std::uint64_t>(cq.producer & (size - 1)) * cq.cqe_size + (cq.cqe_size - sizeof cqe);
  if (!cq.ring.locate(offset, addr, run) || run < sizeof cqe) {
    fail(t, cq, prm::EqeCqErr::kAccess);
    return false;
  }
  visible = dma_.post_write(t, addr, &cqe, sizeof cqe, {WriteOwner::kCq, cq.cqn}, group);
  ++cq.producer;
  return true;
}

Time CqUnit::post(Time t, Cq& cq, const Completion& c) {
  if (cq.error) return t;
  if (!has_room(t, cq)) {
    ++overruns_;
    traces::trace(tracer_, Point::kCqOverrun, t, cq.cqn, cq.producer, cq.consumer);
    fail(t, cq, prm::EqeCqErr::kOverrun);
    return t;
  }
  Time start = t;
  if (!cache_.touch(cq.cqn)) {
    start += profile_.pcie.read_latency;
    traces::trace(tracer_, Point::kCtxMiss, start, cq.cqn, 0u, traces::kCacheCqc, profile_.pcie.read_latency);
  }
  const Time done = unit_.reserve(start, profile_.engine.cqe) + profile_.engine.cqe;

  prm::Cqe cqe{};
  const bool error = is_error(c.opcode);
  cqe.srqn_uidx = c.user_index & 0xffffff;
  cqe.sop_drop_qpn = static_cast<std::uint32_t>(c.send_opcode) << 24 | (c.qpn & 0xffffff);
  cqe.wqe_counter = c.wqe_counter;
  cqe.op_own = static_cast<std::uint8_t>(c.opcode << 4 | (c.solicited ? prm::Cqe::kSolicited : 0));
  if (error) {
    auto& err = reinterpret_cast<prm::ErrCqe&>(cqe);
    err.vendor_err_synd = c.vendor_syndrome;
    err.syndrome = c.syndrome;
  } else {
    cqe.ml_path = c.ml_path;
    cqe.slid = c.slid;
    cqe.flags_rqpn = c.flags_rqpn;
    cqe.imm_inval_pkey = c.imm;
    cqe.byte_cnt = c.byte_cnt;
    cqe.timestamp = static_cast<std::uint64_t>(done) / 1000;  // internal timer: 1 GHz
  }

  // Does this CQE raise an event now? Then it is written together with the EQE.
  ++cq.moderated;
  const bool counts = cq.armed && (!cq.armed_solicited || c.solicited || error);
  const bool moderate = cq.period_us && cq.max_count > 1;
  const bool fire = counts && (!moderate || cq.moderated >= cq.max_count);

  Time visible = t;
  if (!write(done, cq, cqe, fire, visible)) return t;
  ++completions_;
  if (c.solicited || error) {
    cq.any_solicited = true;
    cq.solicited_end = cq.producer;
  }
  traces::trace(tracer_, Point::kCqeWritten, visible, c.trace_qpn ? c.trace_qpn : c.qpn, c.wqe_serial,
                static_cast<std::uint64_t>(cq.cqn) | static_cast<std::uint64_t>(c.opcode) << 24 |
                    static_cast<std::uint64_t>(c.syndrome) << 32 |
                    static_cast<std::uint64_t>(c.wqe_counter) << 48,
                (cq.producer - 1) | static_cast<std::uint64_t>(c.byte_cnt) << 32);
  if (tracer_.enabled()) {
    // A driver that polls tells its index in the record alone. Looked at beside simulated time, so that a
    // traced run is the same run.
    prm::be32 ci;
    if (dma_.peek(cq.dbr_addr, &ci, sizeof ci)) {
      const std::uint32_t waiting = (cq.producer - ci) & kIndexMask;
      if (waiting <= 1u << cq.log_size) trace_consumed(t, cq, cq.producer - waiting);
    }
  }
  if (fire) {
    event(done, cq);
  } else if (counts && !cq.timer) {
    cq.timer = ++serial_;
    periods_.push(done + static_cast<Time>(cq.period_us) * 1000000, Period{cq.cqn, cq.timer});
  }
  return visible;
}

Time CqUnit::event(Time t, Cq& cq) {
  cq.armed = cq.armed_solicited = false;
  cq.moderated = 0;
  cq.timer = 0;
  prm::EqeComp data{};
  data.cqn = cq.cqn;
  return eqs_.to_eq(t, cq.eqn, static_cast<std::uint8_t>(prm::EqeType::kComp), 0, &data, sizeof data);
}

void CqUnit::on_period(Time due, const Period& period) {
  Cq* cq = find(period.cqn);
  if (!cq || cq->timer != period.serial) return;
  cq->timer = 0;
  if (cq->armed && !cq->error) event(due, *cq);
}

void CqUnit::fail(Time t, Cq& cq, std::uint8_t syndrome) {
  cq.error = true;
  cq.armed = false;
  eqs_.cq_error(t, cq.cqn, syndrome);
}

void CqUnit::write_refused(Time t, std::uint32_t cqn) {
  Cq* cq = find(cqn);
  if (cq && !cq->error) fail(t, *cq, prm::EqeCqErr::kAccess);
}

bool CqUnit::arm(Time t, std::uint32_t cqn, std::uint32_t arm_word) {
  Cq* cq = find(cqn);
  if (!cq) return false;
  if (cq->error) return true;
  const std::uint32_t ci = arm_word & kIndexMask;
  const bool solicited_only = (arm_word & prm::CqDoorbell::kSolicitedOnly) != 0;
  consumed(t, *cq, ci);
  traces::trace(tracer_, Point::kCqArmed, t, cqn, ci, solicited_only);

  // The race of arming: a CQE beyond ci raises its event now. One solicited lies beyond ci when the count
  // behind the last one does.
  const std::uint32_t solicited = (cq->solicited_end - ci) & kIndexMask;
  const bool waiting = solicited_only ? cq->any_solicited && solicited != 0 && solicited <= kIndexMask / 2
                                      : ((cq->producer - ci) & kIndexMask) != 0;
  if (waiting) {
    event(t, *cq);
    return true;
  }
  // "Next" asked for before is not weakened by "solicited only" (IBTA 11.4.2.2).
  cq->armed_solicited = solicited_only && (!cq->armed || cq->armed_solicited);
  cq->armed = true;
  return true;
}

bool CqUnit::resize(Time t, Cq& cq, GuestRing ring, unsigned log_size) {
  if (cq.error) return false;
  prm::be32 ci;
  if (dma_.read(t, cq.dbr_addr, &ci, sizeof ci).ok) consumed(t, cq, ci & kIndexMask);
  const std::uint32_t waiting = cq.producer - cq.consumer;
  if (waiting >= 1u << cq.log_size || waiting + 1 > 1u << log_size) return false;
  prm::Cqe cqe{};
  cqe.op_own = static_cast<std::uint8_t>(static_cast<unsigned>(prm::CqeOp::kResize) << 4);
  Time visible = t;
  if (!write(t, cq, cqe, false, visible)) return false;
  // The driver looks for the RESIZE CQE when the command completes.
  dma_.flush();
  cq.ring = std::move(ring);
  cq.log_size = log_size;
  return true;
}

}  // namespace hcasim
