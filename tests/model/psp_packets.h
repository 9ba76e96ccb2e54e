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

}  // namespace hcasim::psp_packets
#endif
