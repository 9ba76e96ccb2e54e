// SPDX-License-Identifier: BSD-3-Clause
// The capabilities of memory: windows, keys of special meaning, memory of the device's own. Each fills a
// zeroed block, or adds to one.
#ifndef HCASIM_FIRMWARE_STUB_CAPS_MEMORY_H
#define HCASIM_FIRMWARE_STUB_CAPS_MEMORY_H

#include <cstdint>

#include "model/generation.h"

namespace hcasim::fw {

void fill_general_memory(const Generation& generation, std::uint8_t* cmd_hca_cap);
void fill_device_memory(std::uint8_t* device_mem_cap);
void fill_page_tracking(std::uint8_t* adv_virtualization_cap);

}  // namespace hcasim::fw
#endif
