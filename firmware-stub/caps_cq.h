// SPDX-License-Identifier: BSD-3-Clause
// The capabilities of completion queues and of tag matching.
#ifndef HCASIM_FIRMWARE_STUB_CAPS_CQ_H
#define HCASIM_FIRMWARE_STUB_CAPS_CQ_H

#include <cstdint>

#include "firmware-stub/options.h"

namespace hcasim::fw {

// Into a block of group General.
void fill_general_cq(const Options& options, std::uint8_t* cmd_hca_cap);

}  // namespace hcasim::fw
#endif
