// SPDX-License-Identifier: BSD-3-Clause
// As in caps.cpp: a bit is set only when model and firmware do what it promises.
#include "firmware-stub/caps_sw_steering.h"

#include "firmware-stub/caps.h"
#include "model/steer/actions.h"
#include "model/steer/icm.h"
#include "model/steer/ste_tag.h"
#include "prm/prm.h"

namespace hcasim::fw {

namespace {

// cmd_hca_cap.flex_parser_protocols (MLX5_FLEX_PROTO_*)
enum : std::uint32_t {
  kFlexGeneve = 1u << 3,
  kFlexVxlanGpe = 1u << 7,
  kFlexIcmpv4 = 1u << 8,
  kFlexIcmpv6 = 1u << 9,
};

}  // namespace

void fill_general_sw_steering(const Generation& generation, std::uint8_t* c) {
  using g = prm::cmd_hca_cap;
  if (generation.has.ste == SteFormat::kNone) return;
  // Of the chip, whether or not user space is offered to write entries: formats after the first are not
  // implemented.
  put<g::steering_format_version>(c, static_cast<std::uint64_t>(generation.has.ste));
  if (!generation.sw_steering()) return;
  put<g::flex_parser_protocols>(c, kFlexGeneve | kFlexVxlanGpe | kFlexIcmpv4 | kFlexIcmpv6);
  put<g::flex_parser_id_icmp_dw0>(c, kFlexIcmpDw0);
  put<g::flex_parser_id_icmp_dw1>(c, kFlexIcmpDw1);
  put<g::flex_parser_id_icmpv6_dw0>(c, kFlexIcmpv6Dw0);
  put<g::flex_parser_id_icmpv6_dw1>(c, kFlexIcmpv6Dw1);
}

void fill_device_memory_sw_icm(std::uint8_t* c) {
  using d = prm::device_mem_cap;
  put<d::log_sw_icm_alloc_granularity>(c, SwIcm::kLogGranularity);
  put<d::steering_sw_icm_start_address>(c, SwIcm::base(SwIcm::kSteering));
  put<d::log_steering_sw_icm_size>(c, SwIcm::log_size(SwIcm::kSteering));
  put<d::header_modify_sw_icm_start_address>(c, SwIcm::base(SwIcm::kHeaderModify));
  put<d::log_header_modify_sw_icm_size>(c, SwIcm::log_size(SwIcm::kHeaderModify));
}

void fill_flow_table_sw_steering(std::uint8_t* c) {
  using cap = prm::flow_table_nic_cap;
  put<cap::flow_table_properties_nic_receive::sw_owner>(c, 1);
  put<cap::flow_table_properties_nic_transmit::sw_owner>(c, 1);
  put<cap::flow_table_properties_nic_receive::termination_table>(c, 1);
  put<cap::sw_steering_nic_rx_action_drop_icm_address>(c, icm_address({IcmTarget::kRxDrop, 0}));
  put<cap::sw_steering_nic_tx_action_drop_icm_address>(c, icm_address({IcmTarget::kTxDrop, 0}));
  put<cap::sw_steering_nic_tx_action_allow_icm_address>(c, icm_address({IcmTarget::kTxAllow, 0}));
}

void fill_fdb_sw_steering(std::uint8_t* c) {
  using cap = prm::flow_table_eswitch_cap;
  put<cap::flow_table_properties_nic_esw_fdb::sw_owner>(c, 1);
  put<cap::sw_steering_fdb_action_drop_icm_address_rx>(c, icm_address({IcmTarget::kRxDrop, 0}));
  put<cap::sw_steering_fdb_action_drop_icm_address_tx>(c, icm_address({IcmTarget::kTxDrop, 0}));
  put<cap::sw_steering_uplink_icm_address_rx>(c, icm_address({IcmTarget::kVport, kUplinkPort}));
  put<cap::sw_steering_uplink_icm_address_tx>(c, icm_address({IcmTarget::kVport, kUplinkPort}));
}

}  // namespace hcasim::fw
