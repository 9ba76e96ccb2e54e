// SPDX-License-Identifier: BSD-3-Clause
// The firmware of a whole card: what runs for each of its functions, and what there is once, the agents of
// the physical port. Plugs itself into a Device.
#ifndef HCASIM_FIRMWARE_STUB_CARD_FIRMWARE_H
#define HCASIM_FIRMWARE_STUB_CARD_FIRMWARE_H

#include <memory>
#include <vector>

#include <systemc>

#include "firmware-stub/firmware.h"
#include "firmware-stub/firmware_image.h"
#include "firmware-stub/options.h"
#include "firmware-stub/port_agent.h"
#include "firmware-stub/thermal.h"
#include "firmware-stub/traps.h"
#include "model/device.h"
#include "model/state/fields.h"

namespace hcasim::fw {

class CardFirmware final : public sc_core::sc_module, public Siblings {
 public:
  // images: of its virtual functions, for their migration; null: there is none.
  CardFirmware(const sc_core::sc_module_name& name, Device& device, const Options& options,
               FunctionImages* images = nullptr);
  ~CardFirmware() override;

  // With what was left open filled in: GUID, MAC, device ID.
  const Options& options() const { return options_; }
  PortAgent& port() { return port_; }
  Traps& traps() { return traps_; }
  Firmware& function(FunctionId f) { return *functions_[f]; }
  // With a conventional reset of the card, before that of its functions: the firmware starts anew.
  void boot() { image_.boot(sim_now()); }

  template <class Archive>
  void list_state(Archive& a) {
    // PortAgent::teardown() and Traps::clear(), with the function that owns the port.
    HCASIM_FIELDS(a, functions_, port_, traps_, image_, thermal_);
  }

 private:
  Firmware* find(FunctionId f) override { return f < functions_.size() ? functions_[f].get() : nullptr; }

  const Options options_;
  PortAgent port_;
  Traps traps_;
  FirmwareImage image_;
  Thermal thermal_;
  std::vector<std::unique_ptr<Firmware>> functions_;
};

}  // namespace hcasim::fw
#endif
