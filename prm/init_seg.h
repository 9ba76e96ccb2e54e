// SPDX-License-Identifier: BSD-3-Clause
/// Initialization segment at BAR0 + 0 (kernel include/linux/mlx5/device.h mlx5_init_seg, health_buffer).
#pragma once

#include "prm/be.h"

namespace hcasim::prm {

struct HealthBuffer {
  be32 assert_var[6];
  be32 rsvd0[2];
  be32 assert_exit_ptr;
  be32 assert_callra;
  be32 rsvd1;
  be32 time;
  be32 fw_ver;  ///< all ones: sensors say the device is gone
  be32 hw_id;
  uint8_t rfr_severity;  ///< reset requested 7, valid 3, severity 2:0
  uint8_t rsvd2[3];
  uint8_t irisc_index;
  uint8_t synd;  ///< 0: healthy
  be16 ext_synd;
};
static_assert(sizeof(HealthBuffer) == 64);

struct InitSeg {
  be32 fw_rev;            ///< minor 31:16, major 15:0
  be32 cmdif_rev_fw_sub;  ///< command interface revision 31:16, subminor 15:0
  be32 rsvd0[2];
  be32 cmdq_addr_h;
  be32 cmdq_addr_l_sz;  ///< address 31:12, nic_interface 9:8 (10:8), log size 7:4, log stride 3:0
  be32 cmd_dbell;       ///< bit n: slot n
  be32 rsvd1[120];
  be32 initializing;  ///< initializing 31, fw_reset_supported 30, embedded_cpu 23
  HealthBuffer health;
  be32 rsvd2[878];
  be32 cmd_exec_to;
  be32 cmd_q_init_to;
  be32 internal_timer_h;  ///< ticks of cmd_hca_cap.device_frequency_khz
  be32 internal_timer_l;
  be32 rsvd3[2];
  be32 health_counter;
  be32 rsvd4[11];
  be32 real_time_h;
  be32 real_time_l;
  be32 rsvd5[1006];
  be64 ieee1588_clk;
  be32 ieee1588_clk_type;
  be32 clr_intx;

  static constexpr uint32_t kInitializing = 1u << 31, kFwResetSupported = 1u << 30, kEmbeddedCpu = 1u << 23;
  static constexpr uint32_t kCmdifRev = 5;  ///< the only one that drivers accept
};
static_assert(sizeof(InitSeg) == 0x2010 && offsetof(InitSeg, cmdq_addr_h) == 0x10 &&
              offsetof(InitSeg, cmdq_addr_l_sz) == 0x14 && offsetof(InitSeg, cmd_dbell) == 0x18 &&
              offsetof(InitSeg, initializing) == 0x1fc && offsetof(InitSeg, health) == 0x200 &&
              offsetof(InitSeg, health.fw_ver) == 0x230 && offsetof(InitSeg, health.rfr_severity) == 0x238 &&
              offsetof(InitSeg, health.synd) == 0x23d && offsetof(InitSeg, cmd_exec_to) == 0xff8 &&
              offsetof(InitSeg, cmd_q_init_to) == 0xffc && offsetof(InitSeg, internal_timer_h) == 0x1000 &&
              offsetof(InitSeg, health_counter) == 0x1010 && offsetof(InitSeg, real_time_h) == 0x1040 &&
              offsetof(InitSeg, ieee1588_clk) == 0x2000 && offsetof(InitSeg, clr_intx) == 0x200c);

/// nic_interface of cmdq_addr_l_sz.
enum : uint32_t { kNicFull = 0, kNicDisabled = 1, kNicNoDram = 2, kNicSwReset = 7 };

}  // namespace hcasim::prm
