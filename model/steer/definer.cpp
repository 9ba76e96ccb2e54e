// SPDX-License-Identifier: BSD-3-Clause
#include "model/steer/definer.h"

#include <cstring>

#include "model/steer/actions.h"
#include "model/steer/flow_match.h"
#include "model/steer/ste_tag.h"

namespace hcasim {

namespace {

// The outer headers of a frame, or those in its tunnel.
struct DefinedLayer {
  const std::uint8_t* bytes;
  const std::uint8_t* l2;  // null: there is none
  unsigned tags;
  std::uint16_t tpid, tci, ethertype;
  const IpHeaders& ip;
};

DefinedLayer outer_layer(const SteeredFrame& f) {
  const FrameHeaders& h = f.headers;
  return {f.bytes(), h.len ? f.bytes() : nullptr, h.tags, h.tpid[0], h.tci[0], h.ethertype, h.outer};
}

// Of a frame without a tunnel, nothing.
DefinedLayer inner_layer(const SteeredFrame& f) {
  const FrameHeaders& h = f.headers;
  return {f.bytes(),      h.inner_l2 ? f.bytes() + h.inner_l2 : nullptr,
          h.inner_tags,   h.inner_tpid[0],
          h.inner_tci[0], h.inner_ethertype,
          h.inner};
}

// Writes a layout's fields: those of a layer, or ones into all that are known.
struct DefinerFields {
  std::uint8_t* tag;
  const DefinedLayer* from;  // null: ones

  template <class F, class Get>
  void put(Get get) const {
    prm::set<F>(tag, from ? static_cast<typename F::type>(get(*from))
                          : static_cast<typename F::type>(~std::uint64_t{0}));
  }

