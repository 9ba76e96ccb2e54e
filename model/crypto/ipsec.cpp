// SPDX-License-Identifier: BSD-3-Clause
#include "model/crypto/ipsec.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "prm/field.h"

namespace hcasim {

namespace {

// RFC 4106 4, 5: the nonce is the salt and the IV; the additional data are SPI and sequence number.
void start(const GcmKey& key, GcmStream& gcm, const IpsecSa& sa, bool decrypt, const std::uint8_t* esp,
           std::uint32_t high) {
  std::array<std::uint8_t, kGcmNonce> nonce{};
  std::memcpy(nonce.data(), sa.salt.data(), sa.salt.size());
  std::memcpy(nonce.data() + sa.salt.size(), esp + kEspHeader, kEspIv);
  std::uint8_t aad[kEspHeader + 4];
  std::memcpy(aad, esp, kEspHeader);
  std::size_t aad_len = kEspHeader;
  if (sa.esn) {
    prm::store32(aad + 4, high);
    std::memcpy(aad + 8, esp + 4, 4);
    aad_len += 4;
  }
  gcm.start(key, decrypt, nonce, aad, aad_len);
}

}  // namespace

bool esp_encrypt(const GcmKey& key, const IpsecSa& sa, std::uint8_t* esp, std::size_t len) {
  if (len < kEspShortest) return false;
  const std::uint32_t high = prm::load32(esp + kEspHeader);
  for (std::size_t i = 0; i < kEspIv; ++i) esp[kEspHeader + i] ^= sa.implicit_iv[i];
  GcmStream gcm;
  start(key, gcm, sa, false, esp, high);
  constexpr std::size_t kAt = kEspHeader + kEspIv;
  gcm.crypt(key, esp + kAt, len - kAt - kGcmTag);
  const auto tag = gcm.tag(key);
  std::memcpy(esp + len - kGcmTag, tag.data(), tag.size());
  return true;
}

EspStatus esp_decrypt(const GcmKey& key, const IpsecSa& sa, std::uint8_t* esp, std::size_t len) {
  if (len < kEspShortest) return EspStatus::kBadTrailer;
  constexpr std::size_t kAt = kEspHeader + kEspIv;
  std::vector<std::uint8_t> clear(esp + kAt, esp + len - kGcmTag);
  GcmStream gcm;
  start(key, gcm, sa, true, esp, sa.high(prm::load32(esp + 4)));
  gcm.crypt(key, clear.data(), clear.size());
  const auto tag = gcm.tag(key);
  if (!std::equal(tag.begin(), tag.end(), esp + len - kGcmTag)) return EspStatus::kAuthFailed;
  if (clear[clear.size() - kEspTrailer] + kEspTrailer > clear.size()) return EspStatus::kBadTrailer;
  std::memcpy(esp + kAt, clear.data(), clear.size());
  return EspStatus::kOk;
}

}  // namespace hcasim
