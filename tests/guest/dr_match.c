// SPDX-License-Identifier: BSD-3-Clause
//
// Software steering (mlx5dv_dr): every field that a matcher may name, in a receive domain.
//   dr_match SENDER RECEIVER [--only NAME] [--refused]
// For each field a matcher and a rule whose value is what stands in a frame at that place. The frame itself
// must come to the rule's queue, with its tag; one that differs in a bit of the field alone, to the queue of
// all others; and with a mask of a bit only, one that differs in another one of the field to the rule's.
// Fields that are not read out of the frame as they are have tests of their own. Fields that the library
// refuses are printed; status 0: all was right.
#define _GNU_SOURCE
#include "dr_ends.h"

enum {
  kRuleTag = 0x5a3c69,
  kOuter = 0,
  kMisc = 512,
  kInner = 1024,
  kMisc2 = 1536,
  kMisc3 = 2048,
  kMisc5 = 3072
};

// What else a matcher asks for, so that the library knows the header that a field is of (the IP version,
// whose mask is the version itself); and how a field is treated.
enum {
  kV4 = 1,
  kV6 = 2,
  kIn4 = 4,
  kIn6 = 8,
  kWhole = 16,  // changed in full only, as other bits are read by it
  kNew = 32     // libraries that do not know it may take a matcher of it alone for one of all frames
};

struct field {
  const char* name;
  enum shape shape;
  unsigned param, width;  // in bits
  enum place place;
  unsigned at;  // bits from that header on
  unsigned with;
};

#define IPV6(block, what, from, at)                                          \
  {what "_127_96", kTcp6Tag, block + from, 32, kIp, at, kV6},                \
      {what "_95_64", kTcp6Tag, block + from + 32, 32, kIp, at + 32, kV6},   \
      {what "_63_32", kTcp6Tag, block + from + 64, 32, kIp, at + 64, kV6}, { \
    what "_31_0", kTcp6Tag, block + from + 96, 32, kIp, at + 96, kV6         \
  }
#define INNER_IPV6(what, from, at)                                                 \
  {what "_127_96", kVxlan6, kInner + from, 32, kInnerIp, at, kIn6},                \
      {what "_95_64", kVxlan6, kInner + from + 32, 32, kInnerIp, at + 32, kIn6},   \
      {what "_63_32", kVxlan6, kInner + from + 64, 32, kInnerIp, at + 64, kIn6}, { \
    what "_31_0", kVxlan6, kInner + from + 96, 32, kInnerIp, at + 96, kIn6         \
  }

