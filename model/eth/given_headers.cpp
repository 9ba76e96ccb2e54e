// SPDX-License-Identifier: BSD-3-Clause
#include "model/eth/given_headers.h"

#include <algorithm>

#include "prm/field.h"

namespace hcasim {

namespace {

constexpr unsigned kUnit = 2;  // bytes, of offsets
constexpr unsigned kIpv4 = 20, kIpv6 = 40, kUdp = 8, kTcp = 20;

struct Given {
  unsigned l3, l4;  // 0: not given
  bool ipv6, udp;
  bool needs_l4;  // something is to be done with it
};

bool take(const std::uint8_t* frame, const Given& given, unsigned len, LengthsOf lengths, IpHeaders& ip) {
  ip = {};
  if (given.l3 == 0) return given.l4 == 0 || !given.needs_l4;
  const unsigned header = given.ipv6 ? kIpv6 : kIpv4;
  if (given.l3 < kEthHeader || given.l3 + header > len) return false;
  const std::uint8_t* l3 = frame + given.l3;
  unsigned end = len;
  if (lengths == LengthsOf::kHeaders)
    end = given.l3 + (given.ipv6 ? kIpv6 + prm::load16(l3 + 4) : prm::load16(l3 + 2));
  end = std::min(end, len);
  const unsigned behind = given.l3 + (given.ipv6 ? kIpv6 : (l3[0] & 0xfu) * 4);
  bool has_l4 = given.l4 != 0;
  if (has_l4 && !given.needs_l4)
    has_l4 = given.l4 >= given.l3 + header && given.l4 + (given.udp ? kUdp : kTcp) <= end;
  const unsigned l4 = has_l4 ? given.l4 : behind;
  if (l4 < given.l3 + header || l4 > end) return false;
  ip.version = given.ipv6 ? 6 : 4;
  ip.l3 = static_cast<std::uint16_t>(given.l3);
  ip.l4 = static_cast<std::uint16_t>(l4);
  ip.end = static_cast<std::uint16_t>(end);
  ip.protocol = given.udp ? kProtoUdp : kProtoTcp;
  // A fragment has no checksum of its own.
  const bool fragment = !given.ipv6 && (prm::load16(l3 + 6) & 0x3fffu) != 0;
  if (!has_l4 || fragment) return true;
  if (end - l4 < (given.udp ? kUdp : kTcp)) return false;
  (given.udp ? ip.udp : ip.tcp) = true;
  return true;
}

// An L4 header alone: further inside of the IP packet that the card's parser has found, as PSP has it behind
// UDP.
bool take_inner_l4(const Given& given, FrameHeaders& headers) {
  const IpHeaders& outer = headers.outer;
  if (!outer.version || outer.fragment || given.l4 < outer.l4 ||
      given.l4 + (given.udp ? kUdp : kTcp) > outer.end)
    return !given.needs_l4;
  IpHeaders& ip = headers.inner;
  ip = outer;
  ip.l4 = static_cast<std::uint16_t>(given.l4);
  ip.protocol = given.udp ? kProtoUdp : kProtoTcp;
  ip.udp = given.udp;
  ip.tcp = !given.udp;
  ip.icmp = false;
  return true;
}

}  // namespace

bool take_given_headers(const std::uint8_t* frame, const prm::EthSeg& eth, unsigned shift, LengthsOf lengths,
                        bool needs_l4, FrameHeaders& headers) {
  const auto at = [shift](unsigned offset) { return offset != 0 ? offset * kUnit + shift : 0; };
  const Given outer{at(eth.swp_outer_l3_offset), at(eth.swp_outer_l4_offset),
                    (eth.swp_flags & prm::EthSeg::kOuterIpv6) != 0,
                    (eth.swp_flags & prm::EthSeg::kOuterUdp) != 0,
                    needs_l4 || (eth.cs_flags & prm::EthSeg::kL4Csum) != 0};
  const Given inner{at(eth.swp_inner_l3_offset), at(eth.swp_inner_l4_offset),
                    (eth.swp_flags & prm::EthSeg::kInnerIpv6) != 0,
                    (eth.swp_flags & prm::EthSeg::kInnerUdp) != 0,
                    needs_l4 || (eth.cs_flags & prm::EthSeg::kL4InnerCsum) != 0};
  if (inner.l3 != 0 && inner.l3 < outer.l3) return false;
  if (outer.l3 == 0 && outer.l4 == 0 && inner.l3 == 0) return take_inner_l4(inner, headers);
  return take(frame, outer, headers.len, lengths, headers.outer) &&
         take(frame, inner, headers.len, lengths, headers.inner);
}

}  // namespace hcasim
