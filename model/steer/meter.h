// SPDX-License-Identifier: BSD-3-Clause
// Flow meters (flow_meter_aso_obj): two token buckets that colour packets. The committed bucket makes green,
// the excess one yellow, and what neither has tokens for is red (RFC 2697, 2698, 4115). Buckets fill in
// simulated time.
#ifndef HCASIM_MODEL_STEER_METER_H
#define HCASIM_MODEL_STEER_METER_H

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/state/fields.h"
#include "model/steer/actions.h"
#include "model/time.h"
#include "prm/prm.h"

namespace hcasim {

// Of a packet, as it is written into a register (MLX5_FLOW_METER_COLOR_*).
enum class MeterColor : std::uint8_t { kRed = 0, kYellow = 1, kGreen = 2, kUndefined = 3 };

// A bucket of `burst` bytes that fills at mantissa / 2^exponent bytes in a nanosecond. Kept as the time at
// which it is full again if nothing more is taken.
class TokenBucket {
 public:
  void set(std::uint64_t burst, std::uint32_t mantissa, unsigned exponent);
  bool has(Time now, std::uint32_t bytes) const;
  void take(Time now, std::uint32_t bytes);

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, burst_, mantissa_, exponent_, full_at_);
    if constexpr (Archive::kLoads) a.check(exponent_ < 32, "the rate is out of its range");
  }

 private:
  // What it takes to fill so many bytes; rounded up. No rate: for ever.
  Time fill_time(std::uint64_t bytes) const;

  std::uint64_t burst_ = 0;
  std::uint32_t mantissa_ = 0;
  std::uint32_t exponent_ = 0;
  Time full_at_ = 0;
};

class FlowMeter {
 public:
  static constexpr std::size_t kBytes = prm::flow_meter_parameters::bytes;

  // parameters: flow_meter_parameters, as in memory. Buckets are full afterwards.
  void set(const std::uint8_t* parameters);
  // The colour of a packet that had `before`.
  MeterColor color(Time now, const SteeredFrame& frame, MeterColor before);

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, valid_, both_on_green_, mode_, start_, committed_, excess_);
  }

 private:
  std::uint32_t cost(const SteeredFrame& frame) const;

  bool valid_ = false;
  bool both_on_green_ = false;
  std::uint8_t mode_ = 0;  // MLX5_FLOW_METER_MODE_*
  MeterColor start_ = MeterColor::kUndefined;
  TokenBucket committed_, excess_;
};

// An object has two meters. Their parameters are what ACCESS_ASO reads and writes, by the byte.
struct FlowMeters {
  static constexpr std::size_t kBytes = 2 * FlowMeter::kBytes;
  std::array<std::uint8_t, kBytes> parameters{};
  std::array<FlowMeter, 2> meters;
  std::uint32_t pd = 0;  // of the queues that may change it

  // mask: a bit a byte, the highest for the first.
  void write(const std::uint8_t* bytes, std::uint64_t mask);

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, parameters, meters, pd);
  }
};

}  // namespace hcasim
#endif
