// SPDX-License-Identifier: BSD-3-Clause
// What the manager of an E-Switch is offered (flow_table_eswitch_cap, e_switch_cap).
#include "firmware-stub/caps_eth.h"
#include "firmware-stub/caps_sw_steering.h"
#include "firmware-stub/caps_tables.h"

namespace hcasim::fw {

void fill_eswitch_tables(const Options& options, std::uint8_t* c) {
  using cap = prm::flow_table_eswitch_cap;
  using fdb = cap::flow_table_properties_nic_esw_fdb;
  using ingress = cap::flow_table_properties_esw_acl_ingress;
  using egress = cap::flow_table_properties_esw_acl_egress;
  fill_table<fdb>(options, FlowTableType::kFdb, c);
  fill_table<ingress>(options, FlowTableType::kEswIngressAcl, c);
  fill_table<egress>(options, FlowTableType::kEswEgressAcl, c);
  if (options.generation->has.flow_rewrite) {
    put<cap::fdb_to_vport_reg_c_id>(c, kFdbToVportRegs);
    ones<cap::flow_source, cap::fdb_modify_header_fwd_to_table, cap::multi_fdb_encap,
         cap::fdb_multi_path_to_table, fdb::ignore_flow_level, fdb::termination_table,
         cap::egress_acl_forward_to_vport>(c);
  }
  // All of the FDB's entries may lead to any level above.
  ones<fdb::flow_modify_en, fdb::modify_root, fdb::identified_miss_table_mode, fdb::flow_table_modify,
       fdb::reset_root_to_default, fdb::ft_field_support::source_eswitch_port,
       fdb::ft_field_bitmask_support::source_eswitch_port>(c);
  put<fdb::log_max_destination>(c, kLogVportDestinations);
  fill_fields_2<cap::ft_field_support_2_esw_fdb>(c);
  fill_fields_2<cap::ft_field_bitmask_support_2_esw_fdb>(c);
  // Software's entries cannot name a vport of the switch at the card's other port.
  if (options.generation->sw_steering() && options.ports == 1) fill_fdb_sw_steering(*options.generation, c);
}

void fill_eswitch(const Options& options, std::uint8_t* c) {
  using e = prm::e_switch_cap;
  ones<e::vport_svlan_strip, e::vport_cvlan_strip, e::vport_svlan_insert, e::vport_cvlan_insert_if_not_exist,
       e::vport_cvlan_insert_always, e::nic_vport_node_guid_modify, e::nic_vport_port_guid_modify>(c);
  if (!options.generation->has.flow_rewrite) return;
  ones<e::esw_uplink_ingress_acl, e::nvgre_encap_decap, e::vxlan_encap_decap>(c);
  put<e::max_encap_header_size>(c, kMaxReformatData);
  put<e::log_max_packet_reformat_context>(c, kLogReformats);
  put<e::log_max_fdb_encap_uplink>(c, kLogVportDestinations);
  put<e::merged_eswitch>(c, options.ports != 1);
  put<e::root_ft_on_other_esw>(c, options.shares_fdb());
  put<e::esw_shared_ingress_acl>(c, options.shares_fdb());
}

}  // namespace hcasim::fw
