// SPDX-License-Identifier: BSD-3-Clause
// TLS 1.2 records with AES-128-GCM for tests: as the kernel hands them to a card, and as nettle's functions
// for whole messages encrypt them, which knows nothing of the model.
#ifndef HCASIM_TESTS_MODEL_TLS_RECORDS_H
#define HCASIM_TESTS_MODEL_TLS_RECORDS_H

#include <nettle/gcm.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "prm/field.h"

namespace hcasim::tls_records {

using Bytes = std::vector<std::uint8_t>;

inline const Bytes kKey{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
constexpr std::uint32_t kSalt = 0xa1b2c3d4;
constexpr std::uint64_t kFirst = 0xfffffffe;  // so that the number's upper half is used, too
constexpr std::uint32_t kStart = 0xfffff000;  // and sequence numbers wrap
constexpr std::size_t kHead = 13, kTag = 16;  // header and explicit nonce; behind the data

// Header, explicit nonce, plain data, room for the tag.
inline Bytes record(std::size_t length, unsigned seed, std::uint64_t nonce) {
  Bytes r{23, 3, 3, 0, 0};
  const std::size_t counted = 8 + length + kTag;
  r[3] = static_cast<std::uint8_t>(counted >> 8), r[4] = static_cast<std::uint8_t>(counted);
  r.resize(kHead);
  prm::store64(r.data() + 5, nonce);
  std::mt19937 random(seed);
  for (std::size_t i = 0; i < length; ++i) r.push_back(static_cast<std::uint8_t>(random()));
  r.resize(r.size() + kTag);
  return r;
}

inline Bytes sealed(const Bytes& plain, std::uint64_t number) {
  Bytes out = plain;
  const std::size_t length = plain.size() - kHead - kTag;
  std::uint8_t nonce[12];
  prm::store32(nonce, kSalt);
  std::copy(plain.begin() + 5, plain.begin() + kHead, nonce + 4);
  std::uint8_t aad[13];
  prm::store64(aad, number);
  std::copy(plain.begin(), plain.begin() + 3, aad + 8);
  prm::store16(aad + 11, static_cast<std::uint32_t>(length));
  gcm_aes128_ctx ctx;
  gcm_aes128_set_key(&ctx, kKey.data());
  gcm_aes128_set_iv(&ctx, sizeof nonce, nonce);
  gcm_aes128_update(&ctx, sizeof aad, aad);
  gcm_aes128_encrypt(&ctx, length, out.data() + kHead, plain.data() + kHead);
  gcm_aes128_digest(&ctx, kTag, out.data() + out.size() - kTag);
  return out;
}

// Records one behind the other, with numbers from `first` on.
struct Stream {
  Bytes plain, cipher;
  std::vector<std::size_t> begins;
  explicit Stream(const std::vector<std::size_t>& lengths, std::uint64_t first = kFirst) {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      begins.push_back(plain.size());
      const Bytes r = record(lengths[i], static_cast<unsigned>(i + 1), 77 + i * 3);
      const Bytes s = sealed(r, first + i);
      plain.insert(plain.end(), r.begin(), r.end());
      cipher.insert(cipher.end(), s.begin(), s.end());
    }
  }
  // What a receiver is to see: tags stay as they came.
  Bytes opened() const {
    Bytes out = plain;
    for (std::size_t i = 0; i < begins.size(); ++i) {
      const auto end = static_cast<std::ptrdiff_t>(i + 1 < begins.size() ? begins[i + 1] : plain.size());
      std::copy(cipher.begin() + end - kTag, cipher.begin() + end, out.begin() + end - kTag);
    }
    return out;
  }
};

}  // namespace hcasim::tls_records
#endif
