// SPDX-License-Identifier: BSD-3-Clause
// What the tags of steering entries are made of, in either format. Inside of the steering unit's part for
// tables of software.
#ifndef HCASIM_MODEL_STEER_STE_LAYER_H
#define HCASIM_MODEL_STEER_STE_LAYER_H

#include "model/steer/ste_tag.h"
#include "prm/field.h"

namespace hcasim::ste_tag {

template <class F, class V>
inline void put(SteTag& tag, V v) {
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

inline Layer layer_of(const SteeredFrame& f, bool inner) {
  const FrameHeaders& h = f.headers;
  if (inner)
    return {f.bytes(),    h.inner_l2 != 0, h.inner_l2,        h.inner_tags,
            h.inner_tpid, h.inner_tci,     h.inner_ethertype, h.inner};
  return {f.bytes(), h.len != 0, 0, h.tags, h.tpid, h.tci, h.ethertype, h.outer};
}

inline prm::SteVlan qualifier(std::uint16_t tpid) {
  return tpid == kTpidSvlan ? prm::SteVlan::kSvlan : prm::SteVlan::kCvlan;
}

inline prm::SteL3 l3_type_of(const IpHeaders& ip) {
  return ip.version == 4 ? prm::SteL3::kIpv4 : ip.version == 6 ? prm::SteL3::kIpv6 : prm::SteL3::kOther;
}

inline prm::SteL4Type l4_type_of(const IpHeaders& ip) {
  if (ip.tcp) return prm::SteL4Type::kTcp;
  if (ip.udp) return prm::SteL4Type::kUdp;
  return ip.version && ip.protocol == kProtoEsp ? prm::SteL4Type::kEsp : prm::SteL4Type::kOther;
}

// Version 4's type of service, or version 6's traffic class: DSCP 7:2, ECN 1:0.
inline unsigned traffic_class(const Layer& l) {
  const std::uint8_t* p = l.bytes + l.ip.l3;
  return l.ip.version == 4 ? p[1] : (p[0] & 0xfu) << 4 | p[1] >> 4;
}

inline unsigned tcp_flags(const Layer& l) {
  return l.ip.tcp ? prm::load16(l.bytes + l.ip.l4 + 12) & 0x1ff : 0;
}
inline bool tcp_syn(const Layer& l) { return (tcp_flags(l) & 2) != 0; }

template <class T>
void put_first_vlan(SteTag& tag, const Layer& l) {
  if (!l.tags) return;
  put<typename T::first_prio>(tag, l.tci[0] >> 13);
  put<typename T::first_cfi>(tag, l.tci[0] >> 12 & 1);
  put<typename T::first_vlan>(tag, qualifier(l.tpid[0]));
  put<typename T::first_vid>(tag, l.tci[0] & 0xfff);
}

// 16 bytes of an address; none if it is not IPv6.
void make_ipv6(const Layer& l, bool destination, SteTag& tag);
// The GRE header as it is, but each optional word in its place.
void make_gre(const SteeredFrame& f, SteTag& tag);
// First bytes of the header behind UDP; format 0's flex parsers know these tunnels alone, the plain lookup
// and the later formats VXLAN too.
void make_tunnel_header(const SteeredFrame& f, bool flex, std::uint32_t bytes, SteTag& tag);
// GTP-U's flags: sequence number, N-PDU number and extension, any of which brings a third word; the
// extension's type is the last byte of that, and it follows.
constexpr std::uint8_t kGtpuOptional = 7, kGtpuExtension = 4;
// Double words that flex parsers have sampled, four of a group. The result: a bit for each parser that has.
unsigned make_flex(const SteeredFrame& f, const SteSource& source, unsigned group, SteTag& tag);
void make_registers(const SteeredFrame& f, unsigned first, SteTag& tag);

template <class T>
void put_second_vlan(SteTag& tag, const Layer& l) {
  if (l.tags < 2) return;
  put<typename T::second_prio>(tag, l.tci[1] >> 13);
  put<typename T::second_cfi>(tag, l.tci[1] >> 12 & 1);
  put<typename T::second_vlan>(tag, qualifier(l.tpid[1]));
  put<typename T::second_vid>(tag, l.tci[1] & 0xfff);
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

// What the lookups of Ethernet headers all have.
template <class T>
void put_types(SteTag& tag, const Layer& l) {
  put<typename T::l3_type>(tag, l3_type_of(l.ip));
  put_first_vlan<T>(tag, l);
}

// One MAC address and what goes with it.
template <class T>
void put_l2(SteTag& tag, const Layer& l, const SteSource& source, bool destination) {
  if (l.l2) {
    const std::uint8_t* mac = l.bytes + l.at + (destination ? 0 : 6);
    put<typename T::mac_47_16>(tag, prm::load32(mac));
    put<typename T::mac_15_0>(tag, prm::load16(mac + 4));
  }
  put<typename T::ethertype>(tag, l.ethertype);
  put<typename T::functional_lb>(tag, source.function_loop);
  put<typename T::fragmented>(tag, l.ip.fragment);
  put<typename T::tcp_syn>(tag, tcp_syn(l));
  put<typename T::l4_type>(tag, l4_type_of(l.ip));
  put_types<T>(tag, l);
  put_second_vlan<T>(tag, l);
}

// The inner Ethernet header, with the network that a tunnel names.
template <class T>
void put_l2_tunnel(SteTag& tag, const SteeredFrame& f, const Layer& inner) {
  if (inner.l2) {
    put<typename T::dmac_47_16>(tag, prm::load32(inner.bytes + inner.at));
    put<typename T::dmac_15_0>(tag, prm::load16(inner.bytes + inner.at + 4));
  }
  put<typename T::ethertype>(tag, inner.ethertype);
  if (f.headers.tunnel == Tunnel::kVxlan) put<typename T::network_id>(tag, f.headers.vni << 8);
  put<typename T::fragmented>(tag, inner.ip.fragment);
  put<typename T::l4_type>(tag, l4_type_of(inner.ip));
  put_types<T>(tag, inner);
}

template <class T>
void put_ipv4_addresses(SteTag& tag, const Layer& l) {
  if (l.ip.version != 4) return;
  put<typename T::source>(tag, prm::load32(l.bytes + l.ip.l3 + 12));
  put<typename T::destination>(tag, prm::load32(l.bytes + l.ip.l3 + 16));
}

inline bool first_fragment(const Layer& l) {
  return l.ip.version == 4 && l.ip.fragment && (prm::load16(l.bytes + l.ip.l3 + 6) & 0x1fff) == 0;
}

// Of the L4 lookup, what the 5-tuple has not.
template <class T>
void put_beside_l4(SteTag& tag, const Layer& l) {
  if (l.ip.tcp) put<typename T::tcp_data_offset>(tag, l.bytes[l.ip.l4 + 12] >> 4);
  if (!l.ip.version) return;
  const std::uint8_t* ip = l.bytes + l.ip.l3;
  put<typename T::hop_limit>(tag, l.ip.version == 4 ? ip[8] : ip[7]);
  if (l.ip.version != 6) return;
  put<typename T::ipv6_payload>(tag, prm::load16(ip + 4));
  put<typename T::flow_label>(tag, prm::load32(ip) & 0xfffff);
}

template <class T>
void put_l4_misc(SteTag& tag, const Layer& l) {
  const std::uint8_t* l4 = l.bytes + l.ip.l4;
  if (l.ip.udp) {
    put<typename T::length>(tag, prm::load16(l4 + 4));
    put<typename T::checksum>(tag, prm::load16(l4 + 6));
  } else if (l.ip.tcp) {
    put<typename T::sequence>(tag, prm::load32(l4 + 4));
    put<typename T::acknowledged>(tag, prm::load32(l4 + 8));
    put<typename T::window>(tag, prm::load16(l4 + 14));
    put<typename T::checksum>(tag, prm::load16(l4 + 16));
    put<typename T::urgent>(tag, prm::load16(l4 + 18));
  }
}

template <class T>
void put_source(SteTag& tag, const SteSource& source) {
  put<typename T::source_gvmi>(tag, source.gvmi);
  put<typename T::functional_lb>(tag, source.function_loop);
  put<typename T::source_qp>(tag, source.qpn);
}

// Three labels from that byte of the tag on; in the byte at `flags` for each whether it is there (bit 0 of
// its pair), and the bottom of the stack (bit 1).
void make_mpls(const SteeredFrame& f, bool inner, unsigned at, unsigned flags, SteTag& tag);

}  // namespace hcasim::ste_tag
#endif
