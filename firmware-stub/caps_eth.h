// SPDX-License-Identifier: BSD-3-Clause
// What the Ethernet link adds to the capabilities, and the groups that only it has. Each fills a zeroed
// block.
#ifndef HCASIM_FIRMWARE_STUB_CAPS_ETH_H
#define HCASIM_FIRMWARE_STUB_CAPS_ETH_H

#include <cstdint>

#include "model/generation.h"

namespace hcasim::fw {

void fill_general_eth(std::uint8_t* cmd_hca_cap);
void fill_ethernet(const Generation& generation, std::uint8_t* per_protocol_networking_offload_caps);
void fill_roce(std::uint8_t* roce_cap);
void fill_flow_table(const Generation& generation, std::uint8_t* flow_table_nic_cap);

}  // namespace hcasim::fw
#endif
