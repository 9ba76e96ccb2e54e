// SPDX-License-Identifier: BSD-3-Clause
#include "model/cq/cq.h"
#include "model/state/state.h"

#include <algorithm>
#include <cstring>

#include "prm/cqe.h"
#include "prm/crypto.h"
#include "prm/eqe.h"
#include "prm/signature.h"

namespace hcasim {

using traces::Point;
using traces::Rule;
using traces::RuleObject;

namespace {
constexpr std::uint32_t kIndexMask = 0xffffff;  // consumer indices on the bus have 24 bits
constexpr std::uint32_t kShortMask = 0xffff;

void lay_out(prm::Cqe& cqe, const SignatureCompletion& s, std::uint32_t qpn) {
  prm::SigErrCqe e{};
  e.expected_trans_sig = static_cast<std::uint32_t>(s.expected >> 32);
  e.actual_trans_sig = static_cast<std::uint32_t>(s.actual >> 32);
  e.expected_ref_tag = static_cast<std::uint32_t>(s.expected);
  e.actual_ref_tag = static_cast<std::uint32_t>(s.actual);
  e.syndrome = s.syndrome;
  e.domain = s.memory ? 1 : 0;
  e.mkey = s.mkey;
  e.offset = s.offset;
  e.qpn = qpn & 0xffffff;
  e.op_own = cqe.op_own;
  std::memcpy(&cqe, &e, sizeof cqe);
}

bool is_error(std::uint8_t opcode) {
  return opcode == static_cast<std::uint8_t>(prm::CqeOp::kReqErr) ||
         opcode == static_cast<std::uint8_t>(prm::CqeOp::kRespErr);
}
// What the entry says of the operation. done: when the CQE is made, the timestamp of one that reports
// success.
inline prm::Cqe make_cqe(const Completion& c, bool error, Time done) {
  prm::Cqe cqe{};
  cqe.srqn_uidx = c.user_index & 0xffffff;
  cqe.sop_drop_qpn = static_cast<std::uint32_t>(c.send_opcode) << 24 | (c.qpn & 0xffffff);
  cqe.wqe_counter = c.wqe_counter;
  cqe.op_own = static_cast<std::uint8_t>(c.opcode << 4 | (c.solicited ? prm::Cqe::kSolicited : 0));
  if (error) {
    auto& err = reinterpret_cast<prm::ErrCqe&>(cqe);
    err.vendor_err_synd = c.vendor_syndrome;
    err.syndrome = c.syndrome;
    if (c.frame) err.wqe_id = c.frame->wqe_id;
  } else {
    cqe.ml_path = c.ml_path;
    cqe.slid = c.slid;
    cqe.flags_rqpn = c.flags_rqpn;
    cqe.imm_inval_pkey = c.imm;
    cqe.byte_cnt = c.byte_cnt;
    if (c.has_vlan) {
      cqe.l4_l3_hdr_type = prm::Cqe::kVlanPresent;
      cqe.vlan_info = c.vlan;
    }
    if (const FrameCompletion* f = c.frame) {
      cqe.tls_outer_l3_tunneled =
          static_cast<std::uint8_t>((f->tunneled ? prm::kCqeTunneled : 0) |
                                    (f->outer_ipv6 ? prm::kCqeOuterIpv6 : 0) | f->tls << prm::kCqeTlsShift);
      cqe.wqe_id = f->wqe_id;
      cqe.rss_hash_result = f->rss_hash;
      cqe.rss_hash_type = f->rss_type;
      cqe.check_sum = f->check_sum;
      cqe.hds_ip_ext = f->ok;
      cqe.l4_l3_hdr_type = f->header_type;
      cqe.vlan_info = f->vlan;
      cqe.sop_drop_qpn = f->flow_tag & 0xffffff;
      cqe.srqn_uidx = static_cast<std::uint32_t>(f->segments) << 24 | (c.user_index & 0xffffff);
      std::memcpy(cqe.merge, f->merge.data(), sizeof cqe.merge);
    }
    cqe.timestamp = static_cast<std::uint64_t>(c.timestamp.value_or(done)) / 1000;  // internal timer: 1 GHz
  }
  if (c.tm_op != 0) {
    cqe.app = prm::Cqe::kAppTagMatching;
    cqe.app_op = c.tm_op;
    cqe.app_info = c.tm_index;
    if (c.tm_head_len)
      std::memcpy(static_cast<void*>(&cqe), c.tm_head,
                  std::min<std::size_t>(c.tm_head_len, sizeof(prm::Tmh)));
  }
  return cqe;
}

// Inline data: in the first half of a 128-byte entry, or over the first 32 bytes of a 64-byte one. Returns
// what the first half of the entry is written with, null: nothing.
inline const std::uint8_t* place_inline(const Cq& cq, const Completion& c, prm::Cqe& cqe,
                                        std::uint8_t (&first)[sizeof(prm::Cqe)]) {
  if (cq.cqe_size == 128) {
    std::memcpy(first, c.inline_data, std::min<std::size_t>(c.inline_len, sizeof first));
    cqe.op_own |= prm::Cqe::kFormatInline64;
    return first;
  }
  std::memcpy(static_cast<void*>(&cqe), c.inline_data,
              std::min<std::size_t>(c.inline_len, prm::Cqe::kInline32));
  cqe.op_own |= prm::Cqe::kFormatInline32;
  return nullptr;
}
// CQEs that wait for a driver with this consumer index. A driver may count in 16 bits, if the CQ has fewer
// entries: DPDK's does, for the completions of what it sends (mlx5_txq_data.cq_ci), without asking that
// overruns be ignored.
std::uint32_t waiting_by(const Cq& cq, std::uint32_t ci) {
  const std::uint32_t waiting = (cq.producer - ci) & kIndexMask, size = 1u << cq.log_size;
  if (waiting <= size || ci > kShortMask || size > kShortMask) return waiting;
  const std::uint32_t by_short = waiting & kShortMask;
  return by_short <= size ? by_short : waiting;
}

// Whether the driver has armed the CQ again while the doorbell was on its way: at a later index, or at the
// same one after an event of an earlier arm, which another of its threads took up meanwhile (one event
// counted, or two).
bool is_of_later_doorbell(std::uint32_t record, std::uint32_t doorbell) {
  const std::uint32_t further = (record - doorbell) & kIndexMask;
  const std::uint32_t events = ((record >> 28) - (doorbell >> 28)) & 3;
  return further == 0 ? events == 1 || events == 2 : further <= kIndexMask / 2;
}
}  // namespace

CqUnit::CqUnit(const sc_core::sc_module_name& name, const Profile& profile, Dma& dma, ContextFetch& contexts,
               EqUnit& eqs, traces::Tracer& tracer, FaultSink& faults, PerFunction<CqTable> tables)
    : sc_module(name),
      profile_(profile),
      dma_(dma),
      contexts_(contexts),
      eqs_(eqs),
      tracer_(tracer),
      tables_(std::move(tables)),
      cache_(profile.cache.cqc, profile.cache.ways),
      periods_(
          "periods", [this](Time due, const Period& p) { on_period(due, p); }, faults),
      blocks_(
          "blocks", [this](Time due, const Period& p) { on_block(due, p); }, faults),
      failures_(
          "failures",
          [this](Time due, const Period& p) {
            const Cq* cq = find(p.function, p.cqn);
            if (failed_ && cq) failed_(due, *cq);
          },
          faults) {}

bool CqUnit::destroy(FunctionId f, std::uint32_t cqn) {
  Cq* cq = find(f, cqn);
  if (!cq) return false;
  settle(sim_now(), *cq);
  dma_.flush(f);
  cache_.invalidate(context_id(f, cqn));
  if (gone_.size() >= kMostGone) gone_.erase(gone_.begin());
  gone_.push_back({cqn, f, sim_now()});
  return tables_[f].destroy(cqn);
}

bool CqUnit::went_lately(Time t, FunctionId f, std::uint32_t cqn) const {
  return std::any_of(gone_.begin(), gone_.end(),
                     [&](const Gone& g) { return g.cqn == cqn && g.function == f && g.at >= t - kLateArm; });
}

void CqUnit::clear() { reset_state(*this); }

// Takes notice of a consumer index (24 bits). One beyond the producer is none.
void CqUnit::consumed(Time t, Cq& cq, std::uint32_t ci) {
  const std::uint32_t waiting = waiting_by(cq, ci);
  if (waiting > 1u << cq.log_size) return;
  const std::uint32_t consumer = cq.producer - waiting;
  cq.consumer = consumer;
  trace_consumed(t, cq, consumer);
}

void CqUnit::trace_consumed(Time t, Cq& cq, std::uint32_t consumer) {
  if (consumer == cq.traced) return;
  cq.traced = consumer;
  traces::trace(tracer_, Point::kCqConsumed, t, cq.subject(), consumer);
}

void CqUnit::check_record(Time t, Cq& cq, std::uint32_t ci) {
  const std::uint32_t waiting = waiting_by(cq, ci);
  const bool has_wrapped = ci <= kShortMask && ((ci - cq.recorded) & kShortMask) <= kShortMask / 2;
  if (((ci - cq.recorded) & kIndexMask) > kIndexMask / 2 && !(has_wrapped && waiting <= 1u << cq.log_size))
    tracer_.broke_value(Rule::kCqRecordBack, t, RuleObject::kCq, cq.subject(), ci);
  else if (waiting > 1u << cq.log_size && !cq.overrun_ignore)
    tracer_.broke_value(Rule::kCqRecordJump, t, RuleObject::kCq, cq.subject(), ci);
  cq.recorded = ci;
}

// Sequence numbers count modulo 4, so that a number may be right that is not: never the other way round.
void CqUnit::check_arm(Time t, Cq& cq, std::uint32_t arm_word) {
  // Beside simulated time: what the doorbell says is known, and the driver wrote the record before.
  prm::be32 record[2];  // consumer index, arm word
  const bool known = dma_.peek(cq.function, cq.dbr_addr, record, sizeof record);
  // Drivers arm without a lock (ib_req_notify_cq() may be called from everywhere): what a doorbell counted
  // that another thread's has overtaken is some events old.
  const bool late = known && record[1] != arm_word && is_of_later_doorbell(record[1], arm_word);
  if (!late) {
    if (waiting_by(cq, arm_word & kIndexMask) > 1u << cq.log_size && !cq.overrun_ignore)
      tracer_.broke_value(Rule::kCqArmIndex, t, RuleObject::kCq, cq.subject(), arm_word);
    const auto sn = static_cast<std::uint8_t>(arm_word >> 28 & 3);
    const std::uint32_t seen = (sn - cq.arm_sn) & 3u;
    if (seen > cq.unseen)
      tracer_.broke_value(Rule::kCqArmSn, t, RuleObject::kCq, cq.subject(), arm_word);
    else
      cq.unseen -= seen;
    cq.arm_sn = sn;
  }
  if (!known) return;
  check_record(t, cq, record[0] & kIndexMask);
  if (record[1] != arm_word && !late)
    tracer_.broke(Rule::kCqArmRecord, t, RuleObject::kCq, cq.subject(), &record[1], sizeof record[1]);
}

// The doorbell record is read only when the index known so far says "full".
bool CqUnit::has_room(Time t, Cq& cq) {
  const std::uint32_t size = 1u << cq.log_size;
  if (cq.overrun_ignore || cq.producer + cq.held() - cq.consumer < size) return true;
  prm::be32 ci;
  if (!dma_.read(t, cq.dbr_addr, &ci, sizeof ci, Space::kHost, WriteOwner(cq.function)).ok) return false;
  check_record(t, cq, ci & kIndexMask);
  consumed(t, cq, ci & kIndexMask);
  return cq.producer + cq.held() - cq.consumer < size;
}

std::uint32_t CqUnit::inline_room(const Cq& cq, prm::InlineScatter want) {
  if (want == prm::InlineScatter::k32) return cq.cqe_size == 64 ? prm::Cqe::kInline32 : 0;
  if (want == prm::InlineScatter::k64) return cq.cqe_size == 128 ? prm::Cqe::kInline64 : 0;
  return 0;
}

bool CqUnit::write(Time t, Cq& cq, prm::Cqe& cqe, const std::uint8_t* head, bool group, WriteOwner behind,
                   Time& visible) {
  const std::uint32_t size = 1u << cq.log_size;
  cqe.op_own = static_cast<std::uint8_t>(cqe.op_own | (cq.producer >> cq.log_size & 1));
  std::uint64_t addr = 0, run = 0;
  // A 128-byte entry's CQE is its second half.
  const std::uint64_t offset =
      static_cast<std::uint64_t>(cq.producer & (size - 1)) * cq.cqe_size + (cq.cqe_size - sizeof cqe);
  const WriteOwner owner{WriteOwner::kCq, cq.function, cq.cqn};
  if (head) {  // may lie in another page: buffers are aligned to 64 bytes
    if (!cq.ring.locate(offset - sizeof cqe, addr, run) || run < sizeof cqe) {
      fail(t, cq, prm::EqeCqErr::kAccess);
      return false;
    }
    if (run >= 2 * sizeof cqe) {
      std::uint8_t entry[2 * sizeof cqe];
      std::memcpy(entry, head, sizeof cqe);
      std::memcpy(entry + sizeof cqe, &cqe, sizeof cqe);
      visible = dma_.post_write(t, addr, entry, sizeof entry, owner, group, Space::kHost, behind);
      ++cq.producer;
      return true;
    }
    dma_.post_write(t, addr, head, sizeof cqe, owner, true, Space::kHost, behind);
  }
  if (!cq.ring.locate(offset, addr, run) || run < sizeof cqe) {
    fail(t, cq, prm::EqeCqErr::kAccess);
    return false;
  }
  visible = dma_.post_write(t, addr, &cqe, sizeof cqe, owner, group, Space::kHost, behind);
  ++cq.producer;
  return true;
}

bool CqUnit::inject(Time t, Cq& cq, const Completion& c, Time& late) {
  if (Injector* injector = gate_.open(FaultType::kCq)) {
    if (const FaultSpec* fault =
            injector->strike(FaultType::kCq, t, {{FaultKey::kCqn, cq.cqn}}, cq.subject(), 0)) {
      break_cq(t, cq,
               fault->action == FaultAction::kCqAccess ? prm::EqeCqErr::kAccess : prm::EqeCqErr::kOverrun);
      return true;
    }
  }
  Injector* injector = gate_.open(FaultType::kCqe);
  if (!injector) return false;
  const FaultSpec* fault = injector->strike(
      FaultType::kCqe, t, {{FaultKey::kCqn, cq.cqn}, {FaultKey::kQpn, c.qpn}}, cq.subject(), c.qpn);
  if (!fault) return false;
  late = fault->time(FaultKey::kDelay);
  return fault->action == FaultAction::kCqeLost;
}

Time CqUnit::post(Time t, Cq& cq, const Completion& c) {
  if (cq.error) return t;
  Time late = 0;
  const bool faulty = gate_.open(FaultType::kCqe) || gate_.open(FaultType::kCq);
  if (faulty && inject(t, cq, c, late)) return t;
  if (!has_room(t, cq)) {
    ++overruns_;
    close_block(t, cq);
    traces::trace(tracer_, Point::kCqOverrun, t, cq.subject(), cq.producer, cq.consumer);
    tracer_.broke_value(Rule::kCqOverrun, t, RuleObject::kCq, cq.subject(), cq.consumer & kIndexMask);
    fail(t, cq, prm::EqeCqErr::kOverrun);
    return t;
  }
  const ContextFetch::Got context =
      contexts_.get(t, cache_, context_id(cq.function, cq.cqn), profile_.cache.cqc_bytes);
  if (context.missed)
    traces::trace(tracer_, Point::kCtxMiss, context.at, cq.subject(), 0u, traces::kCacheCqc, context.at - t);
  const Time done = unit_.reserve(context.at, profile_.engine.cqe, profile_.engine.cqe) + profile_.engine.cqe;
  traces::trace_busy(tracer_, traces::Unit::kCqe, 0, done - profile_.engine.cqe, done);

  const bool error = is_error(c.opcode);
  prm::Cqe cqe = make_cqe(c, error, done);
  if (cq.block) {
    if (late == 0 && hold(done, cq, c, cqe)) return done;
    close_block(done, cq);
    if (cq.error) return t;
  }
  std::uint8_t first[sizeof cqe] = {};
  const std::uint8_t* head = cq.cqe_size == 128 && cq.padded ? first : nullptr;
  if (c.inline_len != 0 && !error) head = place_inline(cq, c, cqe, first);
  if (c.signature) lay_out(cqe, *c.signature, c.qpn);

  bool counts = false;
  const bool fire = fires(cq, 1, c.solicited || error, counts);
  Time visible = t;
  if (late != 0) dma_.hold_next(late);
  if (!write(done, cq, cqe, head, fire, c.behind, visible)) return t;
  trace_written(visible, cq, cq.producer - 1, cqe, c.trace_qpn ? c.trace_qpn : c.qpn, c.wqe_serial);
  written(done, cq, c.solicited || error, counts, fire);
  return visible;
}

// A CQE that raises an event now is written together with the EQE.
bool CqUnit::fires(Cq& cq, std::uint32_t n, bool solicited, bool& counts) {
  cq.moderated += n;
  counts = cq.armed && (!cq.armed_solicited || solicited);
  return counts && event_may_come(cq);
}

// Moderation lets an event pass that is due: the count is reached, or the period since the last event is
// over. A period that CQEs begin ends in on_period() alone.
bool CqUnit::event_may_come(const Cq& cq) {
  return !cq.moderates() || cq.moderated >= cq.max_count || (!cq.period_from_cqe && cq.timer == 0);
}

void CqUnit::trace_written(Time t, const Cq& cq, std::uint32_t index, const prm::Cqe& cqe,
                           std::uint32_t trace_qpn, std::uint32_t serial) {
  ++completions_;
  const bool error = is_error(static_cast<std::uint8_t>(cqe.opcode()));
  const std::uint8_t syndrome = error ? reinterpret_cast<const prm::ErrCqe&>(cqe).syndrome : 0;
  const std::uint32_t byte_cnt = error ? 0 : static_cast<std::uint32_t>(cqe.byte_cnt);
  traces::trace(tracer_, Point::kCqeWritten, t, {cq.function, trace_qpn}, serial,
                static_cast<std::uint64_t>(cq.cqn) | static_cast<std::uint64_t>(cqe.opcode()) << 24 |
                    static_cast<std::uint64_t>(syndrome) << 32 |
                    static_cast<std::uint64_t>(static_cast<std::uint16_t>(cqe.wqe_counter)) << 48,
                index | static_cast<std::uint64_t>(byte_cnt) << 32);
}

void CqUnit::written(Time t, Cq& cq, bool solicited, bool counts, bool fire) {
  if (solicited) {
    cq.any_solicited = true;
    cq.solicited_end = cq.producer;
  }
  if (tracer_.enabled()) {
    // A driver that polls writes its index to the record alone. Looked at beside simulated time, so that a
    // traced run is the same run.
    prm::be32 ci;
    if (dma_.peek(cq.function, cq.dbr_addr, &ci, sizeof ci)) {
      const std::uint32_t waiting = (cq.producer - ci) & kIndexMask;
      if (waiting <= 1u << cq.log_size) trace_consumed(t, cq, cq.producer - waiting);
    }
  }
  if (fire) {
    event(t, cq);
  } else if (counts && cq.period_from_cqe) {
    begin_period(t, cq);
  }
}

void CqUnit::begin_period(Time t, Cq& cq) {
  cq.timer = ++serial_;
  periods_.push(t + static_cast<Time>(cq.period_us) * 1000000, Period{cq.cqn, cq.function, cq.timer});
}

Time CqUnit::event(Time t, Cq& cq) {
  cq.armed = cq.armed_solicited = false;
  ++cq.unseen;
  cq.moderated = 0;
  cq.timer = 0;
  if (cq.moderates() && !cq.period_from_cqe) begin_period(t, cq);
  prm::EqeComp data{};
  data.cqn = cq.cqn;
  return eqs_.to_eq(t, cq.function, cq.eqn, static_cast<std::uint8_t>(prm::EqeType::kComp), 0, &data,
                    sizeof data, {WriteOwner::kCq, cq.function, cq.cqn});
}

void CqUnit::on_period(Time due, const Period& period) {
  Cq* cq = find(period.function, period.cqn);
  if (!cq || cq->timer != period.serial) return;
  cq->timer = 0;
  if (cq->armed && !cq->error && cq->waiting(cq->consumer, cq->armed_solicited)) event(due, *cq);
}

void CqUnit::settle_all_of(Time t, FunctionId f) {
  tables_[f].for_each([&](Cq& cq) {
    close_block(t, cq);
    if (cq.timer == 0) return;
    cq.timer = 0;
    if (cq.armed && !cq.error && cq.waiting(cq.consumer, cq.armed_solicited)) event(t, cq);
  });
}

void CqUnit::fail(Time t, Cq& cq, std::uint8_t syndrome) {
  if (cq.error) return;
  cq.error = true;
  cq.armed = false;
  eqs_.cq_error(t, cq.function, cq.cqn, syndrome);
  failures_.push(std::max(t, sim_now()), Period{cq.cqn, cq.function, 0});
}

void CqUnit::write_refused(Time t, FunctionId f, std::uint32_t cqn) {
  Cq* cq = find(f, cqn);
  if (cq && !cq->error) fail(t, *cq, prm::EqeCqErr::kAccess);
}

DoorbellFate CqUnit::arm(Time t, FunctionId f, std::uint32_t cqn, std::uint32_t arm_word,
                         std::uint32_t page) {
  Cq* cq = find(f, cqn);
  if (!cq) return DoorbellFate::kNobody;
  if (!rings_on(cq->uar_page, page)) {
    tracer_.broke_value(Rule::kSqDoorbellUar, t, RuleObject::kCq, cq->subject(), page);
    return DoorbellFate::kOtherPage;
  }
  if (cq->error) return DoorbellFate::kTaken;
  close_block(t, *cq);
  if (cq->error) return DoorbellFate::kTaken;
  const std::uint32_t ci = arm_word & kIndexMask;
  if (tracer_.rules().on()) check_arm(t, *cq, arm_word);
  const bool solicited_only = (arm_word & prm::CqDoorbell::kSolicitedOnly) != 0;
  consumed(t, *cq, ci);
  traces::trace(tracer_, Point::kCqArmed, t, cq->subject(), ci, solicited_only);

  // The race of arming: a CQE beyond ci raises its event now, if moderation lets it.
  const bool waiting = cq->waiting(ci, solicited_only);
  if (waiting && event_may_come(*cq)) {
    event(t, *cq);
    return DoorbellFate::kTaken;
  }
  // "Next" asked for before is not weakened by "solicited only" (IBTA 11.4.2.2).
  cq->armed_solicited = solicited_only && (!cq->armed || cq->armed_solicited);
  cq->armed = true;
  if (waiting && cq->period_from_cqe) begin_period(t, *cq);
  return DoorbellFate::kTaken;
}

bool CqUnit::resize(Time t, Cq& cq, GuestRing ring, unsigned log_size) {
  close_block(t, cq);
  if (cq.error) return false;
  prm::be32 ci;
  if (dma_.read(t, cq.dbr_addr, &ci, sizeof ci, Space::kHost, WriteOwner(cq.function)).ok)
    consumed(t, cq, ci & kIndexMask);
  const std::uint32_t waiting = cq.producer - cq.consumer;
  if (waiting >= 1u << cq.log_size || waiting + 1 > 1u << log_size) return false;
  prm::Cqe cqe{};
  cqe.op_own = static_cast<std::uint8_t>(static_cast<unsigned>(prm::CqeOp::kResize) << 4);
  Time visible = t;
  const bool solicited = cq.waiting(cq.consumer, true);
  if (!write(t, cq, cqe, nullptr, false, {}, visible)) return false;
  if (solicited) ++cq.solicited_end;  // drivers move the CQEs that wait one place on
  // The driver looks for the RESIZE CQE when the command completes.
  dma_.flush(cq.function);
  cq.ring = std::move(ring);
  cq.log_size = log_size;
  return true;
}

}  // namespace hcasim
