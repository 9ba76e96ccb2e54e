// SPDX-License-Identifier: BSD-3-Clause
// Capabilities of the transports beside RC, UC and UD, and of atomic operations. Each fills a zeroed block,
// or adds to one.
#ifndef HCASIM_FIRMWARE_STUB_CAPS_TRANSPORT_H
#define HCASIM_FIRMWARE_STUB_CAPS_TRANSPORT_H

#include <cstdint>

#include "firmware-stub/options.h"

namespace hcasim::fw {

// atomic_caps.atomic_operations: the mlx5 driver calls the masked comparison and addition extended ones.
enum : std::uint32_t { kAtomicCmpSwap = 1, kAtomicFetchAdd = 2, kAtomicMasked = 4 | 8 };

void fill_general_transport(const Options& options, std::uint8_t* cmd_hca_cap);
void fill_general_2(const Options& options, std::uint8_t* cmd_hca_cap_2);
void fill_atomic(std::uint8_t* atomic_caps);

}  // namespace hcasim::fw
#endif
