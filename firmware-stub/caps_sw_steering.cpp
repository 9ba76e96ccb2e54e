// SPDX-License-Identifier: BSD-3-Clause
// As in caps.cpp: a bit is set only when model and firmware do what it promises.
#include "firmware-stub/caps_sw_steering.h"

#include "firmware-stub/caps.h"
#include "firmware-stub/objects/objects.h"
#include "model/steer/actions.h"
#include "model/steer/icm.h"
#include "model/steer/ste_tag.h"
#include "prm/prm.h"

namespace hcasim::fw {

namespace {

// cmd_hca_cap.flex_parser_protocols (MLX5_FLEX_PROTO_*)
enum : std::uint32_t {
  kFlexGeneve = 1u << 3,
  kFlexOverGre = 1u << 4,  // MPLS
  kFlexOverUdp = 1u << 5,
  kFlexVxlanGpe = 1u << 7,
  kFlexIcmpv4 = 1u << 8,
  kFlexIcmpv6 = 1u << 9,
  kFlexGeneveOption0 = 1u << 10,
  kFlexGtpu = 1u << 11,
  kFlexGtpuWords = 1u << 16 | 1u << 17 | 1u << 18 | 1u << 19,
};

// Software that knows one of the later formats asks for the second bit.
template <class T>
void put_owner(const Generation& generation, std::uint8_t* c) {
  put<typename T::sw_owner>(c, generation.has.ste == SteFormat::kConnectX5);
  put<typename T::sw_owner_v2>(c, generation.has.ste != SteFormat::kConnectX5);
}

}  // namespace

void fill_general_sw_steering(const Generation& generation, std::uint8_t* c) {
  using g = prm::cmd_hca_cap;
  if (generation.has.ste == SteFormat::kNone) return;
  put<g::steering_format_version>(c, static_cast<std::uint64_t>(generation.has.ste));
  put<g::flex_parser_protocols>(c, kFlexGeneve | kFlexOverGre | kFlexOverUdp | kFlexVxlanGpe | kFlexIcmpv4 |
                                       kFlexIcmpv6 | kFlexGeneveOption0 | kFlexGtpu | kFlexGtpuWords);
  if (generation.has.ste != SteFormat::kConnectX5) {
    put<g::log_max_num_header_modify_argument>(c, kLogHeaderArguments + kLogHeaderArgumentObjects);
    put<g::log_header_modify_argument_granularity>(c, 0);
    put<g::log_header_modify_argument_max_alloc>(c, kLogHeaderArguments);
  }
  put<g::flex_parser_id_icmp_dw0>(c, kFlexIcmpDw0);
  put<g::flex_parser_id_icmp_dw1>(c, kFlexIcmpDw1);
  put<g::flex_parser_id_icmpv6_dw0>(c, kFlexIcmpv6Dw0);
  put<g::flex_parser_id_icmpv6_dw1>(c, kFlexIcmpv6Dw1);
  put<g::flex_parser_id_geneve_tlv_option_0>(c, kFlexGeneveOption);
  put<g::flex_parser_id_gtpu_dw_0>(c, kFlexGtpuDw0);
  put<g::flex_parser_id_gtpu_teid>(c, kFlexGtpuTeid);
  put<g::flex_parser_id_gtpu_dw_2>(c, kFlexGtpuDw2);
  put<g::flex_parser_id_gtpu_first_ext_dw_0>(c, kFlexGtpuExtension);
  put<g::flex_parser_id_outer_first_mpls_over_udp_label>(c, kFlexMplsUdp);
  put<g::flex_parser_id_outer_first_mpls_over_gre>(c, kFlexMplsGre);
}

void fill_device_memory_sw_icm(const Generation& generation, std::uint8_t* c) {
  using d = prm::device_mem_cap;
  put<d::log_sw_icm_alloc_granularity>(c, SwIcm::kLogGranularity);
  put<d::steering_sw_icm_start_address>(c, SwIcm::base(SwIcm::kSteering));
  put<d::log_steering_sw_icm_size>(c, SwIcm::log_size(SwIcm::kSteering));
  put<d::header_modify_sw_icm_start_address>(c, SwIcm::base(SwIcm::kHeaderModify));
  put<d::log_header_modify_sw_icm_size>(c, SwIcm::kLogLists);
  if (generation.has.ste == SteFormat::kConnectX5) return;
  put<d::header_modify_pattern_sw_icm_start_address>(c, SwIcm::patterns());
  put<d::log_header_modify_pattern_sw_icm_size>(c, SwIcm::kLogPatterns);
}

void fill_flow_table_sw_steering(const Generation& generation, std::uint8_t* c) {
  using cap = prm::flow_table_nic_cap;
  put_owner<cap::flow_table_properties_nic_receive>(generation, c);
  put_owner<cap::flow_table_properties_nic_transmit>(generation, c);
  put<cap::flow_table_properties_nic_receive::termination_table>(c, 1);
  put<cap::sw_steering_nic_rx_action_drop_icm_address>(c, icm_address({IcmTarget::kRxDrop, 0}));
  put<cap::sw_steering_nic_tx_action_drop_icm_address>(c, icm_address({IcmTarget::kTxDrop, 0}));
  put<cap::sw_steering_nic_tx_action_allow_icm_address>(c, icm_address({IcmTarget::kTxAllow, 0}));
}

void fill_fdb_sw_steering(const Generation& generation, std::uint8_t* c) {
  using cap = prm::flow_table_eswitch_cap;
  put_owner<cap::flow_table_properties_nic_esw_fdb>(generation, c);
  put<cap::sw_steering_fdb_action_drop_icm_address_rx>(c, icm_address({IcmTarget::kRxDrop, 0}));
  put<cap::sw_steering_fdb_action_drop_icm_address_tx>(c, icm_address({IcmTarget::kTxDrop, 0}));
  put<cap::sw_steering_uplink_icm_address_rx>(c, icm_address({IcmTarget::kVport, kUplinkPort}));
  put<cap::sw_steering_uplink_icm_address_tx>(c, icm_address({IcmTarget::kVport, kUplinkPort}));
}

}  // namespace hcasim::fw
