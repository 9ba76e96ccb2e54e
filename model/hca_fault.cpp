// SPDX-License-Identifier: BSD-3-Clause
// Timed faults: what they break is the hardware's here, or handed to the firmware.
#include "model/hca.h"

#include <algorithm>
#include <vector>

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

bool can_send(const Qp& qp) { return qp.has_sq && (qp.state == QpState::kRts || qp.state == QpState::kSqd); }
}  // namespace

void Hca::break_qp(Time t, Qp& qp, FaultAction how) {
  const auto event = static_cast<std::uint8_t>(event_of(how));
  if (how == FaultAction::kPathMig) {  // the alternate path's alone
    eqs_.qp_event(t, event, qp.qpn);
    return;
  }
  qp_error(t, qp, event);
}

void Hca::doorbell_struck(Time t, Qp& qp) {
  if (!can_send(qp)) return;
  if (const FaultSpec* f = injector_.strike(FaultType::kQp, t, {{FaultKey::kQpn, qp.qpn}}, qp.qpn, 0))
    break_qp(t, qp, f->action);
}

void Hca::fault(Time t, const FaultSpec& f, bool begin) {
  const std::uint64_t most = f.times != 0 && f.every == 0 ? f.times : UINT64_MAX;
  switch (f.kind) {
    case FaultType::kQp: {
      if (!begin) return;
      std::vector<std::uint32_t> meant;
      qps_.for_each_qp([&](const Qp& qp) {
        if (can_send(qp) && f.takes(FaultKey::kQpn, qp.qpn)) meant.push_back(qp.qpn);
      });
      std::sort(meant.begin(), meant.end());
      if (meant.size() > most) meant.resize(most);
      for (const std::uint32_t qpn : meant) {
        injector_.note(t, f, qpn, 0);
        break_qp(t, *qps_.find(qpn), f.action);
      }
      return;
    }
    case FaultType::kCq: {
      if (!begin) return;
      const std::uint8_t syndrome =
          f.action == FaultAction::kCqAccess ? prm::EqeCqErr::kAccess : prm::EqeCqErr::kOverrun;
      std::uint64_t n = 0;
      cqs_.for_each([&](Cq& cq) {
        if (cq.error || !f.takes(FaultKey::kCqn, cq.cqn) || n == most) return;
        ++n;
        injector_.note(t, f, cq.cqn, syndrome);
        cqs_.break_cq(t, cq, syndrome);
      });
      return;
    }
    case FaultType::kEvent:
      if (!begin) return;
      injector_.note(t, f, 0, f.value(FaultKey::kType));
      eqs_.post(t, static_cast<std::uint8_t>(f.value(FaultKey::kType)),
                static_cast<std::uint8_t>(f.value(FaultKey::kSubType)), f.bytes.data(), f.bytes.size());
      return;
    case FaultType::kWire:  // the link after a packet that took it down
      host_.cable(!begin);
      return;
    case FaultType::kPort:
      if (f.action == FaultAction::kPortErrors) {
        if (!begin) return;
        injector_.note(t, f, 1, f.value(FaultKey::kCount));
        port_.count_symbol_errors(f.value(FaultKey::kCount));
        return;
      }
      if (begin) injector_.note(t, f, 1, 0);
      // "up" lasts: there is nothing to take back.
      if (begin || f.action == FaultAction::kPortDown)
        host_.cable(begin == (f.action == FaultAction::kPortUp));
      return;
    case FaultType::kPcie: {
      if (!begin) return;
      if (f.action == FaultAction::kRemove || f.action == FaultAction::kInsert) {
        const bool out = f.action == FaultAction::kRemove;
        injector_.note(t, f, 0, 0);
        host_.pcie_error(out ? kFaultRemoved : kFaultInserted, 0, out ? "surprise-removal" : "insertion");
        return;
      }
      const PcieErrorName& e = pcie_errors()[f.value(FaultKey::kError)];
      const std::uint64_t severity =
          e.correctable ? kFaultCorrectable : f.value(FaultKey::kSeverity, kFaultUncorrectable);
      injector_.note(t, f, 0, e.bit | severity << 32);
      host_.pcie_error(static_cast<unsigned>(severity), e.bit, e.name);
      return;
    }
    case FaultType::kModel:
      if (!begin) return;
      injector_.note(t, f, 0, 0);
      model_fault("fault injection", "asked for");
      return;
    default:
      if (firmware_) firmware_->fault(t, f, begin);
      return;
  }
}

}  // namespace hcasim
