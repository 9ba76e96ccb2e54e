// SPDX-License-Identifier: BSD-3-Clause
// The Ethernet port's link mode: the one whose rate the profile has, as PTYS tells it, and the row of PPLM
// that its forward error correction is set in.
#ifndef HCASIM_FIRMWARE_STUB_LINK_MODE_H
#define HCASIM_FIRMWARE_STUB_LINK_MODE_H

#include <cstdint>

#include "model/generation.h"

namespace hcasim::fw {

// Link modes that share one setting (pplm_reg, fec_override_*): rate, and lanes where they matter.
enum class FecRow : std::uint8_t {
  k10g40g,
  k25g,
  k50g,   // two lanes
  k100g,  // four lanes
  k50g1x,
  k100g2x,
  k200g4x,
  k100g1x,
  k200g2x,
  k400g4x,
  kCount,
  kNone = kCount  // 1 Gb/s: no correction
};

struct LinkMode {
  std::uint32_t plain;     // ptys_reg.eth_proto_*, one bit
  std::uint32_t extended;  // ptys_reg.ext_eth_proto_*, one bit; 0: the generation knows none
  FecRow fec;
};

// The fastest mode that a port of this generation has for the profile's rate: the short-reach optical one or,
// where there is none, the copper one.
LinkMode link_mode(double rate_gbps, const Generation& generation);

}  // namespace hcasim::fw
#endif