static const struct field kFields[] = {
    {"smac_47_16", kUdp4, 0, 32, kEth, 48, 0},
    {"smac_15_0", kUdp4, 32, 16, kEth, 80, 0},
    {"ethertype", kUdp4, 48, 16, kEth, 96, kWhole},
    {"ethertype of a tagged frame", kTcp4Tag, 48, 16, kTag, 16, kWhole},
    {"dmac_47_16", kUdp4, 64, 32, kEth, 0, 0},
    {"dmac_15_0", kUdp4, 96, 16, kEth, 32, 0},
    {"first_prio", kTcp4Tag, 112, 3, kTag, 0, 0},
    {"first_cfi", kTcp4Tag, 115, 1, kTag, 3, 0},
    {"first_vid", kTcp4Tag, 116, 12, kTag, 4, 0},
    {"outer_second_prio", kTcp6Tag, kMisc + 64, 3, kTag2, 0, 0},
    {"outer_second_cfi", kTcp6Tag, kMisc + 67, 1, kTag2, 3, 0},
    {"outer_second_vid", kTcp6Tag, kMisc + 68, 12, kTag2, 4, 0},
    {"ip_protocol", kUdp4, 128, 8, kIp, 72, kV4 | kWhole},
    {"ip_protocol, IPv6", kUdp6, 128, 8, kIp, 48, kV6 | kWhole},
    {"ip_dscp", kUdp4, 136, 6, kIp, 8, kV4},
    {"ip_ecn", kUdp4, 142, 2, kIp, 14, kV4},
    {"ip_dscp, IPv6", kUdp6, 136, 6, kIp, 4, kV6},
    {"ip_ecn, IPv6", kUdp6, 142, 2, kIp, 10, kV6},
    {"tcp_flags", kTcp4Tag, 151, 9, kL4, 103, kV4},
    {"tcp_flags, IPv6", kTcp6Tag, 151, 9, kL4, 103, kV6},
    {"tcp_sport", kTcp4Tag, 160, 16, kL4, 0, kV4},
    {"tcp_dport", kTcp4Tag, 176, 16, kL4, 16, kV4},
    {"tcp_sport, IPv6", kTcp6Tag, 160, 16, kL4, 0, kV6},
    {"tcp_dport, IPv6", kTcp6Tag, 176, 16, kL4, 16, kV6},
    {"udp_sport", kUdp4, 224, 16, kL4, 0, kV4},
    {"udp_dport", kUdp4, 240, 16, kL4, 16, kV4},
    {"udp_sport, IPv6", kUdp6, 224, 16, kL4, 0, kV6},
    {"udp_dport, IPv6", kUdp6, 240, 16, kL4, 16, kV6},
    {"ipv4_ihl", kUdp4, 208, 4, kIp, 4, kV4 | kWhole},
    {"ip_ttl_hoplimit", kUdp4, 216, 8, kIp, 64, kV4},
    {"ip_ttl_hoplimit, IPv6", kUdp6, 216, 8, kIp, 56, kV6},
    {"src_ip, IPv4", kUdp4, 352, 32, kIp, 96, kV4},
    {"dst_ip, IPv4", kUdp4, 480, 32, kIp, 128, kV4},
    IPV6(kOuter, "src_ip", 256, 64),
    IPV6(kOuter, "dst_ip", 384, 192),
    {"outer_ipv6_flow_label", kTcp6Tag, kMisc + 236, 20, kIp, 12, kV6},
    {"outer_tcp_seq_num", kTcp4Tag, kMisc3 + 32, 32, kL4, 32, 0},
    {"outer_tcp_ack_num", kTcp4Tag, kMisc3 + 96, 32, kL4, 64, 0},
    {"inner dmac_47_16", kVxlan4, kInner + 64, 32, kInnerEth, 0, 0},
    {"inner dmac_15_0", kVxlan4, kInner + 96, 16, kInnerEth, 32, 0},
    {"inner smac_47_16", kVxlan4, kInner + 0, 32, kInnerEth, 48, 0},
    {"inner smac_15_0", kVxlan4, kInner + 32, 16, kInnerEth, 80, 0},
    {"inner ethertype", kVxlan4, kInner + 48, 16, kInnerEth, 96, kWhole},
    {"inner first_prio", kVxlan6, kInner + 112, 3, kInnerTag, 0, 0},
    {"inner first_cfi", kVxlan6, kInner + 115, 1, kInnerTag, 3, 0},
    {"inner first_vid", kVxlan6, kInner + 116, 12, kInnerTag, 4, 0},
    {"inner ip_protocol", kVxlan4, kInner + 128, 8, kInnerIp, 72, kIn4 | kWhole},
    {"inner ip_protocol, IPv6", kVxlan6, kInner + 128, 8, kInnerIp, 48, kIn6 | kWhole},
    {"inner ip_dscp", kVxlan4, kInner + 136, 6, kInnerIp, 8, kIn4},
    {"inner ip_ecn", kVxlan4, kInner + 142, 2, kInnerIp, 14, kIn4},
    {"inner tcp_flags", kVxlan4, kInner + 151, 9, kInnerL4, 103, kIn4},
    {"inner tcp_sport", kVxlan4, kInner + 160, 16, kInnerL4, 0, kIn4},
    {"inner tcp_dport", kVxlan4, kInner + 176, 16, kInnerL4, 16, kIn4},
    {"inner tcp_dport, IPv6", kVxlan6, kInner + 176, 16, kInnerL4, 16, kIn6},
    {"inner udp_sport", kGre4, kInner + 224, 16, kInnerL4, 0, kIn4},
    {"inner udp_dport, IPv6", kVxlanUdp6, kInner + 240, 16, kInnerL4, 16, kIn6},
    {"inner ip_ttl_hoplimit", kVxlan4, kInner + 216, 8, kInnerIp, 64, kIn4},
    {"inner ip_ttl_hoplimit, IPv6", kVxlan6, kInner + 216, 8, kInnerIp, 56, kIn6},
    {"inner ipv4_ihl", kVxlan4, kInner + 208, 4, kInnerIp, 4, kIn4 | kWhole},
    {"inner src_ip, IPv4", kVxlan4, kInner + 352, 32, kInnerIp, 96, kIn4},
    {"inner dst_ip, IPv4", kGre4, kInner + 480, 32, kInnerIp, 128, kIn4},
    INNER_IPV6("inner src_ip", 256, 64),
    INNER_IPV6("inner dst_ip", 384, 192),
    {"inner_ipv6_flow_label", kVxlan6, kMisc + 268, 20, kInnerIp, 12, kIn6},
    {"vxlan_vni", kVxlan4, kMisc + 160, 24, kTunnel, 32, 0},
    {"gre_c_present", kGre4, kMisc + 0, 1, kTunnel, 0, kWhole},
    {"gre_k_present", kGre4, kMisc + 2, 1, kTunnel, 2, kWhole},
    {"gre_s_present", kGre4, kMisc + 3, 1, kTunnel, 3, kWhole},
    {"gre_protocol", kGre4, kMisc + 112, 16, kTunnel, 16, kWhole},
    {"gre_key_h", kGre4, kMisc + 128, 24, kTunnel, 64, 0},
    {"gre_key_l", kGre4, kMisc + 152, 8, kTunnel, 88, 0},
    {"geneve_vni", kGeneve, kMisc + 192, 24, kTunnel, 32, 0},
    {"geneve_oam", kGeneve, kMisc + 223, 1, kTunnel, 8, 0},
    {"geneve_opt_len", kGeneve, kMisc + 298, 6, kTunnel, 2, kWhole},
    {"geneve_protocol_type", kGeneve, kMisc + 304, 16, kTunnel, 16, kWhole},
    {"geneve_tlv_option_0_data", kGeneve, kMisc3 + 0x120, 32, kOption, 32, 0},
    {"outer_vxlan_gpe_vni", kGpe, kMisc3 + 0x88, 24, kTunnel, 32, 0},
    {"outer_vxlan_gpe_next_protocol", kGpe, kMisc3 + 0xa0, 8, kTunnel, 24, kWhole},
    {"outer_vxlan_gpe_flags", kGpe, kMisc3 + 0xa8, 8, kTunnel, 0, kWhole},
    {"icmpv4_header_data", kIcmp4, kMisc3 + 0xc0, 32, kL4, 32, kV4},
    {"icmpv6_header_data", kIcmp6, kMisc3 + 0xe0, 32, kL4, 32, kV6},
    {"icmpv4_type", kIcmp4, kMisc3 + 0x100, 8, kL4, 0, kV4},
    {"icmpv4_code", kIcmp4, kMisc3 + 0x108, 8, kL4, 8, kV4},
    {"icmpv6_type", kIcmp6, kMisc3 + 0x110, 8, kL4, 0, kV6},
    {"icmpv6_code", kIcmp6, kMisc3 + 0x118, 8, kL4, 8, kV6},
    {"gtpu_teid", kGtp, kMisc3 + 0x140, 32, kTunnel, 32, 0},
    {"gtpu_msg_type", kGtp, kMisc3 + 0x160, 8, kTunnel, 8, 0},
    {"gtpu_msg_flags", kGtp, kMisc3 + 0x168, 8, kTunnel, 0, kWhole},
    {"gtpu_dw_2", kGtp, kMisc3 + 0x180, 32, kTunnel, 64, kWhole},
    {"gtpu_first_ext_dw_0", kGtp, kMisc3 + 0x1a0, 32, kTunnel, 96, kWhole},
    {"gtpu_dw_0", kGtp, kMisc3 + 0x1c0, 32, kTunnel, 0, kWhole},
    {"outer_first_mpls_label", kMpls, kMisc2 + 0, 20, kTunnel, 0, 0},
    {"outer_first_mpls_exp", kMpls, kMisc2 + 20, 3, kTunnel, 20, 0},
    {"outer_first_mpls_ttl", kMpls, kMisc2 + 24, 8, kTunnel, 24, 0},
    {"inner_first_mpls_label", kVxlanMpls, kMisc2 + 32, 20, kInnerL4, 0, 0},
    {"inner_first_mpls_ttl", kVxlanMpls, kMisc2 + 56, 8, kInnerL4, 24, 0},
    {"outer_first_mpls_over_gre_label", kMplsGre, kMisc2 + 64, 20, kOption, 0, 0},
    {"outer_first_mpls_over_gre_exp", kMplsGre, kMisc2 + 84, 3, kOption, 20, 0},
    {"outer_first_mpls_over_gre_ttl", kMplsGre, kMisc2 + 88, 8, kOption, 24, 0},
    {"outer_first_mpls_over_udp_label", kMplsUdp, kMisc2 + 96, 20, kOption, 0, 0},
    {"outer_first_mpls_over_udp_exp", kMplsUdp, kMisc2 + 116, 3, kOption, 20, 0},
    {"outer_first_mpls_over_udp_ttl", kMplsUdp, kMisc2 + 120, 8, kOption, 24, 0},
    {"tunnel_header_0", kGtp, kMisc5 + 128, 32, kTunnel, 0, kWhole},
    {"tunnel_header_1", kVxlan4, kMisc5 + 160, 32, kTunnel, 32, kWhole},
    {"bth_opcode", kRoce, kMisc + 184, 8, kTunnel, 0, kNew},
    {"bth_dst_qp", kRoce, kMisc + 328, 24, kTunnel, 40, kNew},
    {"bth_a", kRoce, kMisc + 1, 1, kTunnel, 64, kNew},
};

