// SPDX-License-Identifier: BSD-3-Clause
#include "model/fault/actor.h"

#include <algorithm>
#include <vector>

#include "model/cq/cq.h"
#include "model/ctx/qp_states.h"
#include "model/eq/eq.h"
#include "model/fault/injector.h"
#include "model/firmware_port.h"
#include "model/pcie/host_port.h"
#include "model/port/port.h"
#include "prm/eqe.h"

namespace hcasim {

namespace {
// As IBTA 11.6.3 has its affiliated errors.
prm::EqeType event_of(FaultAction how) {
  switch (how) {
    case FaultAction::kAccess:
      return prm::EqeType::kWqAccess;
    case FaultAction::kInvalid:
      return prm::EqeType::kWqInvalidReq;
    case FaultAction::kPathMig:
      return prm::EqeType::kPathMigFailed;
    default:
      return prm::EqeType::kWqCatas;
  }
}

// The physical port's cable is the first function's host's to pull.
constexpr FunctionId kPortsOwn = 0;
constexpr std::uint64_t kPortsModule = 0;  // the number of the module at its end

bool can_send(const Qp& qp) { return qp.has_sq && (qp.state == QpState::kRts || qp.state == QpState::kSqd); }
}  // namespace

void FaultActor::break_qp(Time t, Qp& qp, FaultAction how) {
  const auto event = static_cast<std::uint8_t>(event_of(how));
  if (how == FaultAction::kPathMig) {  // the alternate path's alone
    blocks_.eqs.qp_event(t, qp.function, event, qp.qpn);
    return;
  }
  blocks_.errors.qp_error(t, qp, event);
}

void FaultActor::doorbell(Time t, Qp& qp) {
  if (!can_send(qp)) return;
  if (const FaultSpec* f =
          blocks_.injector.strike(FaultType::kQp, t, {{FaultKey::kQpn, qp.qpn}}, qp.subject(), 0))
    break_qp(t, qp, f->action);
}

namespace {
// Of so many at once.
std::uint64_t most(const FaultSpec& f) { return f.times != 0 && f.every == 0 ? f.times : UINT64_MAX; }
}  // namespace

void FaultActor::break_qps(Time t, const FaultSpec& f) {
  std::vector<std::pair<FunctionId, std::uint32_t>> meant;
  blocks_.qps.for_each([&](QpTable& qps) {
    qps.for_each_qp([&](const Qp& qp) {
      if (can_send(qp) && f.takes(FaultKey::kFunction, qp.function) && f.takes(FaultKey::kQpn, qp.qpn))
        meant.emplace_back(qp.function, qp.qpn);
    });
  });
  std::sort(meant.begin(), meant.end());
  if (meant.size() > most(f)) meant.resize(most(f));
  for (const auto& [function, qpn] : meant) {
    blocks_.injector.note(t, f, {function, qpn}, 0);
    break_qp(t, *blocks_.qps[function].find(qpn), f.action);
  }
}

void FaultActor::break_cqs(Time t, const FaultSpec& f) {
  const std::uint8_t syndrome =
      f.action == FaultAction::kCqAccess ? prm::EqeCqErr::kAccess : prm::EqeCqErr::kOverrun;
  std::uint64_t n = 0;
  blocks_.cq_tables.for_each([&](const CqTable& table) {
    if (!f.takes(FaultKey::kFunction, table.function())) return;
    table.for_each([&](Cq& cq) {
      if (cq.error || !f.takes(FaultKey::kCqn, cq.cqn) || n == most(f)) return;
      ++n;
      blocks_.injector.note(t, f, cq.subject(), syndrome);
      blocks_.cqs.break_cq(t, cq, syndrome);
    });
  });
}

// A cable goes with the module at its end.
void FaultActor::plug(Time t, bool in) {
  prm::EqePortModule data{};
  data.status = in ? prm::EqePortModule::kPlugged : prm::EqePortModule::kUnplugged;
  blocks_.eqs.post(t, kPortsOwn, static_cast<std::uint8_t>(prm::EqeType::kPortModule), 0, &data, sizeof data);
  blocks_.hosts[kPortsOwn].cable(in);
}

void FaultActor::act(Time t, const FaultSpec& f, bool begin) {
  if (f.function() >= blocks_.qps.size()) return;  // the card has no such function
  switch (f.kind) {
    case FaultType::kQp:
      if (begin) break_qps(t, f);
      return;
    case FaultType::kCq:
      if (begin) break_cqs(t, f);
      return;
    case FaultType::kEvent:
      if (!begin) return;
      blocks_.injector.note(t, f, {f.function(), 0}, f.value(FaultKey::kType));
      blocks_.eqs.post(t, f.function(), static_cast<std::uint8_t>(f.value(FaultKey::kType)),
                       static_cast<std::uint8_t>(f.value(FaultKey::kSubType)), f.bytes.data(),
                       f.bytes.size());
      return;
    case FaultType::kWire:  // the link after a packet that took it down
      plug(t, !begin);
      return;
    case FaultType::kPort:
      if (f.action == FaultAction::kPortErrors) {
        if (!begin) return;
        blocks_.injector.note(t, f, 1, f.value(FaultKey::kCount));
        blocks_.port.count_symbol_errors(f.value(FaultKey::kCount));
        return;
      }
      if (begin) blocks_.injector.note(t, f, 1, 0);
      // "up" lasts: there is nothing to take back.
      if (begin || f.action == FaultAction::kPortDown) plug(t, begin == (f.action == FaultAction::kPortUp));
      return;
    case FaultType::kModule:
      blocks_.firmware[f.function()].fault(t, f, begin);
      if (begin && f.value(FaultKey::kModule) == kPortsModule &&
          (f.action == FaultAction::kPlugged || f.action == FaultAction::kUnplugged))
        blocks_.hosts[kPortsOwn].cable(f.action == FaultAction::kPlugged);
      return;
    case FaultType::kPcie: {
      if (!begin) return;
      if (f.action == FaultAction::kRemove || f.action == FaultAction::kInsert) {
        const bool out = f.action == FaultAction::kRemove;
        blocks_.injector.note(t, f, {f.function(), 0}, 0);
        blocks_.hosts[f.function()].pcie_error(out ? kFaultRemoved : kFaultInserted, 0,
                                               out ? "surprise-removal" : "insertion");
        return;
      }
      const PcieErrorName& e = pcie_errors()[f.value(FaultKey::kError)];
      const std::uint64_t severity =
          e.correctable ? kFaultCorrectable : f.value(FaultKey::kSeverity, kFaultUncorrectable);
      blocks_.injector.note(t, f, {f.function(), 0}, e.bit | severity << 32);
      blocks_.hosts[f.function()].pcie_error(static_cast<unsigned>(severity), e.bit, e.name);
      return;
    }
    case FaultType::kModel:
      if (!begin) return;
      blocks_.injector.note(t, f, {f.function(), 0}, 0);
      blocks_.faults.model_fault("fault injection", "asked for");
      return;
    default:
      blocks_.firmware[f.function()].fault(t, f, begin);
      return;
  }
}

}  // namespace hcasim
