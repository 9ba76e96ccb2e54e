// SPDX-License-Identifier: BSD-3-Clause
#include "model/steer/ste_tag.h"

#include <libdeflate.h>
#include <algorithm>
#include <cstring>

#include "prm/field.h"

namespace hcasim {

namespace {

using prm::SteLookup;

constexpr std::uint16_t kVxlanGpePort = 4790, kGenevePort = 6081, kGtpuPort = 2152, kMplsUdpPort = 6635;
constexpr std::uint16_t kEthertypeMpls = 0x8847, kEthertypeMplsMulticast = 0x8848;
constexpr std::uint8_t kProtoIcmp = 1, kProtoIcmpv6 = 58;
constexpr unsigned kUdpHeader = 8;

template <class F, class V>
void put(SteTag& tag, V v) {
  prm::set<F>(tag.data(), static_cast<typename F::type>(v));
}

// One layer of headers: the outer or the inner one.
struct Layer {
  const std::uint8_t* bytes;
  bool l2;  // has an Ethernet header, at `at`
  std::uint32_t at;
  std::uint8_t tags;
  const std::uint16_t* tpid;
  const std::uint16_t* tci;
  std::uint16_t ethertype;
  const IpHeaders& ip;
};

Layer layer_of(const SteeredFrame& f, bool inner) {
  const FrameHeaders& h = f.headers;
  if (inner)
    return {f.bytes(),    h.inner_l2 != 0, h.inner_l2,        h.inner_tags,
            h.inner_tpid, h.inner_tci,     h.inner_ethertype, h.inner};
  return {f.bytes(), h.len != 0, 0, h.tags, h.tpid, h.tci, h.ethertype, h.outer};
}

prm::SteVlan qualifier(std::uint16_t tpid) {
  return tpid == kTpidSvlan ? prm::SteVlan::kSvlan : prm::SteVlan::kCvlan;
}

prm::SteL3 l3_type(const IpHeaders& ip) {
  return ip.version == 4 ? prm::SteL3::kIpv4 : ip.version == 6 ? prm::SteL3::kIpv6 : prm::SteL3::kOther;
}

prm::SteL4Type l4_type(const IpHeaders& ip) {
  if (ip.tcp) return prm::SteL4Type::kTcp;
  if (ip.udp) return prm::SteL4Type::kUdp;
  return ip.version && ip.protocol == kProtoEsp ? prm::SteL4Type::kEsp : prm::SteL4Type::kOther;
}

// Version 4's type of service, or version 6's traffic class: DSCP 7:2, ECN 1:0.
unsigned traffic_class(const Layer& l) {
  const std::uint8_t* p = l.bytes + l.ip.l3;
  return l.ip.version == 4 ? p[1] : (p[0] & 0xfu) << 4 | p[1] >> 4;
}

unsigned tcp_flags(const Layer& l) { return l.ip.tcp ? prm::load16(l.bytes + l.ip.l4 + 12) & 0x1ff : 0; }
bool tcp_syn(const Layer& l) { return (tcp_flags(l) & 2) != 0; }

template <class T>
void put_first_vlan(SteTag& tag, const Layer& l) {
  if (!l.tags) return;
  put<typename T::first_prio>(tag, l.tci[0] >> 13);
  put<typename T::first_cfi>(tag, l.tci[0] >> 12 & 1);
  put<typename T::first_vlan>(tag, qualifier(l.tpid[0]));
  put<typename T::first_vid>(tag, l.tci[0] & 0xfff);
}

void make_l2(const Layer& l, const SteSource& source, bool destination, SteTag& tag) {
  using T = prm::SteL2;
  if (l.l2) {
    const std::uint8_t* mac = l.bytes + l.at + (destination ? 0 : 6);
    put<T::mac_47_16>(tag, prm::load32(mac));
    put<T::mac_15_0>(tag, prm::load16(mac + 4));
  }
  put<T::ethertype>(tag, l.ethertype);
  put<T::functional_lb>(tag, source.function_loop);
  put_first_vlan<T>(tag, l);
  put<T::fragmented>(tag, l.ip.fragment);
  put<T::tcp_syn>(tag, tcp_syn(l));
  put<T::l3_type>(tag, l3_type(l.ip));
  put<T::l4_type>(tag, l4_type(l.ip));
  if (l.tags < 2) return;
  put<T::second_prio>(tag, l.tci[1] >> 13);
  put<T::second_cfi>(tag, l.tci[1] >> 12 & 1);
  put<T::second_vlan>(tag, qualifier(l.tpid[1]));
  put<T::second_vid>(tag, l.tci[1] & 0xfff);
}

void make_l2_src_dst(const Layer& l, const SteSource& source, SteTag& tag) {
  using T = prm::SteL2SrcDst;
  if (l.l2) std::memcpy(tag.data(), l.bytes + l.at, 12);  // both addresses, as in the header
  put<T::functional_lb>(tag, source.function_loop);
  put<T::l3_type>(tag, l3_type(l.ip));
  put_first_vlan<T>(tag, l);
}

void make_l2_tunneling(const SteeredFrame& f, SteTag& tag) {
  using T = prm::SteL2Tunneling;
  const Layer l = layer_of(f, true);
  if (l.l2) std::memcpy(tag.data(), l.bytes + l.at, 6);
  put<T::ethertype>(tag, l.ethertype);
  if (f.headers.tunnel == Tunnel::kVxlan) put<T::network_id>(tag, f.headers.vni << 8);
  put<T::fragmented>(tag, l.ip.fragment);
  put<T::tcp_syn>(tag, tcp_syn(l));
  put<T::l3_type>(tag, l3_type(l.ip));
  put<T::l4_type>(tag, l4_type(l.ip));
  put<T::gre_key_flag>(tag, f.headers.gre_key_present);
  put_first_vlan<T>(tag, l);
}

void make_ipv6(const Layer& l, bool destination, SteTag& tag) {
  if (l.ip.version == 6) std::memcpy(tag.data(), l.bytes + l.ip.l3 + (destination ? 24 : 8), 16);
}

// What the 5-tuple of IPv4 and the L4 lookup have both.
template <class T>
void put_l4(SteTag& tag, const Layer& l) {
  const IpHeaders& ip = l.ip;
  if (!ip.version) return;
  put<typename T::fragmented>(tag, ip.fragment);
  put<typename T::protocol>(tag, ip.protocol);
  put<typename T::dscp>(tag, traffic_class(l) >> 2);
  put<typename T::ecn>(tag, traffic_class(l) & 3);
  if (ip.tcp || ip.udp) {
    put<typename T::source_port>(tag, prm::load16(l.bytes + ip.l4));
    put<typename T::destination_port>(tag, prm::load16(l.bytes + ip.l4 + 2));
  }
  put<typename T::tcp_flags>(tag, tcp_flags(l));
}

void make_ipv4_tuple(const Layer& l, SteTag& tag) {
  using T = prm::SteIpv4Tuple;
  put_l4<T>(tag, l);
  if (l.ip.version != 4) return;
  const std::uint8_t* ip = l.bytes + l.ip.l3;
  put<T::source>(tag, prm::load32(ip + 12));
  put<T::destination>(tag, prm::load32(ip + 16));
  put<T::first_fragment>(tag, l.ip.fragment && (prm::load16(ip + 6) & 0x1fff) == 0);
}

void make_l4(const Layer& l, SteTag& tag) {
  using T = prm::SteL4;
  put_l4<T>(tag, l);
  if (l.ip.tcp) put<T::tcp_data_offset>(tag, l.bytes[l.ip.l4 + 12] >> 4);
  if (!l.ip.version) return;
  const std::uint8_t* ip = l.bytes + l.ip.l3;
  put<T::hop_limit>(tag, l.ip.version == 4 ? ip[8] : ip[7]);
  if (l.ip.version != 6) return;
  put<T::ipv6_version>(tag, 6);
  put<T::ipv6_payload>(tag, prm::load16(ip + 4));
  put<T::flow_label>(tag, prm::load32(ip) & 0xfffff);
}

void make_l4_misc(const Layer& l, SteTag& tag) {
  using T = prm::SteL4Misc;
  const std::uint8_t* l4 = l.bytes + l.ip.l4;
  if (l.ip.udp) {
    put<T::length>(tag, prm::load16(l4 + 4));
    put<T::checksum>(tag, prm::load16(l4 + 6));
  } else if (l.ip.tcp) {
    put<T::sequence>(tag, prm::load32(l4 + 4));
    put<T::acknowledged>(tag, prm::load32(l4 + 8));
    put<T::window>(tag, prm::load16(l4 + 14));
    put<T::checksum>(tag, prm::load16(l4 + 16));
    put<T::urgent>(tag, prm::load16(l4 + 18));
  }
}

// The label stack behind the Ethernet header, GRE or UDP; null: none. room: bytes from there.
const std::uint8_t* labels(const SteeredFrame& f, bool inner, std::uint32_t& room) {
  const FrameHeaders& h = f.headers;
  const auto mpls = [](std::uint16_t type) {
    return type == kEthertypeMpls || type == kEthertypeMplsMulticast;
  };
  std::uint32_t at = 0, end = h.len;
  if (!inner) {
    if (!mpls(h.ethertype)) return nullptr;
    at = h.payload;
  } else if (h.tunnel == Tunnel::kGre && mpls(h.gre_protocol)) {
    at = h.outer.l4 + 4u + (h.gre_checksum ? 4 : 0) + (h.gre_key_present ? 4 : 0) + (h.gre_sequence ? 4 : 0);
    end = h.outer.end;
  } else if (h.outer.udp && prm::load16(f.bytes() + h.outer.l4 + 2) == kMplsUdpPort) {
    at = h.outer.l4 + kUdpHeader;
    end = h.outer.end;
  } else {
    return nullptr;
  }
  if (at + 4 > end) return nullptr;
  room = end - at;
  return f.bytes() + at;
}

void make_mpls(const SteeredFrame& f, bool inner, SteTag& tag) {
  std::uint32_t room = 0;
  const std::uint8_t* stack = labels(f, inner, room);
  if (!stack) return;
  // Three labels, then for each whether it is there (bit 0 of its pair) and the bottom of the stack (bit 1).
  constexpr unsigned kLabels = 3;
  for (unsigned i = 0; i < kLabels && 4 * (i + 1) <= room; ++i) {
    std::memcpy(tag.data() + 4 * i, stack + 4 * i, 4);
    const unsigned bottom = stack[4 * i + 2] & 1;
    tag[15] = static_cast<std::uint8_t>(tag[15] | (1u | bottom << 1) << (2 * i));
    if (bottom) break;
  }
}

// The tag holds the GRE header as it is, but each optional word in its place.
void make_gre(const SteeredFrame& f, SteTag& tag) {
  const FrameHeaders& h = f.headers;
  if (h.tunnel != Tunnel::kGre) return;
  const std::uint8_t* gre = f.bytes() + h.outer.l4;
  std::memcpy(tag.data(), gre, 4);
  gre += 4;
  if (h.gre_checksum) {
    std::memcpy(tag.data() + 4, gre, 4);
    gre += 4;
  }
  if (h.gre_key_present) {
    std::memcpy(tag.data() + 8, gre, 4);
    gre += 4;
  }
  if (h.gre_sequence) std::memcpy(tag.data() + 12, gre, 4);
}

// First bytes of the header behind UDP; flex parsers know these tunnels alone, the plain lookup VXLAN too.
void make_tunnel_header(const SteeredFrame& f, bool flex, SteTag& tag) {
  const IpHeaders& ip = f.headers.outer;
  if (!ip.udp) return;
  const std::uint16_t port = prm::load16(f.bytes() + ip.l4 + 2);
  const bool known = port == kVxlanGpePort || port == kGenevePort || port == kGtpuPort ||
                     (!flex && f.headers.tunnel == Tunnel::kVxlan);
  const std::uint32_t at = ip.l4 + kUdpHeader;
  if (!known || at >= ip.end) return;
  std::memcpy(tag.data(), f.bytes() + at, std::min<std::uint32_t>(8, ip.end - at));
}

void sample(SteTag& tag, unsigned group, unsigned parser, const std::uint8_t* bytes) {
  if (parser / 4 == group) std::memcpy(tag.data() + 4 * (3 - parser % 4), bytes, 4);
}

void make_flex(const SteeredFrame& f, unsigned group, SteTag& tag) {
  const IpHeaders& ip = f.headers.outer;
  const bool v4 = ip.version == 4 && ip.protocol == kProtoIcmp;
  const bool v6 = ip.version == 6 && ip.protocol == kProtoIcmpv6;
  if ((!v4 && !v6) || ip.fragment || ip.l4 + 8u > ip.end) return;
  const std::uint8_t* icmp = f.bytes() + ip.l4;
  sample(tag, group, v4 ? kFlexIcmpDw0 : kFlexIcmpv6Dw0, icmp);
  sample(tag, group, v4 ? kFlexIcmpDw1 : kFlexIcmpv6Dw1, icmp + 4);
}

void make_registers(const SteeredFrame& f, unsigned first, SteTag& tag) {
  for (unsigned i = 0; i < 4; ++i) prm::store32(tag.data() + 4 * i, f.regs.c[first + i]);
}

}  // namespace

bool make_ste_tag(SteLookup lookup, const SteeredFrame& f, const SteSource& source, SteTag& tag) {
  tag.fill(0);
  const Layer outer = layer_of(f, false), inner = layer_of(f, true);
  switch (lookup) {
    case SteLookup::kNop:
      return true;
    case SteLookup::kSrcGvmiQp:
      put<prm::SteSourceTag::source_gvmi>(tag, source.gvmi);
      put<prm::SteSourceTag::functional_lb>(tag, source.function_loop);
      put<prm::SteSourceTag::source_qp>(tag, source.qpn);
      return true;
    case SteLookup::kL2DstO:
    case SteLookup::kL2DstD:
      make_l2(outer, source, true, tag);
      return true;
    case SteLookup::kL2DstI:
      make_l2(inner, source, true, tag);
      return true;
    case SteLookup::kL2SrcO:
    case SteLookup::kL2SrcD:
      make_l2(outer, source, false, tag);
      return true;
    case SteLookup::kL2SrcI:
      make_l2(inner, source, false, tag);
      return true;
    case SteLookup::kL2SrcDstO:
    case SteLookup::kL2SrcDstD:
      make_l2_src_dst(outer, source, tag);
      return true;
    case SteLookup::kL2SrcDstI:
      make_l2_src_dst(inner, source, tag);
      return true;
    case SteLookup::kL2TunnelingI:
      make_l2_tunneling(f, tag);
      return true;
    case SteLookup::kIpv6DstO:
    case SteLookup::kIpv6DstD:
      make_ipv6(outer, true, tag);
      return true;
    case SteLookup::kIpv6DstI:
      make_ipv6(inner, true, tag);
      return true;
    case SteLookup::kIpv6SrcO:
    case SteLookup::kIpv6SrcD:
      make_ipv6(outer, false, tag);
      return true;
    case SteLookup::kIpv6SrcI:
      make_ipv6(inner, false, tag);
      return true;
    case SteLookup::kIpv4TupleO:
    case SteLookup::kIpv4TupleD:
      make_ipv4_tuple(outer, tag);
      return true;
    case SteLookup::kIpv4TupleI:
      make_ipv4_tuple(inner, tag);
      return true;
    case SteLookup::kIpv4MiscO:
    case SteLookup::kIpv4MiscD:
      if (outer.ip.version == 4) std::memcpy(tag.data(), f.bytes() + outer.ip.l3, 12);
      return true;
    case SteLookup::kIpv4MiscI:
      if (inner.ip.version == 4) std::memcpy(tag.data(), f.bytes() + inner.ip.l3, 12);
      return true;
    case SteLookup::kL4O:
    case SteLookup::kL4D:
      make_l4(outer, tag);
      return true;
    case SteLookup::kL4I:
      make_l4(inner, tag);
      return true;
    case SteLookup::kL4MiscO:
    case SteLookup::kL4MiscD:
      make_l4_misc(outer, tag);
      return true;
    case SteLookup::kL4MiscI:
      make_l4_misc(inner, tag);
      return true;
    case SteLookup::kMplsO:
    case SteLookup::kMplsD:
      make_mpls(f, false, tag);
      return true;
    case SteLookup::kMplsI:
      make_mpls(f, true, tag);
      return true;
    case SteLookup::kGre:
      make_gre(f, tag);
      return true;
    case SteLookup::kGeneralPurpose:
      prm::store32(tag.data(), f.regs.a);
      return true;
    case SteLookup::kFlexTunnelHeader:
      make_tunnel_header(f, true, tag);
      return true;
    case SteLookup::kTunnelHeader:
      make_tunnel_header(f, false, tag);
      return true;
    case SteLookup::kFlexParser0:
      make_flex(f, 0, tag);
      return true;
    case SteLookup::kFlexParser1:
      make_flex(f, 1, tag);
      return true;
    case SteLookup::kRegisters0:
      make_registers(f, 0, tag);
      return true;
    case SteLookup::kRegisters1:
      make_registers(f, 4, tag);
      return true;
  }
  return false;
}

std::uint32_t ste_hash(const SteTag& tag, std::uint16_t byte_mask, std::uint64_t entries) {
  if (entries <= 1 || byte_mask == 0) return 0;
  SteTag masked;
  for (unsigned i = 0; i < masked.size(); ++i) masked[i] = byte_mask >> (15 - i) & 1 ? tag[i] : 0;
  // No ones before and none after, which libdeflate's has.
  const std::uint32_t crc = ~libdeflate_crc32(~0u, masked.data(), masked.size());
  return static_cast<std::uint32_t>(__builtin_bswap32(crc) & (entries - 1));
}

}  // namespace hcasim
