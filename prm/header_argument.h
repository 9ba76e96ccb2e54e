// SPDX-License-Identifier: BSD-3-Clause
/// The WQE that writes arguments of rewriting lists (FLOW_TABLE_ACCESS). Its control segment's `imm` is their
/// number, the opmod says what is written. Public sources: Linux's mlx5 core and rdma-core's libmlx5
/// (software steering).
#pragma once

#include <cstdint>

namespace hcasim::prm {

constexpr uint8_t kUpdateHeaderArgument = 1;  ///< opmod
/// Behind the control segment: one that is all reserved (mlx5_wqe_flow_update_ctrl_seg), then the arguments.
constexpr unsigned kFlowUpdateCtrl = 48, kHeaderArgument = 64;

}  // namespace hcasim::prm
