// SPDX-License-Identifier: BSD-3-Clause
/// What a queue that keeps headers apart from data may be: group 0x1d of QUERY_HCA_CAP, which the kernel's
/// mlx5_ifc.h has in some versions (shampo_cap, as in Linux 6.1; the two kinds are from Linux 7).
#pragma once

#include "prm/field.h"

namespace hcasim::prm {

using shampo_log_max_reservation_size = Field<0x03, 5>;
using shampo_log_min_reservation_size = Field<0x0b, 5>;
using shampo_min_mss_size = Field<0x10, 16>;
using shampo_header_split = Field<0x20, 1>;
using shampo_header_split_data_merge = Field<0x21, 1>;
using shampo_max_log_headers_entry_size = Field<0x23, 5>;

}  // namespace hcasim::prm
