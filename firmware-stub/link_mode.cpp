// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/link_mode.h"

#include <algorithm>

namespace hcasim::fw {

// eth_proto_* and ext_eth_proto_* bits: mlx5 port.h, mlx5e_link_mode (which ends at 100 Gb/s) and
// mlx5e_ext_link_mode.
std::vector<LinkMode> link_modes(double rate_gbps, const Generation& generation) {
  constexpr unsigned kNone = 32;
  struct Row {
    LinkKind kind;
    double at_least, gbps;  // what a profile's rate has to be; by name
    unsigned lane_gbps;
    unsigned plain, extended;
    FecRow fec;
  };
  static constexpr Row kRows[] = {
      {LinkKind::k400g4x, 380, 400, 100, kNone, 16, FecRow::k400g4x},
      {LinkKind::k200g4x, 190, 200, 50, kNone, 12, FecRow::k200g4x},
      {LinkKind::k200g2x, 190, 200, 100, kNone, 13, FecRow::k200g2x},
      {LinkKind::k100g4x, 95, 100, 25, 21, 9, FecRow::k100g},
      {LinkKind::k100g2x, 95, 100, 50, kNone, 10, FecRow::k100g2x},
      {LinkKind::k100g1x, 95, 100, 100, kNone, 11, FecRow::k100g1x},
      {LinkKind::k50g2x, 47, 50, 25, 18, 7, FecRow::k50g},
      {LinkKind::k50g1x, 47, 50, 50, kNone, 8, FecRow::k50g1x},
      {LinkKind::k40g4x, 38, 40, 10, 15, 5, FecRow::k10g40g},
      {LinkKind::k25g, 23, 25, 25, 29, 6, FecRow::k25g},
      {LinkKind::k10g, 9.5, 10, 10, 13, 4, FecRow::k10g40g},
      {LinkKind::k1g, 0, 1, 10, 0, 1, FecRow::kNone},
  };
  const unsigned fastest_lane = generation.port_gbps >= 400 ? 100 : generation.has.ptys_extended ? 50 : 25;
  const double gbps = std::min(rate_gbps, generation.port_gbps);
  std::vector<LinkMode> modes;
  double top = 0;
  for (const Row& row : kRows) {
    const bool extended = generation.has.ptys_extended;
    if (gbps < row.at_least || row.lane_gbps > fastest_lane || (row.plain == kNone && !extended)) continue;
    if (modes.empty()) top = row.gbps;
    modes.push_back({row.kind, row.gbps == top ? rate_gbps : row.gbps,
                     row.plain == kNone ? 0 : 1u << row.plain, extended ? 1u << row.extended : 0, row.fec});
  }
  return modes;
}

}  // namespace hcasim::fw
