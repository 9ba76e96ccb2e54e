// SPDX-License-Identifier: BSD-3-Clause
// Capabilities of the transports beside RC, UC and UD, and of atomic operations.
#include "firmware-stub/caps_transport.h"

#include "firmware-stub/objects/flow_types.h"
#include "firmware-stub/objects/objects.h"
#include "model/ctx/qp.h"
#include "prm/prm.h"
#include "prm/transport_caps.h"

namespace hcasim::fw {

// Of one DCI, log2: numbers of ours.
constexpr std::uint32_t kLogDciStreams = 8, kLogDciErroredStreams = 5;

void fill_general_transport(const Options& options, std::uint8_t* c) {
  using g = prm::cmd_hca_cap;
  prm::set<g::xrc>(c, 1);
  prm::set<g::dct>(c, 1);
  prm::set<g::log_max_ra_req_dc>(c, 4);
  prm::set<g::log_max_ra_res_dc>(c, 4);
  prm::set<g::max_wqe_sz_sq_dc>(c, 1024);
  if (options.generation->has.dci_streams) {
    prm::set<g::log_max_dci_stream_channels>(c, kLogDciStreams);
    prm::set<g::log_max_dci_errored_streams>(c, kLogDciErroredStreams);
  }
  prm::set<g::block_lb_mc>(c, 1);
  prm::set<g::set_deth_sqpn>(c, 1);
  prm::set<g::hca_cap_2>(c, 1);
  prm::set<prm::cap_rts2rts_qp_udp_sport>(c, options.link == Link::kEthernet ? 1 : 0);
}

constexpr std::uint32_t kLogFixedBuffer = 8;
constexpr std::uint32_t kLogEntity = 11;  // the smallest frames of AF_XDP, each a page of its key

void fill_general_2(const Options& options, std::uint8_t* c) {
  using g = prm::cmd_hca_cap_2;
  prm::set<prm::cap2_log_reserved_qpn_granularity>(c, kLogReservedQpns);
  if (options.migration) {
    prm::set<g::migration_multi_load>(c, options.manages() ? 1 : 0);
    prm::set<g::migration_tracking_state>(c, options.manages() ? 1 : 0);
    prm::set<g::migration_in_chunks>(c, options.manages() ? 1 : 0);
    prm::set<g::migratable>(c, options.vf && !options.sf ? 1 : 0);
  }
  if (options.link != Link::kEthernet || !options.generation->has.flow_rewrite) return;
  prm::set<g::log_min_mkey_entity_size>(c, kLogEntity);
  if (options.generation->has.header_split) {
    // Of KSM lists, as the drivers make them for headers.
    prm::set<g::min_mkey_log_entity_size_fixed_buffer>(c, kLogFixedBuffer);
    prm::set<g::min_mkey_log_entity_size_fixed_buffer_valid>(c, 1);
  }
  // How much of the WQE's metadata comes back with a frame's time at the port.
  if (options.generation->has.port_stamps) prm::set<g::ts_cqe_metadata_size2wqe_counter>(c, kDepartureIdBits);
  constexpr std::uint32_t kMost = 255;  // bytes, of what the fields hold
  static_assert(kMost <= kMaxReformatData);
  prm::set<g::max_reformat_insert_size>(c, kMost);
  prm::set<g::max_reformat_insert_offset>(c, kMost);
  prm::set<g::max_reformat_remove_size>(c, kMost);
  prm::set<g::max_reformat_remove_offset>(c, kMost);
}

void fill_atomic(std::uint8_t* c) {
  using a = prm::atomic_caps;
  prm::set<a::supported_atomic_req_8B_endianness_mode_1>(c, 1);
  prm::set<a::atomic_operations>(c, kAtomicCmpSwap | kAtomicFetchAdd | kAtomicMasked);
  prm::set<a::atomic_size_qp>(
      c, prm::k::ATOMIC_CAPS_ATOMIC_SIZE_QP_4_BYTES | prm::k::ATOMIC_CAPS_ATOMIC_SIZE_QP_8_BYTES |
             prm::k::ATOMIC_CAPS_ATOMIC_SIZE_QP_16_BYTES | prm::k::ATOMIC_CAPS_ATOMIC_SIZE_QP_32_BYTES);
  prm::set<a::atomic_size_dc>(c, prm::get<a::atomic_size_qp>(c));
}

}  // namespace hcasim::fw
