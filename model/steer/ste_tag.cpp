// SPDX-License-Identifier: BSD-3-Clause
#include "model/steer/ste_tag.h"

#include <libdeflate.h>
#include <algorithm>
#include <cstring>

#include "model/steer/ste_layer.h"

namespace hcasim {

namespace {

constexpr std::uint16_t kVxlanGpePort = 4790, kGenevePort = 6081, kGtpuPort = 2152;
constexpr std::uint8_t kProtoIcmp = 1, kProtoIcmpv6 = 58;
constexpr unsigned kUdpHeader = 8;

}  // namespace

namespace ste_tag {

void make_ipv6(const Layer& l, bool destination, SteTag& tag) {
  if (l.ip.version == 6) std::memcpy(tag.data(), l.bytes + l.ip.l3 + (destination ? 24 : 8), 16);
}

void make_mpls(const SteeredFrame& f, bool inner, unsigned to, unsigned flags, SteTag& tag) {
  constexpr unsigned kLabels = 3, kBytes = 4;
  const FrameHeaders& h = f.headers;
  const std::uint32_t at = inner ? h.inner_mpls : h.mpls, end = inner ? h.outer.end : h.len;
  if (at == 0) return;
  for (unsigned i = 0; i < kLabels && at + kBytes * (i + 1) <= end; ++i) {
    const std::uint8_t* label = f.bytes() + at + kBytes * i;
    std::memcpy(tag.data() + to + kBytes * i, label, kBytes);
    const unsigned bottom = label[2] & 1;
    tag[flags] = static_cast<std::uint8_t>(tag[flags] | (1u | bottom << 1) << (2 * i));
    if (bottom) break;
  }
}

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

void make_tunnel_header(const SteeredFrame& f, bool flex, std::uint32_t bytes, SteTag& tag) {
  const IpHeaders& ip = f.headers.outer;
  if (!ip.udp) return;
  const std::uint16_t port = prm::load16(f.bytes() + ip.l4 + 2);
  const bool known = port == kVxlanGpePort || port == kGenevePort || port == kGtpuPort ||
                     (!flex && f.headers.tunnel == Tunnel::kVxlan);
  const std::uint32_t at = ip.l4 + kUdpHeader;
  if (!known || at >= ip.end) return;
  std::memcpy(tag.data(), f.bytes() + at, std::min<std::uint32_t>(bytes, ip.end - at));
}

unsigned make_flex(const SteeredFrame& f, const SteSource& source, unsigned group, SteTag& tag) {
  const FrameHeaders& h = f.headers;
  const IpHeaders& ip = h.outer;
  unsigned sampled = 0;
  const auto sample = [&](unsigned parser, std::uint32_t at) {
    if (at + 4 > ip.end) return;
    sampled |= 1u << parser;
    if (parser / 4 == group) std::memcpy(tag.data() + 4 * (3 - parser % 4), f.bytes() + at, 4);
  };
  if (!ip.version || ip.fragment) return 0;
  if (ip.protocol == (ip.version == 4 ? kProtoIcmp : kProtoIcmpv6) && ip.l4 + 8u <= ip.end) {
    sample(ip.version == 4 ? kFlexIcmpDw0 : kFlexIcmpv6Dw0, ip.l4);
    sample(ip.version == 4 ? kFlexIcmpDw1 : kFlexIcmpv6Dw1, ip.l4 + 4u);
  }
  if (h.tunnel_mpls) sample(h.tunnel == Tunnel::kGre ? kFlexMplsGre : kFlexMplsUdp, h.tunnel_mpls);
  if (const std::uint32_t data = source.option.find(f)) sample(kFlexGeneveOption, data);
  if (h.tunnel == Tunnel::kGtpu) {
    const std::uint8_t flags = f.bytes()[h.tunnel_at];
    sample(kFlexGtpuDw0, h.tunnel_at);
    sample(kFlexGtpuTeid, h.tunnel_at + 4u);
    if (flags & kGtpuOptional) sample(kFlexGtpuDw2, h.tunnel_at + 8u);
    if (flags & kGtpuExtension) sample(kFlexGtpuExtension, h.tunnel_at + 12u);
  }
  return sampled;
}

void make_registers(const SteeredFrame& f, unsigned first, SteTag& tag) {
  for (unsigned i = 0; i < 4; ++i) prm::store32(tag.data() + 4 * i, f.regs.c[first + i]);
}

}  // namespace ste_tag

namespace {

using prm::SteLookup;
using namespace ste_tag;

void make_l2_src_dst(const Layer& l, const SteSource& source, SteTag& tag) {
  using T = prm::SteL2SrcDst;
  if (l.l2) std::memcpy(tag.data(), l.bytes + l.at, 12);  // both addresses, as in the header
  put<T::functional_lb>(tag, source.function_loop);
  put_types<T>(tag, l);
}

void make_l2_tunneling(const SteeredFrame& f, SteTag& tag) {
  using T = prm::SteL2Tunneling;
  const Layer l = layer_of(f, true);
  put_l2_tunnel<T>(tag, f, l);
  put<T::tcp_syn>(tag, tcp_syn(l));
  put<T::gre_key_flag>(tag, f.headers.gre_key_present);
}

void make_ipv4_tuple(const Layer& l, SteTag& tag) {
  using T = prm::SteIpv4Tuple;
  put_l4<T>(tag, l);
  put_ipv4_addresses<T>(tag, l);
  put<T::first_fragment>(tag, first_fragment(l));
}

void make_l4(const Layer& l, SteTag& tag) {
  using T = prm::SteL4;
  put_l4<T>(tag, l);
  put_beside_l4<T>(tag, l);
  if (l.ip.version == 6) put<T::ipv6_version>(tag, 6);
}

}  // namespace

bool make_ste_tag(SteLookup lookup, const SteeredFrame& f, const SteSource& source, SteTag& tag) {
  tag.fill(0);
  const Layer outer = layer_of(f, false), inner = layer_of(f, true);
  switch (lookup) {
    case SteLookup::kNop:
      return true;
    case SteLookup::kSrcGvmiQp:
      put_source<prm::SteSourceTag>(tag, source);
      return true;
    case SteLookup::kL2DstO:
    case SteLookup::kL2DstD:
      put_l2<prm::SteL2>(tag, outer, source, true);
      return true;
    case SteLookup::kL2DstI:
      put_l2<prm::SteL2>(tag, inner, source, true);
      return true;
    case SteLookup::kL2SrcO:
    case SteLookup::kL2SrcD:
      put_l2<prm::SteL2>(tag, outer, source, false);
      return true;
    case SteLookup::kL2SrcI:
      put_l2<prm::SteL2>(tag, inner, source, false);
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
      put_l4_misc<prm::SteL4Misc>(tag, outer);
      return true;
    case SteLookup::kL4MiscI:
      put_l4_misc<prm::SteL4Misc>(tag, inner);
      return true;
    case SteLookup::kMplsO:
    case SteLookup::kMplsD:
      make_mpls(f, false, 0, 15, tag);
      return true;
    case SteLookup::kMplsI:
      make_mpls(f, true, 0, 15, tag);
      return true;
    case SteLookup::kGre:
      make_gre(f, tag);
      return true;
    case SteLookup::kGeneralPurpose:
      prm::store32(tag.data(), f.regs.a);
      return true;
    case SteLookup::kFlexTunnelHeader:
      make_tunnel_header(f, true, 8, tag);
      return true;
    case SteLookup::kTunnelHeader:
      make_tunnel_header(f, false, 8, tag);
      return true;
    case SteLookup::kFlexParser0:
      make_flex(f, source, 0, tag);
      return true;
    case SteLookup::kFlexParser1:
      make_flex(f, source, 1, tag);
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

std::uint32_t ste_hash(const std::uint8_t* tag, std::size_t len, std::uint64_t entries) {
  // No ones before and none after, which libdeflate's has.
  const std::uint32_t crc = ~libdeflate_crc32(~0u, tag, len);
  return static_cast<std::uint32_t>(__builtin_bswap32(crc) & (entries - 1));
}

std::uint32_t ste_hash(const SteTag& tag, std::uint16_t byte_mask, std::uint64_t entries) {
  if (entries <= 1 || byte_mask == 0) return 0;
  SteTag masked;
  for (unsigned i = 0; i < masked.size(); ++i) masked[i] = byte_mask >> (15 - i) & 1 ? tag[i] : 0;
  return ste_hash(masked.data(), masked.size(), entries);
}

}  // namespace hcasim
