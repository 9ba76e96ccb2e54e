// SPDX-License-Identifier: BSD-3-Clause
// Q counters of other vports, of all sets together, and those that came later: layouts that Linux 6.1's
// mlx5_ifc.h lacks and 6.12's has.
#ifndef HCASIM_PRM_VPORT_COUNTERS_H
#define HCASIM_PRM_VPORT_COUNTERS_H

#include "prm/field.h"
#include "prm/ifc.h"

namespace hcasim::prm {

// cmd_hca_cap
using cap_q_counter_aggregation = Field<0x339, 1>;
using cap_q_counter_other_vport = Field<0x33a, 1>;
static_assert(cmd_hca_cap::log_max_xrcd::bit_off == 0x33b);

// query_q_counter_in
struct query_q_counter_of_vport_in {
  using other_vport = Field<0x40, 1>;
  using vport_number = Field<0x50, 16>;
  using aggregate = Field<0xc1, 1>;  // the sum of all sets, whatever counter_set_id says
};
static_assert(query_q_counter_in::clear::bit_off == 0xc0);

struct query_q_counter_more_out {
  using req_rnr_retries_exceeded = Field<0x380, 32>;
};
static_assert(query_q_counter_out::local_ack_timeout_err::bit_off == 0x300);
static_assert(query_q_counter_out::resp_local_length_error::bit_off == 0x3c0);

}  // namespace hcasim::prm
#endif
