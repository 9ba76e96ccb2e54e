// SPDX-License-Identifier: BSD-3-Clause
// As in caps.cpp: a bit is set only when model and firmware do what it promises.
#include "firmware-stub/caps_eth.h"

#include <iterator>

#include "firmware-stub/caps.h"
#include "firmware-stub/objects/objects.h"
#include "model/eth/rx.h"
#include "model/eth/vxlan_ports.h"
#include "model/function/vport.h"
#include "model/sched/traffic_classes.h"
#include "model/steer/definer.h"
#include "prm/prm.h"
#include "prm/shampo.h"
#include "prm/transport_caps.h"
#include "prm/user_commands.h"

namespace hcasim::fw {

namespace {

constexpr std::uint32_t kL3Ipv4 = 2, kL3Ipv6 = 4;  // roce_cap.l3_type
constexpr std::uint32_t kRoceV1 = 1, kRoceV2 = 4;  // roce_cap.roce_version
constexpr unsigned kLogMinStride = 6, kLogMaxStride = 13;
constexpr std::uint32_t kRoceUdpPort = 4791;  // IBTA annex A17
constexpr unsigned kLogSfUnit = 12;           // log_min_sf_size: 4 KiB

void fill_sub_functions(const Options& options, std::uint8_t* c) {
  using g = prm::cmd_hca_cap;
  unsigned log = 0;
  while (1u << log < options.sfs) ++log;
  put<g::sf>(c, 1);
  put<g::log_max_sf>(c, log);
  put<g::max_num_sf>(c, options.sfs);
  put<g::log_min_sf_size>(c, kLogSfWindow - kLogSfUnit);
  put<g::sf_base_id>(c, VportNumbers::kFirstSf);
  put<g::vhca_state>(c, 1);
  put<g::event_on_vhca_state_teardown_request>(c, 1);
  put<g::event_on_vhca_state_in_use>(c, 1);
  put<g::event_on_vhca_state_active>(c, 1);
  put<g::event_on_vhca_state_allocated>(c, 1);
  put<g::event_on_vhca_state_invalid>(c, 1);
}

}  // namespace

void fill_frame_objects(std::uint8_t* c) {
  using g = prm::cmd_hca_cap;
  put<g::log_max_transport_domain>(c, kLogTds);
  put<g::log_max_tis>(c, kLogTises);
  put<g::log_max_tir>(c, kLogTirs);
  put<g::log_max_rqt>(c, kLogRqts);
  put<g::log_max_rqt_size>(c, kLogRqtSize);
  put<g::log_max_rq>(c, kLogRqs);
  put<g::log_max_sq>(c, kLogSqs);
  put<g::log_max_tis_per_sq>(c, 0);
  put<g::log_max_flow_counter_bulk>(c, kLogFlowCounterBulk);
  put<g::flow_counter_bulk_alloc>(c, kCounterBulkUnits);
  put<prm::cap_flow_counters_dump>(c, 1);
  put<g::max_flow_counter_15_0>(c, kFlowCounters & 0xffff);
  put<g::max_flow_counter_31_16>(c, kFlowCounters >> 16);
}

void fill_general_eth(const Options& options, std::uint8_t* c) {
  using g = prm::cmd_hca_cap;
  put<g::eth_net_offloads>(c, 1);
  put<g::nic_flow_table>(c, 1);
  put<g::roce>(c, 1);
  put<g::roce_rw_supported>(c, options.vf ? 0 : 1);  // of virtual functions it is their manager's choice
  put<g::vport_group_manager>(c, options.vf ? 0 : 1);
  // Traffic classes and trust are the port's; there is no agent for DCBX.
  put<g::ts_cqe_to_dest_cqn>(c, options.generation->has.port_stamps ? 1 : 0);
  put<g::ets>(c, options.vf ? 0 : 1);
  put<g::qcam_reg>(c, options.vf ? 0 : 1);
  put<g::max_tc>(c, TrafficClasses::kCount);
  if (options.manages_switch()) {
    put<g::eswitch_manager>(c, 1);
    put<g::vhca_resource_manager>(c, 1);
    put<g::log_max_l2_table>(c, kLogL2Table);
    // Registers C stay with a frame until it leaves the switch, whatever tables it meets.
    put<g::reg_c_preserve>(c, options.generation->has.flow_rewrite ? 1 : 0);
    put<g::receive_discard_vport_down>(c, 1);
    put<g::transmit_discard_vport_down>(c, 1);
    if (options.sfs != 0) fill_sub_functions(options, c);
  }
  if (options.ports != 1) {
    put<g::lag_master>(c, options.vf ? 0 : 1);
    put<g::num_lag_ports>(c, options.ports);
    put<g::lag_tx_port_affinity>(c, 1);
    put<g::lag_dct>(c, 1);
    put<g::init2_lag_tx_port_affinity>(c, 1);
    put<prm::cap_rts2rts_lag_tx_port_affinity>(c, 1);
    put<g::port_selection_cap>(c, options.selects_port() ? 1 : 0);
    put<g::lag_native_fdb_selection>(c, options.shares_fdb() ? 1 : 0);
  }
  if (options.has_definers()) {
    put<g::max_num_match_definer>(c, kMatchDefiners);
    put<g::match_definer_format_supported>(c, definer_formats());
  }
  put<g::fl_rc_qp_when_roce_disabled>(c, 1);
  put<g::max_geneve_tlv_options>(c, kGeneveOptions);
  put<g::max_geneve_tlv_option_data_len>(c, kGeneveOptionWords);
  fill_frame_objects(c);
  put<g::log_max_current_uc_list>(c, kLogUcList);
  put<g::log_max_current_mc_list>(c, kLogMcList);
  put<g::log_max_vlan_list>(c, kLogVlanList);
  put<g::pcam_reg>(c, 1);
  put<g::modify_rq_counter_set_id>(c, 1);
  put<g::nic_receive_steering_discard>(c, 1);
  put<g::striding_rq>(c, 1);
  put<g::log_min_stride_sz_rq>(c, kLogMinStride);
  put<g::log_max_stride_sz_rq>(c, kLogMaxStride);
  put<g::umr_ptr_rlky>(c, 1);  // UMRs in an SQ, their lists inline or behind any key
  put<g::shampo>(c, options.generation->has.header_split ? 1 : 0);
}

void fill_ethernet(const Options& options, std::uint8_t* c) {
  using e = prm::per_protocol_networking_offload_caps;
  put<e::csum_cap>(c, 1);
  put<e::vlan_cap>(c, 1);
  put<e::lro_cap>(c, 1);
  put<e::lro_psh_flag>(c, 1);
  put<e::lro_time_stamp>(c, 1);
  put<e::lro_min_mss_size>(c, Lro::kMinSegment);
  for (std::size_t i = 0; i < std::size(Lro::kPeriods); ++i)
    prm::set<e::lro_timer_supported_periods>(c, i, Lro::kPeriods[i]);
  put<e::wqe_vlan_insert>(c, 1);
  put<e::self_lb_en_modifiable>(c, 1);
  put<e::max_lso_cap>(c, kLogMaxLso);
  put<e::wqe_inline_mode>(c, kInlineNotRequired);
  put<e::rss_ind_tbl_cap>(c, kLogRqtSize);
  put<e::scatter_fcs>(c, 1);
  put<e::cqe_checksum_full>(c, EthRx::kChecksumFull);
  put<e::reg_umr_sq>(c, 1);
  // Inner headers: what there is of send queues and of the parser is for tunnels, too.
  put<e::tunnel_stateless_vxlan>(c, 1);
  put<e::tunnel_stateless_gre>(c, 1);
  put<e::tunnel_stateless_ip_over_ip>(c, 1);
  put<e::tunnel_stateless_ip_over_ip_rx>(c, 1);
  put<e::tunnel_stateless_ip_over_ip_tx>(c, 1);
  put<e::tunnel_stateless_geneve_rx>(c, 1);
  put<e::tunnel_stateless_geneve_tx>(c, 1);
  // WQEs say where the headers are, as Linux does for Geneve.
  put<e::swp>(c, 1);
  put<e::swp_csum>(c, 1);
  put<e::swp_lso>(c, 1);
  // Linux sends PSP by it. That the checksum field holds a sum of its pseudo header makes no difference here.
  put<e::swp_csum_l4_partial>(c, options.psp() ? 1 : 0);
  put<e::max_vxlan_udp_ports>(c, VxlanPorts::kMost);
  // Both forms: programs that go by libmlx5 (DPDK) look at the later one only where there is the earlier.
  put<e::multi_pkt_send_wqe>(c, options.generation->has.enhanced_mpw ? 1 : 0);
  put<e::enhanced_multi_pkt_send_wqe>(c, options.generation->has.enhanced_mpw ? 1 : 0);
  // Of ESP, in WQEs of boards that encrypt.
  put<e::insert_trailer>(c, options.encrypts() ? 1 : 0);
}

void fill_header_split(std::uint8_t* c) {
  put<prm::shampo_log_max_reservation_size>(c, HeaderSplit::kLogBaseReservation + 7);
  put<prm::shampo_log_min_reservation_size>(c, HeaderSplit::kLogBaseReservation);
  put<prm::shampo_min_mss_size>(c, 1);
  put<prm::shampo_header_split>(c, 1);
  put<prm::shampo_header_split_data_merge>(c, 1);
  put<prm::shampo_max_log_headers_entry_size>(c, HeaderSplit::kLogBaseEntry + 3);
}

void fill_roce(std::uint8_t* c) {
  using r = prm::roce_cap;
  put<r::l3_type>(c, kL3Ipv4 | kL3Ipv6);
  put<r::roce_version>(c, kRoceV1 | kRoceV2);
  put<r::r_roce_dest_udp_port>(c, kRoceUdpPort);
  put<r::r_roce_min_src_udp_port>(c, 0xc000);
  put<r::r_roce_max_src_udp_port>(c, 0xffff);
  put<r::fl_rc_qp_when_roce_disabled>(c, 1);
  put<r::fl_rc_qp_when_roce_enabled>(c, 1);
  put<r::roce_address_table_size>(c, Vport::kRoceAddresses);
}

}  // namespace hcasim::fw
