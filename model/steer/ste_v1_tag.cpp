// SPDX-License-Identifier: BSD-3-Clause
// What a frame looks like to entries of steering formats 1 and 2 that have a mask of their own.
#include <algorithm>
#include <cstring>

#include "model/steer/ste_layer.h"

namespace hcasim {

namespace {

using prm::SteV1Lookup;
using namespace ste_tag;

void make_v1_l2_src_dst(const Layer& l, const SteSource& source, SteTag& tag) {
  using T = prm::SteV1L2SrcDst;
  if (l.l2) {
    const std::uint8_t* macs = l.bytes + l.at;
    put<T::dmac_47_16>(tag, prm::load32(macs));
    put<T::dmac_15_0>(tag, prm::load16(macs + 4));
    put<T::smac_47_16>(tag, prm::load32(macs + 6));
    put<T::smac_15_0>(tag, prm::load16(macs + 10));
  }
  put<T::functional_lb>(tag, source.function_loop);
  put_types<T>(tag, l);
}

void make_v1_ipv4_tuple(const Layer& l, SteTag& tag) {
  put_l4<prm::SteV1Ipv4Tuple>(tag, l);
  put_ipv4_addresses<prm::SteV1Ipv4Tuple>(tag, l);
}

void make_v1_ipv4_misc(const Layer& l, SteTag& tag) {
  using T = prm::SteV1Ipv4Misc;
  if (l.ip.version != 4) return;
  const std::uint8_t* ip = l.bytes + l.ip.l3;
  put<T::identification>(tag, prm::load16(ip + 4));
  put<T::fragment>(tag, prm::load16(ip + 6));
  put<T::total_length>(tag, prm::load16(ip + 2));
  put<T::checksum>(tag, prm::load16(ip + 10));
  put<T::version>(tag, ip[0] >> 4);
  put<T::ihl>(tag, ip[0] & 0xf);
  put<T::ttl>(tag, ip[8]);
}

void make_v1_l4(const Layer& l, SteTag& tag) {
  using T = prm::SteV1L4;
  put_l4<T>(tag, l);
  put_beside_l4<T>(tag, l);
  put<T::ip_version>(tag, l.ip.version);
  put<T::first_fragment>(tag, first_fragment(l));
}

void make_v1_l4_misc(const Layer& l, SteTag& tag) {
  put_l4_misc<prm::SteV1L4Misc>(tag, l);
  if (!l.ip.version || !l.ip.icmp) return;
  using Icmp = prm::SteV1Icmp;
  const std::uint8_t* l4 = l.bytes + l.ip.l4;
  put<Icmp::header_data>(tag, prm::load32(l4 + 4));
  put<Icmp::type>(tag, l4[0]);
  put<Icmp::code>(tag, l4[1]);
  if (l.ip.l4 + 12u <= l.ip.end) put<Icmp::payload>(tag, prm::load32(l4 + 8));
}

void make_v1_ib_l4(const SteeredFrame& f, SteTag& tag) {
  using T = prm::SteV1IbL4;
  if (f.headers.bth == 0) return;
  const std::uint8_t* bth = f.bytes() + f.headers.bth;
  put<T::opcode>(tag, bth[0]);
  put<T::solicited>(tag, bth[1] >> 7);
  put<T::migrated>(tag, bth[1] >> 6 & 1);
  put<T::pad>(tag, bth[1] >> 4 & 3);
  put<T::version>(tag, bth[1] & 0xf);
  put<T::pkey>(tag, prm::load16(bth + 2));
  put<T::fecn>(tag, bth[4] >> 7);
  put<T::becn>(tag, bth[4] >> 6 & 1);
  put<T::qp>(tag, prm::load32(bth + 4) & 0xffffff);
  put<T::ack_request>(tag, bth[8] >> 7);
  put<T::bth>(tag, 1);
}

}  // namespace

bool make_ste_tag(SteV1Lookup lookup, const SteeredFrame& f, const SteSource& source, SteTag& tag) {
  tag.fill(0);
  const Layer outer = layer_of(f, false), inner = layer_of(f, true);
  switch (lookup) {
    case SteV1Lookup::kNop:
      return true;
    case SteV1Lookup::kL2Tunnel:
      put_l2_tunnel<prm::SteV1L2Tunnel>(tag, f, inner);
      return true;
    case SteV1Lookup::kL2DstO:
    case SteV1Lookup::kL2DstI:
      put_l2<prm::SteV1L2>(tag, lookup == SteV1Lookup::kL2DstI ? inner : outer, source, true);
      return true;
    case SteV1Lookup::kL2SrcO:
    case SteV1Lookup::kL2SrcI:
      put_l2<prm::SteV1L2>(tag, lookup == SteV1Lookup::kL2SrcI ? inner : outer, source, false);
      return true;
    case SteV1Lookup::kIpv4TupleO:
    case SteV1Lookup::kIpv4TupleI:
      make_v1_ipv4_tuple(lookup == SteV1Lookup::kIpv4TupleI ? inner : outer, tag);
      return true;
    case SteV1Lookup::kL4O:
    case SteV1Lookup::kL4I:
      make_v1_l4(lookup == SteV1Lookup::kL4I ? inner : outer, tag);
      return true;
    case SteV1Lookup::kL2SrcDstO:
    case SteV1Lookup::kL2SrcDstI:
      make_v1_l2_src_dst(lookup == SteV1Lookup::kL2SrcDstI ? inner : outer, source, tag);
      return true;
    case SteV1Lookup::kIpv4MiscO:
    case SteV1Lookup::kIpv4MiscI:
      make_v1_ipv4_misc(lookup == SteV1Lookup::kIpv4MiscI ? inner : outer, tag);
      return true;
    case SteV1Lookup::kFlexTunnelHeader:
      make_tunnel_header(f, false, 8, tag);
      return true;
    case SteV1Lookup::kTunnelHeader:
      make_tunnel_header(f, false, 16, tag);
      return true;
    case SteV1Lookup::kFlexOk: {
      SteTag none;
      put<prm::SteV1FlexOk::ok>(tag, make_flex(f, source, 0, none));
      return true;
    }
    case SteV1Lookup::kIbL4:
      make_v1_ib_l4(f, tag);
      return true;
    case SteV1Lookup::kSrcGvmiQp:
      put_source<prm::SteV1SourceTag>(tag, source);
      return true;
    case SteV1Lookup::kIpv6DstO:
    case SteV1Lookup::kIpv6DstI:
      make_ipv6(lookup == SteV1Lookup::kIpv6DstI ? inner : outer, true, tag);
      return true;
    case SteV1Lookup::kIpv6SrcO:
    case SteV1Lookup::kIpv6SrcI:
      make_ipv6(lookup == SteV1Lookup::kIpv6SrcI ? inner : outer, false, tag);
      return true;
    case SteV1Lookup::kMplsO:
    case SteV1Lookup::kMplsI:
      make_mpls(f, lookup == SteV1Lookup::kMplsI, 4, 3, tag);
      return true;
    case SteV1Lookup::kGre:
      make_gre(f, tag);
      return true;
    case SteV1Lookup::kGeneralPurpose:
      prm::store32(tag.data(), f.regs.a);
      return true;
    case SteV1Lookup::kRegisters0:
    case SteV1Lookup::kRegisters1:
      make_registers(f, lookup == SteV1Lookup::kRegisters1 ? 4 : 0, tag);
      return true;
    case SteV1Lookup::kFlexParser0:
    case SteV1Lookup::kFlexParser1:
      make_flex(f, source, lookup == SteV1Lookup::kFlexParser1 ? 1 : 0, tag);
      return true;
    case SteV1Lookup::kL4MiscO:
    case SteV1Lookup::kL4MiscI:
      make_v1_l4_misc(lookup == SteV1Lookup::kL4MiscI ? inner : outer, tag);
      return true;
  }
  return false;
}

}  // namespace hcasim
