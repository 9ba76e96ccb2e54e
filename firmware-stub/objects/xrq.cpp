// SPDX-License-Identifier: BSD-3-Clause
// CREATE_XRQ, DESTROY_XRQ, QUERY_XRQ, ARM_XRQ: shared receive queues with a matching list.
#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/objects/srq.h"

namespace hcasim::fw {

bool has_xrq(const Caps& caps) { return caps.get<prm::cmd_hca_cap::log_max_xrq>() != 0; }

Syndrome create_xrq(Firmware& fw, Command& cmd) {
  using in = prm::create_xrq_in;
  using c = in::xrq_context;
  using w = c::wq;
  using tags = c::tag_matching_topology_context;
  using cap = prm::cmd_hca_cap;
  if (cmd.get<c::state>() != prm::k::XRQC_STATE_GOOD) return Syndrome::kSrqState;
  const Caps& caps = fw.caps();
  const std::uint32_t topology = cmd.get<c::topology>(), offload = cmd.get<c::offload>();
  srqs::Attributes a{ObjType::kXrq};
  srqs::take_wq<w>(cmd, a);
  srqs::take_context<c>(cmd, a);
  a.cqn = cmd.get<c::cqn>();
  a.user_index = cmd.get<c::user_index>();
  a.feature = a.feature || cmd.get<c::rlkey>() != 0;
  if (topology == prm::k::XRQC_TOPOLOGY_TAG_MATCHING) {
    a.log_tags = cmd.get<tags::log_matching_list_sz>();
    a.rendezvous = offload == prm::k::XRQC_OFFLOAD_RNDV;
    a.feature = a.feature || caps.get<cap::tag_matching>() == 0 || offload > prm::k::XRQC_OFFLOAD_RNDV ||
                (a.rendezvous && caps.get<cap::rndv_offload_rc>() == 0);
    if (a.log_tags == 0 || a.log_tags > caps.get<cap::log_tag_matching_list_sz>()) return Syndrome::kSrqTags;
  } else {
    a.feature = a.feature || topology != prm::k::XRQC_TOPOLOGY_NO_SPECIAL_TOPOLOGY || offload != 0;
  }
  return srqs::create_numbered<prm::create_xrq_out::xrqn>(fw, cmd, a);
}

Syndrome destroy_xrq(Firmware& fw, Command& cmd) {
  return srqs::destroy(fw, cmd, cmd.get<prm::destroy_xrq_in::xrqn>(), ObjType::kXrq);
}

Syndrome arm_xrq(Firmware& fw, Command& cmd) {
  using in = prm::arm_xrq_in;
  return srqs::arm(fw, cmd.get<in::xrqn>(), ObjType::kXrq, cmd.get<in::lwm>());
}

Syndrome query_xrq(Firmware& fw, Command& cmd) {
  using c = prm::query_xrq_out::xrq_context;
  using tags = c::tag_matching_topology_context;
  Srq* srq = nullptr;
  const Syndrome s = srqs::query<c>(fw, cmd, cmd.get<prm::query_xrq_in::xrqn>(), ObjType::kXrq, srq);
  if (s != Syndrome::kOk) return s;
  cmd.put<c::state>(srq->error ? prm::k::XRQC_STATE_ERROR : prm::k::XRQC_STATE_GOOD);
  srqs::put_wq<c::wq>(cmd, *srq);
  if (srq->tags) {
    cmd.put<tags::append_next_index>(srq->tags->next_index());
    cmd.put<tags::hw_phase_cnt>(srq->tags->hw_phase());
    cmd.put<tags::sw_phase_cnt>(srq->tags->sw_phase());
  }
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
