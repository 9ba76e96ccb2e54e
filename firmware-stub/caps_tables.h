// SPDX-License-Identifier: BSD-3-Clause
// Capabilities of one type of flow tables (flow_table_prop_layout), from what the type offers.
#ifndef HCASIM_FIRMWARE_STUB_CAPS_TABLES_H
#define HCASIM_FIRMWARE_STUB_CAPS_TABLES_H

#include <cstdint>

#include "firmware-stub/caps.h"
#include "firmware-stub/objects/flow_types.h"
#include "firmware-stub/objects/objects.h"
#include "prm/prm.h"
#include "prm/user_commands.h"

namespace hcasim::fw {

template <class... F>
void ones(std::uint8_t* c) {
  (put<F>(c, ~0ull), ...);
}

// What the match engine reads of a frame (matchable() of model/steer/flow_match.h).
template <class S>
void fill_fields(std::uint8_t* c) {
  ones<typename S::outer_dmac, typename S::outer_smac, typename S::outer_ether_type,
       typename S::outer_ip_version, typename S::outer_first_prio, typename S::outer_first_cfi,
       typename S::outer_first_vid, typename S::outer_ipv4_ttl, typename S::outer_second_prio,
       typename S::outer_second_cfi, typename S::outer_second_vid, typename S::outer_sip,
       typename S::outer_dip, typename S::outer_frag, typename S::outer_ip_protocol, typename S::outer_ip_ecn,
       typename S::outer_ip_dscp, typename S::outer_udp_sport, typename S::outer_udp_dport,
       typename S::outer_tcp_sport, typename S::outer_tcp_dport, typename S::outer_tcp_flags,
       typename S::outer_gre_protocol, typename S::outer_gre_key, typename S::outer_vxlan_vni,
       typename S::outer_geneve_vni, typename S::outer_geneve_oam, typename S::outer_geneve_protocol_type,
       typename S::outer_geneve_opt_len>(c);
  ones<typename S::geneve_tlv_option_0_data>(c);
  ones<typename S::inner_dmac, typename S::inner_smac, typename S::inner_ether_type,
       typename S::inner_ip_version, typename S::inner_first_prio, typename S::inner_first_cfi,
       typename S::inner_first_vid, typename S::inner_second_prio, typename S::inner_second_cfi,
       typename S::inner_second_vid, typename S::inner_sip, typename S::inner_dip, typename S::inner_frag,
       typename S::inner_ip_protocol, typename S::inner_ip_ecn, typename S::inner_ip_dscp,
       typename S::inner_udp_sport, typename S::inner_udp_dport, typename S::inner_tcp_sport,
       typename S::inner_tcp_dport, typename S::inner_tcp_flags>(c);
  ones<typename S::outer_first_mpls_over_udp, typename S::outer_first_mpls_over_gre,
       typename S::inner_first_mpls, typename S::outer_first_mpls, typename S::outer_esp_spi,
       typename S::bth_dst_qp>(c);
  ones<typename S::metadata_reg_c_7, typename S::metadata_reg_c_6, typename S::metadata_reg_c_5,
       typename S::metadata_reg_c_4, typename S::metadata_reg_c_3, typename S::metadata_reg_c_2,
       typename S::metadata_reg_c_1, typename S::metadata_reg_c_0>(c);
}

template <class S>
void fill_fields_2(std::uint8_t* c) {
  ones<typename S::inner_l4_type, typename S::outer_l4_type, typename S::bth_opcode,
       typename S::tunnel_header_0_1>(c);
}

// Tables that lead to others, and may be changed.
template <class T>
void fill_chained(std::uint8_t* c) {
  ones<typename T::flow_modify_en, typename T::modify_root, typename T::identified_miss_table_mode,
       typename T::flow_table_modify, typename T::ignore_flow_level, typename T::reset_root_to_default>(c);
}

template <class T>
void fill_table(const Options& options, FlowTableType type, std::uint8_t* c) {
  using namespace prm::k;
  const FlowTypeCaps* found = flow_type(options, static_cast<std::uint32_t>(type));
  if (found == nullptr) return;
  const FlowTypeCaps& offers = *found;
  put<typename T::ft_support>(c, 1);
  put<prm::table_flow_tag<T::bit_off>>(c, type == FlowTableType::kNicRx || type == FlowTableType::kRdmaRx);
  put<typename T::log_max_ft_size>(c, kLogFlowTableSize);
  put<typename T::max_ft_level>(c, kFlowLevels);
  put<typename T::log_max_ft_num>(c, kLogFlowTables);
  put<typename T::log_max_destination>(c, kLogDestinations);
  put<typename T::log_max_flow_counter>(c, 0);  // of one entry
  put<typename T::log_max_flow>(c, kLogFlows);
  fill_fields<typename T::ft_field_support>(c);
  fill_fields<typename T::ft_field_bitmask_support>(c);

  const auto action = [&](unsigned bits) { return (offers.actions & bits) != 0; };
  const auto reformat = [&](std::uint32_t kind) { return (offers.reformats >> kind & 1) != 0; };
  put<typename T::flow_counter>(c, action(kFlowCount));
  put<typename T::decap>(c, action(kFlowDecap));
  put<typename T::pop_vlan>(c, action(kFlowPopVlan));
  put<typename T::pop_vlan_2>(c, action(kFlowPopVlan2));
  put<typename T::push_vlan>(c, action(kFlowPushVlan));
  put<typename T::push_vlan_2>(c, action(kFlowPushVlan2));
  put<typename T::reformat>(c, action(kFlowReformat));
  put<typename T::reformat_l3_tunnel_to_l2>(c, reformat(REFORMAT_TYPE_L3_TUNNEL_TO_L2));
  put<typename T::reformat_l2_to_l3_tunnel>(c, reformat(REFORMAT_TYPE_L2_TO_L3_TUNNEL));
  put<typename T::reformat_insert>(c, reformat(REFORMAT_TYPE_INSERT_HDR));
  put<typename T::reformat_remove>(c, reformat(REFORMAT_TYPE_REMOVE_HDR));
  put<typename T::reformat_and_modify_action>(c, action(kFlowReformat) && action(kFlowModify));
  put<typename T::reformat_and_vlan_action>(c, action(kFlowReformat) && action(kFlowPushVlan | kFlowPopVlan));
  put<typename T::reformat_and_fwd_to_table>(c, action(kFlowReformat));
  put<typename T::execute_aso>(c, action(kFlowAso));
  put<typename T::ipsec_encrypt>(c, action(kFlowEncrypt));
  put<typename T::ipsec_decrypt>(c, action(kFlowDecrypt));
  put<typename T::reformat_add_esp_trasport>(c, reformat(REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_IPV4));
  put<typename T::reformat_l2_to_l3_esp_tunnel>(c, reformat(REFORMAT_TYPE_L2_TO_L3_ESP_TUNNEL));
  put<typename T::reformat_add_esp_transport_over_udp>(c,
                                                       reformat(REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_UDPV4));
  put<typename T::reformat_del_esp_trasport>(c, reformat(REFORMAT_TYPE_DEL_ESP_TRANSPORT));
  put<typename T::reformat_l3_esp_tunnel_to_l2>(c, reformat(REFORMAT_TYPE_L3_ESP_TUNNEL_TO_L2));
  put<typename T::reformat_del_esp_transport_over_udp>(c, reformat(REFORMAT_TYPE_DEL_ESP_TRANSPORT_OVER_UDP));
  put<typename T::macsec_encrypt>(c, action(kFlowEncrypt));
  put<typename T::macsec_decrypt>(c, action(kFlowDecrypt));
  put<prm::psp::table_psp_encrypt<T::bit_off>>(c, options.psp() && action(kFlowEncrypt));
  put<prm::psp::table_psp_decrypt<T::bit_off>>(c, options.psp() && action(kFlowDecrypt));
  put<typename T::reformat_add_macsec>(c, reformat(REFORMAT_TYPE_ADD_MACSEC));
  put<typename T::reformat_remove_macsec>(c, reformat(REFORMAT_TYPE_DEL_MACSEC));
  if (action(kFlowModify)) {
    put<typename T::log_max_modify_header_context>(c, kLogModifyHeaders);
    put<typename T::max_modify_header_actions>(c, kModifyActions);
  }
  put<typename T::table_miss_action_domain>(c, offers.miss_to_nic);
  if (options.generation->has.flow_rewrite && samples(options, type))
    put<prm::table_log_max_ft_sampler_num<T::bit_off>>(c, kLogFlowSamplers);
}

}  // namespace hcasim::fw
#endif
