// SPDX-License-Identifier: BSD-3-Clause
/// device_mem_cap: operand sizes of the operations that memic_operations offers. mlx5_ifc.h has reserved
/// fields there (rdma-core's tests read them).
#pragma once

#include "prm/prm.h"

namespace hcasim::prm {

namespace memic_op_sizes {
using increment = Field<0x20, 8>;     ///< bit n: of 2^n bytes
using test_and_set = Field<0x30, 8>;  ///< likewise
}  // namespace memic_op_sizes
static_assert(memic_op_sizes::increment::bit_off + 8 <= device_mem_cap::log_min_memic_alloc_size::bit_off &&
              memic_op_sizes::test_and_set::bit_off + 8 ==
                  device_mem_cap::log_max_memic_addr_alignment::bit_off);

}  // namespace hcasim::prm
