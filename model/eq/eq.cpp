// SPDX-License-Identifier: BSD-3-Clause
#include "model/eq/eq.h"
#include "model/state/state.h"

#include <algorithm>
#include <cstring>

#include "prm/eqe.h"

namespace hcasim {

using traces::Point;

namespace {
constexpr std::uint32_t kCiMask = 0xffffff;
}

EqUnit::EqUnit(const Profile& profile, Dma& dma, traces::Tracer& tracer, PerFunction<EqTable> tables,
               PerFunction<InterruptPace> paces)
    : profile_(profile), dma_(dma), tracer_(tracer), tables_(std::move(tables)), paces_(std::move(paces)) {}

bool EqUnit::destroy(FunctionId f, std::uint32_t eqn) {
  if (!find(f, eqn)) return false;
  dma_.flush(f);
  return tables_[f].destroy(eqn);
}

void EqUnit::clear() { reset_state(*this); }

DoorbellFate EqUnit::doorbell(Time t, FunctionId f, std::uint32_t eqn, std::uint32_t ci, bool arm,
                              std::uint32_t page) {
  Eq* eq = find(f, eqn);
  if (!eq) return DoorbellFate::kNobody;
  if (!rings_on(eq->uar_page, page)) {
    tracer_.broke_value(traces::Rule::kSqDoorbellUar, t, traces::RuleObject::kEq, eq->subject(), page);
    return DoorbellFate::kOtherPage;
  }
  const std::uint32_t waiting = (eq->producer - ci) & kCiMask;
  // An index that no EQE has reached is no index: the EQ keeps the last good one.
  if (waiting <= 1u << eq->log_size)
    eq->consumer = eq->producer - waiting;
  else
    tracer_.broke_value(traces::Rule::kEqIndex, t, traces::RuleObject::kEq, eq->subject(), ci);
  if (arm) {
    if (waiting != 0) {
      raise(t, *eq, fate(t, *eq));
    } else {
      eq->armed = true;
    }
  }
  return DoorbellFate::kTaken;
}

EqUnit::Fate EqUnit::fate(Time t, const Eq& eq) {
  Fate own;
  own.delay = paces_[eq.function].wait(eq.vector, t);
  Injector* injector = gate_.open(FaultType::kMsix);
  if (!injector) return own;
  const FaultSpec* fault =
      injector->strike(FaultType::kMsix, t, {{FaultKey::kVector, eq.vector}, {FaultKey::kEqn, eq.eqn}},
                       {eq.function, eq.vector}, eq.eqn);
  if (!fault) return own;
  return {fault->action == FaultAction::kMsixLost, own.delay + fault->time(FaultKey::kDelay)};
}

Time EqUnit::raise(Time t, Eq& eq, Fate fate) {
  eq.armed = false;
  if (fate.lost) return t;
  ++interrupts_;
  if (fate.delay != 0) dma_.hold_next(fate.delay);
  const Time at = dma_.post_msix(t, eq.function, eq.vector, {WriteOwner::kEq, eq.function, eq.eqn});
  traces::trace(tracer_, Point::kMsix, at, {eq.function, eq.vector}, 0u, eq.eqn);
  return at;
}

Time EqUnit::post(Time t, FunctionId f, std::uint8_t type, std::uint8_t subtype, const void* data,
                  std::size_t len) {
  Time visible = t;
  const std::size_t word = type / 64u;  // mask[0] holds types 0..63
  tables_[f].for_each([&](const Eq& eq) {
    if (eq.mask[word] >> type % 64u & 1)
      visible = std::max(visible, to_eq(t, f, eq.eqn, type, subtype, data, len));
  });
  return visible;
}

bool EqUnit::listening(FunctionId f, std::uint8_t type) const {
  bool any = false;
  tables_[f].for_each([&any, type](const Eq& eq) {
    any = any || ((eq.mask[type / 64u] >> type % 64u & 1) && !eq.overrun &&
                  (eq.overrun_ignore || eq.producer - eq.consumer < 1u << eq.log_size));
  });
  return any;
}

Time EqUnit::to_eq(Time t, FunctionId f, std::uint32_t eqn, std::uint8_t type, std::uint8_t subtype,
                   const void* data, std::size_t len, WriteOwner behind) {
  Eq* eq = find(f, eqn);
  if (!eq) return t;
  if (Injector* injector = gate_.open(FaultType::kEqe); injector && !eq->overrun) {
    if (const FaultSpec* fault = injector->strike(
            FaultType::kEqe, t, {{FaultKey::kType, type}, {FaultKey::kEqn, eqn}}, eq->subject(), type)) {
      if (fault->action == FaultAction::kEqeOverrun) {
        eq->overrun = true;
        ++overruns_;
        traces::trace(tracer_, Point::kEqOverrun, t, eq->subject(), eq->producer, eq->consumer, type);
      }
      return t;
    }
  }
  const std::uint32_t size = 1u << eq->log_size;
  if (eq->overrun || (!eq->overrun_ignore && eq->producer - eq->consumer >= size)) {
    if (!eq->overrun)
      tracer_.broke_value(traces::Rule::kEqOverrun, t, traces::RuleObject::kEq, eq->subject(), eq->consumer);
    eq->overrun = true;
    ++overruns_;
    traces::trace(tracer_, Point::kEqOverrun, t, eq->subject(), eq->producer, eq->consumer, type);
    return t;
  }
  prm::Eqe eqe{};
  eqe.type = type;
  eqe.sub_type = subtype;
  if (len) std::memcpy(&eqe.data, data, std::min(len, sizeof eqe.data));
  eqe.owner = eq->producer >> eq->log_size & 1;

  std::uint64_t addr = 0, run = 0;
  const std::uint64_t offset = static_cast<std::uint64_t>(eq->producer & (size - 1)) * sizeof eqe;
  if (!eq->ring.locate(offset, addr, run) || run < sizeof eqe) {
    write_refused(f, eqn);
    return t;
  }
  const Time done = writer_.reserve(t, profile_.engine.eqe, profile_.engine.eqe) + profile_.engine.eqe;
  traces::trace_busy(tracer_, traces::Unit::kEqe, 0, done - profile_.engine.eqe, done);
  const bool interrupt = eq->armed;
  const Fate met = interrupt ? fate(done, *eq) : Fate{};
  // The interrupt completes the write's group, if it comes with it.
  const bool group = interrupt && !met.lost && met.delay == 0;
  Time visible =
      dma_.post_write(done, addr, &eqe, sizeof eqe, {WriteOwner::kEq, f, eqn}, group, Space::kHost, behind);
  ++eq->producer;
  const bool of_cq = type == static_cast<std::uint8_t>(prm::EqeType::kCqError);
  traces::trace(tracer_, Point::kEqeWritten, visible, eq->subject(), eq->producer - 1, type | subtype << 8,
                of_cq ? static_cast<std::uint32_t>(eqe.data.cq_err.cqn)
                      : static_cast<std::uint32_t>(eqe.data.comp.cqn));
  if (interrupt) {
    const Time raised = raise(done, *eq, met);
    if (group) visible = raised;
  }
  return visible;
}

Time EqUnit::qp_event(Time t, FunctionId f, std::uint8_t type, std::uint32_t qpn, std::uint8_t queue) {
  prm::EqeQpSrq data{};
  data.type = queue;
  data.number = qpn;
  return post(t, f, type, 0, &data, sizeof data);
}

Time EqUnit::srq_event(Time t, FunctionId f, std::uint8_t type, std::uint32_t srqn) {
  prm::EqeQpSrq data{};
  data.number = srqn;
  return post(t, f, type, 0, &data, sizeof data);
}

Time EqUnit::cq_error(Time t, FunctionId f, std::uint32_t cqn, std::uint8_t syndrome) {
  prm::EqeCqErr data{};
  data.cqn = cqn;
  data.syndrome = syndrome;
  return post(t, f, static_cast<std::uint8_t>(prm::EqeType::kCqError), 0, &data, sizeof data);
}

Time EqUnit::vport_event(Time t, FunctionId manager, std::uint16_t vport) {
  prm::EqeVportChange data{};
  data.vport = vport;
  return post(t, manager, static_cast<std::uint8_t>(prm::EqeType::kNicVportChange), 0, &data, sizeof data);
}

Time EqUnit::vhca_event(Time t, FunctionId manager, std::uint16_t function_id) {
  prm::EqeVhcaState data{};
  data.function_id = function_id;
  return post(t, manager, static_cast<std::uint8_t>(prm::EqeType::kVhcaStateChange), 0, &data, sizeof data);
}

Time EqUnit::object_event(Time t, FunctionId f, std::uint16_t type, std::uint32_t number) {
  prm::EqeObjectChange data{};
  data.type = type;
  data.number = number;
  return post(t, f, static_cast<std::uint8_t>(prm::EqeType::kObjectChange), 0, &data, sizeof data);
}

Time EqUnit::port_event(Time t, FunctionId f, std::uint8_t subtype, unsigned port) {
  prm::EqePort data{};
  data.port = static_cast<std::uint8_t>(port << 4);
  return post(t, f, static_cast<std::uint8_t>(prm::EqeType::kPortChange), subtype, &data, sizeof data);
}

void EqUnit::write_refused(FunctionId f, std::uint32_t eqn) {
  Eq* eq = find(f, eqn);
  if (!eq) return;
  eq->overrun = true;
  ++overruns_;
}

}  // namespace hcasim