static struct mlx5dv_dr_table* table;
static struct mlx5dv_dr_action *to_hit, *tag_hit;
static uint64_t state = 88172645463325252ull;
static unsigned number, refused;

static unsigned draw(unsigned below) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (unsigned)(state >> 33) % below;
}

static void send_numbered(struct frame f, enum queue queue) {
  number_frame(&f, ++number);
  send_frame(&f);
  want(&f, queue, queue == kHit ? kRuleTag : 0);
}

static struct mlx5dv_dr_matcher* matcher;
static struct mlx5dv_dr_rule* rule;
// False: the library or the card does not have it.
static int install(const struct mask* mask, const struct mask* value) {
  struct mlx5dv_dr_action* actions[] = {tag_hit, to_hit};
  matcher = mlx5dv_dr_matcher_create(table, 1, criteria_of(mask), params(mask));
  if (matcher == NULL) return 0;
  rule = mlx5dv_dr_rule_create(matcher, params(value), 2, actions);
  if (rule == NULL) fail("rule_create: %s", strerror(errno));
  return 1;
}
static void uninstall(void) {
  must_do(mlx5dv_dr_rule_destroy(rule), "rule_destroy");
  must_do(mlx5dv_dr_matcher_destroy(matcher), "matcher_destroy");
}

static void add_needs(const struct field* f, struct mask* mask, struct mask* value) {
  const unsigned outer = f->with & kV4   ? 4
                         : f->with & kV6 ? 6
                                         : 0,
                 inner = f->with & kIn4   ? 4
                         : f->with & kIn6 ? 6
                                          : 0;
  if (outer) {
    set_bits(mask, kOuter + 147, 4, outer);
    set_bits(value, kOuter + 147, 4, outer);
  }
  if (inner) {
    set_bits(mask, kInner + 147, 4, inner);
    set_bits(value, kInner + 147, 4, inner);
  }
}

