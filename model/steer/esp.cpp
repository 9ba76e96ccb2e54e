// SPDX-License-Identifier: BSD-3-Clause
// Reformats of IPsec packet offload: ESP (RFC 4303) with AES-GCM (RFC 4106) put around a packet, before it is
// encrypted, and taken away after it has been decrypted.
#include <array>
#include <cstring>

#include "model/eth/checksum.h"
#include "model/steer/actions.h"
#include "prm/field.h"

namespace hcasim {

namespace {

constexpr std::uint32_t kEsp = 16, kIcv = 16, kUdp = 8, kIpv6 = 40;  // bytes; ESP's header with the IV
constexpr std::uint32_t kIpv6Unit = 8;                               // of extension headers' lengths
constexpr std::uint32_t kEspWord = 4, kTrailer = 2;

// In the IP header, or in the last of its extension headers.
void set_protocol(std::uint8_t* frame, const IpHeaders& ip, std::uint8_t protocol) {
  std::uint32_t at = ip.l3 + (ip.version == 4 ? 9u : 6u);
  if (ip.version == 6) {
    for (std::uint32_t next = ip.l3 + kIpv6; next < ip.l4;) {
      const std::uint32_t size = frame[at] == kProtoFragment ? kIpv6Unit : kIpv6Unit * (1u + frame[next + 1]);
      at = next;
      next += size;
    }
  }
  frame[at] = protocol;
}

// The IP packet from l3 on ends with the frame.
void finish_ip(SteeredFrame& frame, std::uint32_t l3) {
  std::uint8_t* p = frame.writable();
  const std::uint32_t len = frame.len() - l3;
  if (p[l3] >> 4 == 4)
    prm::store16(p + l3 + 2, len);
  else
    prm::store16(p + l3 + 4, len - kIpv6);
  frame.reparse();
  if (frame.headers.outer.version == 4) put_ip_checksum(p, frame.headers.outer);
  if (frame.headers.outer.udp) {
    const IpHeaders& ip = frame.headers.outer;
    prm::store16(p + ip.l4 + 4, static_cast<std::uint32_t>(ip.end - ip.l4));
  }
}

// Padding, its length, the next header, room for the ICV, behind what is encrypted from byte `from` on. The
// frame ends with its IP packet.
bool add_trailer(SteeredFrame& frame, std::uint32_t from, std::uint8_t next) {
  const std::uint32_t padding = (kEspWord - (frame.len() - from + kTrailer) % kEspWord) % kEspWord;
  std::array<std::uint8_t, kEspWord + kTrailer + kIcv> t{};
  for (std::uint32_t i = 0; i < padding; ++i) t[i] = static_cast<std::uint8_t>(i + 1);
  t[padding] = static_cast<std::uint8_t>(padding);
  t[padding + 1] = next;
  return insert_bytes(frame, frame.len(), t.data(), padding + kTrailer + kIcv);
}

// What a decrypted ESP packet has at its end, its ESP header at byte `at`.
struct Trailer {
  std::uint32_t end = 0;  // of what it carries
  std::uint8_t next = 0;
};
bool find_trailer(const SteeredFrame& frame, std::uint32_t at, Trailer& t) {
  const std::uint32_t ip_end = frame.headers.outer.end;
  if (ip_end < at + kEsp + kTrailer + kIcv) return false;
  const std::uint8_t* last = frame.bytes() + ip_end - kIcv;
  const std::uint32_t cut = last[-2] + kTrailer + kIcv;
  if (ip_end - at - kEsp < cut) return false;
  t.end = ip_end - cut;
  t.next = last[-1];
  return true;
}

}  // namespace

bool add_esp_transport(SteeredFrame& frame, const std::uint8_t* header, std::uint32_t len) {
  const IpHeaders ip = frame.headers.outer;
  // Behind extension headers another header would name what follows.
  if (!ip.version || ip.fragment || (ip.version == 6 && ip.l4 != ip.l3 + kIpv6)) return false;
  if (len < kEsp || frame.len() + len + kEspWord + kTrailer + kIcv > kMaxFrame) return false;
  if (frame.len() != ip.end && !keep_bytes(frame, 0, ip.end)) return false;
  if (!insert_bytes(frame, ip.l4, header, len) || !add_trailer(frame, ip.l4 + len, ip.protocol)) return false;
  set_protocol(frame.writable(), ip, len > kEsp ? kProtoUdp : kProtoEsp);
  finish_ip(frame, ip.l3);
  return true;
}

bool add_esp_tunnel(SteeredFrame& frame, const std::uint8_t* header, std::uint32_t len) {
  const IpHeaders ip = frame.headers.outer;
  if (!ip.version || frame.len() + len + kEspWord + kTrailer + kIcv > kMaxFrame) return false;
  const std::uint8_t next = ip.version == 4 ? kProtoIpip : kProtoIpv6;
  if (!encapsulate(frame, header, len, EncapOf::kL3) || !add_trailer(frame, len, next)) return false;
  finish_ip(frame, kEthHeader);
  return true;
}

bool remove_esp_transport(SteeredFrame& frame, bool in_udp) {
  const IpHeaders ip = frame.headers.outer;
  const std::uint32_t skip = in_udp ? kUdp : 0;
  Trailer t;
  if (!ip.version || in_udp != ip.udp || !find_trailer(frame, ip.l4 + skip, t)) return false;
  if (!keep_bytes(frame, 0, t.end) || !remove_bytes(frame, ip.l4, skip + kEsp)) return false;
  set_protocol(frame.writable(), ip, t.next);
  finish_ip(frame, ip.l3);
  return true;
}

bool remove_esp_tunnel(SteeredFrame& frame, const std::uint8_t* header, std::uint32_t len) {
  const IpHeaders& ip = frame.headers.outer;
  const std::uint32_t at = ip.l4 + (ip.udp ? kUdp : 0);
  Trailer t;
  if (len < kEthHeader || !ip.version || !find_trailer(frame, at, t)) return false;
  if (t.next != kProtoIpip && t.next != kProtoIpv6) return false;
  if (!keep_bytes(frame, 0, t.end) || !remove_bytes(frame, 0, at + kEsp)) return false;
  if (!insert_bytes(frame, 0, header, len)) return false;
  prm::store16(frame.writable() + len - 2, t.next == kProtoIpip ? kEthertypeIpv4 : kEthertypeIpv6);
  frame.reparse();
  return true;
}

}  // namespace hcasim
