// SPDX-License-Identifier: BSD-3-Clause
/// Of cmd_hca_cap, where mlx5_ifc.h has a reserved bit (rdma-core's mlx5_ifc.h names it): the CQE of a
/// signature error tells the domain and the type of the signature.
#pragma once

#include "prm/prm.h"

namespace hcasim::prm {

using sigerr_domain_and_sig_type = Field<0x480, 1>;
static_assert(cmd_hca_cap::max_num_eqs::bit_off + 16 == sigerr_domain_and_sig_type::bit_off);

}  // namespace hcasim::prm