// Whether the matcher is one of frames that have nothing of what the field is in.
static int takes_all(void) {
  struct frame f = make_frame(kIcmp4);
  number_frame(&f, ++number);
  send_frame(&f);
  if (!receive(kLimit)) fail("the frame did not arrive");
  return arrival.queue == kHit;
}

static void check_field(const struct field* f) {
  const struct frame frame = make_frame(f->shape);
  const unsigned first = frame.at[f->place] * 8 + f->at;
  struct mask mask = {0}, value = {0};
  uint64_t in_frame = 0;
  phase = f->name;
  for (unsigned i = 0; i < f->width; ++i) in_frame = in_frame << 1 | bit_of(&frame, first + i);
  add_needs(f, &mask, &value);
  set_bits(&mask, f->param, f->width, ~0ull);
  set_bits(&value, f->param, f->width, in_frame);
  if (!install(&mask, &value)) {
    printf("not offered: %s (%s)\n", f->name, strerror(errno));
    ++refused;
    return;
  }
  if (f->with & kNew && takes_all()) {
    printf("not known to the library: %s\n", f->name);
    ++refused;
    uninstall();
    return;
  }
  send_numbered(frame, kHit);
  const unsigned differ[] = {0, f->width - 1, draw(f->width)};
  for (unsigned i = 0; i < 3; ++i) {
    struct frame other = frame;
    flip_bit(&other, first + differ[i]);
    send_numbered(other, kMissed);
  }
  uninstall();
  if (f->width == 1 || f->with & kWhole) return;
  const unsigned one = draw(f->width);
  mask = (struct mask){0};
  value = (struct mask){0};
  add_needs(f, &mask, &value);
  set_bits(&mask, f->param + one, 1, 1);
  set_bits(&value, f->param + one, 1, bit_of(&frame, first + one));
  if (!install(&mask, &value)) fail("a mask of one bit: %s", strerror(errno));
  struct frame other = frame;
  flip_bit(&other, first + (one + 1 + draw(f->width - 1)) % f->width);
  send_numbered(other, kHit);
  flip_bit(&other, first + one);
  send_numbered(other, kMissed);
  uninstall();
}

