// SPDX-License-Identifier: BSD-3-Clause
//
// The frames of dr_match.c and dr_actions.c: put together header by header, with a note where each begins.
#ifndef HCASIM_TESTS_GUEST_DR_FRAME_H
#define HCASIM_TESTS_GUEST_DR_FRAME_H

#include <stdint.h>
#include <string.h>

enum { kRoom = 512 };  // bytes of a frame

// Headers by their role; those behind kInner are a tunnel's content.
enum place {
  kEth,
  kTag,
  kTag2,
  kIp,
  kL4,
  kTunnel,
  kOption,
  kInnerEth,
  kInnerTag,
  kInnerIp,
  kInnerL4,
  kPlaces
};

struct frame {
  uint8_t b[kRoom];
  unsigned len;
  uint16_t at[kPlaces];
};

static inline uint8_t* grow(struct frame* f, enum place where, unsigned bytes) {
  uint8_t* p = f->b + f->len;
  f->at[where] = (uint16_t)f->len;
  f->len += bytes;
  return p;
}

static inline void put16(uint8_t* p, unsigned v) {
  p[0] = (uint8_t)(v >> 8);
  p[1] = (uint8_t)v;
}
static inline void put32(uint8_t* p, uint32_t v) {
  put16(p, v >> 16);
  put16(p + 2, v & 0xffff);
}

// Headers of which nothing is 0 that a rule may ask for, and inner ones unlike the outer ones.
static inline void add_eth(struct frame* f, enum place where, unsigned type) {
  uint8_t* p = grow(f, where, 14);
  memcpy(p,
         where == kEth ? "\x02\xda\x51\x62\x73\x84\x06\x15\x26\x37\x48\x59"
                       : "\x0a\x9b\x8c\x7d\x6e\x5f\x0e\x41\x32\x23\x14\x05",
         12);
  put16(p + 12, type);
}
static inline void add_tag(struct frame* f, enum place where, unsigned tci, unsigned type) {
  uint8_t* p = grow(f, where, 4);
  put16(p, tci);
  put16(p + 2, type);
}
static inline void add_ip4(struct frame* f, enum place where, unsigned protocol) {
  uint8_t* p = grow(f, where, 20);
  const int inner = where == kInnerIp;
  p[0] = 0x45;
  p[1] = inner ? 0x69 : 0xb6;  // DSCP, ECN
  put16(p + 4, 0x3a51);
  put16(p + 6, 0x4000);
  p[8] = inner ? 43 : 85;
  p[9] = (uint8_t)protocol;
  put32(p + 12, inner ? 0xc0a83715 : 0x0a1b2c3d);
  put32(p + 16, inner ? 0xac159a4b : 0x0a4e5f61);
}
static inline void add_ip6(struct frame* f, enum place where, unsigned protocol) {
  uint8_t* p = grow(f, where, 40);
  const int inner = where == kInnerIp;
  put32(p, inner ? 0x64a9d1e3 : 0x6b6765d2);  // class, flow label
  p[6] = (uint8_t)protocol;
  p[7] = inner ? 51 : 77;
  for (unsigned i = 8; i < 40; ++i) p[i] = (uint8_t)((inner ? 0x31 : 0x57) * i + 11);
  p[8] = 0xfd;
  p[24] = 0xfc;
}
static inline void add_udp(struct frame* f, enum place where, unsigned to) {
  uint8_t* p = grow(f, where, 8);
  put16(p, where == kL4 ? 0x6a3b : 0x59c7);
  put16(p + 2, to);
}
static inline void add_tcp(struct frame* f, enum place where, unsigned flags) {
  uint8_t* p = grow(f, where, 20);
  const int inner = where == kInnerL4;
  put16(p, inner ? 0x4d2b : 0x735c);
  put16(p + 2, inner ? 0x5e91 : 0x2f86);
  put32(p + 4, inner ? 0x9b3c5d7e : 0x6152f3a4);
  put32(p + 8, inner ? 0x8d6f2b14 : 0x37c89e55);
  put16(p + 12, 0x5000 | flags);
  put16(p + 14, 0x2345);
}
static inline void add_words(struct frame* f, enum place where, const uint32_t* words, unsigned n) {
  uint8_t* p = grow(f, where, 4 * n);
  for (unsigned i = 0; i < n; ++i) put32(p + 4 * i, words[i]);
}

