// SPDX-License-Identifier: BSD-3-Clause
// Handlers of the general objects of steering: SW_ICM, FLOW_SAMPLER.
#ifndef HCASIM_FIRMWARE_STUB_OBJECTS_SW_ICM_H
#define HCASIM_FIRMWARE_STUB_OBJECTS_SW_ICM_H

#include "firmware-stub/command.h"

namespace hcasim::fw {

Syndrome create_sw_icm(Firmware& fw, Command& cmd);
Syndrome query_sw_icm(Firmware& fw, Command& cmd);
Syndrome destroy_sw_icm(Firmware& fw, Command& cmd);

Syndrome create_flow_sampler(Firmware& fw, Command& cmd);
Syndrome query_flow_sampler(Firmware& fw, Command& cmd);
Syndrome destroy_flow_sampler(Firmware& fw, Command& cmd);

}  // namespace hcasim::fw
#endif
