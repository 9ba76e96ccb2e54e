// SPDX-License-Identifier: BSD-3-Clause
#include "model/eth/tcp_segment.h"

#include <cstring>

#include "prm/field.h"

namespace hcasim {

namespace {

constexpr std::uint32_t kTcpHeader = 20, kTcpTimestamps = 12;  // bytes; with the two NOPs before it
constexpr std::uint32_t kNopNopTimestamp = 0x0101080a;         // NOP, NOP, kind 8, length 10

bool only_timestamps(const std::uint8_t* tcp, std::uint32_t header) {
  if (header == kTcpHeader) return true;
  return header == kTcpHeader + kTcpTimestamps && prm::load32(tcp + kTcpHeader) == kNopNopTimestamp;
}

}  // namespace

bool read_segment(const std::uint8_t* frame, const FrameHeaders& h, TcpSegment& s) {
  const IpHeaders& ip = h.outer;
  if (!ip.tcp || h.tunnel != Tunnel::kNone || h.mpls != 0) return false;
  const std::uint8_t* tcp = frame + ip.l4;
  const std::uint32_t header = (tcp[12] >> 4) * 4u;
  s.data = static_cast<std::uint16_t>(ip.l4 + header);
  s.len = static_cast<std::uint16_t>(ip.end - s.data);
  s.seq = prm::load32(tcp + 4);
  s.ack = prm::load32(tcp + 8);
  s.flags = tcp[13];
  s.window = prm::load16(tcp + 14);
  s.hops = frame[ip.l3 + (ip.version == 4 ? 8 : 7)];
  const bool reserved = (tcp[12] & 0xf) != 0, urgent = prm::load16(tcp + 18) != 0;
  s.plain = !ip.options && !reserved && !urgent && only_timestamps(tcp, header);
  s.timestamp = s.plain && header > kTcpHeader ? prm::load32(tcp + kTcpHeader + 4) : 0;
  return true;
}

bool same_connection(const std::uint8_t* a, const FrameHeaders& ha, const std::uint8_t* b,
                     const FrameHeaders& hb) {
  const IpHeaders &x = ha.outer, &y = hb.outer;
  if (x.version != y.version) return false;
  const unsigned at = x.version == 4 ? 12 : 8, len = x.version == 4 ? 8 : 32;
  return std::memcmp(a + x.l3 + at, b + y.l3 + at, len) == 0 && std::memcmp(a + x.l4, b + y.l4, 4) == 0;
}

bool same_headers(const std::uint8_t* a, const FrameHeaders& ha, const std::uint8_t* b,
                  const FrameHeaders& hb) {
  const IpHeaders &x = ha.outer, &y = hb.outer;
  if (x.version != y.version || x.l3 != y.l3 || x.l4 != y.l4 || std::memcmp(a, b, x.l3) != 0) return false;
  if (a[x.l4 + 12] != b[y.l4 + 12]) return false;
  const std::uint8_t *p = a + x.l3, *q = b + y.l3;
  // Version, header length, type of service; don't fragment. Version, traffic class, flow label; next header.
  if (x.version == 4) return std::memcmp(p, q, 2) == 0 && prm::load16(p + 6) == prm::load16(q + 6);
  return std::memcmp(p, q, 4) == 0 && p[6] == q[6];
}

}  // namespace hcasim
