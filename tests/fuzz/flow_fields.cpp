// SPDX-License-Identifier: BSD-3-Clause
// What flow entries look at, and values of it that frames have.
#include "flow_parts.h"

namespace hcasim::bare {

namespace {

using Lyr = prm::fte_match_set_lyr_2_4;
using Misc = prm::fte_match_set_misc;
using Misc2 = prm::fte_match_set_misc2;
using Misc3 = prm::fte_match_set_misc3;
using Misc5 = prm::fte_match_set_misc5;
constexpr std::size_t kBlock = Misc::bytes;

struct Field {
  unsigned block;
  void (*put)(std::uint8_t*, std::uint32_t);
  std::array<std::uint32_t, 3> values;  // beside 0
};
#define FIELD(block, f, ...)                                                             \
  {                                                                                      \
    block, +[](std::uint8_t* p, std::uint32_t v) { prm::set<f>(p, v); }, { __VA_ARGS__ } \
  }
#define LAYERS(block)                                                                                   \
  FIELD(block, Lyr::dmac_47_16, 0x02000000, 0x33000000, 1), FIELD(block, Lyr::dmac_15_0, 1, 2, 3),      \
      FIELD(block, Lyr::smac_47_16, 0x02000000, 0, 1), FIELD(block, Lyr::smac_15_0, 2, 1, 3),           \
      FIELD(block, Lyr::ethertype, 0x0800, 0x86dd, 0x88b5), FIELD(block, Lyr::first_vid, 1, 2, 5),      \
      FIELD(block, Lyr::first_prio, 3, 0, 1), FIELD(block, Lyr::first_cfi, 0, 0, 1),                    \
      FIELD(block, Lyr::cvlan_tag, 1, 1, 0), FIELD(block, Lyr::svlan_tag, 1, 0, 1),                     \
      FIELD(block, Lyr::ip_protocol, 17, 6, 47), FIELD(block, Lyr::ip_dscp, 0, 0, 1),                   \
      FIELD(block, Lyr::ip_ecn, 0, 0, 1), FIELD(block, Lyr::frag, 0, 1, 1),                             \
      FIELD(block, Lyr::ip_version, 4, 6, 4), FIELD(block, Lyr::tcp_flags, 0x10, 0x10, 0x18),           \
      FIELD(block, Lyr::tcp_sport, 4000, 4001, 4002), FIELD(block, Lyr::tcp_dport, 5000, 443, 4789),    \
      FIELD(block, Lyr::udp_sport, 4000, 0xc123, 4001), FIELD(block, Lyr::udp_dport, 4789, 5000, 4791), \
      FIELD(block, Lyr::ipv4_ihl, 5, 5, 0), FIELD(block, Lyr::l4_type, 1, 2, 1),                        \
      FIELD(block, Lyr::ttl_hoplimit, 64, 64, 0), {                                                     \
    block,                                                                                              \
        +[](std::uint8_t* p, std::uint32_t v) {                                                         \
          prm::store32(prm::ptr<Lyr::src_ipv4_src_ipv6>(p) + 12, v);                                    \
        },                                                                                              \
    {                                                                                                   \
      0x0a000001, 0x3d42474c, 0                                                                         \
    }                                                                                                   \
  }
const Field kFields[] = {
    LAYERS(0),
    LAYERS(2),
    FIELD(1, Misc::gre_c_present, 0, 1, 1),
    FIELD(1, Misc::gre_k_present, 0, 1, 1),
    FIELD(1, Misc::gre_s_present, 0, 1, 1),
    FIELD(1, Misc::source_sqn, 0, 1, 2),
    FIELD(1, Misc::outer_second_vid, 1, 2, 5),
    FIELD(1, Misc::outer_second_cvlan_tag, 1, 0, 1),
    FIELD(1, Misc::outer_second_svlan_tag, 1, 0, 1),
    FIELD(1, Misc::inner_second_vid, 1, 0, 5),
    FIELD(1, Misc::inner_second_cvlan_tag, 0, 0, 1),
    FIELD(1, Misc::gre_protocol, 0x6558, 0x800, 0),
    FIELD(1, Misc::vxlan_vni, 0xabcd, 0, 1),
    FIELD(1, Misc::bth_opcode, 0, 4, 0x81),
    FIELD(1, Misc::geneve_vni, 0x123456, 0, 1),
    FIELD(1, Misc::geneve_oam, 0, 0, 1),
    FIELD(1, Misc::outer_ipv6_flow_label, 0, 0, 1),
    FIELD(1, Misc::inner_ipv6_flow_label, 0, 0, 1),
    FIELD(1, Misc::geneve_opt_len, 0, 1, 2),
    FIELD(1, Misc::geneve_protocol_type, 0x6558, 0, 1),
    FIELD(1, Misc::bth_dst_qp, 0, 1, 2),
    FIELD(1, Misc::outer_esp_spi, 0x11223344, 0, 1),
    FIELD(1, Misc::inner_esp_spi, 0, 0, 1),
    {1,
     +[](std::uint8_t* p, std::uint32_t v) { prm::store32(prm::ptr<Misc::gre_key>(p), v); },
     {0xdeadbeef, 0, 1}},
    FIELD(3, Misc2::outer_first_mpls::mpls_label, 0x12345, 0, 1),
    FIELD(3, Misc2::outer_first_mpls::mpls_ttl, 0x40, 0, 1),
    FIELD(3, Misc2::inner_first_mpls::mpls_label, 0, 0, 1),
    FIELD(3, Misc2::outer_first_mpls_over_udp::mpls_label, 0x54321, 0, 1),
    FIELD(3, Misc2::outer_first_mpls_over_gre::mpls_ttl, 0x40, 0, 1),
    FIELD(3, Misc2::metadata_reg_c_0, 0, 1, 2),
    FIELD(3, Misc2::metadata_reg_c_1, 0, 1, 2),
    FIELD(3, Misc2::metadata_reg_c_5, 0, 1, 2),
    FIELD(3, Misc2::metadata_reg_a, 0, 1, 2),
    FIELD(3, Misc2::ipsec_syndrome, 0, 1, 2),
    FIELD(3, Misc2::macsec_syndrome, 0, 1, 2),
    FIELD(4, Misc3::inner_tcp_seq_num, 0xfffffff0, 0, 1),
    FIELD(4, Misc3::outer_tcp_seq_num, 0xfffffff0, 0, 1),
    FIELD(4, Misc3::inner_tcp_ack_num, 1, 0, 2),
    FIELD(4, Misc3::outer_tcp_ack_num, 1, 0, 2),
    FIELD(4, Misc3::outer_vxlan_gpe_vni, 0x777, 0, 1),
    FIELD(4, Misc3::outer_vxlan_gpe_next_protocol, 3, 0, 1),
    FIELD(4, Misc3::outer_vxlan_gpe_flags, 0xc, 0, 1),
    FIELD(4, Misc3::icmp_header_data, 0, 0, 1),
    FIELD(4, Misc3::icmp_type, 8, 0, 1),
    FIELD(4, Misc3::icmp_code, 0, 0, 1),
    FIELD(4, Misc3::icmpv6_type, 0, 0, 1),
    FIELD(4, Misc3::gtpu_teid, 0xa1b2c3d4, 0, 1),
    FIELD(4, Misc3::gtpu_msg_type, 255, 0, 1),
    FIELD(4, Misc3::gtpu_msg_flags, 0x30, 0x34, 0x32),
    FIELD(4, Misc3::gtpu_dw_0, 0x30ff0010, 0, 1),
    FIELD(4, Misc3::gtpu_dw_2, 0x85, 0, 0),
    FIELD(4, Misc3::gtpu_first_ext_dw_0, 0x01020300, 0, 1),
    FIELD(6, Misc5::macsec_tag_0, 0, 0, 1),
    FIELD(6, Misc5::tunnel_header_0, 0x08000000, 0x0c000003, 0),
    FIELD(6, Misc5::tunnel_header_1, 0xabcd00, 0x77700, 0),
    FIELD(6, Misc5::tunnel_header_2, 0, 0x01025500, 1),
    FIELD(6, Misc5::tunnel_header_3, 0, 0x01020304, 1),
    // Of the switch's tables alone.
    FIELD(1, Misc::source_port, 1, 2, 0xffff),
    FIELD(1, Misc::source_eswitch_owner_vhca_id, 0, 1, 2),
};
#undef LAYERS
#undef FIELD
constexpr std::size_t kFieldCount = std::size(kFields), kSwitchFields = 2;

bool masked(const Field& f, const MatchParam& mask) {
  MatchParam one{};
  f.put(one.data() + f.block * kBlock, ~0u);
  for (std::size_t i = 0; i < one.size(); ++i)
    if (one[i] != 0 && (mask[i] & one[i]) == one[i]) return true;
  return false;
}

}  // namespace

MatchParam some_mask(Dice& dice, unsigned& criteria, bool in_switch) {
  MatchParam mask{};
  const auto look_at = [&](const Field& f) {
    f.put(mask.data() + f.block * kBlock, ~0u);
    criteria |= 1u << f.block;
  };
  for (std::size_t n = dice.below(4); n > 0; --n) look_at(kFields[dice.below(kFieldCount - kSwitchFields)]);
  for (std::size_t i = 1; in_switch && i <= kSwitchFields; ++i)
    if (dice.chance(40)) look_at(kFields[kFieldCount - i]);
  return mask;
}

MatchParam some_value(Dice& dice, const MatchParam& mask) {
  MatchParam value{};
  for (const Field& f : kFields) {
    if (!masked(f, mask)) continue;
    const std::size_t which = dice.below(5);
    if (which < 4)
      f.put(value.data() + f.block * kBlock, which == 3 ? 0 : f.values[which]);
    else
      f.put(value.data() + f.block * kBlock, dice.word());
  }
  return value;
}

}  // namespace hcasim::bare
