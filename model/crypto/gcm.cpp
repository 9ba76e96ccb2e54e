// SPDX-License-Identifier: BSD-3-Clause
#include "model/crypto/gcm.h"

#include <nettle/aes.h>
#include <nettle/gcm.h>
#include <algorithm>
#include <cstring>

namespace hcasim {

struct GcmKey::Expanded {
  bool longer = false;
  aes128_ctx aes128{};
  aes256_ctx aes256{};
  gcm_key hash{};

  const void* cipher() const {
    return longer ? static_cast<const void*>(&aes256) : static_cast<const void*>(&aes128);
  }
  nettle_cipher_func* encrypt() const {
    return longer ? reinterpret_cast<nettle_cipher_func*>(aes256_encrypt)
                  : reinterpret_cast<nettle_cipher_func*>(aes128_encrypt);
  }
};

GcmKey::GcmKey(const std::uint8_t* key, std::size_t len) {
  auto e = std::make_unique<Expanded>();
  e->longer = len == AES256_KEY_SIZE;
  if (e->longer)
    aes256_set_encrypt_key(&e->aes256, key);
  else
    aes128_set_encrypt_key(&e->aes128, key);
  gcm_set_key(&e->hash, e->cipher(), e->encrypt());
  expanded_ = std::move(e);
}
GcmKey::~GcmKey() = default;
GcmKey::GcmKey(GcmKey&&) noexcept = default;
GcmKey& GcmKey::operator=(GcmKey&&) noexcept = default;

namespace {

gcm_ctx load(const GcmStream& s) {
  gcm_ctx c{};
  std::memcpy(c.iv.b, s.first.data(), kGcmBlock);
  std::memcpy(c.ctr.b, s.counter.data(), kGcmBlock);
  std::memcpy(c.x.b, s.hash.data(), kGcmBlock);
  c.auth_size = s.aad_bytes;
  c.data_size = s.data_bytes;
  return c;
}

void store(const gcm_ctx& c, GcmStream& s) {
  std::memcpy(s.first.data(), c.iv.b, kGcmBlock);
  std::memcpy(s.counter.data(), c.ctr.b, kGcmBlock);
  std::memcpy(s.hash.data(), c.x.b, kGcmBlock);
  s.aad_bytes = c.auth_size;
  s.data_bytes = c.data_size;
}

}  // namespace

void GcmStream::start(const GcmKey& key, bool decrypt, const std::array<std::uint8_t, kGcmNonce>& nonce,
                      const std::uint8_t* aad, std::size_t aad_len) {
  *this = {};
  decrypts = decrypt;
  gcm_ctx c{};
  gcm_set_iv(&c, &key.expanded_->hash, nonce.size(), nonce.data());
  gcm_update(&c, &key.expanded_->hash, aad_len, aad);
  store(c, *this);
}

void GcmStream::crypt(const GcmKey& key, std::uint8_t* data, std::size_t len) {
  const GcmKey::Expanded& e = *key.expanded_;
  const auto run = decrypts ? gcm_decrypt : gcm_encrypt;
  gcm_ctx c = load(*this);
  while (len != 0) {
    if (part_len == 0 && len >= kGcmBlock) {
      const std::size_t whole = len / kGcmBlock * kGcmBlock;
      run(&c, &e.hash, e.cipher(), e.encrypt(), whole, data, data);
      data += whole;
      len -= whole;
      continue;
    }
    // A part of a block: done with a copy, as the last of a message would be, until the block is whole.
    const std::size_t n = std::min(len, kGcmBlock - part_len);
    std::memcpy(part.data() + part_len, data, n);
    std::uint8_t out[kGcmBlock];
    gcm_ctx as_last = c;
    run(&as_last, &e.hash, e.cipher(), e.encrypt(), part_len + n, out, part.data());
    std::memcpy(data, out + part_len, n);
    part_len = static_cast<std::uint8_t>(part_len + n);
    if (part_len == kGcmBlock) {
      c = as_last;
      part_len = 0;
    }
    data += n;
    len -= n;
  }
  store(c, *this);
}

std::array<std::uint8_t, kGcmTag> GcmStream::tag(const GcmKey& key) const {
  const GcmKey::Expanded& e = *key.expanded_;
  gcm_ctx c = load(*this);
  std::uint8_t out[kGcmBlock];
  if (part_len != 0)
    (decrypts ? gcm_decrypt : gcm_encrypt)(&c, &e.hash, e.cipher(), e.encrypt(), part_len, out, part.data());
  std::array<std::uint8_t, kGcmTag> result{};
  gcm_digest(&c, &e.hash, e.cipher(), e.encrypt(), result.size(), result.data());
  return result;
}

}  // namespace hcasim
