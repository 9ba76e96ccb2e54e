// SPDX-License-Identifier: BSD-3-Clause
// PAGE_FAULT_RESUME.
#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"

namespace hcasim::fw {

Syndrome page_fault_resume(Firmware& fw, Command& cmd) {
  using in = prm::page_fault_resume_in::page_fault_info::trans_page_fault_info;
  if (cmd.op_mod != 0) return Syndrome::kOpMod;
  const unsigned kind = cmd.get<in::page_fault_type>();
  switch (static_cast<FaultKind>(kind)) {
    case FaultKind::kSrqReceive:
    case FaultKind::kSend:
    case FaultKind::kReceive:
    case FaultKind::kReadAtomic:
    case FaultKind::kRdmaRead:
    case FaultKind::kRdmaWrite:
      break;
    default:
      return Syndrome::kFaultType;
  }
  switch (fw.device().page_faults().resume(cmd.now, fw.function().id(), static_cast<FaultKind>(kind),
                                           cmd.get<in::wq_number>(), cmd.get<in::fault_token>(),
                                           cmd.get<in::error>() != 0)) {
    case PageFaults::Resumed::kOk:
      return Syndrome::kOk;
    case PageFaults::Resumed::kNoQp:
      return Syndrome::kFaultQueue;
    case PageFaults::Resumed::kNoFault:
      break;
  }
  return Syndrome::kFaultNone;
}

}  // namespace hcasim::fw
