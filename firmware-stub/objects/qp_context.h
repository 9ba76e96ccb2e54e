// SPDX-License-Identifier: BSD-3-Clause
// The QPC: what CREATE_QP and the transition commands read from it.
#ifndef HCASIM_FIRMWARE_STUB_OBJECTS_QP_CONTEXT_H
#define HCASIM_FIRMWARE_STUB_OBJECTS_QP_CONTEXT_H

#include <cstdint>

#include "firmware-stub/command.h"
#include "model/ctx/qp.h"

namespace hcasim::fw {

// opt_param_mask of the transition commands (mlx5 qp.h, mlx5_qp_optpar)
enum : std::uint32_t {
  kOptAltPath = 1u << 0,
  kOptRre = 1u << 1,
  kOptRae = 1u << 2,
  kOptRwe = 1u << 3,
  kOptPkeyIndex = 1u << 4,
  kOptQkey = 1u << 5,
  kOptRnrTimeout = 1u << 6,
  kOptPrimaryPath = 1u << 7,
  kOptSraMax = 1u << 8,
  kOptRraMax = 1u << 9,
  kOptPmState = 1u << 10,
  kOptRetryCount = 1u << 12,
  kOptRnrRetry = 1u << 13,
  kOptAckTimeout = 1u << 14,
  kOptLagAffinity = 1u << 15,
  kOptPort = 1u << 16,
  kOptSrqn = 1u << 18,
  kOptCqnRcv = 1u << 19,
  kOptCounterSet = 1u << 25,
};

inline bool is_special(QpType t) { return t == QpType::kQp0 || t == QpType::kQp1; }
inline bool is_datagram(QpType t) { return t == QpType::kUd || is_special(t); }
inline bool is_connected(QpType t) { return t == QpType::kRc || t == QpType::kUc; }
inline bool is_reliable(QpType t) { return t == QpType::kRc; }

}  // namespace hcasim::fw
#endif
