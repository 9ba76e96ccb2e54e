// SPDX-License-Identifier: BSD-3-Clause
// The temperature of the chip (registers MTCAP and MTMP): what it is heated by, when it idles and when its
// port is busy, and how fast it follows. Computed when it is asked for, so that it costs no event.
#ifndef HCASIM_FIRMWARE_STUB_THERMAL_H
#define HCASIM_FIRMWARE_STUB_THERMAL_H

#include <cstdint>

#include "model/state/fields.h"
#include "model/time.h"

namespace hcasim::fw {

class Thermal {
 public:
  // Degrees Celsius. Air around the card; how much above it the chip settles when idle, and at full rate both
  // ways; where it has to be stopped. Our own, of the order of an adapter's with a passive heat sink.
  static constexpr double kAir = 35, kIdleRise = 15, kBusyRise = 30, kCritical = 105;
  static constexpr Time kSettles = 60 * kSecond;  // time constant of chip and heat sink

  // gbps: of the port, one way.
  explicit Thermal(double gbps) : bytes_per_second_(gbps * 1e9 / 8) {}

  // Now; bytes: that the port has sent and received so far.
  double celsius(Time t, std::uint64_t bytes);
  double highest() const { return highest_; }
  void forget_highest() { highest_ = celsius_; }
  // It is that hot, whatever the reason.
  void heat(Time t, std::uint64_t bytes, double celsius);

  template <class Archive>
  void list_state(Archive& a) {
    a.lasting("celsius", celsius_);
    a.lasting("highest", highest_);
    a.lasting("at", at_);
    a.lasting("bytes", bytes_);
  }

 private:
  const double bytes_per_second_;
  double celsius_ = kAir, highest_ = kAir;
  Time at_ = 0;              // when that was
  std::uint64_t bytes_ = 0;  // of the port until then
};

}  // namespace hcasim::fw
#endif
