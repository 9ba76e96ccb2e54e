// SPDX-License-Identifier: BSD-3-Clause
// The registers of the initialization segment that tell how the card is: version, health buffer, timers.
// Counters and timers follow from simulated time, so that they cost no event.
#ifndef HCASIM_FIRMWARE_STUB_HEALTH_H
#define HCASIM_FIRMWARE_STUB_HEALTH_H

#include <array>
#include <cstdint>

#include "firmware-stub/firmware_image.h"
#include "firmware-stub/options.h"
#include "model/state/fields.h"

namespace hcasim::fw {

// health.synd of an internal error of the firmware (mlx5 health.c)
constexpr std::uint8_t kSyndFwInternal = 1;

class Health {
 public:
  Health(const Options& options, const FirmwareImage& image) : options_(options), image_(image) {}

  // Aligned 32-bit register; registers that are not there read as zero.
  std::uint32_t read(std::uint32_t offset) const;

  // What is shown beside the syndrome. This firmware has no code of its own in the card whose addresses it
  // could tell: the asserts hold what it knows.
  struct Assert {
    std::array<std::uint32_t, 6> var;
    std::uint32_t exit_ptr, callra;
    std::uint16_t ext_syndrome;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, var, exit_ptr, callra, ext_syndrome);
    }
  };
  void fatal(std::uint8_t syndrome, bool reset_requested, const Assert& assert) noexcept {
    syndrome_ = syndrome;
    reset_requested_ = reset_requested;
    assert_ = assert;
  }
  // The firmware's processor hangs: the health counter stands still. Until another request, or a reset.
  void stall(bool on);
  bool stalled() const { return stalled_; }
  bool is_fatal() const { return syndrome_ != 0 && reset_requested_; }
  std::uint8_t syndrome() const { return syndrome_; }

  std::uint32_t nic_interface() const { return nic_interface_; }
  void set_nic_interface(std::uint32_t v) { nic_interface_ = v & 7; }

  void count_bad_write() { ++bad_writes_; }
  std::uint64_t bad_writes() const { return bad_writes_; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, syndrome_, reset_requested_, assert_, stalled_, stalled_at_, nic_interface_);
    a.lasting("bad_writes", bad_writes_);
  }

 private:
  const Options& options_;
  const FirmwareImage& image_;
  std::uint8_t syndrome_ = 0;
  bool reset_requested_ = false;
  Assert assert_{};
  bool stalled_ = false;
  std::uint32_t stalled_at_ = 0;  // the counter
  std::uint32_t nic_interface_ = 0;
  std::uint64_t bad_writes_ = 0;
};

}  // namespace hcasim::fw
#endif
