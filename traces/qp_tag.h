// SPDX-License-Identifier: BSD-3-Clause
/// QPNs that tell of which HCA they are.
#pragma once

#include <cstdint>

namespace hcasim::traces {

/// HCAs of a process are numbered below this.
constexpr unsigned kMostHcas = 1u << 12;

/// A QPN with the number of its HCA, for records that other HCAs make about its WQEs: the QPN in the lower
/// bits, above them the number and 1, or 0: of the HCA that records. Cards have no more than 2^18 QPs.
struct QpTag {
  static constexpr unsigned kQpnBits = 19;
  static constexpr std::uint32_t kQpnMask = (1u << kQpnBits) - 1;
  static constexpr std::uint32_t of(unsigned hca, std::uint32_t qpn) {
    return (hca + 1) << kQpnBits | (qpn & kQpnMask);
  }
  static constexpr std::uint32_t qpn(std::uint32_t tag) { return tag & kQpnMask; }
  static constexpr bool names_hca(std::uint32_t tag) { return tag >> kQpnBits != 0; }
  /// `own`: the HCA that records.
  static constexpr unsigned hca(std::uint32_t tag, unsigned own) {
    return names_hca(tag) ? (tag >> kQpnBits) - 1 : own;
  }
};
static_assert(QpTag::of(kMostHcas - 1, 0) >> QpTag::kQpnBits == kMostHcas);

}  // namespace hcasim::traces
