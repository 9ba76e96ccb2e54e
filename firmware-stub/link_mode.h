// SPDX-License-Identifier: BSD-3-Clause
// The Ethernet port's link modes, as PTYS tells them: which ones a port has, and the row of PPLM that the
// forward error correction of each is set in.
#ifndef HCASIM_FIRMWARE_STUB_LINK_MODE_H
#define HCASIM_FIRMWARE_STUB_LINK_MODE_H

#include <cstdint>
#include <vector>

#include "model/generation.h"
#include "model/state/fields.h"

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

// Rate and lanes: what two ends have to have in common. Of several the one with the lowest number is taken:
// the fastest, on the most lanes.
enum class LinkKind : std::uint8_t {
  k400g4x,
  k200g4x,
  k200g2x,
  k100g4x,
  k100g2x,
  k100g1x,
  k50g2x,
  k50g1x,
  k40g4x,
  k25g,
  k10g,
  k1g,
};
constexpr std::uint16_t link_bit(LinkKind kind) {
  return static_cast<std::uint16_t>(1u << static_cast<unsigned>(kind));
}

struct LinkMode {
  LinkKind kind;
  double rate_gbps;        // data rate after encoding
  std::uint32_t plain;     // ptys_reg.eth_proto_*, one bit; 0: only the extended ones have it
  std::uint32_t extended;  // ptys_reg.ext_eth_proto_*, one bit; 0: the generation knows none
  FecRow fec;
};

// What an end of a cable shows the other one.
struct LinkOffer {
  std::uint16_t kinds = 0xffff;  // link_bit() of each; as it stands here: whatever the other end has
  bool negotiates = true;        // else it insists on them, and says nothing of them itself

  bool operator==(const LinkOffer& o) const { return kinds == o.kinds && negotiates == o.negotiates; }

  template <class Archive>
  void list_state(Archive& a) {
    a("kinds", kinds, std::uint16_t{0xffff});
    a("negotiates", negotiates, true);
  }
};

// Earlier versions' bits of the modes of 50 and 25 Gb/s were those of backplanes (50GBASE_KR2, 25GBASE_KR).
constexpr std::uint32_t of_optical_modules(std::uint32_t plain) {
  constexpr std::uint32_t k50gKr2 = 1u << 31, k50gSr2 = 1u << 18, k25gKr = 1u << 28, k25gSr = 1u << 29;
  return (plain & ~(k50gKr2 | k25gKr)) | ((plain & k50gKr2) != 0 ? k50gSr2 : 0) |
         ((plain & k25gKr) != 0 ? k25gSr : 0);
}

// The modes of a port of this generation whose profile has this rate, fastest first: of each kind the
// short-reach optical one or, where there is none, the copper one. The fastest ones run at the profile's
// rate.
std::vector<LinkMode> link_modes(double rate_gbps, const Generation& generation);

}  // namespace hcasim::fw
#endif