static inline uint32_t sum_of(const uint8_t* p, unsigned n, uint32_t s) {
  for (unsigned i = 0; i < n; ++i) s += (uint32_t)p[i] << (i & 1 ? 0 : 8);
  return s;
}
static inline unsigned folded(uint32_t s) {
  while (s >> 16) s = (s & 0xffff) + (s >> 16);
  return ~s & 0xffff;
}

// Lengths and the checksum of one layer's headers; UDP without a checksum, TCP's is made.
static inline void finish_layer(struct frame* f, enum place ip, enum place l4) {
  uint8_t *p = f->b + f->at[ip], *q = f->b + f->at[l4];
  if (f->at[ip] == 0) return;
  const int v4 = p[0] >> 4 == 4;
  const unsigned protocol = v4 ? p[9] : p[6], payload = f->len - f->at[ip] - (v4 ? 20 : 40);
  if (v4) {
    put16(p + 2, payload + 20);
    put16(p + 10, 0);
    put16(p + 10, folded(sum_of(p, (p[0] & 15u) * 4, 0)));
  } else {
    put16(p + 4, payload);
  }
  if (f->at[l4] == 0) return;
  const unsigned l4_len = f->len - f->at[l4];
  if (protocol == 17) put16(q + 4, l4_len);
  if (protocol != 6) return;
  put16(q + 16, 0);
  put16(q + 16, folded(sum_of(q, l4_len, sum_of(p + (v4 ? 12 : 8), v4 ? 8 : 32, 6 + l4_len))));
}

// The payload ends the frame; its last four bytes are the frame's number (number_frame).
static inline void finish(struct frame* f, unsigned payload) {
  for (unsigned i = 0; i < payload; ++i) f->b[f->len + i] = (uint8_t)(0xa0 + 7 * i);
  f->len += payload;
  finish_layer(f, kInnerIp, kInnerL4);
  finish_layer(f, kIp, kL4);
}
static inline void number_frame(struct frame* f, uint32_t number) { put32(f->b + f->len - 4, number); }

// ---- the frames that fields are looked for in ----

enum shape {
  kUdp4,     // IPv4, UDP
  kTcp4Tag,  // a VLAN tag, IPv4, TCP
  kTcp6Tag,  // two VLAN tags, IPv6, TCP
  kUdp6,
  kPiece4,  // a fragment of IPv4
  kIcmp4,
  kIcmp6,
  kMpls,
  kGre4,    // GRE with key, checksum and sequence number, an Ethernet frame with IPv4 and UDP
  kVxlan4,  // an Ethernet frame with IPv4 and TCP
  kVxlan6,  // one with a VLAN tag, IPv6 and TCP
  kVxlanUdp6,
  kVxlanMpls,
  kGpe,
  kGeneve,
  kGtp,
  kMplsUdp,
  kMplsGre,
  kRoce,
  kShapes
};