// Fields that say what a frame is: which of the shapes it fits.
struct kind {
  const char* name;
  unsigned param, width, value;
  unsigned with;
  uint64_t fits;  // by shape
};
#define OF(shape) (1ull << (shape))
static const struct kind kKinds[] = {
    {"ip_version 4", 147, 4, 4, 0,
     OF(kUdp4) | OF(kTcp4Tag) | OF(kPiece4) | OF(kIcmp4) | OF(kMpls) | OF(kGre4) | OF(kVxlan4) | OF(kVxlan6) |
         OF(kVxlanUdp6) | OF(kVxlanMpls) | OF(kGpe) | OF(kGeneve) | OF(kGtp) | OF(kMplsUdp) | OF(kMplsGre) |
         OF(kRoce)},
    {"ip_version 6", 147, 4, 6, 0, OF(kTcp6Tag) | OF(kUdp6) | OF(kIcmp6)},
    {"cvlan_tag", 144, 1, 1, 0, OF(kTcp4Tag)},
    {"svlan_tag", 145, 1, 1, 0, OF(kTcp6Tag)},
    {"frag, IPv4", 146, 1, 1, kV4, OF(kPiece4)},
    {"outer_second_cvlan_tag", kMisc + 96, 1, 1, 0, OF(kTcp6Tag)},
    {"inner_second_cvlan_tag", kMisc + 97, 1, 1, 0, 0},
    {"outer_second_svlan_tag", kMisc + 98, 1, 1, 0, 0},
    {"inner cvlan_tag", kInner + 144, 1, 1, 0, OF(kVxlan6)},
    {"inner svlan_tag", kInner + 145, 1, 1, 0, 0},
    {"inner frag", kInner + 146, 1, 1, kIn4, 0},
    {"inner ip_version 6", kInner + 147, 4, 6, 0, OF(kVxlan6) | OF(kVxlanUdp6)},
    {"geneve_tlv_option_0_exist", kMisc + 222, 1, 1, 0, OF(kGeneve)},
};

