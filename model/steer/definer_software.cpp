// SPDX-License-Identifier: BSD-3-Clause
// Layouts of match definers that entries of software use: registers, tunnel headers, the sender and second
// VLAN tags beside what flow groups hash. Public source of the layouts: rdma-core's libmlx5.
#include <cstring>

#include "model/steer/definer.h"
#include "model/steer/ste_layer.h"

namespace hcasim {

namespace {

using ste_tag::Layer;

// Writes fields by their bit in the layout: those of a frame, or ones into all that are known.
struct DefinerBits {
  std::uint8_t* tag;
  const SteeredFrame* frame;  // null: ones
  const SteSource& source;

  template <unsigned At, unsigned Width>
  void put(std::uint64_t v) const {
    using F = prm::Field<8 * MatchDefiner::kFields + At, Width>;
    prm::set<F>(tag, static_cast<typename F::type>(frame ? v : ~std::uint64_t{0}));
  }
  template <unsigned At>
  void bytes(const SteTag& from) const {
    std::uint8_t* to = tag + MatchDefiner::kFields + At / 8;
    if (frame)
      std::memcpy(to, from.data(), from.size());
    else
      std::memset(to, 0xff, from.size());
  }
};

// What one layer of headers says; zeros for what it does not have.
struct LayerValues {
  std::uint32_t dmac_high = 0, smac_high = 0, source = 0, destination = 0, flow_label = 0;
  std::uint16_t dmac_low = 0, smac_low = 0, ethertype = 0, sport = 0, dport = 0, tcp_flags = 0;
  prm::SteVlan vlan[2] = {prm::SteVlan::kNone, prm::SteVlan::kNone};
  std::uint16_t tci[2] = {};
  prm::SteL3 l3 = prm::SteL3::kOther;
  prm::SteL4Type l4 = prm::SteL4Type::kOther;
  bool fragment = false;
  std::uint8_t version = 0, ihl = 0, protocol = 0, ttl = 0, traffic_class = 0;
  SteTag ipv6_source{}, ipv6_destination{};

