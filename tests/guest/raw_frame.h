// SPDX-License-Identifier: BSD-3-Clause
//
// The frames of raw_check.c, byte for byte: both ends build them from what they draw from their generators.
#ifndef HCASIM_TESTS_GUEST_RAW_FRAME_H
#define HCASIM_TESTS_GUEST_RAW_FRAME_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { kSlot = 2048 };  // room for a frame

// The UDP and TCP ports, which the rules look at.
enum {
  kPortA = 9001,
  kPortB,
  kPortTcp,
  kPortDrop,
  kPortKernel,
  kPortBoth,
  kPortV6,
  kPortVlan,
  kPortGroup,
  kPortHash,
  kPortAny,
  kPortFirst = kPortA,
  kPortLast = kPortAny
};

// What a frame says; the rest of it is drawn from `tag`.
struct shape {
  uint16_t port, source;
  uint16_t payload;
  uint64_t tag;
  int tcp, v6, vlan, group, foreign;
  int bad_sum;        // of L4
  uint32_t sequence;  // of TCP
  uint16_t id;        // of IPv4
  uint8_t tcp_flags;
};

// The frame's, whoever looks at it.
static const uint8_t *from_mac, *to_mac;
static struct in_addr from_ip, to_ip;
static const uint8_t kGroupMac[6] = {0x01, 0x00, 0x5e, 0x01, 0x09, 0x02};
static const uint8_t kForeignMac[6] = {0x02, 0x00, 0x00, 0x00, 0x00, 0x99};
static const uint8_t kKey[40] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
                                 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
                                 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
                                 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

static uint64_t step(uint64_t* s) {  // xorshift64*
  *s ^= *s >> 12;
  *s ^= *s << 25;
  *s ^= *s >> 27;
  return *s * 2685821657736338717ull;
}

static void put16(uint8_t* to, unsigned v) {
  to[0] = (uint8_t)(v >> 8);
  to[1] = (uint8_t)v;
}

static uint32_t sum(const uint8_t* from, size_t size, uint32_t s) {
  for (size_t i = 0; i < size; ++i) s += (uint32_t)from[i] << (i & 1 ? 0 : 8);
  return s;
}
static unsigned folded(uint32_t s) {
  while (s >> 16) s = (s & 0xffff) + (s >> 16);
  return ~s & 0xffff;
}

static size_t headers_of(const struct shape* s) {
  return 14u + (s->vlan ? 4 : 0) + (s->v6 ? 40 : 20) + (s->tcp ? 20 : 8);
}

// As it must arrive. Without sums: as it is given to the HCA, which is to fill in the checksums.
static size_t build(uint8_t* f, const struct shape* s, int sums) {
  const size_t l3 = s->vlan ? 18 : 14, l4 = l3 + (s->v6 ? 40 : 20), data = headers_of(s),
               end = data + s->payload;
  const unsigned protocol = s->tcp ? IPPROTO_TCP : IPPROTO_UDP;
  uint32_t pseudo = protocol + (uint32_t)(end - l4);
  uint64_t random = s->tag * 0x9e3779b97f4a7c15ull | 1;
  memset(f, 0, kSlot);
  memcpy(f, s->group ? kGroupMac : s->foreign ? kForeignMac : to_mac, 6);
  memcpy(f + 6, from_mac, 6);
  if (s->vlan) {
    put16(f + 12, 0x8100);
    put16(f + 14, (unsigned)s->vlan);
  }
  put16(f + l3 - 2, s->v6 ? 0x86dd : 0x0800);
  if (s->v6) {
    f[l3] = 0x60;
    put16(f + l3 + 4, (unsigned)(end - l4));
    f[l3 + 6] = (uint8_t)protocol;
    f[l3 + 7] = 64;
    memcpy(f + l3 + 8, "\xfd\x09\0\0\0\0\0\0\0\0\0\0\0\0\x01\x01", 16);
    memcpy(f + l3 + 24, "\xfd\x09\0\0\0\0\0\0\0\0\0\0\0\0\x02\x02", 16);
    pseudo = sum(f + l3 + 8, 32, pseudo);
  } else {
    f[l3] = 0x45;
    put16(f + l3 + 2, (unsigned)(end - l3));
    put16(f + l3 + 4, s->id);
    f[l3 + 6] = 0x40;  // DF
    f[l3 + 8] = 64;
    f[l3 + 9] = (uint8_t)protocol;
    memcpy(f + l3 + 12, &from_ip, 4);
    if (s->group)
      memcpy(f + l3 + 16, "\xef\x01\x09\x02", 4);
    else
      memcpy(f + l3 + 16, &to_ip, 4);
    if (sums) put16(f + l3 + 10, folded(sum(f + l3, 20, 0)));
    pseudo = sum(f + l3 + 12, 8, pseudo);
  }
  put16(f + l4, s->source);
  put16(f + l4 + 2, s->port);
  if (s->tcp) {
    f[l4 + 4] = (uint8_t)(s->sequence >> 24), f[l4 + 5] = (uint8_t)(s->sequence >> 16);
    put16(f + l4 + 6, s->sequence & 0xffff);
    f[l4 + 12] = 5 << 4;
    f[l4 + 13] = s->tcp_flags;
    put16(f + l4 + 14, 8192);
  } else {
    put16(f + l4 + 4, (unsigned)(end - l4));
  }
  for (size_t i = data; i < end; i += 8) {
    const uint64_t v = step(&random);
    memcpy(f + i, &v, end - i < 8 ? end - i : 8);
  }
  if (sums) {
    unsigned v = folded(sum(f + l4, end - l4, pseudo));
    if (v == 0 && !s->tcp) v = 0xffff;
    if (s->bad_sum) v ^= 0x5555;
    put16(f + l4 + (s->tcp ? 16 : 6), v);
  }
  return end < 60 ? 60 : end;
}

static uint32_t toeplitz(const struct shape* s) {
  uint8_t input[12];
  uint32_t hash = 0;
  memcpy(input, &from_ip, 4);
  memcpy(input + 4, &to_ip, 4);
  put16(input + 8, s->source);
  put16(input + 10, s->port);
  for (unsigned bit = 0; bit < 96; ++bit) {
    uint32_t window = 0;
    if (!(input[bit / 8] >> (7 - bit % 8) & 1)) continue;
    for (unsigned i = 0; i < 32; ++i) window = window << 1 | (kKey[(bit + i) / 8] >> (7 - (bit + i) % 8) & 1);
    hash ^= window;
  }
  return hash;
}

#endif
