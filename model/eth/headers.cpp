// SPDX-License-Identifier: BSD-3-Clause
#include "model/eth/headers.h"

#include <algorithm>

#include "model/eth/vxlan_ports.h"
#include "prm/field.h"

namespace hcasim {

namespace {

constexpr std::uint16_t kVxlanGpePort = 4790, kGenevePort = 6081, kGtpuPort = 2152, kMplsPort = 6635,
                        kRocePort = 4791;
constexpr std::uint32_t kTunnelHeader = 8;  // VXLAN, VXLAN-GPE; GTP-U and Geneve without their options
constexpr std::uint32_t kGrh = 40, kBth = 12;
constexpr unsigned kMaxLabels = 8;                                    // MPLS labels looked through
constexpr std::uint8_t kGpeIpv4 = 1, kGpeIpv6 = 2, kGpeEthernet = 3;  // VXLAN-GPE: next protocol
constexpr std::uint8_t kGtpuData = 255;
constexpr std::uint8_t kProtoIcmp = 1, kProtoIcmpv6 = 58;
constexpr unsigned kMaxExtensions = 8;  // IPv6 extension headers looked through
constexpr std::uint8_t kHopByHop = 0, kRouting = 43, kDestOptions = 60;

// Ethertype behind the tags at `at` (which points at the first ethertype); at moves behind it.
bool parse_tags(const std::uint8_t* frame, std::uint32_t len, std::uint32_t& at, std::uint8_t& tags,
                std::uint16_t* tpid, std::uint16_t* tci, std::uint16_t& ethertype) {
  if (at + 2 > len) return false;
  ethertype = prm::load16(frame + at);
  at += 2;
  while (tags < 2 && (ethertype == kTpidCvlan || ethertype == kTpidSvlan) && at + 4 <= len) {
    tpid[tags] = ethertype;
    tci[tags] = prm::load16(frame + at);
    ++tags;
    ethertype = prm::load16(frame + at + 2);
    at += 4;
  }
  return true;
}

void parse_l4(const std::uint8_t* frame, IpHeaders& ip) {
  if (ip.fragment) return;
  const unsigned room = ip.end - ip.l4;
  if (ip.protocol == kProtoUdp) {
    ip.udp = room >= 8;
  } else if (ip.protocol == kProtoTcp && room >= 20) {
    const unsigned header = (frame[ip.l4 + 12] >> 4) * 4u;
    ip.tcp = header >= 20 && header <= room;
  } else if (ip.protocol == (ip.version == 4 ? kProtoIcmp : kProtoIcmpv6)) {
    ip.icmp = room >= 8;
  }
}

void parse_ipv4(const std::uint8_t* frame, std::uint32_t len, std::uint32_t at, LengthsOf lengths,
                IpHeaders& ip) {
  if (at + 20 > len || frame[at] >> 4 != 4) return;
  const std::uint32_t header = (frame[at] & 0xf) * 4u;
  const std::uint32_t total = lengths == LengthsOf::kBuffer ? len - at : prm::load16(frame + at + 2);
  if (header < 20 || total < header || at + header > len) return;
  ip.version = 4;
  ip.options = header > 20;
  ip.fragment = (prm::load16(frame + at + 6) & 0x3fff) != 0;
  ip.protocol = frame[at + 9];
  ip.l3 = static_cast<std::uint16_t>(at);
  ip.l4 = static_cast<std::uint16_t>(at + header);
  ip.end = static_cast<std::uint16_t>(std::min(at + total, len));
  parse_l4(frame, ip);
}

void parse_ipv6(const std::uint8_t* frame, std::uint32_t len, std::uint32_t at, LengthsOf lengths,
                IpHeaders& ip) {
  if (at + 40 > len || frame[at] >> 4 != 6) return;
  const std::uint32_t end =
      lengths == LengthsOf::kBuffer ? len : std::min(at + 40 + prm::load16(frame + at + 4), len);
  ip.version = 6;
  ip.l3 = static_cast<std::uint16_t>(at);
  ip.end = static_cast<std::uint16_t>(end);
  std::uint8_t next = frame[at + 6];
  at += 40;
  for (unsigned n = 0; n < kMaxExtensions && at + 8 <= end; ++n) {
    if (next == kProtoFragment) {
      ip.fragment = true;
      ip.options = true;
      next = frame[at];
      at += 8;
      break;  // what follows lies in the first fragment alone
    }
    if (next != kHopByHop && next != kRouting && next != kDestOptions) break;
    const std::uint32_t size = 8u + frame[at + 1] * 8u;
    if (at + size > end) break;
    ip.options = true;
    next = frame[at];
    at += size;
  }
  ip.protocol = next;
  ip.l4 = static_cast<std::uint16_t>(at);
  parse_l4(frame, ip);
}

// Behind MPLS labels nothing says what follows but its first four bits.
void parse_mpls(const std::uint8_t* frame, std::uint32_t len, std::uint32_t at, LengthsOf lengths,
                std::uint16_t& mpls, IpHeaders& ip) {
  if (at + 4 > len) return;
  mpls = static_cast<std::uint16_t>(at);
  for (unsigned n = 0; n < kMaxLabels && at + 4 < len; ++n) {
    const bool last = (frame[at + 2] & 1) != 0;
    at += 4;
    if (!last) continue;
    if (frame[at] >> 4 == 4) parse_ipv4(frame, len, at, lengths, ip);
    if (frame[at] >> 4 == 6) parse_ipv6(frame, len, at, lengths, ip);
    return;
  }
}

void parse_ip(const std::uint8_t* frame, std::uint32_t len, std::uint32_t at, std::uint16_t ethertype,
              LengthsOf lengths, std::uint16_t& mpls, IpHeaders& ip) {
  if (ethertype == kEthertypeIpv4)
    parse_ipv4(frame, len, at, lengths, ip);
  else if (ethertype == kEthertypeIpv6)
    parse_ipv6(frame, len, at, lengths, ip);
  else if (ethertype == kEthertypeMpls || ethertype == kEthertypeMplsMulticast)
    parse_mpls(frame, len, at, lengths, mpls, ip);
}

void parse_inner_frame(const std::uint8_t* frame, std::uint32_t end, std::uint32_t at, LengthsOf lengths,
                       FrameHeaders& h) {
  if (at + kEthHeader > end) return;
  h.inner_l2 = static_cast<std::uint16_t>(at);
  std::uint32_t type_at = at + 12;
  if (!parse_tags(frame, end, type_at, h.inner_tags, h.inner_tpid, h.inner_tci, h.inner_ethertype)) return;
  parse_ip(frame, end, type_at, h.inner_ethertype, lengths, h.inner_mpls, h.inner);
}

void parse_gre(const std::uint8_t* frame, LengthsOf lengths, FrameHeaders& h) {
  const std::uint32_t end = h.outer.end;
  std::uint32_t at = h.outer.l4;
  if (at + 4 > end) return;
  const std::uint16_t flags = prm::load16(frame + at);
  // Not source routing; version 0, and 1 (RFC 2637), whose header differs by a word that it may end with.
  if ((flags & 0x4006) != 0) return;
  const bool acknowledges = (flags & 0x81) == 0x81;
  h.gre_checksum = (flags & 0x8000) != 0;
  h.gre_key_present = (flags & 0x2000) != 0;
  h.gre_sequence = (flags & 0x1000) != 0;
  const std::uint32_t size = 4 + (h.gre_checksum ? 4 : 0) + (h.gre_key_present ? 4 : 0) +
                             (h.gre_sequence ? 4 : 0) + (acknowledges ? 4 : 0);
  if (at + size > end) return;
  h.tunnel = Tunnel::kGre;
  h.tunnel_at = static_cast<std::uint16_t>(at);
  h.gre_protocol = prm::load16(frame + at + 2);
  if (h.gre_key_present) {
    const std::uint8_t* key = frame + at + 4 + (h.gre_checksum ? 4 : 0);
    h.gre_key = static_cast<std::uint32_t>(prm::load16(key)) << 16 | prm::load16(key + 2);
  }
  at += size;
  if (h.gre_protocol == kEthertypeTeb) {
    parse_inner_frame(frame, end, at, lengths, h);
  } else {
    h.inner_ethertype = h.gre_protocol;
    parse_ip(frame, end, at, h.gre_protocol, lengths, h.tunnel_mpls, h.inner);
  }
}

// The inner packet behind a tunnel's header that names it by an ethertype.
void parse_inner(const std::uint8_t* frame, std::uint32_t end, std::uint32_t at, std::uint16_t ethertype,
                 LengthsOf lengths, FrameHeaders& h) {
  if (ethertype == kEthertypeTeb) return parse_inner_frame(frame, end, at, lengths, h);
  h.inner_ethertype = ethertype;
  parse_ip(frame, end, at, ethertype, lengths, h.inner_mpls, h.inner);
}

void parse_gtpu(const std::uint8_t* frame, std::uint32_t end, std::uint32_t at, LengthsOf lengths,
                FrameHeaders& h) {
  const unsigned flags = frame[at], type = frame[at + 1];
  if (flags >> 5 != 1) return;  // version 1
  h.tunnel = Tunnel::kGtpu;
  h.tunnel_at = static_cast<std::uint16_t>(at);
  if (type != kGtpuData) return;
  at += kTunnelHeader;
  if (flags & 7) {
    if (at + 4 > end) return;
    unsigned next = flags & 4 ? frame[at + 3] : 0;
    at += 4;
    for (unsigned n = 0; next != 0 && n < kMaxExtensions; ++n) {
      if (at >= end || frame[at] == 0 || at + frame[at] * 4u > end) return;
      at += frame[at] * 4u;
      next = frame[at - 1];
    }
  }
  if (at >= end) return;
  parse_inner(frame, end, at, frame[at] >> 4 == 4 ? kEthertypeIpv4 : kEthertypeIpv6, lengths, h);
}

void parse_udp_tunnel(const std::uint8_t* frame, LengthsOf lengths, const VxlanPorts* vxlan,
                      FrameHeaders& h) {
  const std::uint32_t end = h.outer.end;
  const std::uint32_t at = h.outer.l4 + 8u;
  const std::uint16_t port = prm::load16(frame + h.outer.l4 + 2);
  if (port == kRocePort && at + kBth <= end) h.bth = static_cast<std::uint16_t>(at);
  if (port == kMplsPort && at + 4 <= end) {
    h.tunnel = Tunnel::kMpls;
    h.tunnel_at = static_cast<std::uint16_t>(at);
    parse_mpls(frame, end, at, lengths, h.tunnel_mpls, h.inner);
    return;
  }
  if (at + kTunnelHeader > end) return;
  const std::uint8_t* p = frame + at;
  const std::uint32_t vni = static_cast<std::uint32_t>(p[4]) << 16 | prm::load16(p + 5);
  const auto tunnel = [&](Tunnel kind) {
    h.tunnel = kind;
    h.tunnel_at = static_cast<std::uint16_t>(at);
    h.vni = vni;
  };
  if (vxlan ? vxlan->has(port) : port == VxlanPorts::kIana) {
    tunnel(Tunnel::kVxlan);
    return parse_inner_frame(frame, end, at + kTunnelHeader, lengths, h);
  }
  switch (port) {
    case kVxlanGpePort:
      tunnel(Tunnel::kVxlanGpe);
      if (p[3] == kGpeEthernet) parse_inner_frame(frame, end, at + kTunnelHeader, lengths, h);
      if (p[3] == kGpeIpv4 || p[3] == kGpeIpv6)
        parse_inner(frame, end, at + kTunnelHeader, p[3] == kGpeIpv4 ? kEthertypeIpv4 : kEthertypeIpv6,
                    lengths, h);
      break;
    case kGenevePort: {
      const std::uint32_t size = kTunnelHeader + (p[0] & 0x3f) * 4u;
      if (p[0] >> 6 != 0 || at + size > end) break;
      tunnel(Tunnel::kGeneve);
      parse_inner(frame, end, at + size, prm::load16(p + 2), lengths, h);
      break;
    }
    case kGtpuPort:
      parse_gtpu(frame, end, at, lengths, h);
      break;
    default:
      break;
  }
}

void parse_tunnel(const std::uint8_t* frame, LengthsOf lengths, const VxlanPorts* vxlan, FrameHeaders& h) {
  const IpHeaders& ip = h.outer;
  if (!ip.version || ip.fragment) return;
  switch (ip.protocol) {
    case kProtoIpip:
    case kProtoIpv6:
      h.tunnel = Tunnel::kIpInIp;
      h.inner_ethertype = ip.protocol == kProtoIpip ? kEthertypeIpv4 : kEthertypeIpv6;
      parse_ip(frame, ip.end, ip.l4, h.inner_ethertype, lengths, h.inner_mpls, h.inner);
      break;
    case kProtoGre:
      parse_gre(frame, lengths, h);
      break;
    case kProtoUdp:
      if (ip.udp) parse_udp_tunnel(frame, lengths, vxlan, h);
      break;
    default:
      break;
  }
}

}  // namespace

FrameHeaders parse_frame(const std::uint8_t* frame, std::uint32_t len, LengthsOf lengths,
                         const VxlanPorts* vxlan) {
  FrameHeaders h;
  if (len < kMinFrame) return h;
  h.len = static_cast<std::uint16_t>(len);
  std::uint32_t at = 12;
  parse_tags(frame, len, at, h.tags, h.tpid, h.tci, h.ethertype);
  h.payload = static_cast<std::uint16_t>(at);
  parse_ip(frame, len, at, h.ethertype, lengths, h.mpls, h.outer);
  if (h.ethertype == kEthertypeRoce && at + kGrh + kBth <= len) h.bth = static_cast<std::uint16_t>(at + kGrh);
  parse_tunnel(frame, lengths, vxlan, h);
  return h;
}

std::uint32_t tcp_payload(const std::uint8_t* frame, const IpHeaders& ip) {
  constexpr unsigned kShortest = 20;
  const unsigned header = std::max((frame[ip.l4 + 12] >> 4) * 4u, kShortest);
  return std::min<std::uint32_t>(ip.end, ip.l4 + header);
}

}  // namespace hcasim
