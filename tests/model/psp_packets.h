// SPDX-License-Identifier: BSD-3-Clause
// PSP packets (Google's PSP Architecture Specification) for tests: as the kernel hands them to a card, and as
// nettle's functions for whole messages encrypt them, which knows nothing of the model.
#ifndef HCASIM_TESTS_MODEL_PSP_PACKETS_H
#define HCASIM_TESTS_MODEL_PSP_PACKETS_H

#include <nettle/gcm.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "prm/field.h"

namespace hcasim::psp_packets {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kHead = 16, kIcv = 16;

struct Head {
  std::uint8_t next = 6;
  unsigned version = 0;
  unsigned options = 0, crypt_offset = 0;  // units of 8 and of 4 bytes
  std::uint64_t iv = 0;
};

// Header, payload (with the options' bytes first) and room for the ICV.
inline Bytes packet(std::uint32_t spi, const Bytes& payload, const Head& head) {
  Bytes p(kHead);
  p[0] = head.next;
  p[1] = static_cast<std::uint8_t>(1 + head.options);
  p[2] = static_cast<std::uint8_t>(head.crypt_offset);
  p[3] = static_cast<std::uint8_t>(head.version << 2 | 1);
  prm::store32(p.data() + 4, spi);
  prm::store64(p.data() + 8, head.iv);
  p.insert(p.end(), payload.begin(), payload.end());
  p.resize(p.size() + kIcv);
  return p;
}

// Encrypts or decrypts in place; returns the tag that belongs there.
inline Bytes crypt(Bytes& p, const Bytes& key, bool decrypt) {
  const std::size_t clear = kHead + p[2] * 4u, len = p.size() - clear - kIcv;
  std::uint8_t* data = p.data() + clear;
  Bytes tag(kIcv);
  if (key.size() == 32) {
    gcm_aes256_ctx ctx;
    gcm_aes256_set_key(&ctx, key.data());
    gcm_aes256_set_iv(&ctx, 12, p.data() + 4);
    gcm_aes256_update(&ctx, clear, p.data());
    (decrypt ? gcm_aes256_decrypt : gcm_aes256_encrypt)(&ctx, len, data, data);
    gcm_aes256_digest(&ctx, kIcv, tag.data());
  } else {
    gcm_aes128_ctx ctx;
    gcm_aes128_set_key(&ctx, key.data());
    gcm_aes128_set_iv(&ctx, 12, p.data() + 4);
    gcm_aes128_update(&ctx, clear, p.data());
    (decrypt ? gcm_aes128_decrypt : gcm_aes128_encrypt)(&ctx, len, data, data);
    gcm_aes128_digest(&ctx, kIcv, tag.data());
  }
  return tag;
}

inline Bytes sealed(Bytes p, const Bytes& key) {
  const Bytes tag = crypt(p, key, false);
  std::copy(tag.begin(), tag.end(), p.end() - kIcv);
  return p;
}

// Behind the base header, without the ICV; empty: it is not of the key.
inline Bytes opened(Bytes p, const Bytes& key) {
  const Bytes tag = crypt(p, key, true);
  if (!std::equal(tag.begin(), tag.end(), p.end() - kIcv)) return {};
  return {p.begin() + kHead, p.end() - kIcv};
}

// ---- In Ethernet frames without tags and IP options

constexpr std::size_t kEth = 14, kIpv4 = 20, kIpv6 = 40, kUdp = 8, kTcp = 20;
constexpr unsigned kPort = 1000;

inline std::size_t ip_header(const Bytes& f) { return f[12] == 0x86 ? kIpv6 : kIpv4; }
inline std::size_t at_psp(const Bytes& f) { return kEth + ip_header(f) + kUdp; }
inline void set_ip(Bytes& f, std::size_t bytes_behind, std::uint8_t protocol) {
  if (f[12] == 0x86) {
    prm::store16(f.data() + kEth + 4, static_cast<std::uint32_t>(bytes_behind));
    f[kEth + 6] = protocol;
  } else {
    prm::store16(f.data() + kEth + 2, static_cast<std::uint32_t>(kIpv4 + bytes_behind));
    f[kEth + 9] = protocol;
  }
}

// What stands behind UDP's header in place of what the frame's IP packet carries; udp: its length.
inline Bytes in_udp(const Bytes& frame, const Bytes& psp, std::size_t udp) {
  const std::size_t l4 = kEth + ip_header(frame);
  Bytes f(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(l4));
  Bytes header(kUdp);
  prm::store16(header.data(), 0xbeef);
  prm::store16(header.data() + 2, kPort);
  prm::store16(header.data() + 4, static_cast<std::uint32_t>(udp));
  f.insert(f.end(), header.begin(), header.end());
  f.insert(f.end(), psp.begin(), psp.end());
  set_ip(f, f.size() - l4, 17);
  return f;
}

// The frame with headers of UDP and PSP in front of its TCP, as the kernel makes it: without an ICV, nor
// lengths that count it, an IV of zero, no UDP checksum.
inline Bytes encapsulated(const Bytes& frame, std::uint32_t spi, unsigned version = 0) {
  Head head;
  head.version = version;
  Bytes p =
      packet(spi, {frame.begin() + static_cast<std::ptrdiff_t>(kEth + ip_header(frame)), frame.end()}, head);
  p.resize(p.size() - kIcv);
  return in_udp(frame, p, kUdp + p.size());
}

}  // namespace hcasim::psp_packets
#endif
