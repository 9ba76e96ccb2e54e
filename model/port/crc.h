// SPDX-License-Identifier: BSD-3-Clause
// The VCRC of IB packets (IBTA 7.8.2): CRC-16 of x^16 + x^12 + x^3 + x + 1 over LRH to ICRC, bits taken low
// first, all ones before and complemented after. Its low byte is sent first.
#ifndef HCASIM_MODEL_PORT_CRC_H
#define HCASIM_MODEL_PORT_CRC_H

#include <array>
#include <cstddef>
#include <cstdint>

namespace hcasim {

namespace detail {

constexpr std::uint16_t kVcrcPolynomial = 0xd008;  // 0x100b, bits reversed

// tables[n][b]: the effect of byte b that n further bytes come behind.
inline constexpr auto kVcrcTables = [] {
  std::array<std::array<std::uint16_t, 256>, 8> tables{};
  for (unsigned b = 0; b < 256; ++b) {
    std::uint16_t crc = static_cast<std::uint16_t>(b);
    for (unsigned bit = 0; bit < 8; ++bit)
      crc = static_cast<std::uint16_t>(crc & 1 ? crc >> 1 ^ kVcrcPolynomial : crc >> 1);
    tables[0][b] = crc;
  }
  for (unsigned n = 1; n < 8; ++n) {
    for (unsigned b = 0; b < 256; ++b) {
      const std::uint16_t before = tables[n - 1][b];
      tables[n][b] = static_cast<std::uint16_t>(before >> 8 ^ tables[0][before & 0xff]);
    }
  }
  return tables;
}();

}  // namespace detail

inline std::uint16_t ib_vcrc(const std::uint8_t* p, std::size_t len) {
  const auto& t = detail::kVcrcTables;
  std::uint16_t crc = 0xffff;
  for (; len >= 8; p += 8, len -= 8) {
    crc = static_cast<std::uint16_t>(t[7][(p[0] ^ crc) & 0xff] ^ t[6][p[1] ^ crc >> 8] ^ t[5][p[2]] ^
                                     t[4][p[3]] ^ t[3][p[4]] ^ t[2][p[5]] ^ t[1][p[6]] ^ t[0][p[7]]);
  }
  for (; len; ++p, --len) crc = static_cast<std::uint16_t>(crc >> 8 ^ t[0][(crc ^ *p) & 0xff]);
  return static_cast<std::uint16_t>(~crc);
}

}  // namespace hcasim
#endif
