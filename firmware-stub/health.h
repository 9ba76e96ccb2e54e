// SPDX-License-Identifier: BSD-3-Clause
// The registers of the initialization segment that tell how the card is: version, health buffer, timers.
// Counters and timers follow from simulated time, so that they cost no event.
#ifndef HCASIM_FIRMWARE_STUB_HEALTH_H
#define HCASIM_FIRMWARE_STUB_HEALTH_H

#include <cstdint>

#include "firmware-stub/options.h"

namespace hcasim::fw {

// health.synd of an internal error of the firmware (mlx5 health.c)
constexpr std::uint8_t kSyndFwInternal = 1;

class Health {
 public:
  explicit Health(const Options& options) : options_(options) {}

  // Aligned 32-bit register; registers that are not there read as zero.
  std::uint32_t read(std::uint32_t offset) const;

  void fatal(std::uint8_t syndrome, bool reset_requested) noexcept {
    syndrome_ = syndrome;
    reset_requested_ = reset_requested;
  }
  bool is_fatal() const { return syndrome_ != 0 && reset_requested_; }
  std::uint8_t syndrome() const { return syndrome_; }
  void reset() {
    syndrome_ = 0;
    reset_requested_ = false;
    nic_interface_ = 0;
  }

  std::uint32_t nic_interface() const { return nic_interface_; }
  void set_nic_interface(std::uint32_t v) { nic_interface_ = v & 7; }

  void count_bad_write() { ++bad_writes_; }
  std::uint64_t bad_writes() const { return bad_writes_; }

 private:
  const Options& options_;
  std::uint8_t syndrome_ = 0;
  bool reset_requested_ = false;
  std::uint32_t nic_interface_ = 0;
  std::uint64_t bad_writes_ = 0;
};

}  // namespace hcasim::fw
#endif
