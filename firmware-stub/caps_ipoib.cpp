// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/caps_ipoib.h"

#include "firmware-stub/caps.h"
#include "firmware-stub/caps_eth.h"
#include "firmware-stub/caps_tables.h"
#include "prm/prm.h"

namespace hcasim::fw {

void fill_general_ipoib(std::uint8_t* c) {
  put<prm::cmd_hca_cap::ipoib_enhanced_offloads>(c, 1);
  put<prm::cmd_hca_cap::modify_rq_counter_set_id>(c, 1);
  fill_frame_objects(c);
}

// What has to do with MACs and VLANs is a frame's alone, and so are tunnels and LRO here.
void fill_ipoib(std::uint8_t* c) {
  using e = prm::per_protocol_networking_offload_caps;
  put<e::csum_cap>(c, 1);
  put<e::max_lso_cap>(c, kLogMaxLso);
  put<e::wqe_inline_mode>(c, kInlineNotRequired);
  put<e::rss_ind_tbl_cap>(c, kLogRqtSize);
}

void fill_flow_table_ipoib(const Options& options, std::uint8_t* c) {
  using cap = prm::flow_table_nic_cap;
  using rx = cap::flow_table_properties_nic_receive;
  put<cap::nic_rx_multi_path_tirs>(c, 1);
  put<cap::nic_rx_multi_path_tirs_fts>(c, 1);
  fill_table<rx>(options, FlowTableType::kNicRx, c);
  fill_chained<rx>(c);
  fill_fields_2<cap::ft_field_support_2_nic_receive>(c);
}

}  // namespace hcasim::fw
