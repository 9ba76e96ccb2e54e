// SPDX-License-Identifier: BSD-3-Clause
// The tables that drivers give an E-Switch with one virtual function, as the manager's driver makes them.
#ifndef HCASIM_DRIVER_TIMING_ESWITCH_H
#define HCASIM_DRIVER_TIMING_ESWITCH_H

#include <cstdint>

#include "driver/bare/device.h"
#include "driver/timing/setup.h"

namespace hcasim::timing {

// They stay until the manager is reset. mac: of the virtual function, at vport 1.
// kLegacy: one table: a group of addresses, then what leads to the uplink.
// kSwitchdev: an ingress ACL at vport 1 and at the uplink, whose entry writes the vport's tag into register
// C_0; a table that has nothing for frames of functions (what representors send), and one with a rule for
// each direction.
void make_eswitch(bare::Device& manager, ESwitchMode mode, std::uint64_t mac);

}  // namespace hcasim::timing
#endif
