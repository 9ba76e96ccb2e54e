// SPDX-License-Identifier: BSD-3-Clause
// Frames protected and validated by a secure association of MACsec, against nettle's own way of doing a whole
// message.
#include <gtest/gtest.h>

#include <vector>

#include "macsec_frames.h"
#include "model/crypto/macsec.h"

namespace hcasim {
namespace {

using macsec_frames::Bytes;
using macsec_frames::How;
using macsec_frames::sealed;

constexpr std::uint64_t kNumber = 0x5'00000007;

MacsecSa sa(const How& how, std::uint32_t msb = kNumber >> 32, bool overlap = false) {
  MacsecSa s;
  if (how.xpn)
    prm::store32(s.sci.data() + 4, macsec_frames::kSsci);
  else
    std::copy(macsec_frames::kSci.begin(), macsec_frames::kSci.end(), s.sci.begin());
  std::copy(macsec_frames::kSalt.begin(), macsec_frames::kSalt.end(), s.salt.begin());
  s.confidential = how.encrypted;
  s.epn = how.xpn;
  s.epn_msb = msb;
  s.overlap = overlap;
  return s;
}

Bytes plain(std::size_t payload) {
  Bytes f{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00};
  for (std::size_t i = 0; i < payload; ++i) f.push_back(static_cast<std::uint8_t>(i * 7));
  return f;
}

Bytes longer() {
  Bytes k(32);
  for (std::size_t i = 0; i < k.size(); ++i) k[i] = static_cast<std::uint8_t>(i * 11);
  return k;
}

MacsecFrame parts_of(const Bytes& f) {
  MacsecFrame at;
  EXPECT_TRUE(at.find(f.data(), parse_frame(f.data(), static_cast<std::uint32_t>(f.size())), true));
  return at;
}

// With SecTAG and room for the ICV, as the entry's reformat leaves it.
Bytes to_be_sealed(const Bytes& frame, const How& how) {
  Bytes f = sealed(frame, how, 0);
  const std::size_t data = f.size() - 16 - (frame.size() - 12);
  std::copy(frame.begin() + 12, frame.end(), f.begin() + static_cast<std::ptrdiff_t>(data));
  std::fill(f.end() - 16, f.end(), std::uint8_t{0});
  f[15] = 0x3f;  // SL is the card's to say
  return f;
}

std::vector<How> all_ways() {
  std::vector<How> ways;
  for (const Bytes& key : {macsec_frames::kKey, longer()})
    for (const bool sci : {false, true})
      for (const bool xpn : {false, true})
        for (const bool encrypted : {false, true}) {
          How how;
          how.key = key, how.sci = sci, how.xpn = xpn, how.encrypted = encrypted;
          ways.push_back(how);
        }
  return ways;
}

TEST(Macsec, ProtectsAsAWholeMessageAndBack) {
  for (const How& how : all_ways()) {
    const GcmKey key(how.key.data(), how.key.size());
    for (const std::size_t payload : {0u, 1u, 45u, 46u, 47u, 60u, 1500u, 9000u}) {
      const Bytes frame = plain(payload);
      Bytes f = to_be_sealed(frame, how);
      f[15] = 0;
      MacsecFrame at;
      ASSERT_TRUE(at.find(f.data(), parse_frame(f.data(), static_cast<std::uint32_t>(f.size())), false));
      macsec_protect(key, sa(how), static_cast<std::uint32_t>(kNumber), f.data(), at);
      const Bytes wire = sealed(frame, how, kNumber);
      ASSERT_EQ(f, wire) << payload;
      ASSERT_EQ(macsec_validate(key, sa(how), f.data(), parts_of(f)), MacsecStatus::kOk) << payload;
      EXPECT_TRUE(
          std::equal(frame.begin() + 12, frame.end(), f.begin() + static_cast<std::ptrdiff_t>(at.data)));
    }
  }
}

TEST(Macsec, AnyByteThatIsNotAsItWasSentIsFoundAndNothingIsDecrypted) {
  for (const How& how : all_ways()) {
    const GcmKey key(how.key.data(), how.key.size());
    const Bytes wire = sealed(plain(60), how, kNumber);
    std::size_t checked = 0;
    for (std::size_t i = 0; i < wire.size(); ++i) {
      Bytes forged = wire;
      forged[i] ^= 0x10;
      const Bytes before = forged;
      MacsecFrame at;
      if (!at.find(forged.data(), parse_frame(forged.data(), static_cast<std::uint32_t>(forged.size())),
                   true))
        continue;
      ++checked;
      EXPECT_NE(macsec_validate(key, sa(how), forged.data(), at), MacsecStatus::kOk) << i;
      EXPECT_EQ(forged, before) << i;
    }
    EXPECT_EQ(checked, wire.size() - 2) << "all but the EtherType";
  }
}

TEST(Macsec, TheHighHalfOfTheNumberIsThatOfTheWindow) {
  How how;
  how.xpn = true;
  const GcmKey key(how.key.data(), how.key.size());
  const auto status = [&](std::uint64_t number, const MacsecSa& s) {
    Bytes f = sealed(plain(60), how, number);
    return macsec_validate(key, s, f.data(), parts_of(f));
  };
  EXPECT_EQ(status(0x4'fffffff0, sa(how, 4, true)), MacsecStatus::kOk);
  EXPECT_EQ(status(0x5'00000003, sa(how, 4, true)), MacsecStatus::kOk) << "it has wrapped";
  EXPECT_EQ(status(0x4'00000003, sa(how, 4, true)), MacsecStatus::kAuthFailed) << "long ago";
  EXPECT_EQ(status(0x5'00000003, sa(how, 5)), MacsecStatus::kOk);
}

TEST(Macsec, PaddingOfTheLinkIsNoPartOfAShortFrame) {
  const How how;
  const GcmKey key(how.key.data(), how.key.size());
  Bytes f = sealed(plain(10), how, kNumber);
  const std::size_t len = f.size();
  f.resize(len + 20);
  const MacsecFrame at = parts_of(f);
  EXPECT_EQ(at.icv + 16, len);
  EXPECT_EQ(macsec_validate(key, sa(how), f.data(), at), MacsecStatus::kOk);
}

TEST(Macsec, WhatHasNoSecTagOrIsTooShort) {
  const How how;
  const Bytes whole = sealed(plain(60), how, kNumber);
  for (std::size_t len = 0; len < whole.size(); ++len) {
    MacsecFrame at;
    const Bytes f(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(len));
    const bool found = at.find(f.data(), parse_frame(f.data(), static_cast<std::uint32_t>(len)), true);
    EXPECT_EQ(found, len >= 12 + 16 + 16) << len;
    if (found) {
      EXPECT_LE(at.data, at.icv);
    }
  }
  MacsecFrame at;
  Bytes f = whole;
  f[15] = 48;
  EXPECT_FALSE(at.find(f.data(), parse_frame(f.data(), static_cast<std::uint32_t>(f.size())), true))
      << "SL says less than 48";
  f = plain(60);
  EXPECT_FALSE(at.find(f.data(), parse_frame(f.data(), static_cast<std::uint32_t>(f.size())), true));
}

TEST(Macsec, VersionsAndSuitesThatAreNotKnown) {
  const How how;
  const GcmKey key(how.key.data(), how.key.size());
  for (const std::uint8_t tci : {0x80u, 0x04u, 0x08u}) {
    Bytes f = sealed(plain(60), how, kNumber);
    f[14] = static_cast<std::uint8_t>(f[14] ^ tci);
    EXPECT_EQ(macsec_validate(key, sa(how), f.data(), parts_of(f)), MacsecStatus::kBadTag);
  }
}

}  // namespace
}  // namespace hcasim
