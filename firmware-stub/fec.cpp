// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/fec.h"

#include <iterator>

namespace hcasim::fw {

namespace {

// IEEE 802.3: clauses 74 (Firecode), 91 and 108 (RS(528,514)), 134 (RS(544,514), which lanes of PAM4 cannot
// do without); the Ethernet Technology Consortium's RS(272,257) for less latency. `automatic`: what the
// module in the cage, an optical one, asks for.
struct Kinds {
  unsigned lane_gbps, gbps;
  std::uint16_t offered, automatic;
};
constexpr Kinds kKinds[] = {
    {10, 40, Fec::kOff | Fec::kFirecode, Fec::kOff},
    {25, 25, Fec::kOff | Fec::kFirecode | Fec::kRs528, Fec::kRs528},
    {25, 50, Fec::kOff | Fec::kFirecode | Fec::kRs528, Fec::kRs528},
    {25, 100, Fec::kOff | Fec::kRs528, Fec::kRs528},
    {50, 50, Fec::kRs544 | Fec::kLlRs272, Fec::kRs544},
    {50, 100, Fec::kRs544 | Fec::kLlRs272, Fec::kRs544},
    {50, 200, Fec::kRs544 | Fec::kLlRs272, Fec::kRs544},
    {100, 100, Fec::kRs544, Fec::kRs544},
    {100, 200, Fec::kRs544, Fec::kRs544},
    {100, 400, Fec::kRs544, Fec::kRs544},
};
static_assert(std::size(kKinds) == static_cast<std::size_t>(FecRow::kCount));

}  // namespace

std::uint16_t Fec::offered(FecRow row) const {
  const Kinds& kinds = kKinds[static_cast<std::size_t>(row)];
  const unsigned lane = lanes_of_100g(generation_) ? 100 : lanes_of_50g(generation_) ? 50 : 25;
  return kinds.lane_gbps <= lane && kinds.gbps <= generation_.port_gbps ? kinds.offered : std::uint16_t{0};
}

bool Fec::acceptable(FecRow row, std::uint16_t kind) const {
  return (kind & (kind - 1)) == 0 && (kind & ~offered(row)) == 0;
}

void Fec::link_up(FecRow row) {
  if (row == FecRow::kNone) {
    active_ = kOff;
    return;
  }
  const std::uint16_t kind = wanted(row);
  active_ = kind != 0 ? kind : kKinds[static_cast<std::size_t>(row)].automatic;
}

}  // namespace hcasim::fw
