// SPDX-License-Identifier: BSD-3-Clause
// As in caps.cpp: a bit is set only when model and firmware do what it promises.
#include "firmware-stub/caps_devx.h"

#include "firmware-stub/objects/general.h"
#include "firmware-stub/objects/objects.h"
#include "firmware-stub/objects/sched.h"
#include "firmware-stub/objects/uctx.h"
#include "model/steer/actions.h"
#include "prm/prm.h"
#include "prm/qos.h"

namespace hcasim::fw {

void fill_general_devx(const Options& options, std::uint8_t* c) {
  using g = prm::cmd_hca_cap;
  prm::set<g::log_max_uctx>(c, kLogUctxs);
  prm::set<g::uctx_cap>(c, kUctxRawTx | kUctxInternalDevRes);
  prm::set<g::general_obj_types>(c, general_obj_types(options));
  prm::set<g::umem_uid_0>(c, 1);
  prm::set<g::shared_object_to_user_object_allowed>(c, 1);
  prm::set<g::qos>(c, 1);
  prm::set<prm::cap_qpc_extension>(c, 1);
}

void fill_qos(const Options& options, std::uint8_t* c) {
  using q = prm::qos_cap;
  constexpr std::uint32_t kElements = 1u << kElementTsar | 1u << kElementQueueGroup;
  prm::set<q::nic_sq_scheduling>(c, 1);
  prm::set<prm::qos_cap_nic_qp_scheduling>(c, 1);
  prm::set<q::nic_bw_share>(c, 1);
  prm::set<q::nic_rate_limit>(c, 1);
  prm::set<q::max_tsar_bw_share>(c, kMaxBwShare);
  prm::set<q::nic_element_type>(c, kElements);
  prm::set<q::nic_tsar_type>(c, prm::k::TSAR_TYPE_CAP_MASK_DWRR);
  prm::set<q::log_max_qos_nic_queue_group>(c, kLogQueueGroups);
  if (options.manages_switch()) {
    prm::set<q::esw_scheduling>(c, 1);
    prm::set<q::esw_bw_share>(c, 1);
    prm::set<q::esw_rate_limit>(c, 1);
    prm::set<q::log_esw_max_sched_depth>(c, kLogSwitchTreeDepth);
    prm::set<q::esw_element_type>(c, 1u << kElementTsar | 1u << kElementVport);
    prm::set<q::esw_tsar_type>(c, prm::k::TSAR_TYPE_CAP_MASK_DWRR);
  }
  if (options.link == Link::kEthernet && options.generation->has.flow_rewrite) {
    prm::set<q::log_max_num_meter_aso>(c, kLogFlowMeters);  // one object at a time
    prm::set<prm::qos_cap_flow_meter_reg_id>(c, (1u << FlowRegisters{}.c.size()) - 1);
  }
  if (options.link != Link::kEthernet) return;  // only SQs are paced
  prm::set<q::packet_pacing>(c, 1);
  prm::set<q::packet_pacing_uid>(c, 1);
  prm::set<q::packet_pacing_burst_bound>(c, options.generation->has.pacing_burst ? 1 : 0);
  prm::set<q::packet_pacing_typical_size>(c, options.generation->has.pacing_burst ? 1 : 0);
  prm::set<q::packet_pacing_max_rate>(c, kMaxPace);
  prm::set<q::packet_pacing_min_rate>(c, kMinPace);
  prm::set<q::packet_pacing_rate_table_size>(c, Qos::kPaces);
}

}  // namespace hcasim::fw
