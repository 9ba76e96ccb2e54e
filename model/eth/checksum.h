// SPDX-License-Identifier: BSD-3-Clause
// Internet checksums (RFC 1071): making and checking them in a frame's headers.
#ifndef HCASIM_MODEL_ETH_CHECKSUM_H
#define HCASIM_MODEL_ETH_CHECKSUM_H

#include <cstddef>
#include <cstdint>

#include "model/eth/headers.h"

namespace hcasim {

// One's complement sum of 16-bit big-endian words, not inverted; an odd last byte counts as a word's first.
std::uint16_t ones_sum(const std::uint8_t* bytes, std::size_t len);
// Sum of two such sums. The second must start at an even distance from the first.
inline std::uint16_t ones_add(std::uint16_t a, std::uint16_t b) {
  const std::uint32_t s = static_cast<std::uint32_t>(a) + b;
  return static_cast<std::uint16_t>(s + (s >> 16));
}

// Sum of the pseudo header of the IP packet's TCP or UDP.
std::uint16_t pseudo_sum(const std::uint8_t* frame, const IpHeaders& ip);

// Writes the checksum of the IPv4 header; nothing for IPv6.
void put_ip_checksum(std::uint8_t* frame, const IpHeaders& ip);
// Writes the checksum of the TCP or UDP header; nothing where there is none.
void put_l4_checksum(std::uint8_t* frame, const IpHeaders& ip);

// Whether the header checksum is right; IPv6 has none and passes.
bool ip_checksum_ok(const std::uint8_t* frame, const IpHeaders& ip);
// There is a TCP or UDP header and its checksum is right, or is UDP's "none".
bool l4_checksum_ok(const std::uint8_t* frame, const IpHeaders& ip);

}  // namespace hcasim
#endif
