// SPDX-License-Identifier: BSD-3-Clause
// Parameters of RoCE v2 congestion control as the command interface holds them (cong_control_r_roce_ecn_rp
// and _np of mlx5_ifc.h). Defaults: what mlxconfig reports of ConnectX-4 Lx to ConnectX-7 cards as delivered;
// ranges and units: NVIDIA DOCA documentation, "DCQCN CC Parameters" (formerly Mellanox community DOC-2790),
// and the descriptions of the roce_cc_ecn configuration in mstflint (mlxconfig_host.db).
#ifndef HCASIM_MODEL_CC_PARAMS_H
#define HCASIM_MODEL_CC_PARAMS_H

#include <cstdint>

#include "model/state/fields.h"

namespace hcasim {

// Reaction point: the sender of data.
struct ReactionParams {
  bool clamp_tgt_rate = false;                   // each cut sets the target to the rate before it
  bool clamp_tgt_rate_after_time_inc = true;     // so does a cut after an increase by the timer alone
  std::uint32_t time_reset = 300;                // us between increases by the timer; 0: no timer
  std::uint32_t byte_reset = 32767;              // bytes between increases by the byte counter; 0: no counter
  std::uint32_t threshold = 1;                   // events of one kind in fast recovery
  std::uint32_t max_rate = 0;                    // Mb/s, at which the limiter is given up; 0: the port's
  std::uint32_t ai_rate = 5;                     // Mb/s
  std::uint32_t hai_rate = 50;                   // Mb/s
  std::uint32_t gd = 11;                         // a cut is by alpha / 2^gd of the rate
  std::uint32_t min_dec_fac = 50;                // percent of the rate that one cut leaves at least
  std::uint32_t min_rate = 1;                    // Mb/s
  std::uint32_t rate_to_set_on_first_cnp = 0;    // Mb/s; 0: cut from the full rate
  std::uint32_t dce_tcp_g = 1019;                // share of alpha kept at an update, in 1/1024
  std::uint32_t dce_tcp_rtt = 1;                 // us between updates of alpha
  std::uint32_t rate_reduce_monitor_period = 4;  // us between cuts
  std::uint32_t initial_alpha_value = 1023;      // in 1/1024

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, clamp_tgt_rate, clamp_tgt_rate_after_time_inc, time_reset, byte_reset, threshold,
                  max_rate, ai_rate, hai_rate, gd, min_dec_fac, min_rate, rate_to_set_on_first_cnp, dce_tcp_g,
                  dce_tcp_rtt, rate_reduce_monitor_period, initial_alpha_value);
  }
};

// Notification point: the receiver of data.
struct NotificationParams {
  std::uint32_t min_time_between_cnps =
      4;  // us, of the port, or of each flow (Profile::Port::cnp_moderation)
  std::uint8_t cnp_dscp = 48;
  bool cnp_prio_mode = false;  // set: priority of the marked packet instead of cnp_802p_prio
  std::uint8_t cnp_802p_prio = 6;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, min_time_between_cnps, cnp_dscp, cnp_prio_mode, cnp_802p_prio);
  }
};

}  // namespace hcasim
#endif
