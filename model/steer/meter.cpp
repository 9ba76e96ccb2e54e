// SPDX-License-Identifier: BSD-3-Clause
#include "model/steer/meter.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "model/steer/flow.h"
#include "prm/wqe.h"

namespace hcasim {

namespace {

using Parameters = prm::flow_meter_parameters;

// In the mode that counts packets each is so many bytes, of rate and of burst.
constexpr std::uint32_t kBytesOfPacket = 128;
// What a frame takes of the cable besides its bytes: FCS, preamble, the gap to the next.
constexpr std::uint32_t kFcsBytes = 4, kGapBytes = 20;

}  // namespace

void TokenBucket::set(std::uint64_t burst, std::uint32_t mantissa, unsigned exponent) {
  burst_ = burst;
  mantissa_ = mantissa;
  exponent_ = exponent;
  full_at_ = 0;
}

Time TokenBucket::fill_time(std::uint64_t bytes) const {
  constexpr Time kEver = std::numeric_limits<Time>::max() / 4;
  if (mantissa_ == 0) return kEver;
  // bytes * 2^exponent * 1000 ps / mantissa, without overflow.
  const std::uint64_t step = (std::uint64_t{1000} << exponent_);
  if (bytes > static_cast<std::uint64_t>(kEver) / step) return kEver;
  return static_cast<Time>((bytes * step + mantissa_ - 1) / mantissa_);
}

bool TokenBucket::has(Time now, std::uint32_t bytes) const {
  if (bytes > burst_ || mantissa_ == 0) return false;
  return std::max(full_at_, now) - now + fill_time(bytes) <= fill_time(burst_);
}

void TokenBucket::take(Time now, std::uint32_t bytes) {
  // It is never emptier than empty.
  full_at_ = now + std::min(std::max(full_at_, now) - now + fill_time(bytes), fill_time(burst_));
}

void FlowMeter::set(const std::uint8_t* p) {
  valid_ = prm::get<Parameters::valid>(p) != 0;
  both_on_green_ = prm::get<Parameters::both_buckets_on_green>(p) != 0;
  mode_ = static_cast<std::uint8_t>(prm::get<Parameters::meter_mode>(p));
  start_ = static_cast<MeterColor>(prm::get<Parameters::start_color>(p));
  committed_.set(
      std::uint64_t{prm::get<Parameters::cbs_mantissa>(p)} << prm::get<Parameters::cbs_exponent>(p),
      prm::get<Parameters::cir_mantissa>(p), prm::get<Parameters::cir_exponent>(p));
  excess_.set(std::uint64_t{prm::get<Parameters::ebs_mantissa>(p)} << prm::get<Parameters::ebs_exponent>(p),
              prm::get<Parameters::eir_mantissa>(p), prm::get<Parameters::eir_exponent>(p));
}

std::uint32_t FlowMeter::cost(const SteeredFrame& frame) const {
  const IpHeaders& ip = frame.headers.outer;
  switch (mode_) {
    case prm::k::FLOW_METER_MODE_BYTES_IP_LENGTH:
      return ip.version ? static_cast<std::uint32_t>(ip.end - ip.l3) : frame.len() - frame.headers.payload;
    case prm::k::FLOW_METER_MODE_BYTES_CALC_WITH_L2:
      return frame.len() + kFcsBytes;
    case prm::k::FLOW_METER_MODE_BYTES_CALC_WITH_L2_IPG:
      return frame.len() + kFcsBytes + kGapBytes;
    default:
      return kBytesOfPacket;
  }
}

MeterColor FlowMeter::color(Time now, const SteeredFrame& frame, MeterColor before) {
  if (!valid_) return before;
  if (before == MeterColor::kUndefined) before = start_;
  if (before == MeterColor::kRed) return before;
  const std::uint32_t bytes = cost(frame);
  if (before != MeterColor::kYellow && committed_.has(now, bytes)) {
    committed_.take(now, bytes);
    if (both_on_green_) excess_.take(now, bytes);
    return MeterColor::kGreen;
  }
  if (!excess_.has(now, bytes)) return MeterColor::kRed;
  excess_.take(now, bytes);
  return MeterColor::kYellow;
}

void FlowMeters::write(const std::uint8_t* bytes, std::uint64_t mask) {
  for (std::size_t i = 0; i < kBytes; ++i)
    if (mask >> (kBytes - 1 - i) & 1) parameters[i] = bytes[i];
  for (std::size_t m = 0; m < meters.size(); ++m)
    if ((mask << (m * FlowMeter::kBytes) >> FlowMeter::kBytes) != 0)
      meters[m].set(parameters.data() + m * FlowMeter::kBytes);
}

// As the driver has it done (en/tc/meter.c): bytes by a mask, on a condition that is constant.
bool FlowSteering::access_meter(std::uint32_t pd, std::uint32_t object, const std::uint8_t* segments,
                                std::size_t len) {
  prm::AsoCtrlSeg ctrl;
  const auto it = meters.find(object);
  if (len < sizeof ctrl + prm::kAsoData || it == meters.end() || it->second.pd != pd) return false;
  std::memcpy(&ctrl, segments, sizeof ctrl);
  const unsigned one = ctrl.condition_operands >> 4, zero = ctrl.condition_operands & 0xf;
  const unsigned combination = ctrl.condition_combination >> 6;
  if (one > prm::kAsoTrue || zero > prm::kAsoTrue || combination > prm::kAsoOr) return false;
  if ((ctrl.va_l & prm::kAsoReadEnable) != 0 || ctrl.data_mask_mode >> 6 != prm::kAsoBytewise) return false;
  const bool holds = combination == prm::kAsoAnd ? one != 0 && zero != 0 : one != 0 || zero != 0;
  if (holds) it->second.write(segments + sizeof ctrl, ctrl.data_mask);
  return true;
}

}  // namespace hcasim