  explicit LayerValues(const Layer& l) {
    if (l.l2) {
      const std::uint8_t* mac = l.bytes + l.at;
      dmac_high = prm::load32(mac), dmac_low = prm::load16(mac + 4);
      smac_high = prm::load32(mac + 6), smac_low = prm::load16(mac + 10);
    }
    ethertype = l.ethertype;
    for (unsigned i = 0; i < l.tags && i < 2; ++i) vlan[i] = ste_tag::qualifier(l.tpid[i]), tci[i] = l.tci[i];
    l3 = ste_tag::l3_type_of(l.ip);
    l4 = ste_tag::l4_type_of(l.ip);
    if (!l.ip.version) return;
    const std::uint8_t* ip = l.bytes + l.ip.l3;
    version = l.ip.version;
    fragment = l.ip.fragment;
    protocol = l.ip.protocol;
    traffic_class = static_cast<std::uint8_t>(ste_tag::traffic_class(l));
    if (version == 4) {
      ihl = ip[0] & 0xf, ttl = ip[8];
      source = prm::load32(ip + 12), destination = prm::load32(ip + 16);
    } else {
      ttl = ip[7];
      flow_label = prm::load32(ip) & 0xfffff;
      ste_tag::make_ipv6(l, false, ipv6_source);
      ste_tag::make_ipv6(l, true, ipv6_destination);
    }
    if (l.ip.tcp || l.ip.udp)
      sport = prm::load16(l.bytes + l.ip.l4), dport = prm::load16(l.bytes + l.ip.l4 + 2);
    tcp_flags = static_cast<std::uint16_t>(ste_tag::tcp_flags(l));
  }
};

// Parts that several layouts have.
template <unsigned Kind, unsigned Prio>
void put_vlan(const DefinerBits& b, const LayerValues& v, unsigned tag) {
  b.put<Kind, 2>(static_cast<unsigned>(v.vlan[tag]));
  b.put<Prio, 3>(v.tci[tag] >> 13);
  b.put<Prio + 3, 1>(v.tci[tag] >> 12 & 1);
  b.put<Prio + 4, 12>(v.tci[tag] & 0xfff);
}
// L3, L4 and VLAN types, one behind the other.
template <unsigned At>
void put_types(const DefinerBits& b, const LayerValues& v) {
  b.put<At, 2>(static_cast<unsigned>(v.l3));
  b.put<At + 2, 2>(static_cast<unsigned>(v.l4));
  b.put<At + 4, 2>(static_cast<unsigned>(v.vlan[0]));
}
template <unsigned Addresses, unsigned Ports>
void put_tuple(const DefinerBits& b, const LayerValues& v) {
  b.put<Addresses, 32>(v.source);
  b.put<Addresses + 32, 32>(v.destination);
  b.put<Ports, 16>(v.sport);
  b.put<Ports + 16, 16>(v.dport);
}
// The last double word of the layouts with both layers.
void put_both(const DefinerBits& b, const LayerValues& outer, const LayerValues& inner) {
  b.put<224, 8>(inner.protocol);
  put_types<232>(b, inner);
  b.put<238, 1>(inner.fragment);
  b.put<239, 1>(b.source.function_loop);
  b.put<240, 8>(outer.protocol);
  put_types<248>(b, outer);
  b.put<254, 1>(outer.fragment);
  b.put<255, 1>(b.source.function_loop);
}

}  // namespace

bool fill_software_definer(std::uint16_t format, const SteeredFrame* frame, const SteSource& source,
                           std::uint8_t* tag) {
  static const SteeredFrame kNothing;
  const SteeredFrame& f = frame ? *frame : kNothing;
  const DefinerBits b{tag, frame, source};
  const auto layer = [&](bool inner) {
    static const std::uint8_t kNone[1] = {};
    static const std::uint16_t kNoTag[2] = {};
    static const IpHeaders kNoIp;
    return frame ? ste_tag::layer_of(f, inner) : Layer{kNone, false, 0, 0, kNoTag, kNoTag, 0, kNoIp};
  };
  const LayerValues outer(layer(false)), inner(layer(true));
  SteTag tunnel{};
  if (frame) ste_tag::make_tunnel_header(f, false, 16, tunnel);
  switch (format) {
    case 0:
      b.put<0, 32>(f.regs.c[0]);
      b.put<32, 32>(f.regs.c[1]);
      b.put<130, 1>(source.function_loop);
      put_vlan<174, 176>(b, outer, 1);
      b.put<248, 8>(outer.tcp_flags);
      return true;
    case 2:
      b.put<0, 32>(f.regs.a);
      b.put<32, 4>(outer.version);
      b.put<36, 4>(outer.ihl);
      b.put<40, 8>(outer.traffic_class);
      b.put<48, 8>(outer.ttl);
      b.put<56, 8>(outer.protocol);
      b.put<140, 20>(outer.flow_label);
      b.put<192, 16>(outer.sport);
      b.put<208, 16>(outer.dport);
      b.put<230, 1>(outer.fragment);
      b.put<231, 9>(outer.tcp_flags);
      return true;
    case 6:
      b.bytes<0>(outer.ipv6_destination);
      b.put<192, 16>(outer.sport);
      b.put<208, 16>(outer.dport);
      b.put<230, 1>(outer.fragment);
      b.put<231, 9>(outer.tcp_flags);
      return true;
    case 16:
      b.bytes<0>(tunnel);
      b.put<160, 32>(f.regs.a);
      put_types<200>(b, outer);
      b.put<207, 1>(source.function_loop);
      b.put<208, 16>(source.gvmi);
      b.put<225, 1>(outer.fragment);
      b.put<232, 24>(source.qpn);
      return true;
    case 22:
      b.put<98, 1>(source.function_loop);
      b.put<128, 32>(f.regs.c[0]);
      return true;
    case 24:
      b.put<0, 32>(f.regs.c[2]);
      b.put<32, 32>(f.regs.c[3]);
      b.put<64, 32>(f.regs.c[0]);
      b.put<96, 32>(f.regs.c[1]);
      put_tuple<128, 192>(b, outer);
      put_both(b, outer, inner);
      return true;
    case 25:
      put_tuple<0, 64>(b, inner);
      b.put<96, 32>(prm::load32(tunnel.data()));
      b.put<128, 32>(prm::load32(tunnel.data() + 4));
      put_types<194>(b, inner);
      put_types<202>(b, outer);
      b.put<208, 16>(outer.dport);
      return true;
    case 26:
      b.bytes<0>(outer.ipv6_source);
      b.put<131, 1>(outer.fragment);
      b.put<138, 2>(static_cast<unsigned>(outer.l3));
      b.put<140, 2>(static_cast<unsigned>(outer.l4));
      put_vlan<142, 144>(b, outer, 0);
      put_vlan<174, 176>(b, outer, 1);
      b.put<192, 32>(outer.smac_high);
      b.put<224, 16>(outer.smac_low);
      b.put<240, 8>(outer.protocol);
      b.put<248, 8>(outer.tcp_flags);
      return true;
    case 28: {
      const FrameHeaders& h = f.headers;
      put_tuple<64, 0>(b, inner);
      b.put<32, 32>(h.tunnel == Tunnel::kGtpu ? prm::load32(f.bytes() + h.tunnel_at + 4) : 0);
      put_tuple<128, 192>(b, outer);
      put_both(b, outer, inner);
      return true;
    }
    case 33:
      put_tuple<0, 64>(b, outer);
      b.put<98, 1>(source.function_loop);
      b.put<99, 1>(outer.fragment);
      b.put<106, 2>(static_cast<unsigned>(outer.l3));
      b.put<108, 2>(static_cast<unsigned>(outer.l4));
      put_vlan<110, 112>(b, outer, 0);
      b.put<224, 4>(outer.version);
      b.put<228, 4>(outer.ihl);
      b.put<240, 8>(outer.ttl);
      b.put<248, 8>(outer.protocol);
      return true;
    default:
      return false;
  }
}

}  // namespace hcasim
