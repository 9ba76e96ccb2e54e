// SPDX-License-Identifier: BSD-3-Clause
#include "model/crypto/psp.h"

#include <nettle/cmac.h>
#include <nettle/sha2.h>
#include <algorithm>
#include <cstring>

namespace hcasim {

namespace psp = prm::psp;

namespace {

constexpr std::size_t kShort = 16, kLong = 32;  // keys, bytes

// Where encryption begins; 0: the header is not that of a whole packet.
std::size_t clear_bytes(const std::uint8_t* p, std::size_t len) {
  if (len < psp::kHeader + psp::kIcv) return 0;
  const std::size_t header = (p[psp::kAtLength] + std::size_t{1}) * psp::kLengthUnit;
  const std::size_t clear = psp::kHeader + (p[psp::kAtCryptOffset] & psp::kOffsetMask) * psp::kOffsetUnit;
  return header >= psp::kHeader && std::max(header, clear) <= len - psp::kIcv ? clear : 0;
}

// 0: a version that does not encrypt, or that there is not.
std::size_t key_bytes(const std::uint8_t* p) {
  if ((p[psp::kAtVersion] & psp::kAlwaysOne) == 0) return 0;
  const unsigned version = p[psp::kAtVersion] >> psp::kVersionShift & psp::kVersionMask;
  return version == psp::kGcm128 ? kShort : version == psp::kGcm256 ? kLong : 0;
}

// The nonce is SPI and IV; the additional data are the header and what is sent in clear behind it.
void start(const GcmKey& key, GcmStream& gcm, bool decrypt, const std::uint8_t* p, std::size_t clear) {
  std::array<std::uint8_t, kGcmNonce> nonce{};
  std::memcpy(nonce.data(), p + psp::kAtSpi, nonce.size());
  gcm.start(key, decrypt, nonce, p, clear);
}

}  // namespace

// The specification's key derivation (NIST SP 800-108, counter mode, AES-256-CMAC).
std::vector<std::uint8_t> PspKeys::derive(std::uint32_t spi, std::size_t key_len) const {
  // Which device key: that of the last rotation of the SPI's phase.
  const bool odd = (spi & psp::kSpiPhase) != 0;
  const std::uint32_t of = odd == ((rotations_ & 1) != 0) ? rotations_ : rotations_ - 1;
  std::uint8_t seed[12];
  prm::store64(seed, owner_);
  prm::store32(seed + 8, of);
  sha256_ctx hash;
  sha256_init(&hash);
  sha256_update(&hash, sizeof seed, seed);
  std::uint8_t device_key[SHA256_DIGEST_SIZE];
  sha256_digest(&hash, sizeof device_key, device_key);

  cmac_aes256_ctx cmac;
  cmac_aes256_set_key(&cmac, device_key);
  std::vector<std::uint8_t> key(key_len);
  for (std::size_t at = 0; at < key_len; at += CMAC128_DIGEST_SIZE) {
    std::uint8_t block[16] = {0, 0, 0, 0, 'P', 'v', '0', 0};
    block[3] = static_cast<std::uint8_t>(at / CMAC128_DIGEST_SIZE + 1);
    if (key_len == kLong) block[6] = '1';
    prm::store32(block + 8, spi);
    prm::store32(block + 12, static_cast<std::uint32_t>(key_len * 8));
    cmac_aes256_update(&cmac, sizeof block, block);
    cmac_aes256_digest(&cmac, CMAC128_DIGEST_SIZE, key.data() + at);
  }
  return key;
}

std::uint32_t PspKeys::generate(std::size_t key_len, std::vector<std::uint8_t>& key) {
  const std::uint32_t spi = next_++ | ((rotations_ & 1) != 0 ? psp::kSpiPhase : 0);
  key = derive(spi, key_len);
  return spi;
}

void PspKeys::rotate() {
  ++rotations_;
  next_ = 1;
  recent_ = {};
}

const GcmKey& PspKeys::key_of(std::uint32_t spi, std::size_t key_len) {
  std::unique_ptr<Recent>& r = recent_[spi % recent_.size()];
  if (!r || r->spi != spi || r->key_len != key_len) {
    const std::vector<std::uint8_t> key = derive(spi, key_len);
    r = std::make_unique<Recent>(Recent{spi, key_len, GcmKey(key.data(), key.size())});
  }
  return r->key;
}

void PspKeys::clear() {
  rotations_ += 2 + (rotations_ & 1);  // the first phase again
  next_ = 1;
  recent_ = {};
}

bool psp_encrypt(const GcmKey& key, std::size_t key_len, std::uint64_t iv, std::uint8_t* p, std::size_t len) {
  const std::size_t clear = clear_bytes(p, len);
  if (clear == 0 || key_bytes(p) != key_len) return false;
  prm::store64(p + psp::kAtIv, iv);
  GcmStream gcm;
  start(key, gcm, false, p, clear);
  gcm.crypt(key, p + clear, len - clear - psp::kIcv);
  const auto tag = gcm.tag(key);
  std::memcpy(p + len - psp::kIcv, tag.data(), tag.size());
  return true;
}

PspStatus psp_decrypt(PspKeys& keys, std::uint8_t* p, std::size_t len) {
  const std::size_t clear = clear_bytes(p, len);
  if (clear == 0) return PspStatus::kBadFrame;
  const std::size_t key_len = key_bytes(p);
  const std::uint32_t spi = prm::load32(p + psp::kAtSpi);
  if (key_len == 0 || (spi & ~psp::kSpiPhase) == 0) return PspStatus::kUnknown;
  const GcmKey& key = keys.key_of(spi, key_len);
  std::vector<std::uint8_t> data(p + clear, p + len - psp::kIcv);
  GcmStream gcm;
  start(key, gcm, true, p, clear);
  gcm.crypt(key, data.data(), data.size());
  const auto tag = gcm.tag(key);
  if (!std::equal(tag.begin(), tag.end(), p + len - psp::kIcv)) return PspStatus::kAuthFailed;
  std::copy(data.begin(), data.end(), p + clear);
  return PspStatus::kOk;
}

}  // namespace hcasim
