// SPDX-License-Identifier: BSD-3-Clause
/// What programs beside the kernel send by its command interface (DevX), and the kernel's mlx5_ifc.h lacks:
/// named in DPDK's mlx5 driver (common/mlx5/mlx5_prm.h).
#pragma once

#include <cstdint>

#include "prm/field.h"
#include "prm/ifc.h"

namespace hcasim::prm {

// cmd_hca_cap; Base: bits
template <unsigned Base>
using cap_access_register_user_at = Field<Base + 0xd2, 1>;
template <unsigned Base>
using cap_flow_counters_dump_at = Field<Base + 0x361, 1>;
using cap_access_register_user = cap_access_register_user_at<0>;
using cap_flow_counters_dump = cap_flow_counters_dump_at<0>;
static_assert(cmd_hca_cap::log_max_cq::bit_off == 0xdb && cmd_hca_cap::log_max_rq::bit_off == 0x363);

// flow_table_prop_layout; Base: bits
template <unsigned Base>
using table_log_max_ft_sampler_num = Field<Base + 0x48, 8>;
template <unsigned Base>
using table_flow_tag = Field<Base + 1, 1>;  // entries have tags. Source: DPDK's mlx5_prm.h
static_assert(flow_table_prop_layout::log_max_ft_num::bit_off >= 0x60);

// Registers that a user context reads: input and output are those of ACCESS_REG.
constexpr std::uint16_t kOpAccessRegisterUser = 0xb0c;

// QUERY_FLOW_COUNTER: into memory, not into the answer.
using query_flow_counter_mkey = Field<0x60, 32>;
using query_flow_counter_address = Field<0x80, 64>;
using query_flow_counter_dump_to_memory = Field<0xc1, 1>;
static_assert(query_flow_counter_in::clear::bit_off == 0xc0);

}  // namespace hcasim::prm
