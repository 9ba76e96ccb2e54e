// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/health.h"

#include <cstddef>

#include "model/time.h"
#include "prm/init_seg.h"

namespace hcasim::fw {

namespace {
constexpr Time kBeat = from_ns(10'000'000);    // health_counter grows every 10 ms
constexpr std::uint32_t kReadyLimitMs = 2000;  // how long Linux waits for it by default
}  // namespace

void Health::stall(bool on) {
  if (on && !stalled_) stalled_at_ = static_cast<std::uint32_t>(sim_now() / kBeat) + 1;
  stalled_ = on;
}

std::uint32_t Health::read(std::uint32_t offset) const {
  using prm::HealthBuffer;
  using prm::InitSeg;
  const Time now = sim_now();
  const auto ticks = static_cast<std::uint64_t>(now) / 1000;  // device_frequency_khz = 1 GHz
  switch (offset) {
    case offsetof(InitSeg, fw_rev):
      return image_.running().minor << 16 | image_.running().major;
    case offsetof(InitSeg, cmdif_rev_fw_sub):
      return InitSeg::kCmdifRev << 16 | image_.running().subminor;
    // Ready as soon as it answers; a software reset (nic_interface 7) is taken.
    case offsetof(InitSeg, initializing):
      return InitSeg::kFwResetSupported;
    case offsetof(InitSeg, health) + offsetof(HealthBuffer, time):
      return static_cast<std::uint32_t>(now / kSecond);
    case offsetof(InitSeg, health) + offsetof(HealthBuffer, fw_ver):
      return image_.running().packed();
    case offsetof(InitSeg, health) + offsetof(HealthBuffer, hw_id):
      return options_.generation->hw_id;
    // Byte registers, in the word that holds them: rfr 31, valid 27, severity 26:24.
    case offsetof(InitSeg, health) + offsetof(HealthBuffer, rfr_severity):
      return syndrome_ == 0 ? 0 : (reset_requested_ ? 0x8b000000u : 0x0b000000u);
    case offsetof(InitSeg, health) + offsetof(HealthBuffer, assert_exit_ptr):
      return assert_.exit_ptr;
    case offsetof(InitSeg, health) + offsetof(HealthBuffer, assert_callra):
      return assert_.callra;
    // irisc_index 31:24, synd 23:16, ext_synd 15:0
    case offsetof(InitSeg, health) + offsetof(HealthBuffer, irisc_index):
      if (syndrome_ == 0) return 0;
      return std::uint32_t{syndrome_} << 16 |
             (assert_.ext_syndrome != 0 ? assert_.ext_syndrome : 0x8000u | syndrome_);
    // Unit 31:29 (0: ms), value 19:0. The second one 0: neither is there.
    case offsetof(InitSeg, cmd_exec_to):
      return options_.command_limit_ms;
    case offsetof(InitSeg, cmd_q_init_to):
      return options_.command_limit_ms != 0 ? kReadyLimitMs : 0;
    case offsetof(InitSeg, internal_timer_h):
      return static_cast<std::uint32_t>(ticks >> 32);
    case offsetof(InitSeg, internal_timer_l):
      return static_cast<std::uint32_t>(ticks);
    // Starts at 1: 0 would look like a counter that stands still to a driver that has just begun.
    case offsetof(InitSeg, health_counter):
      return stalled_ ? stalled_at_ : static_cast<std::uint32_t>(now / kBeat) + 1;
    default: {
      constexpr std::size_t first = offsetof(InitSeg, health) + offsetof(HealthBuffer, assert_var);
      if (offset >= first && offset - first < sizeof(HealthBuffer::assert_var))
        return assert_.var[(offset - first) / 4];
      return 0;
    }
  }
}

}  // namespace hcasim::fw