static void check_kind(const struct kind* k) {
  struct mask mask = {0}, value = {0};
  const struct field needs = {.with = k->with};
  phase = k->name;
  add_needs(&needs, &mask, &value);
  set_bits(&mask, k->param, k->width, k->width == 4 ? k->value : 1);  // four bits: the IP version
  set_bits(&value, k->param, k->width, k->value);
  if (!install(&mask, &value)) {
    printf("not offered: %s (%s)\n", k->name, strerror(errno));
    ++refused;
    return;
  }
  for (enum shape s = 0; s < kShapes; ++s) send_numbered(make_frame(s), k->fits >> s & 1 ? kHit : kMissed);
  uninstall();
}

// Several fields at once: the value of one frame, and each of its fields changed in turn.
static const char* const kTogether[][7] = {
    {"smac_47_16", "smac_15_0", "dmac_47_16", "dmac_15_0", "ethertype"},
    {"src_ip, IPv4", "dst_ip, IPv4", "udp_sport", "udp_dport", "ip_protocol"},
    {"src_ip, IPv4", "dst_ip, IPv4", "ip_ttl_hoplimit", "ip_protocol", "ipv4_ihl"},
    {"dmac_47_16", "dmac_15_0", "src_ip, IPv4", "dst_ip, IPv4", "udp_dport", "smac_47_16", "smac_15_0"},
    {"first_vid", "first_prio", "tcp_dport", "tcp_flags", "outer_tcp_seq_num"},
    {"src_ip_127_96", "src_ip_31_0", "dst_ip_127_96", "dst_ip_31_0", "tcp_sport, IPv6", "tcp_flags, IPv6"},
    {"src_ip_127_96", "src_ip_95_64", "src_ip_63_32", "src_ip_31_0", "outer_second_vid", "tcp_flags, IPv6"},
    {"inner src_ip, IPv4", "inner tcp_sport", "inner tcp_dport", "tunnel_header_1"},
    {"inner src_ip, IPv4", "inner tcp_sport", "inner tcp_dport", "inner ip_protocol", "vxlan_vni"},
    {"inner dst_ip_127_96", "inner src_ip_31_0", "inner tcp_dport, IPv6", "inner first_vid"},
};

static const struct field* find_field(const char* name) {
  for (unsigned i = 0; i < sizeof kFields / sizeof *kFields; ++i)
    if (strcmp(kFields[i].name, name) == 0) return &kFields[i];
  return NULL;
}

static void check_together(const char* const* names) {
  struct mask mask = {0}, value = {0};
  const struct field* fields[7] = {0};
  unsigned n = 0;
  static char all[256];
  all[0] = 0;
  for (unsigned i = 0; i < 7 && names[i]; ++i) {
    const struct field* f = find_field(names[i]);
    if (f == NULL) continue;
    fields[n++] = f;
    if (all[0]) strcat(all, " + ");
    strcat(all, f->name);
  }
  phase = all;
  const struct frame frame = make_frame(fields[0]->shape);
  for (unsigned i = 0; i < n; ++i) {
    uint64_t in_frame = 0;
    const unsigned first = frame.at[fields[i]->place] * 8 + fields[i]->at;
    for (unsigned b = 0; b < fields[i]->width; ++b) in_frame = in_frame << 1 | bit_of(&frame, first + b);
    add_needs(fields[i], &mask, &value);
    set_bits(&mask, fields[i]->param, fields[i]->width, ~0ull);
    set_bits(&value, fields[i]->param, fields[i]->width, in_frame);
  }
  if (!install(&mask, &value)) {
    printf("not offered: %s (%s)\n", all, strerror(errno));
    ++refused;
    return;
  }
  send_numbered(frame, kHit);
  for (unsigned i = 0; i < n; ++i) {
    struct frame other = frame;
    flip_bit(&other, frame.at[fields[i]->place] * 8 + fields[i]->at + draw(fields[i]->width));
    send_numbered(other, kMissed);
  }
  send_numbered(frame, kHit);
  uninstall();
}

