// SPDX-License-Identifier: BSD-3-Clause
// Frame headers, RSS, checksums, segmentation: against published vectors and plain code of the test's own.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "model/eth/checksum.h"
#include "model/eth/headers.h"
#include "model/eth/rss.h"
#include "model/eth/segment.h"
#include "prm/field.h"

namespace hcasim {
namespace {

using Frame = std::vector<std::uint8_t>;

void u16(Frame& f, unsigned v) {
  f.push_back(static_cast<std::uint8_t>(v >> 8));
  f.push_back(static_cast<std::uint8_t>(v));
}
void u32(Frame& f, std::uint32_t v) { u16(f, v >> 16), u16(f, v & 0xffff); }
unsigned at16(const Frame& f, std::size_t at) { return f.at(at) << 8u | f.at(at + 1); }

void l2(Frame& f, unsigned ethertype) {
  for (unsigned i = 0; i < 12; ++i) f.push_back(static_cast<std::uint8_t>(i * 2));
  u16(f, ethertype);
}
void ipv4(Frame& f, unsigned protocol, unsigned payload, std::uint32_t src, std::uint32_t dst) {
  u16(f, 0x4500), u16(f, 20 + payload), u16(f, 0x1234), u16(f, 0x4000), u16(f, 64u << 8 | protocol),
      u16(f, 0);
  u32(f, src), u32(f, dst);
}
void ipv6(Frame& f, unsigned next, unsigned payload, const std::array<std::uint8_t, 16>& src,
          const std::array<std::uint8_t, 16>& dst) {
  u32(f, 0x60000000), u16(f, payload), u16(f, next << 8 | 64);
  f.insert(f.end(), src.begin(), src.end());
  f.insert(f.end(), dst.begin(), dst.end());
}
void tcp(Frame& f, unsigned sport, unsigned dport, std::uint32_t seq, unsigned flags) {
  u16(f, sport), u16(f, dport), u32(f, seq), u32(f, 5), u16(f, 0x5000 | flags), u16(f, 100), u32(f, 0);
}
void payload(Frame& f, std::size_t len, unsigned seed) {
  std::mt19937 random(seed);
  for (std::size_t i = 0; i < len; ++i) f.push_back(static_cast<std::uint8_t>(random()));
}

FrameHeaders parse(const Frame& f, LengthsOf lengths = LengthsOf::kHeaders) {
  return parse_frame(f.data(), static_cast<std::uint32_t>(f.size()), lengths);
}

// RFC 1071, word by word.
unsigned plain_sum(const Frame& f, std::size_t from, std::size_t to, std::uint32_t sum = 0) {
  for (std::size_t i = from; i < to; i += 2) sum += f[i] << 8u | (i + 1 < to ? f[i + 1] : 0u);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}
unsigned plain_l4(const Frame& f, std::size_t l3, std::size_t l4, std::size_t end, unsigned protocol) {
  const bool v6 = f[l3] >> 4 == 6;
  const unsigned addresses = v6 ? plain_sum(f, l3 + 8, l3 + 40) : plain_sum(f, l3 + 12, l3 + 20);
  return ~plain_sum(f, l4, end, addresses + protocol + static_cast<unsigned>(end - l4)) & 0xffff;
}

// ---- RSS: the vectors of the RSS verification suite (Microsoft, "Verifying the RSS hash calculation") ----

std::array<std::uint8_t, 40> suite_key() {
  return {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
          0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
          0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};
}

Tir toeplitz_tir(bool v6, std::uint32_t selected) {
  Tir tir;
  tir.hash_fn = 2;
  tir.key = suite_key();
  tir.outer.ipv6 = v6;
  tir.outer.selected = selected;
  return tir;
}

constexpr std::uint32_t kIps = 3, kPorts = 12;

struct V4Vector {
  std::uint32_t dst, src;
  unsigned dport, sport;
  std::uint32_t ip, with_tcp;
};

TEST(Rss, Ipv4Vectors) {
  const V4Vector vectors[] = {
      {0xa18e6450, 0x420995bb, 1766, 2794, 0x323e8fc2, 0x51ccc178},
      {0x41458c53, 0xc75c6f02, 4739, 14230, 0xd718262a, 0xc626b0ea},
      {0x0c16cfb8, 0x1813c65f, 38024, 12898, 0xd2d0a5de, 0x5c2b394a},
      {0xd18ea306, 0x261bcd1e, 2217, 48228, 0x82989176, 0xafc7327f},
      {0xcabc7f02, 0x9927a3bf, 1303, 44251, 0x5d1809c5, 0x10e828a2},
  };
  for (const V4Vector& v : vectors) {
    Frame f;
    l2(f, 0x0800);
    ipv4(f, 6, 20, v.src, v.dst);
    tcp(f, v.sport, v.dport, 1, 0x10);
    EXPECT_EQ(rss_hash(toeplitz_tir(false, kIps), f.data(), parse(f)).value, v.ip);
    const RssHash h = rss_hash(toeplitz_tir(false, kIps | kPorts), f.data(), parse(f));
    EXPECT_EQ(h.value, v.with_tcp);
    EXPECT_EQ(h.type, 0x55);
  }
}

TEST(Rss, Ipv6Vectors) {
  using A = std::array<std::uint8_t, 16>;
  struct {
    A dst, src;
    unsigned dport, sport;
    std::uint32_t ip, with_tcp;
  } const vectors[] = {
      {{0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x00, 0x03, 0, 0, 0, 0, 0, 0, 0, 1},
       {0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x1f, 0xff, 0, 0, 0, 0, 0, 0, 0, 7},
       1766,
       2794,
       0x2cc18cd5,
       0x40207d3d},
      {{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
       {0x3f, 0xfe, 0x05, 0x01, 0x00, 0x08, 0, 0, 0x02, 0x60, 0x97, 0xff, 0xfe, 0x40, 0xef, 0xab},
       4739,
       14230,
       0x0f0c461c,
       0xdde51bbf},
  };
  for (const auto& v : vectors) {
    Frame f;
    l2(f, 0x86dd);
    ipv6(f, 6, 20, v.src, v.dst);
    tcp(f, v.sport, v.dport, 1, 0x10);
    EXPECT_EQ(rss_hash(toeplitz_tir(true, kIps), f.data(), parse(f)).value, v.ip);
    const RssHash h = rss_hash(toeplitz_tir(true, kIps | kPorts), f.data(), parse(f));
    EXPECT_EQ(h.value, v.with_tcp);
    EXPECT_EQ(h.type, 0x5a);
  }
}

TEST(Rss, SymmetricGivesBothDirectionsOneHash) {
  Tir tir = toeplitz_tir(false, kIps | kPorts);
  std::uint32_t plain[2], symmetric[2];
  for (const bool back : {false, true}) {
    Frame f;
    l2(f, 0x0800);
    ipv4(f, 6, 20, back ? 0x0a000002 : 0x0a000001, back ? 0x0a000001 : 0x0a000002);
    tcp(f, back ? 80 : 4000, back ? 4000 : 80, 1, 0x10);
    tir.symmetric = false;
    plain[back] = rss_hash(tir, f.data(), parse(f)).value;
    tir.symmetric = true;
    symmetric[back] = rss_hash(tir, f.data(), parse(f)).value;
  }
  EXPECT_NE(plain[0], plain[1]);
  EXPECT_EQ(symmetric[0], symmetric[1]);
  // OR and XOR of both in place of source and destination (ethtool.h: RXH_XFRM_SYM_OR_XOR).
  const std::uint8_t input[] = {0x0a, 0, 0, 3, 0, 0, 0, 3, 0x0f, 0xf0, 0x0f, 0xf0};
  EXPECT_EQ(symmetric[0], toeplitz(tir.key, input, sizeof input));
}

TEST(Rss, FramesOfAnotherKindAreNotHashed) {
  Frame f;
  l2(f, 0x0800);
  ipv4(f, 17, 8, 1, 2);
  u32(f, 0), u32(f, 0x80000);
  EXPECT_EQ(rss_hash(toeplitz_tir(true, kIps), f.data(), parse(f)).type, 0);
  // UDP where TCP's ports are selected: addresses alone.
  EXPECT_EQ(rss_hash(toeplitz_tir(false, kIps | kPorts), f.data(), parse(f)).type, 0x05);
  Tir none = toeplitz_tir(false, kIps);
  none.hash_fn = 0;
  EXPECT_EQ(rss_hash(none, f.data(), parse(f)).type, 0);
}

TEST(Rss, InvertedXor8) {
  Tir tir = toeplitz_tir(false, kIps);
  tir.hash_fn = 1;
  Frame f;
  l2(f, 0x0800);
  ipv4(f, 17, 8, 0x01020304, 0x10203040);
  u32(f, 0), u32(f, 0x80000);
  EXPECT_EQ(rss_hash(tir, f.data(), parse(f)).value,
            static_cast<std::uint8_t>(~(0x01 ^ 0x02 ^ 0x03 ^ 0x04 ^ 0x10 ^ 0x20 ^ 0x30 ^ 0x40)));
}

// ---- Checksums ----

TEST(Checksum, SumAgreesWithPlainCode) {
  for (std::size_t len = 0; len < 70; ++len) {
    Frame f;
    payload(f, len, static_cast<unsigned>(len) + 1);
    EXPECT_EQ(ones_sum(f.data(), len), plain_sum(f, 0, len)) << len;
  }
  Frame big;
  payload(big, 9999, 3);
  EXPECT_EQ(ones_sum(big.data(), big.size()), plain_sum(big, 0, big.size()));
  const Frame ones(64, 0xff);
  EXPECT_EQ(ones_sum(ones.data(), ones.size()), 0xffff);
}

TEST(Checksum, MadeAndChecked) {
  for (const std::size_t len : {0u, 1u, 17u, 1400u}) {
    for (const bool v6 : {false, true}) {
      Frame f;
      l2(f, v6 ? 0x86dd : 0x0800);
      const auto all = static_cast<unsigned>(20 + len);
      const std::array<std::uint8_t, 16> a{0x20, 1}, b{0x20, 2};
      if (v6)
        ipv6(f, 6, all, a, b);
      else
        ipv4(f, 6, all, 0xc0a80001, 0xc0a80002);
      const std::size_t l4 = f.size();
      tcp(f, 1, 2, 3, 0x10);
      payload(f, len, 9);
      f.resize(f.size() + 3);  // Ethernet padding is no part of it
      const FrameHeaders h = parse(f);
      ASSERT_TRUE(h.outer.tcp);
      EXPECT_FALSE(l4_checksum_ok(f.data(), h.outer));
      put_l4_checksum(f.data(), h.outer);
      put_ip_checksum(f.data(), h.outer);
      Frame zeroed = f;
      zeroed[l4 + 16] = zeroed[l4 + 17] = 0;
      EXPECT_EQ(at16(f, l4 + 16), plain_l4(zeroed, 14, l4, l4 + all, 6));
      EXPECT_TRUE(l4_checksum_ok(f.data(), h.outer));
      EXPECT_TRUE(ip_checksum_ok(f.data(), h.outer));
      if (!v6) {
        EXPECT_EQ(plain_sum(f, 14, 34), 0xffffu);
        f[20] ^= 1;
        EXPECT_FALSE(ip_checksum_ok(f.data(), h.outer));
      }
      f[l4 + 1] ^= 0x40;
      EXPECT_FALSE(l4_checksum_ok(f.data(), h.outer));
    }
  }
}

TEST(Checksum, UdpZeroIsSentAsOnesAndMeansNoneWhenReceived) {
  for (unsigned ports = 0; ports < 0x10000; ports += 0x11) {
    Frame f;
    l2(f, 0x0800);
    ipv4(f, 17, 8, 0, 0);
    u16(f, ports), u16(f, 0xffff - 17 - 8 - 8), u16(f, 8), u16(f, 0);
    const FrameHeaders h = parse(f);
    ASSERT_TRUE(h.outer.udp);
    EXPECT_TRUE(l4_checksum_ok(f.data(), h.outer));  // none
    put_l4_checksum(f.data(), h.outer);
    EXPECT_NE(at16(f, 40), 0u);
    EXPECT_TRUE(l4_checksum_ok(f.data(), h.outer));
    if (ports == 0) {
      EXPECT_EQ(at16(f, 40), 0xffffu);
    }
  }
}

// ---- Headers ----

TEST(Headers, CutOffFramesAreNeverReadBeyondTheirEnd) {
  // A frame with all the parser knows; each prefix lies in a buffer of its own, for the address sanitizer.
  Frame f;
  l2(f, 0x88a8);
  u16(f, 5), u16(f, 0x8100), u16(f, 6), u16(f, 0x0800);
  Frame inner;
  l2(inner, 0x86dd);
  const std::array<std::uint8_t, 16> a{1}, b{2};
  ipv6(inner, 0, 8 + 20, a, b);
  inner.push_back(6), inner.push_back(0), u16(inner, 0x0104), u32(inner, 0);
  tcp(inner, 1, 2, 3, 0x10);
  ipv4(f, 17, static_cast<unsigned>(16 + inner.size()), 1, 2);
  u16(f, 9), u16(f, 4789), u16(f, static_cast<unsigned>(16 + inner.size())), u16(f, 0);
  u32(f, 0x08000000), u32(f, 42 << 8);
  f.insert(f.end(), inner.begin(), inner.end());

  for (std::size_t len = 0; len <= f.size(); ++len) {
    const std::vector<std::uint8_t> part(f.begin(), f.begin() + static_cast<std::ptrdiff_t>(len));
    for (const LengthsOf lengths : {LengthsOf::kHeaders, LengthsOf::kBuffer}) {
      const FrameHeaders h = parse_frame(part.data(), static_cast<std::uint32_t>(len), lengths);
      EXPECT_EQ(h.len, len < 14 ? 0 : len);
      for (const IpHeaders* ip : {&h.outer, &h.inner}) {
        if (!ip->version) continue;
        EXPECT_LE(ip->l3, ip->l4);
        EXPECT_LE(ip->l4, ip->end);
        EXPECT_LE(ip->end, len);
      }
    }
  }
  const FrameHeaders h = parse(f);
  EXPECT_EQ(h.tags, 2);
  EXPECT_EQ(h.tci[0], 5);
  EXPECT_EQ(h.tci[1], 6);
  EXPECT_EQ(h.tunnel, Tunnel::kVxlan);
  EXPECT_EQ(h.vni, 42u);
  EXPECT_EQ(h.inner.version, 6);
  EXPECT_TRUE(h.inner.options);
  EXPECT_TRUE(h.inner.tcp);
}

TEST(Headers, RandomBytesNeverLeaveTheFrame) {
  std::mt19937 random(5);
  for (unsigned i = 0; i < 20000; ++i) {
    std::vector<std::uint8_t> f(random() % 120);
    for (auto& b : f) b = static_cast<std::uint8_t>(random());
    // Most would stop at the ethertype.
    if (f.size() > 24) {
      const unsigned type = random() % 3;
      f[12] = type == 0 ? 0x08 : type == 1 ? 0x86 : 0x81;
      f[13] = type == 0 ? 0x00 : type == 1 ? 0xdd : 0x00;
      f[14] = type == 0 ? static_cast<std::uint8_t>(0x40 | random() % 16) : 0x60;
      if (type == 0) f[16] = 0, f[17] = static_cast<std::uint8_t>(random() % f.size());
      const std::uint8_t protocols[] = {4, 41, 47, 17, 6, 0, 43, 44, 60};
      f[type == 0 ? 23 : 20] = protocols[random() % std::size(protocols)];
    }
    const FrameHeaders h = parse(f);
    for (const IpHeaders* ip : {&h.outer, &h.inner}) {
      if (ip->version) {
        EXPECT_LE(ip->end, f.size());
      }
      ip_checksum_ok(f.data(), *ip);
      l4_checksum_ok(f.data(), *ip);
    }
  }
}

// ---- Segmentation ----

TEST(Segment, TcpAgainstHeadersWrittenOut) {
  constexpr unsigned kMss = 500, kCount = 4, kLastLen = 77;
  constexpr std::uint32_t kSeq = 0xffffff00;
  constexpr unsigned kAckPshFinCwr = 0x10 | 0x08 | 0x01 | 0x80;
  for (const bool v6 : {false, true}) {
    const std::array<std::uint8_t, 16> a{0x20, 1}, b{0x20, 2};
    for (unsigned i = 0; i < kCount; ++i) {
      const bool last = i + 1 == kCount;
      const unsigned len = last ? kLastLen : kMss;
      Frame f;
      l2(f, v6 ? 0x86dd : 0x0800);
      // The whole's lengths: such as fit no segment.
      if (v6)
        ipv6(f, 6, 0, a, b);
      else
        ipv4(f, 6, 3000, 1, 2);
      const std::size_t l4 = f.size();
      tcp(f, 7, 8, kSeq, kAckPshFinCwr);
      payload(f, len, i);
      const FrameHeaders h = parse(f, LengthsOf::kBuffer);
      ASSERT_TRUE(h.outer.tcp);
      make_segment(f.data(), h, {i, last, i * kMss});
      put_l4_checksum(f.data(), h.outer);
      put_ip_checksum(f.data(), h.outer);

      if (v6) {
        EXPECT_EQ(at16(f, 14 + 4), 20 + len);
      } else {
        EXPECT_EQ(at16(f, 14 + 2), 40 + len);
        EXPECT_EQ(at16(f, 14 + 4), 0x1234 + i);
      }
      EXPECT_EQ(prm::load32(f.data() + l4 + 4), kSeq + i * kMss);
      const unsigned flags = 0x10u | (last ? 0x09u : 0u) | (i == 0 ? 0x80u : 0u);
      EXPECT_EQ(f[l4 + 13], flags);
      const FrameHeaders again = parse(f);
      EXPECT_TRUE(ip_checksum_ok(f.data(), again.outer));
      EXPECT_TRUE(l4_checksum_ok(f.data(), again.outer));
      EXPECT_EQ(again.outer.end, f.size());
    }
  }
}

TEST(Segment, InATunnelBothHeadersAreWritten) {
  Frame f;
  l2(f, 0x0800);
  ipv4(f, 17, 9, 1, 2);
  u16(f, 9), u16(f, 4789), u16(f, 9), u16(f, 0);
  u32(f, 0x08000000), u32(f, 42 << 8);
  const std::size_t inner = f.size();
  l2(f, 0x0800);
  ipv4(f, 6, 9, 3, 4);
  tcp(f, 7, 8, 1000, 0x10);
  payload(f, 100, 1);
  const FrameHeaders h = parse(f, LengthsOf::kBuffer);
  ASSERT_TRUE(h.inner.tcp);
  make_segment(f.data(), h, {3, false, 300});
  put_l4_checksum(f.data(), h.inner);
  put_ip_checksum(f.data(), h.inner);
  put_ip_checksum(f.data(), h.outer);
  const FrameHeaders again = parse(f);
  ASSERT_TRUE(again.inner.tcp);
  EXPECT_TRUE(l4_checksum_ok(f.data(), again.inner));
  EXPECT_TRUE(ip_checksum_ok(f.data(), again.inner));
  EXPECT_TRUE(ip_checksum_ok(f.data(), again.outer));
  EXPECT_EQ(at16(f, 14 + 2), f.size() - 14);
  EXPECT_EQ(at16(f, 34 + 4), f.size() - 34);
  EXPECT_EQ(at16(f, inner + 14 + 2), f.size() - inner - 14);
  EXPECT_EQ(at16(f, 14 + 4), 0x1234u + 3);
  EXPECT_EQ(prm::load32(f.data() + inner + 34 + 4), 1300u);
}

TEST(Segment, UdpLengths) {
  Frame f;
  l2(f, 0x0800);
  ipv4(f, 17, 4000, 1, 2);
  u16(f, 1), u16(f, 2), u16(f, 4000), u16(f, 0);
  payload(f, 200, 1);
  const FrameHeaders h = parse(f, LengthsOf::kBuffer);
  make_segment(f.data(), h, {1, true, 200});
  EXPECT_EQ(at16(f, 14 + 2), 228u);
  EXPECT_EQ(at16(f, 34 + 4), 208u);
}

}  // namespace
}  // namespace hcasim
