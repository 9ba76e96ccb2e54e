// SPDX-License-Identifier: BSD-3-Clause
// Vital product data (PCI Local Bus Specification 3.0, appendix I): what the board says of itself to software
// that has no driver for it (lspci -vv, mstvpd).
#ifndef HCASIM_FIRMWARE_STUB_VPD_H
#define HCASIM_FIRMWARE_STUB_VPD_H

#include <cstdint>
#include <string>
#include <vector>

#include "firmware-stub/options.h"

namespace hcasim::fw {

// The board in words, as the identifier string has it.
std::string product_description(const Options& options);
// The whole of it, from the identifier string to the end tag. The serial number is the node GUID.
std::vector<std::uint8_t> vital_product_data(const Options& options);

}  // namespace hcasim::fw
#endif