// The card is told which option of Geneve's rules are to look at: the frames'.
static void name_option(void) {
  enum { kCreate = 0xa00, kGeneveOption = 0xb };
  const uint32_t option = 0x01025501;  // class, type, length in words: add_words() of kGeneve
  uint32_t in[20] = {htobe32(kCreate << 16), htobe32(kGeneveOption)}, out[4] = {0};
  in[4 + 3] = htobe32(option);
  phase = "an option of Geneve";
  must(mlx5dv_devx_obj_create(receiver.context, in, sizeof in, out, sizeof out), "a Geneve option");
}

int main(int argc, char** argv) {
  const char* only = argc > 4 && strcmp(argv[3], "--only") == 0 ? argv[4] : NULL;
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc < 3) {
    fprintf(stderr, "usage: %s SENDER RECEIVER [--only NAME]\n", argv[0]);
    return 2;
  }
  open_ends(argv[1], argv[2]);
  name_option();
  struct mask none = {.size = sizeof none.bytes};
  struct mlx5dv_dr_domain* domain = mlx5dv_dr_domain_create(receiver.context, MLX5DV_DR_DOMAIN_TYPE_NIC_RX);
  must(domain, "domain_create");
  struct mlx5dv_dr_table* root = mlx5dv_dr_table_create(domain, 0);
  must(root, "root table");
  must(table = mlx5dv_dr_table_create(domain, 1), "table_create");
  struct mlx5dv_dr_action *in = mlx5dv_dr_action_create_dest_table(table),
                          *to_missed = mlx5dv_dr_action_create_dest_ibv_qp(receiver.qps[kMissed]);
  must(in, "dest_table");
  must(to_missed, "dest_ibv_qp");
  must(to_hit = mlx5dv_dr_action_create_dest_ibv_qp(receiver.qps[kHit]), "dest_ibv_qp");
  must(tag_hit = mlx5dv_dr_action_create_tag(kRuleTag), "create_tag");
  struct mlx5dv_dr_matcher *any = mlx5dv_dr_matcher_create(root, 0, 0, params(&none)),
                           *rest = mlx5dv_dr_matcher_create(table, 9, 0, params(&none));
  must(any, "the root's matcher");
  must(rest, "the last matcher");
  struct mlx5dv_dr_rule *lead = mlx5dv_dr_rule_create(any, params(&none), 1, &in),
                        *others = mlx5dv_dr_rule_create(rest, params(&none), 1, &to_missed);
  must(lead, "the root's rule");
  must(others, "the last rule");
  for (enum shape s = 0; s < kShapes; ++s) {
    phase = "no rule";
    send_numbered(make_frame(s), kMissed);
  }
  for (unsigned i = 0; i < sizeof kFields / sizeof *kFields; ++i)
    if (!only || strcmp(only, kFields[i].name) == 0) check_field(&kFields[i]);
  for (unsigned i = 0; i < sizeof kKinds / sizeof *kKinds; ++i)
    if (!only || strcmp(only, kKinds[i].name) == 0) check_kind(&kKinds[i]);
  for (unsigned i = 0; i < sizeof kTogether / sizeof *kTogether && !only; ++i) check_together(kTogether[i]);
  phase = "the end";
  must_do(mlx5dv_dr_rule_destroy(lead) | mlx5dv_dr_rule_destroy(others), "rule_destroy");
  must_do(mlx5dv_dr_matcher_destroy(any) | mlx5dv_dr_matcher_destroy(rest), "matcher_destroy");
  must_do(mlx5dv_dr_action_destroy(in) | mlx5dv_dr_action_destroy(to_missed) |
              mlx5dv_dr_action_destroy(to_hit) | mlx5dv_dr_action_destroy(tag_hit),
          "action_destroy");
  must_do(mlx5dv_dr_table_destroy(table) | mlx5dv_dr_table_destroy(root), "table_destroy");
  must_do(mlx5dv_dr_domain_destroy(domain), "domain_destroy");
  printf("dr_match: %u frames are where they belong, %u matchers not offered\n", checked, refused);
  return 0;
}
