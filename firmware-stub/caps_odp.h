// SPDX-License-Identifier: BSD-3-Clause
// Capabilities of on-demand paging.
#ifndef HCASIM_FIRMWARE_STUB_CAPS_ODP_H
#define HCASIM_FIRMWARE_STUB_CAPS_ODP_H

#include <cstdint>

#include "model/generation.h"

namespace hcasim::fw {

void fill_general_odp(std::uint8_t* c);
// odp_cap: what may be in force at most; `power_on`: what is before a driver asks for more.
void fill_odp(const Generation& generation, std::uint8_t* maximum, std::uint8_t* power_on);
// Whether `block` asks for nothing beyond `maximum`; the fields that count are put into `into` then.
bool take_odp(const std::uint8_t* block, const std::uint8_t* maximum, std::uint8_t* into);

}  // namespace hcasim::fw
#endif
