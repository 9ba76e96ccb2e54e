// SPDX-License-Identifier: BSD-3-Clause
#include "model/eth/checksum.h"

#include <algorithm>
#include <cstring>

#include "prm/field.h"

namespace hcasim {

namespace {

constexpr unsigned kIpChecksum = 10, kTcpChecksum = 16, kUdpChecksum = 6;  // offsets in their headers

// With the pseudo header; over the checksum field too.
std::uint16_t l4_sum(const std::uint8_t* frame, const IpHeaders& ip) {
  return ones_add(pseudo_sum(frame, ip), ones_sum(frame + ip.l4, static_cast<std::size_t>(ip.end - ip.l4)));
}

// Of an IPv4 header: what is behind it need not begin with the L4 header, when a WQE says where that is.
std::size_t header_bytes(const std::uint8_t* frame, const IpHeaders& ip) {
  constexpr unsigned kShortest = 20;
  return std::min(std::max((frame[ip.l3] & 0xfu) * 4, kShortest), static_cast<unsigned>(ip.l4 - ip.l3));
}

}  // namespace

std::uint16_t ones_sum(const std::uint8_t* bytes, std::size_t len) {
  // The sum does not depend on the byte order of its words but for a swap at the end, nor on their width.
  std::uint64_t sum = 0;  // of 32-bit words: far from overflowing for any frame
  for (; len >= 32; bytes += 32, len -= 32) {
    std::uint64_t w[4];
    std::memcpy(w, bytes, sizeof w);
    // Halves added first, so that the chain through `sum` has one link for four words.
    sum += ((w[0] & 0xffffffff) + (w[1] & 0xffffffff) + (w[2] & 0xffffffff) + (w[3] & 0xffffffff)) +
           ((w[0] >> 32) + (w[1] >> 32) + (w[2] >> 32) + (w[3] >> 32));
  }
  for (; len >= 8; bytes += 8, len -= 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes, sizeof word);
    sum += (word & 0xffffffff) + (word >> 32);
  }
  if (len) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, len);
    sum += (word & 0xffffffff) + (word >> 32);
  }
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return __builtin_bswap16(static_cast<std::uint16_t>(sum));
}

std::uint16_t pseudo_sum(const std::uint8_t* frame, const IpHeaders& ip) {
  const std::uint8_t* l3 = frame + ip.l3;
  const std::uint16_t addresses = ip.version == 4 ? ones_sum(l3 + 12, 8) : ones_sum(l3 + 8, 32);
  return ones_add(addresses, ones_add(static_cast<std::uint16_t>(ip.end - ip.l4), ip.protocol));
}

void put_ip_checksum(std::uint8_t* frame, const IpHeaders& ip) {
  if (ip.version != 4) return;
  std::uint8_t* field = frame + ip.l3 + kIpChecksum;
  prm::store16(field, 0);
  prm::store16(field, static_cast<std::uint16_t>(~ones_sum(frame + ip.l3, header_bytes(frame, ip))));
}

void put_l4_checksum(std::uint8_t* frame, const IpHeaders& ip) {
  if (!ip.tcp && !ip.udp) return;
  std::uint8_t* field = frame + ip.l4 + (ip.tcp ? kTcpChecksum : kUdpChecksum);
  prm::store16(field, 0);
  const auto sum = static_cast<std::uint16_t>(~l4_sum(frame, ip));
  prm::store16(field, ip.udp && sum == 0 ? 0xffff : sum);  // 0 in UDP means "none" (RFC 768)
}

bool ip_checksum_ok(const std::uint8_t* frame, const IpHeaders& ip) {
  if (ip.version != 4) return ip.version != 0;
  return ones_sum(frame + ip.l3, header_bytes(frame, ip)) == 0xffff;
}

bool l4_checksum_ok(const std::uint8_t* frame, const IpHeaders& ip) {
  if (!ip.tcp && !ip.udp) return false;
  const std::uint8_t* udp = frame + ip.l4 + kUdpChecksum;
  if (ip.udp && ip.version == 4 && udp[0] == 0 && udp[1] == 0) return true;
  return l4_sum(frame, ip) == 0xffff;
}

}  // namespace hcasim
