// SPDX-License-Identifier: BSD-3-Clause
// What an InfiniBand port offers for IPoIB: queues of frames whose packets are datagrams of a UD QP
// (ipoib_enhanced_offloads). Each fills a zeroed block.
#ifndef HCASIM_FIRMWARE_STUB_CAPS_IPOIB_H
#define HCASIM_FIRMWARE_STUB_CAPS_IPOIB_H

#include <cstdint>

#include "firmware-stub/options.h"

namespace hcasim::fw {

void fill_general_ipoib(std::uint8_t* cmd_hca_cap);
void fill_ipoib(std::uint8_t* per_protocol_networking_offload_caps);
void fill_flow_table_ipoib(const Options& options, std::uint8_t* flow_table_nic_cap);

}  // namespace hcasim::fw
#endif
