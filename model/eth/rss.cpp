// SPDX-License-Identifier: BSD-3-Clause
#include "model/eth/rss.h"

#include <algorithm>
#include <cstring>

#include "prm/field.h"

namespace hcasim {

namespace {

// HashFields::selected
constexpr std::uint32_t kSrcIp = 1, kDstIp = 2, kSport = 4, kDport = 8, kSpi = 16;
constexpr std::size_t kMaxInput = 36;
// Tir::hash_fn
constexpr std::uint8_t kXor8 = 1, kToeplitz = 2;

struct Input {
  std::array<std::uint8_t, kMaxInput> bytes;
  std::size_t len = 0;
  void put(const std::uint8_t* from, std::size_t count) {
    count = std::min(count, bytes.size() - len);
    std::memcpy(bytes.data() + len, from, count);
    len += count;
  }
  // Both of a pair. Symmetric: OR and XOR of them in their place, the same whichever way the frame goes
  // (ethtool.h: RXH_XFRM_SYM_OR_XOR, which mlx5 calls tirc.rx_hash_symmetric; that OR comes first is
  // assumed).
  void put_pair(const std::uint8_t* src, const std::uint8_t* dst, std::size_t count, bool symmetric) {
    if (!symmetric) {
      put(src, count);
      put(dst, count);
      return;
    }
    std::array<std::uint8_t, 16> either{}, differs{};
    for (std::size_t i = 0; i < std::min(count, either.size()); ++i) {
      either[i] = src[i] | dst[i];
      differs[i] = src[i] ^ dst[i];
    }
    put(either.data(), count);
    put(differs.data(), count);
  }
};

}  // namespace

std::uint32_t toeplitz(const std::array<std::uint8_t, 40>& key, const std::uint8_t* data, std::size_t len) {
  std::uint32_t hash = 0;
  len = std::min(len, kMaxInput);
  for (std::size_t i = 0; i < len; ++i) {
    // The 39 bits of key that this byte's bits meet.
    std::uint64_t window = static_cast<std::uint64_t>(prm::load32(key.data() + i)) << 8;
    if (i + 4 < key.size()) window |= key[i + 4];
    for (unsigned bit = 0; bit < 8; ++bit)
      hash ^= static_cast<std::uint32_t>(window >> (8 - bit)) & (0u - (data[i] >> (7 - bit) & 1u));
  }
  return hash;
}

RssHash rss_hash(const Tir& tir, const std::uint8_t* frame, const FrameHeaders& headers) {
  RssHash result;
  if (tir.hash_fn != kXor8 && tir.hash_fn != kToeplitz) return result;
  const bool inner = tir.inner.selected != 0 && headers.inner.version != 0;
  const HashFields& fields = inner ? tir.inner : tir.outer;
  const IpHeaders& ip = inner ? headers.inner : headers.outer;
  if (ip.version != (fields.ipv6 ? 6 : 4)) return result;

  Input in;
  const std::size_t address = fields.ipv6 ? 16 : 4;
  const std::uint8_t* src = frame + ip.l3 + (fields.ipv6 ? 8 : 12);
  const std::uint8_t* dst = src + address;
  const unsigned l3_type = fields.ipv6 ? 2 : 1;
  if ((fields.selected & (kSrcIp | kDstIp)) == (kSrcIp | kDstIp)) {
    in.put_pair(src, dst, address, tir.symmetric);
  } else if (fields.selected & (kSrcIp | kDstIp)) {
    in.put(fields.selected & kSrcIp ? src : dst, address);
  }
  unsigned type = (fields.selected & kSrcIp ? l3_type : 0) | (fields.selected & kDstIp ? l3_type << 2 : 0);
  const std::uint8_t* l4 = frame + ip.l4;
  if (fields.udp ? ip.udp : ip.tcp) {
    const unsigned l4_type = fields.udp ? 2 : 1;
    if ((fields.selected & (kSport | kDport)) == (kSport | kDport)) {
      in.put_pair(l4, l4 + 2, 2, tir.symmetric);
    } else if (fields.selected & (kSport | kDport)) {
      in.put(fields.selected & kSport ? l4 : l4 + 2, 2);
    }
    type |= (fields.selected & kSport ? l4_type << 4 : 0) | (fields.selected & kDport ? l4_type << 6 : 0);
  }
  // The security parameters index: first word of ESP, second of AH.
  const unsigned spi_at = ip.protocol == kProtoAh ? 4 : 0;
  if ((fields.selected & kSpi) && (ip.protocol == kProtoEsp || ip.protocol == kProtoAh) && !ip.fragment &&
      ip.l4 + spi_at + 4u <= ip.end) {
    in.put(l4 + spi_at, 4);
    type |= 3u << 6;
  }
  if (in.len == 0) return result;
  result.type = static_cast<std::uint8_t>(type);
  if (tir.hash_fn == kToeplitz) {
    result.value = toeplitz(tir.key, in.bytes.data(), in.len);
  } else {
    std::uint8_t x = 0;
    for (std::size_t i = 0; i < in.len; ++i) x = static_cast<std::uint8_t>(x ^ in.bytes[i]);
    result.value = static_cast<std::uint8_t>(~x);
  }
  return result;
}

}  // namespace hcasim
