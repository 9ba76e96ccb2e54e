// SPDX-License-Identifier: BSD-3-Clause
/// A bit of cmd_hca_cap that is reserved in mlx5_ifc.h (rdma-core's mlx5_ifc.h names it): the CQE of a
/// signature error contains the domain and the type of the signature.
#pragma once

#include "prm/prm.h"

namespace hcasim::prm {

using sigerr_domain_and_sig_type = Field<0x480, 1>;
static_assert(cmd_hca_cap::max_num_eqs::bit_off + 16 == sigerr_domain_and_sig_type::bit_off);

}  // namespace hcasim::prm
