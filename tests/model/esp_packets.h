// SPDX-License-Identifier: BSD-3-Clause
// ESP packets (RFC 4303) with AES-GCM (RFC 4106) for tests: as the kernel hands them to a card, and as
// nettle's functions for whole messages encrypt them, which knows nothing of the model.
#ifndef HCASIM_TESTS_MODEL_ESP_PACKETS_H
#define HCASIM_TESTS_MODEL_ESP_PACKETS_H

#include <nettle/gcm.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "prm/field.h"

namespace hcasim::esp_packets {

using Bytes = std::vector<std::uint8_t>;

inline const Bytes kKey{0x10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
inline const Bytes kSalt{0xa1, 0xb2, 0xc3, 0xd4};
inline const Bytes kImplicitIv{0x81, 0x72, 0x63, 0x54, 0x45, 0x36, 0x27, 0x18};
constexpr std::uint32_t kSpi = 0xc0de0001;
constexpr std::size_t kHead = 16, kTag = 16;  // ESP's header and IV

// SPI, sequence number, and in the IV's place the number as 64 bits.
inline Bytes head(std::uint64_t number) {
  Bytes h(kHead);
  prm::store32(h.data(), kSpi);
  prm::store32(h.data() + 4, static_cast<std::uint32_t>(number));
  prm::store64(h.data() + 8, number);
  return h;
}

// Padding, its length and the next header behind `len` bytes, then room for the tag.
inline Bytes trailer(std::size_t len, std::uint8_t next) {
  const std::size_t padding = (4 - (len + 2) % 4) % 4;
  Bytes t;
  for (std::size_t i = 1; i <= padding; ++i) t.push_back(static_cast<std::uint8_t>(i));
  t.push_back(static_cast<std::uint8_t>(padding));
  t.push_back(next);
  t.resize(t.size() + kTag);
  return t;
}

// What is to be sent, whole.
inline Bytes packet(std::uint64_t number, const Bytes& payload, std::uint8_t next) {
  Bytes p = head(number);
  p.insert(p.end(), payload.begin(), payload.end());
  const Bytes t = trailer(payload.size(), next);
  p.insert(p.end(), t.begin(), t.end());
  return p;
}

// The same as it is on the wire; esn: with extended sequence numbers.
inline Bytes sealed(const Bytes& plain, std::uint64_t number, bool esn, const Bytes& key = kKey) {
  Bytes out = plain;
  for (std::size_t i = 0; i < kImplicitIv.size(); ++i) out[8 + i] = plain[8 + i] ^ kImplicitIv[i];
  Bytes nonce = kSalt;
  nonce.insert(nonce.end(), out.begin() + 8, out.begin() + kHead);
  Bytes aad(plain.begin(), plain.begin() + 8);
  if (esn) {
    aad.resize(12);
    prm::store64(aad.data() + 4, number);
  }
  const std::size_t len = plain.size() - kHead - kTag;
  std::uint8_t* tag = out.data() + out.size() - kTag;
  if (key.size() == 32) {
    gcm_aes256_ctx ctx;
    gcm_aes256_set_key(&ctx, key.data());
    gcm_aes256_set_iv(&ctx, nonce.size(), nonce.data());
    gcm_aes256_update(&ctx, aad.size(), aad.data());
    gcm_aes256_encrypt(&ctx, len, out.data() + kHead, plain.data() + kHead);
    gcm_aes256_digest(&ctx, kTag, tag);
  } else {
    gcm_aes128_ctx ctx;
    gcm_aes128_set_key(&ctx, key.data());
    gcm_aes128_set_iv(&ctx, nonce.size(), nonce.data());
    gcm_aes128_update(&ctx, aad.size(), aad.data());
    gcm_aes128_encrypt(&ctx, len, out.data() + kHead, plain.data() + kHead);
    gcm_aes128_digest(&ctx, kTag, tag);
  }
  return out;
}

// What a packet of the wire has between header and tag; empty: it is not of the key.
inline Bytes opened(const Bytes& wire, std::uint64_t number, bool esn) {
  Bytes nonce = kSalt;
  nonce.insert(nonce.end(), wire.begin() + 8, wire.begin() + kHead);
  Bytes aad(wire.begin(), wire.begin() + 8);
  if (esn) {
    aad.resize(12);
    prm::store64(aad.data() + 4, number);
  }
  Bytes out(wire.size() - kHead - kTag);
  std::uint8_t tag[kTag];
  gcm_aes128_ctx ctx;
  gcm_aes128_set_key(&ctx, kKey.data());
  gcm_aes128_set_iv(&ctx, nonce.size(), nonce.data());
  gcm_aes128_update(&ctx, aad.size(), aad.data());
  gcm_aes128_decrypt(&ctx, out.size(), out.data(), wire.data() + kHead);
  gcm_aes128_digest(&ctx, kTag, tag);
  return std::equal(tag, tag + kTag, wire.end() - kTag) ? out : Bytes();
}

}  // namespace hcasim::esp_packets
#endif
