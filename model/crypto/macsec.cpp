// SPDX-License-Identifier: BSD-3-Clause
#include "model/crypto/macsec.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "prm/field.h"

namespace hcasim {

namespace {

constexpr std::size_t kAddresses = 12, kTci = 2, kSl = 3, kPn = 4;  // the rest in the SecTAG

// 802.1AE 14.5, 14.7: SCI and packet number; or SSCI and packet number, with the salt.
std::array<std::uint8_t, kGcmNonce> nonce(const MacsecSa& sa, std::uint32_t pn) {
  std::array<std::uint8_t, kGcmNonce> n{};
  if (!sa.epn) {
    std::copy(sa.sci.begin(), sa.sci.end(), n.begin());
    prm::store32(n.data() + sa.sci.size(), pn);
    return n;
  }
  std::copy(sa.sci.begin() + 4, sa.sci.end(), n.begin());
  prm::store32(n.data() + 4, sa.high(pn));
  prm::store32(n.data() + 8, pn);
  for (std::size_t i = 0; i < n.size(); ++i) n[i] ^= sa.salt[i];
  return n;
}

// What is authenticated only: the addresses, the SecTAG, and the data of a frame that is not encrypted.
std::vector<std::uint8_t> open_part(const std::uint8_t* frame, const MacsecFrame& at, bool encrypted) {
  const std::size_t rest = (encrypted ? at.data : at.icv) - at.tag;
  std::vector<std::uint8_t> aad(kAddresses + rest);
  std::memcpy(aad.data(), frame, kAddresses);
  std::memcpy(aad.data() + kAddresses, frame + at.tag, rest);
  return aad;
}

}  // namespace

bool MacsecFrame::find(const std::uint8_t* frame, const FrameHeaders& headers, bool short_length) {
  if (headers.ethertype != kEthertypeMacsec) return false;
  tag = headers.payload - 2u;
  if (headers.len < tag + kSecTag) return false;
  data = tag + kSecTag + (frame[tag + kTci] & kTciSc ? kSecTagSci : 0);
  if (headers.len < data + kGcmTag) return false;
  icv = headers.len - kGcmTag;
  const std::size_t len = frame[tag + kSl] & 0x3f;
  if (!short_length || len == 0) return true;
  if (len >= kMacsecShortest || data + len > icv) return false;
  icv = data + len;
  return true;
}

void macsec_protect(const GcmKey& key, const MacsecSa& sa, std::uint32_t pn, std::uint8_t* frame,
                    const MacsecFrame& at) {
  const std::size_t len = at.icv - at.data;
  frame[at.tag + kSl] = static_cast<std::uint8_t>(len < kMacsecShortest ? len : 0);
  prm::store32(frame + at.tag + kPn, pn);
  const auto aad = open_part(frame, at, sa.confidential);
  GcmStream gcm;
  gcm.start(key, false, nonce(sa, pn), aad.data(), aad.size());
  if (sa.confidential) gcm.crypt(key, frame + at.data, len);
  const auto tag = gcm.tag(key);
  std::copy(tag.begin(), tag.end(), frame + at.icv);
}

MacsecStatus macsec_validate(const GcmKey& key, const MacsecSa& sa, std::uint8_t* frame,
                             const MacsecFrame& at) {
  const std::uint8_t tci = frame[at.tag + kTci];
  const bool encrypted = tci & kTciEncrypted;
  // Frames that are changed and not encrypted are of other cipher suites.
  if (tci & kTciVersion || encrypted != ((tci & kTciChanged) != 0)) return MacsecStatus::kBadTag;
  const auto aad = open_part(frame, at, encrypted);
  GcmStream gcm;
  gcm.start(key, true, nonce(sa, prm::load32(frame + at.tag + kPn)), aad.data(), aad.size());
  std::vector<std::uint8_t> clear;
  if (encrypted) {
    clear.assign(frame + at.data, frame + at.icv);
    gcm.crypt(key, clear.data(), clear.size());
  }
  const auto tag = gcm.tag(key);
  if (!std::equal(tag.begin(), tag.end(), frame + at.icv)) return MacsecStatus::kAuthFailed;
  std::copy(clear.begin(), clear.end(), frame + at.data);
  return MacsecStatus::kOk;
}

}  // namespace hcasim
