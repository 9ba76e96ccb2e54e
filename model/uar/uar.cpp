// SPDX-License-Identifier: BSD-3-Clause
#include "model/uar/uar.h"

#include <algorithm>
#include <cstring>

#include "model/cq/cq.h"
#include "model/ctx/qp.h"
#include "model/eq/eq.h"
#include "model/pcie/dma.h"
#include "model/profile.h"
#include "model/rules.h"
#include "model/sched/scheduler.h"
#include "model/state/state.h"
#include "prm/cqe.h"
#include "prm/eqe.h"
#include "prm/field.h"
#include "prm/wqe.h"
#include "traces/tracer.h"

namespace hcasim {

using traces::Point;

namespace {
constexpr unsigned kHalfRegister =
    0x100;  // log_bf_reg_size is 9, and the halves of a register are written in turn

// What a store that is refused wanted to write, as traces have it.
std::uint64_t first_bytes(const std::uint8_t* bytes, unsigned len) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < std::min(len, 8u); ++i) value = value << 8 | bytes[i];
  return value;
}
}  // namespace

void UarPages::clear() { reset_state(*this); }

void Uar::clear() { reset_state(*this); }

void Uar::bad(Time t, FunctionId f, Rule rule, RuleObject object, std::uint32_t number, std::uint64_t offset,
              std::uint64_t value) {
  std::uint8_t bytes[12];  // where, and what
  prm::store32(bytes, static_cast<std::uint32_t>(offset));
  prm::store64(bytes + 4, value);
  if (blocks_.dma.enabled(f)) blocks_.tracer.broke(rule, t, object, {f, number}, bytes, sizeof bytes);
  in_vain(t, f, object, number, offset, value);
}

void Uar::in_vain(Time t, FunctionId f, RuleObject object, std::uint32_t number, std::uint64_t offset,
                  std::uint64_t value) {
  // A driver that has switched the interface off (fast teardown at shutdown) still completes its queues by
  // itself, arms CQs and sends frames while it does: nothing is wrong with that.
  const bool off = !blocks_.dma.enabled(f);
  if (!off) ++blocks_.pages[f].bad;
  traces::trace(blocks_.tracer, off ? Point::kDoorbellOff : Point::kDoorbellBad, t, {f, number},
                traces::bad_store(object), offset, value);
}

void Uar::write(Time t, FunctionId f, std::uint64_t offset, const std::uint8_t* bytes, unsigned len) {
  UarPages& pages = blocks_.pages[f];
  const Time service = blocks_.profile.engine.doorbell;
  t = decoder_.reserve(t, service);  // the scheduler adds the service time of its doorbells itself
  const std::uint64_t page = offset / kUarPageSize;
  const unsigned reg = static_cast<unsigned>(offset % kUarPageSize);
  if (!pages.allocated(page) || len > kMaxBurst) {
    bad(t, f, Rule::kUarNotAllocated, RuleObject::kUar, static_cast<std::uint32_t>(page), offset,
        first_bytes(bytes, len));
    return;
  }
  if (reg == prm::uar::kEqArm || reg == prm::uar::kEqUpdate) {
    if (len < sizeof(prm::EqDoorbell)) {
      bad(t, f, Rule::kUarSize, RuleObject::kUar, static_cast<std::uint32_t>(page), offset,
          first_bytes(bytes, len));
      return;
    }
    prm::EqDoorbell db;
    std::memcpy(&db, bytes, sizeof db);
    const DoorbellFate fate = blocks_.eqs.doorbell(t + service, f, db.eqn(), db.ci(), reg == prm::uar::kEqArm,
                                                   static_cast<std::uint32_t>(page));
    if (fate == DoorbellFate::kNobody)
      bad(t, f, Rule::kEqDoorbellNoEq, RuleObject::kEq, db.eqn(), offset, first_bytes(bytes, len));
    else if (fate == DoorbellFate::kOtherPage)
      in_vain(t, f, RuleObject::kEq, db.eqn(), offset, first_bytes(bytes, len));
    return;
  }
  const bool doorbell = reg >= prm::uar::kSqDoorbell;
  const unsigned in_register = doorbell ? reg % kHalfRegister : reg - prm::uar::kCqArm;
  if (!doorbell && (reg < prm::uar::kCqArm || reg >= prm::uar::kCqArm + sizeof(prm::CqDoorbell))) {
    bad(t, f, Rule::kUarRegister, RuleObject::kUar, static_cast<std::uint32_t>(page), offset,
        first_bytes(bytes, len));
    return;
  }
  if (in_register == 0 && len >= 8) {
    store64(t, f, offset, reg, bytes, len);
  } else if (in_register == 0 && len == 4) {
    pages.half_offset = offset;
    std::memcpy(pages.half.data(), bytes, 4);
  } else if (in_register == 4 && len == 4) {
    // Without its first half it is a later word of a BlueFlame burst.
    if (pages.half_offset + 4 != offset) return;
    pages.half_offset = 0;
    std::memcpy(pages.half.data() + 4, bytes, 4);
    store64(t, f, offset - 4, reg - 4, pages.half.data(), 8);
  } else if (!doorbell || in_register == 0) {
    bad(t, f, Rule::kUarSize, RuleObject::kUar, static_cast<std::uint32_t>(page), offset,
        first_bytes(bytes, len));
  }
  // What remains is the rest of a BlueFlame burst in pieces; the WQE is read from the send queue.
}

void Uar::store64(Time t, FunctionId f, std::uint64_t offset, unsigned reg, const std::uint8_t* bytes,
                  unsigned len) {
  const auto page = static_cast<std::uint32_t>(offset / kUarPageSize);
  if (reg == prm::uar::kCqArm) {
    prm::CqDoorbell db;
    std::memcpy(&db, bytes, sizeof db);
    const DoorbellFate fate =
        blocks_.cqs.arm(t + blocks_.profile.engine.doorbell, f, db.cqn & 0xffffff, db.cmd_ci, page);
    if (fate == DoorbellFate::kTaken) return;
    if (fate == DoorbellFate::kOtherPage || blocks_.cqs.went_lately(t, f, db.cqn & 0xffffff))
      in_vain(t, f, RuleObject::kCq, db.cqn, offset, db.cmd_ci);
    else
      bad(t, f, Rule::kCqArmNoCq, RuleObject::kCq, db.cqn, offset, db.cmd_ci);
    return;
  }
  prm::CtrlSeg ctrl{};
  std::memcpy(&ctrl, bytes, 8);
  DoorbellFate fate;
  if (blocks_.pages[f].blueflame() && len >= prm::kDs) {
    ++blocks_.pages[f].blueflames;
    fate = blocks_.scheduler.blueflame(t, f, ctrl.qpn(), bytes, len, page);
  } else {
    fate = blocks_.scheduler.doorbell(t, f, ctrl.qpn(), ctrl.wqe_index(), page);
  }
  if (fate == DoorbellFate::kTaken) return;
  const std::uint64_t value = std::uint64_t{ctrl.opmod_idx_opcode} << 32 | ctrl.qpn_ds;
  if (fate == DoorbellFate::kOtherPage) {
    in_vain(t, f, RuleObject::kQp, ctrl.qpn(), offset, value);
    return;
  }
  const Qp* qp = blocks_.qps[f].find(ctrl.qpn());
  bad(t, f, qp && qp->has_sq ? Rule::kSqDoorbellReset : Rule::kSqDoorbellNoQp, RuleObject::kQp, ctrl.qpn(),
      offset, value);
}

}  // namespace hcasim