static inline struct frame make_frame(enum shape shape) {
  struct frame f = {.len = 0};
  const uint32_t vxlan[] = {0x08000000, 0x5a6b7c00}, gpe[] = {0x0c000003, 0x5a6b7c00},
                 geneve[] = {0x02c06558, 0x5a6b7c00}, option[] = {0x01025501, 0x7e8d9cab},
                 gre[] = {0xb0006558, 0x12340000, 0x5a6b7c8d, 0x00000007}, gre_mpls[] = {0x00008847},
                 labels[] = {0xabcd5a47, 0x123457c5}, icmp[] = {0x0806abcd, 0x5a3c1e77},
                 icmp6[] = {0x8a05abcd, 0x6b2d4f19}, gtp[] = {0x36ff0040, 0x8c9dae5b, 0x1a2b3c85, 0x01155a00},
                 bth[] = {0x6440ffff, 0x005a3c1e, 0x80123456, 0, 0, 0, 0, 0};
  const int vlan = shape == kTcp4Tag || shape == kTcp6Tag;
  const int v6 = shape == kTcp6Tag || shape == kUdp6 || shape == kIcmp6;
  const unsigned ethertype = shape == kMpls ? 0x8847 : v6 ? 0x86dd : 0x0800;
  add_eth(&f, kEth, !vlan ? ethertype : shape == kTcp6Tag ? 0x88a8 : 0x8100);
  if (shape == kTcp6Tag) add_tag(&f, kTag, 0x7a5c, 0x8100);
  if (vlan) add_tag(&f, shape == kTcp6Tag ? kTag2 : kTag, 0xb3a6, ethertype);
  if (shape == kMpls) {
    add_words(&f, kTunnel, labels, 2);
    add_ip4(&f, kIp, 17);
    add_udp(&f, kL4, 0x7b19);
    finish(&f, 40);
    return f;
  }
  switch (shape) {
    case kTcp4Tag:
    case kTcp6Tag:
      v6 ? add_ip6(&f, kIp, 6) : add_ip4(&f, kIp, 6);
      add_tcp(&f, kL4, 0x0a5);
      break;
    case kIcmp4:
      add_ip4(&f, kIp, 1);
      add_words(&f, kL4, icmp, 2);
      break;
    case kIcmp6:
      add_ip6(&f, kIp, 58);
      add_words(&f, kL4, icmp6, 2);
      break;
    case kGre4:
    case kMplsGre:
      add_ip4(&f, kIp, 47);
      add_words(&f, kTunnel, shape == kGre4 ? gre : gre_mpls, shape == kGre4 ? 4 : 1);
      break;
    default: {
      const unsigned to = shape == kVxlan4 || shape == kVxlan6 || shape == kVxlanUdp6 || shape == kVxlanMpls
                              ? 4789
                          : shape == kGpe     ? 4790
                          : shape == kGeneve  ? 6081
                          : shape == kGtp     ? 2152
                          : shape == kMplsUdp ? 6635
                          : shape == kRoce    ? 4791
                                              : 0x7b19;
      v6 ? add_ip6(&f, kIp, 17) : add_ip4(&f, kIp, 17);
      if (shape == kPiece4) put16(f.b + f.at[kIp] + 6, 0x2000);  // the first one
      add_udp(&f, kL4, to);
    }
  }
  switch (shape) {
    case kVxlan4:
    case kVxlan6:
    case kVxlanUdp6:
    case kVxlanMpls:
      add_words(&f, kTunnel, vxlan, 2);
      break;
    case kGpe:
      add_words(&f, kTunnel, gpe, 2);
      break;
    case kGeneve:
      add_words(&f, kTunnel, geneve, 2);
      add_words(&f, kOption, option, 2);
      break;
    case kGtp:
      add_words(&f, kTunnel, gtp, 4);
      break;
    case kMplsUdp:
    case kMplsGre:
      add_words(&f, kOption, labels + 1, 1);
      break;
    case kRoce:
      add_words(&f, kTunnel, bth, 8);
      break;
    default:
      break;
  }
  if (shape == kVxlan4 || shape == kVxlan6 || shape == kVxlanUdp6 || shape == kGre4 || shape == kGpe ||
      shape == kGeneve) {
    const int inner6 = shape == kVxlan6 || shape == kVxlanUdp6;
    add_eth(&f, kInnerEth, shape == kVxlan6 ? 0x8100 : inner6 ? 0x86dd : 0x0800);
    if (shape == kVxlan6) add_tag(&f, kInnerTag, 0x9c57, 0x86dd);
    const unsigned protocol = shape == kGre4 || shape == kVxlanUdp6 ? 17 : 6;
    inner6 ? add_ip6(&f, kInnerIp, protocol) : add_ip4(&f, kInnerIp, protocol);
    protocol == 6 ? add_tcp(&f, kInnerL4, 0x152) : add_udp(&f, kInnerL4, 0x7c31);
  }
  if (shape == kVxlanMpls) {
    add_eth(&f, kInnerEth, 0x8847);
    add_words(&f, kInnerL4, labels, 2);
    add_ip4(&f, kInnerIp, 17);
  }
  if (shape == kMplsUdp || shape == kMplsGre || shape == kGtp) {
    add_ip4(&f, kInnerIp, 17);
    add_udp(&f, kInnerL4, 0x7c31);
  }
  finish(&f, 40);
  return f;
}

// Bits of a frame, from the most significant one on.
static inline unsigned bit_of(const struct frame* f, unsigned bit) {
  return f->b[bit / 8] >> (7 - bit % 8) & 1;
}
static inline void flip_bit(struct frame* f, unsigned bit) { f->b[bit / 8] ^= (uint8_t)(0x80 >> bit % 8); }

#endif
