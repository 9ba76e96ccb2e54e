// SPDX-License-Identifier: BSD-3-Clause
// Capabilities of flow steering (flow_table_nic_cap), from what the types of tables offer.
#include <cstring>

#include "firmware-stub/caps.h"
#include "firmware-stub/caps_eth.h"
#include "firmware-stub/caps_tables.h"
#include "prm/prm.h"

namespace hcasim::fw {

void fill_flow_table(const Options& options, std::uint8_t* c) {
  const Generation& generation = *options.generation;
  using cap = prm::flow_table_nic_cap;
  ones<cap::nic_rx_multi_path_tirs, cap::nic_rx_multi_path_tirs_fts,
       cap::allow_sniffer_and_nic_rx_shared_tir>(c);
  if (generation.has.flow_rewrite) {
    put<cap::encap_general_header>(c, 1);
    put<cap::log_max_packet_reformat_context>(c, kLogReformats);
    put<cap::max_encap_header_size>(c, kMaxReformatData);
  }
  using rx = cap::flow_table_properties_nic_receive;
  using tx = cap::flow_table_properties_nic_transmit;
  using rdma_rx = cap::flow_table_properties_nic_receive_rdma;
  using rdma_tx = cap::flow_table_properties_nic_transmit_rdma;
  fill_table<rx>(options, FlowTableType::kNicRx, c);
  fill_table<tx>(options, FlowTableType::kNicTx, c);
  fill_table<rdma_rx>(options, FlowTableType::kRdmaRx, c);
  fill_table<rdma_tx>(options, FlowTableType::kRdmaTx, c);
  fill_table<cap::flow_table_properties_nic_receive_sniffer>(options, FlowTableType::kSnifferRx, c);
  fill_table<cap::flow_table_properties_nic_transmit_sniffer>(options, FlowTableType::kSnifferTx, c);
  fill_chained<rx>(c);
  fill_chained<tx>(c);
  fill_fields_2<cap::ft_field_support_2_nic_receive>(c);
  if (!generation.has.flow_rewrite) return;
  fill_chained<rdma_rx>(c);
  fill_chained<rdma_tx>(c);
  fill_fields_2<cap::ft_field_support_2_nic_receive_rdma>(c);
  fill_fields_2<cap::ft_field_support_2_nic_transmit_rdma>(c);
}

// Ports selected by flow tables. What bypasses these, the driver switches on.
void fill_port_selection(const Options& options, std::uint8_t* maximum, std::uint8_t* power_on) {
  using cap = prm::port_selection_cap;
  if (!options.selects_port()) return;
  using tables = cap::flow_table_properties_port_selection;
  put<cap::port_select_flow_table>(power_on, 1);
  fill_table<tables>(options, FlowTableType::kPortSelection, power_on);
  fill_chained<tables>(power_on);
  put<tables::log_max_destination>(power_on, kLogPortDestinations);
  fill_fields_2<cap::ft_field_support_2_port_selection>(power_on);
  std::memcpy(maximum, power_on, cap::bytes);
  put<cap::port_select_flow_table_bypass>(maximum, 1);
}

}  // namespace hcasim::fw
