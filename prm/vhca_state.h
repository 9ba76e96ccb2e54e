// SPDX-License-Identifier: BSD-3-Clause
// QUERY_VHCA_STATE and MODIFY_VHCA_STATE, which the kernel's mlx5_ifc.h lacks. Source: its
// drivers/net/ethernet/mellanox/mlx5/core/sf/mlx5_ifc_vhca_event.h.
#ifndef HCASIM_PRM_VHCA_STATE_H
#define HCASIM_PRM_VHCA_STATE_H

#include "prm/field.h"

namespace hcasim::prm {

enum class VhcaState : std::uint8_t {
  kInvalid = 0,
  kAllocated = 1,
  kActive = 2,           // its manager lets a driver start it
  kInUse = 3,            // one has
  kTeardownRequest = 4,  // and is to end it
};

template <unsigned Off>
struct vhca_state_context_at {
  using arm_change_event = Field<Off, 1>;
  using vhca_state = Field<Off + 12, 4>;
  using sw_function_id = Field<Off + 32, 32>;
  static constexpr std::size_t bytes = 16;
};

struct query_vhca_state_in {
  using embedded_cpu_function = Field<0x40, 1>;
  using function_id = Field<0x50, 16>;
  static constexpr std::size_t bytes = 16;
};
struct query_vhca_state_out {
  using vhca_state_context = vhca_state_context_at<0x80>;
  static constexpr std::size_t bytes = 32;
};

struct modify_vhca_state_in {
  using embedded_cpu_function = Field<0x40, 1>;
  using function_id = Field<0x50, 16>;
  struct vhca_state_field_select {
    using sw_function_id = Field<0x7e, 1>;
    using arm_change_event = Field<0x7f, 1>;
  };
  using vhca_state_context = vhca_state_context_at<0x80>;
  static constexpr std::size_t bytes = 32;
};
struct modify_vhca_state_out {
  static constexpr std::size_t bytes = 16;
};

}  // namespace hcasim::prm
#endif
