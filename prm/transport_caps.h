// SPDX-License-Identifier: BSD-3-Clause
/// QP layouts that the kernel's mlx5_ifc.h lacks and rdma-core's has: reserved numbers, and the UDP source
/// port and the port of a LAG that RTS2RTS_QP changes.
#pragma once

#include "prm/field.h"
#include "prm/ifc.h"
#include "prm/qos.h"

namespace hcasim::prm {

// cmd_hca_cap
using cap_rts2rts_qp_udp_sport = Field<0x151, 1>;
using cap_rts2rts_lag_tx_port_affinity = Field<0x152, 1>;
static_assert(cmd_hca_cap::log_max_ra_res_qp::bit_off == 0x15a);

// Of opt_param_mask_95_32, with or without the context's extension (qp_ext).
constexpr std::uint64_t kOptUdpSport = 1u << 2;

// cmd_hca_cap_2: log2 of the numbers that one object has.
using cap2_log_reserved_qpn_granularity = Field<0x93, 5>;
static_assert(cmd_hca_cap_2::query_vuid::bit_off == 0x92);

// The general object has no fields after the header; its number is the first QP number.
constexpr std::uint16_t kGeneralReservedQpn = 0x2c;

}  // namespace hcasim::prm
