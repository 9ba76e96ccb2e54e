// SPDX-License-Identifier: BSD-3-Clause
#include "model/crypto/aso.h"

#include <algorithm>
#include <cstring>

#include "prm/crypto.h"
#include "prm/prm.h"
#include "prm/wqe.h"

namespace hcasim {

namespace {

using Aso = prm::ipsec_aso;
constexpr std::uint32_t kMiddle = 1u << 31;
constexpr std::size_t kWindowAt = Aso::replay_protection_window::bit_off / 8, kWindowBytes = 32;

static_assert(Aso::bytes == SaAso::kBytes && kWindowAt + kWindowBytes == SaAso::kBytes);
static_assert(prm::macsec_aso::bytes == SaAso::kBytes);
static_assert(prm::macsec_aso::mode_parameter::bit_off == Aso::mode_parameter::bit_off &&
              prm::macsec_aso::epn_event_arm::bit_off == Aso::esn_event_arm::bit_off);

// The operands of the two conditions that need no look at the data.
bool constant(unsigned operand) { return operand == prm::kAsoFalse || operand == prm::kAsoTrue; }

}  // namespace

SaAso::SaAso(const std::uint8_t* context, std::uint32_t pd, std::uint8_t reg, bool wide)
    : pd_(pd), reg_(reg), wide_(wide) {
  std::copy_n(context, kBytes, context_.begin());
}

bool SaAso::valid() const { return prm::get<Aso::valid>(context_.data()) != 0; }

bool SaAso::spent() const {
  return prm::get<Aso::remove_flow_enable>(context_.data()) != 0 &&
         prm::get<Aso::remove_flow_pkt_cnt>(context_.data()) == 0;
}

void SaAso::count_packet() {
  std::uint8_t* c = context_.data();
  if (prm::get<Aso::remove_flow_enable>(c) == 0) return;
  const std::uint32_t left = prm::get<Aso::remove_flow_pkt_cnt>(c) - 1;
  prm::set<Aso::remove_flow_pkt_cnt>(c, left);
  if (prm::get<Aso::soft_lft_arm>(c) != 0 && left == prm::get<Aso::remove_flow_soft_lft>(c)) {
    prm::set<Aso::soft_lft_arm>(c, 0);
    event_ = true;
  }
  if (prm::get<Aso::hard_lft_arm>(c) != 0 && left == 0) {
    prm::set<Aso::hard_lft_arm>(c, 0);
    event_ = true;
  }
}

void SaAso::move_to(std::uint32_t number) {
  std::uint8_t* c = context_.data();
  const std::uint32_t before = prm::get<Aso::mode_parameter>(c);
  prm::set<Aso::mode_parameter>(c, number);
  if ((before ^ number) & kMiddle && prm::get<Aso::esn_event_arm>(c) != 0) {
    prm::set<Aso::esn_event_arm>(c, 0);
    event_ = true;
  }
}

AsoResult SaAso::send(std::uint32_t& number) {
  number = prm::get<Aso::mode_parameter>(context_.data());
  // Numbers do not begin anew under the same key (IEEE 802.1AE 10.5.1, RFC 4303 3.3.3).
  if (spent() || (!wide_ && number == 0)) return AsoResult::kSpent;
  count_packet();
  move_to(number + 1);
  return AsoResult::kOk;
}

// Bit `offset` of the window.
bool SaAso::seen(std::uint32_t offset) const { return context_[kBytes - 1 - offset / 8] >> offset % 8 & 1; }

// The window begins `by` numbers further on.
void SaAso::shift(std::uint32_t by, std::uint32_t window) {
  std::array<std::uint8_t, kWindowBytes> moved{};
  for (std::uint32_t i = by; i < window; ++i)
    if (seen(i)) moved[kWindowBytes - 1 - (i - by) / 8] |= static_cast<std::uint8_t>(1u << (i - by) % 8);
  std::copy(moved.begin(), moved.end(), context_.begin() + kWindowAt);
}

AsoResult SaAso::receive(std::uint32_t number) {
  std::uint8_t* c = context_.data();
  if (spent()) return AsoResult::kSpent;
  const std::uint32_t bottom = prm::get<Aso::mode_parameter>(c);
  // Of 64-bit numbers the lower halves go round; the upper one has been part of what was authenticated.
  const std::uint32_t ahead = number - bottom;
  const bool late = wide_ ? ahead >= kMiddle : number < bottom;
  if (prm::get<Aso::mode>(c) == prm::k::IPSEC_ASO_REPLAY_PROTECTION) {
    const std::uint32_t window = 32u << prm::get<Aso::window_sz>(c);
    if (late || (ahead < window && seen(ahead))) return AsoResult::kReplayed;
    std::uint32_t offset = ahead;
    if (ahead >= window) {
      const std::uint32_t by = ahead - window + 1;
      shift(by, window);
      move_to(bottom + by);
      offset = window - 1;
    }
    context_[kBytes - 1 - offset / 8] |= static_cast<std::uint8_t>(1u << offset % 8);
  } else if (wide_ && !late) {
    move_to(number);
  }
  count_packet();
  return AsoResult::kOk;
}

bool SaAso::access(const std::uint8_t* segments, std::size_t len, Context& before) {
  prm::AsoCtrlSeg ctrl;
  if (len < sizeof ctrl) return false;
  std::memcpy(&ctrl, segments, sizeof ctrl);
  const unsigned one = ctrl.condition_operands >> 4, zero = ctrl.condition_operands & 0xf;
  const unsigned combination = ctrl.condition_combination >> 6, at = ctrl.condition_combination & 0x3f;
  if (!constant(one) || !constant(zero) || combination > prm::kAsoOr) return false;
  before = context_;
  const bool holds = combination == prm::kAsoAnd ? one != 0 && zero != 0 : one != 0 || zero != 0;
  if (!holds) return true;
  // The offset counts words of 32 bits: the driver's that means the soft limit is 1, and the mask the lower
  // half of the 64 bits from there on.
  if (ctrl.data_mask_mode >> 6 != prm::kAsoBitwise || at > kBytes / 4 - 2) return false;
  const std::uint64_t mask = ctrl.data_mask, data = ctrl.bitwise_data;
  std::uint8_t* word = context_.data() + std::size_t{at} * 4;
  prm::store64(word, (prm::load64(word) & ~mask) | (data & mask));
  return true;
}

}  // namespace hcasim
