// SPDX-License-Identifier: BSD-3-Clause
// What the Ethernet link adds to the capabilities, and the groups that only it has. Each fills a zeroed
// block.
#ifndef HCASIM_FIRMWARE_STUB_CAPS_ETH_H
#define HCASIM_FIRMWARE_STUB_CAPS_ETH_H

#include <cstdint>

#include "firmware-stub/options.h"

namespace hcasim::fw {

constexpr std::uint32_t kInlineNotRequired = 2;  // per_protocol_networking_offload_caps.wqe_inline_mode
constexpr unsigned kLogMaxLso = 18;              // bytes, log2, of a large send

// How many there are of the objects that queues of frames and their flow tables consist of, on either link.
void fill_frame_objects(std::uint8_t* cmd_hca_cap);
void fill_general_eth(const Options& options, std::uint8_t* cmd_hca_cap);
void fill_port_selection(const Options& options, std::uint8_t* maximum, std::uint8_t* power_on);
void fill_ethernet(const Options& options, std::uint8_t* per_protocol_networking_offload_caps);
void fill_header_split(std::uint8_t* c);
void fill_roce(std::uint8_t* roce_cap);
void fill_flow_table(const Options& options, std::uint8_t* flow_table_nic_cap);
// Of the function that manages the E-Switch.
void fill_eswitch_tables(const Options& options, std::uint8_t* flow_table_eswitch_cap);
void fill_eswitch(const Options& options, std::uint8_t* e_switch_cap);

}  // namespace hcasim::fw
#endif
