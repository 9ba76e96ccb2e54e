// SPDX-License-Identifier: BSD-3-Clause
// Layouts of quality of service that the kernel's mlx5_ifc.h lacks: scheduling elements as general objects,
// the extension of the QP context, and their capability bits. Source: NVIDIA's programmer's reference and
// rdma-core's own structures.
#ifndef HCASIM_PRM_QOS_H
#define HCASIM_PRM_QOS_H

#include "prm/field.h"
#include "prm/ifc.h"

namespace hcasim::prm {

// cmd_hca_cap, qos_cap
using cap_qpc_extension = Field<0x122, 1>;
using qos_cap_nic_qp_scheduling = Field<0x21, 1>;
/// Registers C that may take a meter's colour, a bit each. Source: the vendor's driver, DPDK's mlx5_prm.h.
using qos_cap_flow_meter_reg_id = Field<0x18, 8>;
static_assert(cmd_hca_cap::qos::bit_off == 0x21b && qos_cap::log_max_qos_nic_queue_group::bit_off == 0x2b);

// Of a scheduling context C, as a number: newer headers have a union of what it means by type.
template <class C>
using sched_attributes = Field<C::element_attributes::bit_off, 32>;
static_assert(scheduling_context::element_attributes::bits == 32);

// The general object after its header (base: bits).
constexpr std::uint16_t kGeneralSchedElement = 0x26;
template <unsigned Base>
struct sched_elem_at {
  static constexpr unsigned bit_off = Base, bits = 0x400, bytes = 0x80;
  using modify_field_select = Field<Base, 64>;
  using scheduling_hierarchy = Field<Base + 0x40, 8>;
  using sched_context = scheduling_context_at<Base + 0x100>;
};
static_assert(general_obj_in_cmd_hdr::bits == 0x80 && general_obj_out_cmd_hdr::bits == 0x80);
using sched_elem = sched_elem_at<0x80>;

// INIT2INIT_QP, RTS2RTS_QP: qpc_ext says that an extension follows the context.
struct qp_ext {
  using qpc_ext = Field<0x40, 1>;
  using opt_param_mask_95_32 = Field<0x840, 64>;
  using dci_stream_channel_id = Field<0x890, 16>;
  using qos_queue_group_id_requester = Field<0x8a0, 32>;
  using qos_queue_group_id_responder = Field<0x8c0, 32>;
  static constexpr std::size_t bytes = (0x880 + 0x600) / 8;
};
static_assert(rts2rts_qp_in::qpc::bit_off == 0xc0 && qpc::bits == 0x740);
constexpr std::uint64_t kOptDciStream = 1u << 0;  // the stream that is reset
constexpr std::uint64_t kOptQosQueueGroup = 1u << 1;

}  // namespace hcasim::prm
#endif
