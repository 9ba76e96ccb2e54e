// SPDX-License-Identifier: BSD-3-Clause
// Accesses that the host, or an injected fault, refuses or slows: what is told of them, and to whom.
#include <cstring>
#include <vector>

#include "model/pcie/dma.h"
#include "model/simulation_context.h"

namespace hcasim {

using traces::Point;

const FaultSpec* Dma::fault_of(Time t, bool write, std::uint64_t addr, std::size_t len, WriteOwner owner,
                               Injector::Actions among) {
  Injector* injector = gate_.open(FaultType::kDma);
  if (!injector || !sides_[owner.function].enabled) return nullptr;
  return injector->strike(FaultType::kDma, t,
                          {{FaultKey::kDirection, write ? kFaultWrite : kFaultRead},
                           {FaultKey::kOwner, owner.kind},
                           {FaultKey::kNumber, owner.number},
                           {FaultKey::kAddress, addr, addr + len - 1}},
                          owner.subject(), addr, among);
}

bool Dma::refuse_by_fault(Time t, bool write, std::uint64_t addr, std::size_t len, WriteOwner owner) {
  const FaultSpec* fault =
      write ? fault_of(t, write, addr, len, owner, {FaultAction::kError})
            : fault_of(t, write, addr, len, owner, {FaultAction::kError, FaultAction::kPoisoned});
  if (!fault) return false;
  ++errors_;
  traces::trace(tracer_, Point::kDmaErr, t, owner.subject(), 0u, addr,
                static_cast<std::uint32_t>(len) | static_cast<std::uint64_t>(write) << 32);
  if (fault->action == FaultAction::kPoisoned) {
    for (const PcieErrorName& e : pcie_errors())
      if (std::strcmp(e.name, "poisoned-tlp") == 0)
        sides_[owner.function].host->pcie_error(kFaultUncorrectable, e.bit, e.name);
  }
  return true;
}

Time Dma::slowed(Time t, bool write, std::uint64_t addr, std::size_t len, WriteOwner owner) {
  const FaultSpec* fault = fault_of(t, write, addr, len, owner, {FaultAction::kSlow});
  return fault ? fault->time(FaultKey::kDelay) : 0;
}

void Dma::report_refusals() {
  while (!refusals_.empty()) {
    std::vector<WriteOwner> owners;
    owners.swap(refusals_);
    if (!write_error_) return;
    for (const WriteOwner& owner : owners) write_error_(sim_now(), owner);
  }
}

// Where the host does not take part, no memory of the driver's is missing.
void Dma::tell_refused(Time t, WriteOwner owner, std::uint64_t addr, bool write) {
  using traces::Rule;
  using traces::RuleObject;
  Rule rule = write ? Rule::kDmaPayload : Rule::kDmaRead;
  RuleObject object = RuleObject::kNone;
  switch (owner.kind) {
    case WriteOwner::kNone:
      break;
    case WriteOwner::kQp:
      object = RuleObject::kQp;
      break;
    case WriteOwner::kRq:
      object = RuleObject::kRq;
      break;
    case WriteOwner::kCq:
      rule = Rule::kDmaCqe;
      object = RuleObject::kCq;
      break;
    case WriteOwner::kEq:
      rule = Rule::kDmaEqe;
      object = RuleObject::kEq;
      break;
    case WriteOwner::kFirmware:
      rule = Rule::kDmaAnswer;
      object = RuleObject::kSlot;
      break;
  }
  tracer_.broke_value(rule, t, object, owner.subject(), addr);
}

void Dma::refused(Time t, WriteOwner owner, std::uint64_t addr, std::size_t len, bool write) {
  ++errors_;
  if (enabled(owner.function)) tell_refused(t, owner, addr, write);
  traces::trace(tracer_, Point::kDmaErr, t, owner.subject(), 0u, addr,
                static_cast<std::uint32_t>(len) | static_cast<std::uint64_t>(write) << 32);
}

}  // namespace hcasim
