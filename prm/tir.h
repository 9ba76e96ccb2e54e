// SPDX-License-Identifier: BSD-3-Clause
// MODIFY_TIR: the bit of modify_tir_bitmask that the kernel's mlx5_ifc.h has no name for. It is that of
// DPDK's mlx5_prm.h, MLX5_MODIFY_TIR_IN_MODIFY_BITMASK_INDIRECT_TABLE (1 << 1).
#ifndef HCASIM_PRM_TIR_H
#define HCASIM_PRM_TIR_H

#include "prm/field.h"
#include "prm/ifc.h"

namespace hcasim::prm {

using modify_tir_indirect_table = Field<modify_tir_in::bitmask::bit_off + 62, 1>;
static_assert(modify_tir_in::bitmask::packet_merge::bit_off == modify_tir_in::bitmask::bit_off + 63);

}  // namespace hcasim::prm
#endif
