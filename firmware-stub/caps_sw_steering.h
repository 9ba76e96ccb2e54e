// SPDX-License-Identifier: BSD-3-Clause
// Capabilities of steering by software (SW ICM, steering format 0): its parts of the general, device memory
// and flow table groups.
#ifndef HCASIM_FIRMWARE_STUB_CAPS_SW_STEERING_H
#define HCASIM_FIRMWARE_STUB_CAPS_SW_STEERING_H

#include <cstdint>

#include "model/generation.h"

namespace hcasim::fw {

void fill_general_sw_steering(const Generation& generation, std::uint8_t* c);
void fill_device_memory_sw_icm(const Generation& generation, std::uint8_t* c);
void fill_flow_table_sw_steering(const Generation& generation, std::uint8_t* c);
// Of the E-Switch (flow_table_eswitch_cap).
void fill_fdb_sw_steering(const Generation& generation, std::uint8_t* c);

}  // namespace hcasim::fw
#endif
