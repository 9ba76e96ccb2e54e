// SPDX-License-Identifier: BSD-3-Clause
#include "model/eth/segment.h"

#include <cstring>

#include "prm/field.h"

namespace hcasim {

namespace {

constexpr std::uint8_t kFin = 0x01, kPsh = 0x08, kCwr = 0x80;
constexpr unsigned kIpv6Bytes = 40, kEspBytes = 16;  // bytes; ESP's header with the IV

void segment_l3(std::uint8_t* frame, const IpHeaders& ip, const Segment& segment) {
  std::uint8_t* l3 = frame + ip.l3;
  if (ip.version == 4) {
    prm::store16(l3 + 2, ip.end - ip.l3);
    prm::store16(l3 + 4, prm::load16(l3 + 4) + segment.index);
  } else if (ip.version == 6) {
    prm::store16(l3 + 4, ip.end - ip.l3 - 40);
  }
}

void segment_l4(std::uint8_t* frame, const IpHeaders& ip, const Segment& segment) {
  std::uint8_t* l4 = frame + ip.l4;
  if (ip.udp) {
    prm::store16(l4 + 4, ip.end - ip.l4);
  } else if (ip.tcp) {
    prm::store32(l4 + 4, prm::load32(l4 + 4) + segment.offset);
    if (!segment.last) l4[13] = static_cast<std::uint8_t>(l4[13] & ~(kFin | kPsh));
    if (segment.index != 0) l4[13] = static_cast<std::uint8_t>(l4[13] & ~kCwr);  // RFC 3168 6.1.2
  }
}

}  // namespace

std::uint32_t put_trailer(std::uint8_t* frame, const IpHeaders& ip, const std::uint8_t* trailer,
                          std::uint32_t len, TrailerOf of) {
  std::memcpy(frame + ip.end, trailer, len);
  std::uint8_t* field = frame + ip.l3 + (ip.version == 4 ? 2 : 4);
  prm::store16(field, prm::load16(field) + len);
  if (of == TrailerOf::kL4 && ip.udp) {
    std::uint8_t* udp = frame + ip.l4 + 4;
    prm::store16(udp, prm::load16(udp) + len);
  }
  return ip.end + len;
}

void advance_esp(std::uint8_t* frame, const IpHeaders& ip, std::uint32_t index) {
  const std::uint8_t* l3 = frame + ip.l3;
  const bool v4 = ip.version == 4;
  const unsigned at = ip.l3 + (v4 ? (l3[0] & 0xfu) * 4 : kIpv6Bytes);
  if ((v4 ? l3[9] : l3[6]) != kProtoEsp || at + kEspBytes > ip.end) return;
  std::uint8_t* esp = frame + at;
  prm::store32(esp + 4, prm::load32(esp + 4) + index);
  prm::store64(esp + 8, prm::load64(esp + 8) + index);
}

void make_segment(std::uint8_t* frame, const FrameHeaders& headers, const Segment& segment) {
  const IpHeaders &outer = headers.outer, &inner = headers.inner;
  if (inner.version) {
    if (inner.l3 != outer.l3) segment_l3(frame, inner, segment);
    segment_l4(frame, inner, segment);
  }
  segment_l3(frame, outer, segment);
  segment_l4(frame, outer, segment);
}

}  // namespace hcasim