  template <class DmacHigh, class DmacLow, class SmacHigh, class SmacLow>
  void macs() const {
    put<DmacHigh>([](const DefinedLayer& l) { return l.l2 ? prm::load32(l.l2) : 0; });
    put<DmacLow>([](const DefinedLayer& l) { return l.l2 ? prm::load16(l.l2 + 4) : 0; });
    put<SmacHigh>([](const DefinedLayer& l) { return l.l2 ? prm::load32(l.l2 + 6) : 0; });
    put<SmacLow>([](const DefinedLayer& l) { return l.l2 ? prm::load16(l.l2 + 10) : 0; });
  }
  template <class L3, class L4, class Fragment>
  void types() const {
    put<L3>([](const DefinedLayer& l) {
      return l.ip.version == 4   ? prm::SteL3::kIpv4
             : l.ip.version == 6 ? prm::SteL3::kIpv6
                                 : prm::SteL3::kOther;
    });
    put<L4>([](const DefinedLayer& l) {
      return l.ip.tcp ? prm::SteL4Type::kTcp : l.ip.udp ? prm::SteL4Type::kUdp : prm::SteL4Type::kOther;
    });
    put<Fragment>([](const DefinedLayer& l) { return l.ip.version && l.ip.fragment ? 1 : 0; });
  }
  template <class Type, class Prio, class Cfi, class Vid>
  void first_vlan() const {
    put<Type>([](const DefinedLayer& l) {
      return l.tags == 0            ? prm::SteVlan::kNone
             : l.tpid == kTpidSvlan ? prm::SteVlan::kSvlan
                                    : prm::SteVlan::kCvlan;
    });
    put<Prio>([](const DefinedLayer& l) { return l.tags ? l.tci >> 13 : 0; });
    put<Cfi>([](const DefinedLayer& l) { return l.tags ? l.tci >> 12 & 1 : 0; });
    put<Vid>([](const DefinedLayer& l) { return l.tags ? l.tci & 0xfff : 0; });
  }
  template <class Sport, class Dport>
  void ports() const {
    put<Sport>(
        [](const DefinedLayer& l) { return l.ip.tcp || l.ip.udp ? prm::load16(l.bytes + l.ip.l4) : 0; });
    put<Dport>(
        [](const DefinedLayer& l) { return l.ip.tcp || l.ip.udp ? prm::load16(l.bytes + l.ip.l4 + 2) : 0; });
  }
  template <class Source, class Dest>
  void ipv4() const {
    put<Source>(
        [](const DefinedLayer& l) { return l.ip.version == 4 ? prm::load32(l.bytes + l.ip.l3 + 12) : 0; });
    put<Dest>(
        [](const DefinedLayer& l) { return l.ip.version == 4 ? prm::load32(l.bytes + l.ip.l3 + 16) : 0; });
  }
  template <class Source, class Dest>
  void ipv6() const {
    constexpr std::size_t kLen = 16;
    std::uint8_t *source = prm::ptr<Source>(tag), *dest = prm::ptr<Dest>(tag);
    if (!from) {
      std::memset(source, 0xff, kLen);
      std::memset(dest, 0xff, kLen);
    } else if (from->ip.version == 6) {
      std::memcpy(source, from->bytes + from->ip.l3 + 8, kLen);
      std::memcpy(dest, from->bytes + from->ip.l3 + 24, kLen);
    }
  }
};

void format_0(const DefinerFields& f) {
  using F = prm::match_definer_format_0;
  f.macs<F::outer_dmac_47_16, F::outer_dmac_15_0, F::outer_smac_47_16, F::outer_smac_15_0>();
  f.put<F::outer_ethertype>([](const DefinedLayer& l) { return l.ethertype; });
  f.types<F::outer_l3_type, F::outer_l4_type, F::outer_ip_frag>();
  f.first_vlan<F::outer_first_vlan_type, F::outer_first_vlan_prio, F::outer_first_vlan_cfi,
               F::outer_first_vlan_vid>();
}

void format_22(const DefinerFields& f) {
  using F = prm::match_definer_format_22;
  f.ipv4<F::outer_ip_src_addr, F::outer_ip_dest_addr>();
  f.ports<F::outer_l4_sport, F::outer_l4_dport>();
  f.types<F::outer_l3_type, F::outer_l4_type, F::outer_ip_frag>();
  f.first_vlan<F::outer_first_vlan_type, F::outer_first_vlan_prio, F::outer_first_vlan_cfi,
               F::outer_first_vlan_vid>();
  f.macs<F::outer_dmac_47_16, F::outer_dmac_15_0, F::outer_smac_47_16, F::outer_smac_15_0>();
}

void format_23(const DefinerFields& f) {
  using F = prm::match_definer_format_23;
  f.ipv4<F::inner_ip_src_addr, F::inner_ip_dest_addr>();
  f.ports<F::inner_l4_sport, F::inner_l4_dport>();
  f.types<F::inner_l3_type, F::inner_l4_type, F::inner_ip_frag>();
  f.first_vlan<F::inner_first_vlan_type, F::inner_first_vlan_prio, F::inner_first_vlan_cfi,
               F::inner_first_vlan_vid>();
  f.macs<F::inner_dmac_47_16, F::inner_dmac_15_0, F::inner_smac_47_16, F::inner_smac_15_0>();
}

void format_29(const DefinerFields& f) {
  using F = prm::match_definer_format_29;
  f.ipv6<F::outer_ip_src_addr, F::outer_ip_dest_addr>();
  f.ports<F::outer_l4_sport, F::outer_l4_dport>();
}

void format_30(const DefinerFields& f) {
  using F = prm::match_definer_format_30;
  f.ipv6<F::outer_ip_src_addr, F::outer_ip_dest_addr>();
  f.macs<F::outer_dmac_47_16, F::outer_dmac_15_0, F::outer_smac_47_16, F::outer_smac_15_0>();
}

void format_31(const DefinerFields& f) {
  using F = prm::match_definer_format_31;
  f.ipv6<F::inner_ip_src_addr, F::inner_ip_dest_addr>();
  f.ports<F::inner_l4_sport, F::inner_l4_dport>();
}

void format_32(const DefinerFields& f) {
  using F = prm::match_definer_format_32;
  f.ipv6<F::inner_ip_src_addr, F::inner_ip_dest_addr>();
  f.macs<F::inner_dmac_47_16, F::inner_dmac_15_0, F::inner_smac_47_16, F::inner_smac_15_0>();
}

struct DefinerFormat {
  std::uint16_t format;
  DefinedLayer (*layer)(const SteeredFrame&);
  void (*fill)(const DefinerFields&);
};
constexpr DefinerFormat kDefinerFormats[] = {
    {0, outer_layer, format_0},   {22, outer_layer, format_22}, {23, inner_layer, format_23},
    {29, outer_layer, format_29}, {30, outer_layer, format_30}, {31, inner_layer, format_31},
    {32, inner_layer, format_32},
};

const DefinerFormat* find_format(std::uint16_t format) {
  for (const DefinerFormat& l : kDefinerFormats)
    if (l.format == format) return &l;
  return nullptr;
}

}  // namespace

bool MatchDefiner::known() const {
  Tag all{};
  const DefinerFormat* layout = find_format(format);
  if (layout) layout->fill({all.data(), nullptr});
  if (!fill_software_definer(format, nullptr, {}, all.data()) && !layout) return false;
  for (std::size_t i = 0; i < mask.size(); ++i)
    if (mask[i] & ~all[i]) return false;
  return true;
}

MatchDefiner::Tag MatchDefiner::tag(const SteeredFrame& frame, const SteSource& source) const {
  Tag tag{};
  if (const DefinerFormat* layout = find_format(format)) {
    const DefinedLayer layer = layout->layer(frame);
    layout->fill({tag.data(), &layer});
  }
  fill_software_definer(format, &frame, source, tag.data());
  for (std::size_t i = 0; i < tag.size(); ++i) tag[i] &= mask[i];
  return tag;
}

std::uint64_t MatchDefiner::hash(const SteeredFrame& frame) const {
  const Tag masked = tag(frame, {});
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < masked.size(); i += 4)
    hash = flow_hash_step(hash, prm::load32(masked.data() + i));
  return hash;
}

static_assert(std::tuple_size_v<MatchDefiner::Tag> == MatchDefiner::kFields + prm::kSteV1MatchTagBytes);

std::uint64_t definer_formats() {
  std::uint64_t formats = 0;
  for (const DefinerFormat& l : kDefinerFormats) formats |= std::uint64_t{1} << l.format;
  for (const unsigned format : {2u, 6u, 16u, 24u, 25u, 26u, 28u, 33u}) formats |= std::uint64_t{1} << format;
  return formats;
}

}  // namespace hcasim
