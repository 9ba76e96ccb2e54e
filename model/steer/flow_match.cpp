// SPDX-License-Identifier: BSD-3-Clause
// The match engine: from a frame's headers to an entry.
#include "model/steer/flow_match.h"

#include <algorithm>

#include "model/steer/lookup_time.h"
#include "model/steer/ste_layer.h"
#include "prm/field.h"
#include "prm/psp.h"

namespace hcasim {

namespace {

using Lyr = prm::fte_match_set_lyr_2_4;
using Misc = prm::fte_match_set_misc;
using Misc2 = prm::fte_match_set_misc2;
using Misc3 = prm::fte_match_set_misc3;
using Misc5 = prm::fte_match_set_misc5;
using Mpls = prm::fte_match_mpls;

enum : unsigned {
  kOuter = 1 << 0,
  kMisc = 1 << 1,
  kInner = 1 << 2,
  kMisc2 = 1 << 3,
  kMisc3 = 1 << 4,
  kMisc5 = 1 << 6,
};
constexpr unsigned kMisc5Block = 6;

void fill_macs(const std::uint8_t* l2, std::uint8_t* to) {
  prm::set<Lyr::dmac_47_16>(to, prm::load32(l2));
  prm::set<Lyr::dmac_15_0>(to, prm::load16(l2 + 4));
  prm::set<Lyr::smac_47_16>(to, prm::load32(l2 + 6));
  prm::set<Lyr::smac_15_0>(to, prm::load16(l2 + 10));
}

void fill_tag(std::uint16_t tpid, std::uint16_t tci, std::uint8_t* to) {
  if (tpid == kTpidCvlan)
    prm::set<Lyr::cvlan_tag>(to, 1);
  else
    prm::set<Lyr::svlan_tag>(to, 1);
  prm::set<Lyr::first_prio>(to, tci >> 13);
  prm::set<Lyr::first_cfi>(to, tci >> 12 & 1);
  prm::set<Lyr::first_vid>(to, tci & 0xfff);
}

void fill_ip(const std::uint8_t* frame, const IpHeaders& ip, std::uint8_t* to) {
  if (!ip.version) return;
  const std::uint8_t* l3 = frame + ip.l3;
  prm::set<Lyr::ip_version>(to, ip.version);
  if (ip.version == 4) prm::set<Lyr::ipv4_ihl>(to, l3[0] & 0xfu);
  prm::set<Lyr::ip_protocol>(to, ip.protocol);
  prm::set<Lyr::frag>(to, ip.fragment);
  const unsigned traffic_class = ip.version == 4 ? l3[1] : (l3[0] & 0xfu) << 4 | l3[1] >> 4;
  prm::set<Lyr::ip_dscp>(to, traffic_class >> 2);
  prm::set<Lyr::ip_ecn>(to, traffic_class & 3);
  prm::set<Lyr::ttl_hoplimit>(to, ip.version == 4 ? l3[8] : l3[7]);
  std::uint8_t* src = prm::ptr<Lyr::src_ipv4_src_ipv6>(to);
  std::uint8_t* dst = prm::ptr<Lyr::dst_ipv4_dst_ipv6>(to);
  if (ip.version == 4) {
    std::memcpy(src + 12, l3 + 12, 4);
    std::memcpy(dst + 12, l3 + 16, 4);
  } else {
    std::memcpy(src, l3 + 8, 16);
    std::memcpy(dst, l3 + 24, 16);
  }
  const std::uint8_t* l4 = frame + ip.l4;
  if (ip.tcp) {
    prm::set<Lyr::l4_type>(to, static_cast<unsigned>(prm::SteL4Type::kTcp));
    prm::set<Lyr::tcp_sport>(to, prm::load16(l4));
    prm::set<Lyr::tcp_dport>(to, prm::load16(l4 + 2));
    prm::set<Lyr::tcp_flags>(to, prm::load16(l4 + 12) & 0x1ff);
  } else if (ip.udp) {
    prm::set<Lyr::l4_type>(to, static_cast<unsigned>(prm::SteL4Type::kUdp));
    prm::set<Lyr::udp_sport>(to, prm::load16(l4));
    prm::set<Lyr::udp_dport>(to, prm::load16(l4 + 2));
  }
}

std::uint32_t flow_label(const std::uint8_t* frame, const IpHeaders& ip) {
  return ip.version == 6 ? prm::load32(frame + ip.l3) & 0xfffff : 0;
}

void fill_tunnel(const std::uint8_t* frame, const FrameHeaders& h, std::uint8_t* misc) {
  const std::uint8_t* tunnel = frame + h.tunnel_at;
  switch (h.tunnel) {
    case Tunnel::kVxlan:
      prm::set<Misc::vxlan_vni>(misc, h.vni);
      break;
    case Tunnel::kGre:
      prm::set<Misc::gre_c_present>(misc, h.gre_checksum);
      prm::set<Misc::gre_k_present>(misc, h.gre_key_present);
      prm::set<Misc::gre_s_present>(misc, h.gre_sequence);
      prm::set<Misc::gre_protocol>(misc, h.gre_protocol);
      prm::store32(prm::ptr<Misc::gre_key>(misc), h.gre_key);
      break;
    case Tunnel::kGeneve:
      prm::set<Misc::geneve_vni>(misc, h.vni);
      prm::set<Misc::geneve_oam>(misc, tunnel[1] >> 7);
      prm::set<Misc::geneve_opt_len>(misc, tunnel[0] & 0x3fu);
      prm::set<Misc::geneve_protocol_type>(misc, prm::load16(tunnel + 2));
      break;
    default:
      break;
  }
}

template <class Prio, class Cfi, class Vid, class Cvlan, class Svlan>
void fill_second_tag(std::uint16_t tpid, std::uint16_t tci, std::uint8_t* misc) {
  prm::set<Prio>(misc, tci >> 13);
  prm::set<Cfi>(misc, tci >> 12 & 1);
  prm::set<Vid>(misc, tci & 0xfff);
  if (tpid == kTpidCvlan)
    prm::set<Cvlan>(misc, 1);
  else
    prm::set<Svlan>(misc, 1);
}

void fill_misc(const SteeredFrame& steered, std::uint8_t* misc) {
  const FrameHeaders& h = steered.headers;
  const std::uint8_t* frame = steered.bytes();
  prm::set<Misc::source_sqn>(misc, steered.sqn);
  prm::set<Misc::source_port>(misc, steered.source_port);
  prm::set<Misc::source_eswitch_owner_vhca_id>(misc, steered.owner);
  prm::set<Misc::outer_ipv6_flow_label>(misc, flow_label(frame, h.outer));
  if (h.tags > 1)
    fill_second_tag<Misc::outer_second_prio, Misc::outer_second_cfi, Misc::outer_second_vid,
                    Misc::outer_second_cvlan_tag, Misc::outer_second_svlan_tag>(h.tpid[1], h.tci[1], misc);
  if (h.bth) {
    prm::set<Misc::bth_opcode>(misc, frame[h.bth]);
    prm::set<Misc::bth_dst_qp>(misc, prm::load32(frame + h.bth + 4) & 0xffffff);
  }
  if (steered.datagram_qpn != 0) prm::set<Misc::bth_dst_qp>(misc, steered.datagram_qpn);
  if (h.outer.version && !h.outer.fragment && h.outer.protocol == kProtoEsp && h.outer.l4 + 4 <= h.outer.end)
    prm::set<Misc::outer_esp_spi>(misc, prm::load32(frame + h.outer.l4));
  // ESP in UDP (RFC 3948); four bytes of 0 stand before messages of IKE.
  if (h.outer.udp && h.outer.l4 + 12 <= h.outer.end &&
      (prm::load16(frame + h.outer.l4) == kEspUdpPort || prm::load16(frame + h.outer.l4 + 2) == kEspUdpPort))
    prm::set<Misc::inner_esp_spi>(misc, prm::load32(frame + h.outer.l4 + 8));
  if (h.tunnel == Tunnel::kNone) return;
  fill_tunnel(frame, h, misc);
  prm::set<Misc::inner_ipv6_flow_label>(misc, flow_label(frame, h.inner));
  if (h.inner_tags > 1)
    fill_second_tag<Misc::inner_second_prio, Misc::inner_second_cfi, Misc::inner_second_vid,
                    Misc::inner_second_cvlan_tag, Misc::inner_second_svlan_tag>(h.inner_tpid[1],
                                                                                h.inner_tci[1], misc);
}

void fill_mpls(const std::uint8_t* label, std::uint8_t* to) {
  prm::set<Mpls::mpls_label>(to, prm::load32(label) >> 12);
  prm::set<Mpls::mpls_exp>(to, label[2] >> 1 & 7u);
  prm::set<Mpls::mpls_s_bos>(to, label[2] & 1u);
  prm::set<Mpls::mpls_ttl>(to, label[3]);
}

void fill_misc2(const SteeredFrame& steered, std::uint8_t* misc) {
  const FrameHeaders& h = steered.headers;
  const std::uint8_t* frame = steered.bytes();
  if (h.mpls) fill_mpls(frame + h.mpls, prm::ptr<Misc2::outer_first_mpls>(misc));
  if (h.inner_mpls) fill_mpls(frame + h.inner_mpls, prm::ptr<Misc2::inner_first_mpls>(misc));
  if (h.tunnel_mpls)
    fill_mpls(frame + h.tunnel_mpls, h.tunnel == Tunnel::kGre
                                         ? prm::ptr<Misc2::outer_first_mpls_over_gre>(misc)
                                         : prm::ptr<Misc2::outer_first_mpls_over_udp>(misc));
  const FlowRegisters& r = steered.regs;
  prm::set<Misc2::metadata_reg_c_0>(misc, r.c[0]);
  prm::set<Misc2::metadata_reg_c_1>(misc, r.c[1]);
  prm::set<Misc2::metadata_reg_c_2>(misc, r.c[2]);
  prm::set<Misc2::metadata_reg_c_3>(misc, r.c[3]);
  prm::set<Misc2::metadata_reg_c_4>(misc, r.c[4]);
  prm::set<Misc2::metadata_reg_c_5>(misc, r.c[5]);
  prm::set<Misc2::metadata_reg_c_6>(misc, r.c[6]);
  prm::set<Misc2::metadata_reg_c_7>(misc, r.c[7]);
  prm::set<Misc2::metadata_reg_a>(misc, r.a);
  prm::set<Misc2::ipsec_syndrome>(misc, steered.ipsec_syndrome);
  prm::set<Misc2::macsec_syndrome>(misc, steered.macsec_syndrome);
  prm::set<prm::psp::match_syndrome>(misc, steered.psp_syndrome);
}

// The words of GTP-U's header; those behind the first two are there if its flags say so.
void fill_gtpu(const SteeredFrame& steered, std::uint8_t* misc) {
  const FrameHeaders& h = steered.headers;
  const std::uint8_t* tunnel = steered.bytes() + h.tunnel_at;
  prm::set<Misc3::gtpu_msg_flags>(misc, tunnel[0]);
  prm::set<Misc3::gtpu_msg_type>(misc, tunnel[1]);
  prm::set<Misc3::gtpu_dw_0>(misc, prm::load32(tunnel));
  prm::set<Misc3::gtpu_teid>(misc, prm::load32(tunnel + 4));
  const auto has = [&](unsigned flags, std::uint32_t at) {
    return (tunnel[0] & flags) != 0 && h.tunnel_at + at + 4u <= h.outer.end;
  };
  if (has(ste_tag::kGtpuOptional, 8)) prm::set<Misc3::gtpu_dw_2>(misc, prm::load32(tunnel + 8));
  if (has(ste_tag::kGtpuExtension, 12)) prm::set<Misc3::gtpu_first_ext_dw_0>(misc, prm::load32(tunnel + 12));
}

template <class Seq, class Ack>
void fill_tcp(const std::uint8_t* frame, const IpHeaders& ip, std::uint8_t* misc) {
  if (!ip.tcp) return;
  prm::set<Seq>(misc, prm::load32(frame + ip.l4 + 4));
  prm::set<Ack>(misc, prm::load32(frame + ip.l4 + 8));
}

void fill_misc3(const SteeredFrame& steered, const GeneveOption& option, std::uint8_t* misc) {
  const FrameHeaders& h = steered.headers;
  const std::uint8_t* frame = steered.bytes();
  fill_tcp<Misc3::outer_tcp_seq_num, Misc3::outer_tcp_ack_num>(frame, h.outer, misc);
  fill_tcp<Misc3::inner_tcp_seq_num, Misc3::inner_tcp_ack_num>(frame, h.inner, misc);
  const std::uint8_t* tunnel = frame + h.tunnel_at;
  if (h.tunnel == Tunnel::kVxlanGpe) {
    prm::set<Misc3::outer_vxlan_gpe_vni>(misc, h.vni);
    prm::set<Misc3::outer_vxlan_gpe_next_protocol>(misc, tunnel[3]);
    prm::set<Misc3::outer_vxlan_gpe_flags>(misc, tunnel[0]);
  } else if (h.tunnel == Tunnel::kGtpu) {
    fill_gtpu(steered, misc);
  } else if (const std::uint32_t data = option.find(steered)) {
    prm::set<Misc3::geneve_tlv_option_0_data>(misc, prm::load32(frame + data));
  }
  if (!h.outer.icmp) return;
  const std::uint8_t* icmp = frame + h.outer.l4;
  if (h.outer.version == 4) {
    prm::set<Misc3::icmp_type>(misc, icmp[0]);
    prm::set<Misc3::icmp_code>(misc, icmp[1]);
    prm::set<Misc3::icmp_header_data>(misc, prm::load32(icmp + 4));
  } else {
    prm::set<Misc3::icmpv6_type>(misc, icmp[0]);
    prm::set<Misc3::icmpv6_code>(misc, icmp[1]);
    prm::set<Misc3::icmpv6_header_data>(misc, prm::load32(icmp + 4));
  }
}

// The SecTAG (IEEE 802.1AE 9.3), its Ethertype first; the SCI is there if a bit of it says so.
void fill_sec_tag(const SteeredFrame& steered, std::uint8_t* misc) {
  const FrameHeaders& h = steered.headers;
  constexpr unsigned kTag = 8, kSci = 8, kHasSci = 0x20;
  if (h.ethertype != kEthertypeMacsec || h.payload - 2u + kTag > h.len) return;
  const std::uint8_t* tag = steered.bytes() + h.payload - 2;
  prm::set<Misc5::macsec_tag_0>(misc, prm::load32(tag));
  prm::set<Misc5::macsec_tag_1>(misc, prm::load32(tag + 4));
  if (!(tag[2] & kHasSci) || h.payload - 2u + kTag + kSci > h.len) return;
  prm::set<Misc5::macsec_tag_2>(misc, prm::load32(tag + 8));
  prm::set<Misc5::macsec_tag_3>(misc, prm::load32(tag + 12));
}

// The first words of what is in UDP, of the tunnels that the card knows.
void fill_misc5(const SteeredFrame& steered, std::uint8_t* misc) {
  fill_sec_tag(steered, misc);
  SteTag header{};
  ste_tag::make_tunnel_header(steered, false, header.size(), header);
  std::memcpy(misc + Misc5::tunnel_header_0::bit_off / 8, header.data(), header.size());
}

template <class... Fields>
void all_ones(std::uint8_t* block) {
  (prm::set<Fields>(block, static_cast<typename Fields::type>(~0ull)), ...);
}

void all_layers(std::uint8_t* block) {
  all_ones<Lyr::dmac_47_16, Lyr::dmac_15_0, Lyr::smac_47_16, Lyr::smac_15_0, Lyr::ethertype, Lyr::first_prio,
           Lyr::first_cfi, Lyr::first_vid, Lyr::ip_protocol, Lyr::ip_dscp, Lyr::ip_ecn, Lyr::cvlan_tag,
           Lyr::svlan_tag, Lyr::frag, Lyr::ip_version, Lyr::tcp_flags, Lyr::tcp_sport, Lyr::tcp_dport,
           Lyr::ipv4_ihl, Lyr::l4_type, Lyr::ttl_hoplimit, Lyr::udp_sport, Lyr::udp_dport>(block);
  std::memset(prm::ptr<Lyr::src_ipv4_src_ipv6>(block), 0xff, 16);
  std::memset(prm::ptr<Lyr::dst_ipv4_dst_ipv6>(block), 0xff, 16);
}

MatchParam all_matchable() {
  MatchParam m{};
  all_layers(m.data());
  all_layers(m.data() + 2 * kMatchBlock);
  std::uint8_t* misc = m.data() + kMatchBlock;
  all_ones<Misc::gre_c_present, Misc::gre_k_present, Misc::gre_s_present, Misc::source_sqn, Misc::source_port,
           Misc::source_eswitch_owner_vhca_id, Misc::outer_second_prio, Misc::outer_second_cfi,
           Misc::outer_second_vid, Misc::inner_second_prio, Misc::inner_second_cfi, Misc::inner_second_vid,
           Misc::outer_second_cvlan_tag, Misc::inner_second_cvlan_tag, Misc::outer_second_svlan_tag,
           Misc::inner_second_svlan_tag, Misc::gre_protocol, Misc::vxlan_vni, Misc::bth_opcode,
           Misc::geneve_vni, Misc::geneve_oam, Misc::outer_ipv6_flow_label, Misc::inner_ipv6_flow_label,
           Misc::geneve_opt_len, Misc::geneve_protocol_type, Misc::bth_dst_qp, Misc::outer_esp_spi,
           Misc::inner_esp_spi>(misc);
  prm::store32(prm::ptr<Misc::gre_key>(misc), ~0u);
  std::uint8_t* misc2 = m.data() + 3 * kMatchBlock;
  // Four MPLS labels, then the registers C7 to C0 and A.
  std::memset(misc2, 0xff, Misc2::metadata_reg_a::bit_off / 8 + 4);
  all_ones<Misc2::ipsec_syndrome, Misc2::macsec_syndrome, prm::psp::match_syndrome>(misc2);
  std::uint8_t* misc3 = m.data() + 4 * kMatchBlock;
  all_ones<Misc3::inner_tcp_seq_num, Misc3::outer_tcp_seq_num, Misc3::inner_tcp_ack_num,
           Misc3::outer_tcp_ack_num, Misc3::outer_vxlan_gpe_vni, Misc3::outer_vxlan_gpe_next_protocol,
           Misc3::outer_vxlan_gpe_flags, Misc3::icmp_header_data, Misc3::icmpv6_header_data, Misc3::icmp_type,
           Misc3::icmp_code, Misc3::icmpv6_type, Misc3::icmpv6_code, Misc3::gtpu_teid, Misc3::gtpu_msg_type,
           Misc3::gtpu_msg_flags, Misc3::geneve_tlv_option_0_data, Misc3::gtpu_dw_0, Misc3::gtpu_dw_2,
           Misc3::gtpu_first_ext_dw_0>(misc3);
  all_ones<Misc5::macsec_tag_0, Misc5::macsec_tag_1, Misc5::macsec_tag_2, Misc5::macsec_tag_3,
           Misc5::tunnel_header_0, Misc5::tunnel_header_1, Misc5::tunnel_header_2, Misc5::tunnel_header_3>(
      m.data() + kMisc5Block * kMatchBlock);
  return m;
}

}  // namespace

const MatchParam& matchable() {
  static const MatchParam all = all_matchable();
  return all;
}

void fill_match_param(const SteeredFrame& steered, const GeneveOption& option, unsigned criteria,
                      std::uint8_t* params) {
  const FrameHeaders& h = steered.headers;
  const std::uint8_t* frame = steered.bytes();
  for (unsigned block = 0; block <= kMisc5Block; ++block)
    if (criteria >> block & 1) std::memset(params + block * kMatchBlock, 0, kMatchBlock);
  if (!h.len) return;
  if (criteria & kOuter) {
    fill_macs(frame, params);
    prm::set<Lyr::ethertype>(params, h.ethertype);
    if (h.tags) fill_tag(h.tpid[0], h.tci[0], params);
    fill_ip(frame, h.outer, params);
  }
  if (criteria & kMisc) fill_misc(steered, params + kMatchBlock);
  if (criteria & kInner && h.tunnel != Tunnel::kNone) {
    std::uint8_t* inner = params + 2 * kMatchBlock;
    if (h.inner_l2) fill_macs(frame + h.inner_l2, inner);
    prm::set<Lyr::ethertype>(inner, h.inner_ethertype);
    if (h.inner_tags) fill_tag(h.inner_tpid[0], h.inner_tci[0], inner);
    fill_ip(frame, h.inner, inner);
  }
  if (criteria & kMisc2) fill_misc2(steered, params + 3 * kMatchBlock);
  if (criteria & kMisc3) fill_misc3(steered, option, params + 4 * kMatchBlock);
  if (criteria & kMisc5) fill_misc5(steered, params + kMisc5Block * kMatchBlock);
}

// The entry with the lowest flow index that fits.
const FlowEntry* FlowSteering::lookup(const FlowTable& table, const std::uint8_t* params,
                                      const SteeredFrame& frame, Time* at, unsigned& work) const {
  const bool from_uplink = frame.source_port == kUplinkPort;
  for (const FlowGroup* group : table.order) {
    if (!spend(work, 1)) return nullptr;
    if (group->splits) {
      if (const FlowEntry* entry = split(table, *group, frame)) return entry;
      continue;
    }
    if (group->index.empty()) continue;
    std::uint64_t hash = 0;
    for (const FlowGroup::Word& word : group->words) hash = flow_hash_step(hash, flow_word(params, word));
    const auto fitting = [&](std::uint32_t index) -> const FlowEntry* {
      const auto entry = table.entries.find(index);
      if (entry == table.entries.end()) return nullptr;
      const FlowEntry::Source source = entry->second.source;
      if (source != FlowEntry::kAny && (source == FlowEntry::kFromUplink) != from_uplink) return nullptr;
      const std::vector<std::uint32_t>& key = entry->second.key;
      for (std::size_t i = 0; i < key.size(); ++i)
        if (key[i] != flow_word(params, group->words[i])) return nullptr;
      return &entry->second;
    };
    const FlowEntry* found = nullptr;
    if (const auto same = group->index.find(hash); same != group->index.end()) {
      found = fitting(same->second.lowest());
      const std::vector<std::uint32_t>& others = same->second.others();
      for (auto it = others.begin(); !found && it != others.end(); ++it) {
        if (!spend(work, 1)) return nullptr;
        found = fitting(*it);
      }
    }
    if (at)
      *at = time_->look_up(*at, found ? LookupTime::entry_line(table.id, found->index)
                                      : LookupTime::group_line(table.id, group->first));
    if (found) return found;
  }
  return nullptr;
}

}  // namespace hcasim
