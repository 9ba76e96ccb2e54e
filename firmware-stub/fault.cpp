// SPDX-License-Identifier: BSD-3-Clause
// Timed faults of the firmware's: health, pages, resets, and events that tell of the card's surroundings.
#include <array>

#include "firmware-stub/firmware.h"
#include "model/fault/spec.h"
#include "prm/eqe.h"

namespace hcasim::fw {

void Firmware::health_fault(const FaultSpec& f, bool begin) {
  switch (f.action) {
    case FaultAction::kStall:
      health_.stall(begin);
      trace_health();
      if (!begin) resume();
      return;
    case FaultAction::kNicDisabled:
      if (begin) fast_teardown();
      return;
    default: {
      const auto syndrome = static_cast<std::uint8_t>(begin ? f.value(FaultKey::kSyndrome) : 0);
      inject_health(syndrome, f.value(FaultKey::kReset) != 0,
                    static_cast<std::uint16_t>(f.value(FaultKey::kExtSyndrome)));
      return;
    }
  }
}

void Firmware::fault(Time t, const FaultSpec& f, bool begin) {
  Injector& injector = device_.injector();
  const auto post = [&](prm::EqeType type, const auto& data) {
    device_.eqs().post(t, function_.id(), static_cast<std::uint8_t>(type), 0, &data, sizeof data);
  };
  if (f.kind == FaultType::kHealth) {
    if (begin)
      injector.note(t, f, {function_.id(), 0}, f.value(FaultKey::kSyndrome) | f.value(FaultKey::kReset) << 8);
    return health_fault(f, begin);
  }
  if (!begin) return;
  switch (f.kind) {
    case FaultType::kPageRequest: {
      const auto pages = static_cast<std::int32_t>(f.value(FaultKey::kPages, 128));
      injector.note(t, f, {function_.id(), 0}, static_cast<std::uint32_t>(pages));
      pages_.ask(t, pages);
      return;
    }
    case FaultType::kFwReset:
      injector.note(t, f, {function_.id(), 0}, 0);
      if (f.action == FaultAction::kSync && sync_reset_.request(t)) return;
      restart();
      cmdq_.excuse();
      return;
    case FaultType::kTemperature: {
      prm::EqeTempWarn data{};
      data.sensors_low = f.value(FaultKey::kSensors, 1);
      if ((f.value(FaultKey::kSensors, 1) & 1) != 0) thermal_.heat(t, port_bytes(), Thermal::kCritical);
      injector.note(t, f, 0, f.value(FaultKey::kSensors, 1));
      return post(prm::EqeType::kTempWarn, data);
    }
    case FaultType::kModule: {
      prm::EqePortModule data{};
      data.module = static_cast<std::uint8_t>(f.value(FaultKey::kModule));
      data.status = f.action == FaultAction::kPlugged     ? prm::EqePortModule::kPlugged
                    : f.action == FaultAction::kUnplugged ? prm::EqePortModule::kUnplugged
                    : f.action == FaultAction::kDisabled  ? prm::EqePortModule::kDisabled
                                                          : prm::EqePortModule::kError;
      data.error_type = static_cast<std::uint8_t>(f.value(FaultKey::kError));
      injector.note(t, f, data.module, f.value(FaultKey::kError));
      return post(prm::EqeType::kPortModule, data);
    }
    default:
      return;
  }
}

}  // namespace hcasim::fw
