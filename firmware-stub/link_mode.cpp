// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/link_mode.h"

#include <algorithm>
#include <iterator>

namespace hcasim::fw {

// eth_proto_* and ext_eth_proto_* bits: mlx5 port.h, mlx5e_link_mode (which ends at 100 Gb/s) and
// mlx5e_ext_link_mode.
LinkMode link_mode(double rate_gbps, const Generation& generation) {
  struct Row {
    double gbps;
    unsigned plain, extended;
    FecRow fec;
  };
  static constexpr Row kRows[] = {{380, 21, 16, FecRow::k400g4x}, {190, 21, 12, FecRow::k200g4x},
                                  {95, 21, 9, FecRow::k100g},     {47, 31, 7, FecRow::k50g},
                                  {38, 15, 5, FecRow::k10g40g},   {23, 28, 6, FecRow::k25g},
                                  {9.5, 13, 4, FecRow::k10g40g},  {0, 0, 1, FecRow::kNone}};
  const double gbps = std::min(rate_gbps, generation.port_gbps);
  const Row& row =
      *std::find_if(std::begin(kRows), std::end(kRows) - 1, [gbps](const Row& r) { return gbps >= r.gbps; });
  return {1u << row.plain, generation.has.ptys_extended ? 1u << row.extended : 0, row.fec};
}

}  // namespace hcasim::fw
