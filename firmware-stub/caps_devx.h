// SPDX-License-Identifier: BSD-3-Clause
// Capabilities of user contexts (DevX) and of what is made through them.
#ifndef HCASIM_FIRMWARE_STUB_CAPS_DEVX_H
#define HCASIM_FIRMWARE_STUB_CAPS_DEVX_H

#include <cstdint>

#include "firmware-stub/options.h"

namespace hcasim::fw {

// Into a block of the general group.
void fill_general_devx(const Options& options, std::uint8_t* block);

// The group of quality of service.
void fill_qos(const Options& options, std::uint8_t* block);

}  // namespace hcasim::fw
#endif
