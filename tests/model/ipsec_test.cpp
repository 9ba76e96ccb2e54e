// SPDX-License-Identifier: BSD-3-Clause
// ESP packets encrypted and decrypted by a security association, against nettle's own way of doing a whole
// message.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "esp_packets.h"
#include "model/crypto/ipsec.h"

namespace hcasim {
namespace {

using esp_packets::Bytes;
using esp_packets::packet;
using esp_packets::sealed;

constexpr std::uint64_t kNumber = 0x500000007;

IpsecSa sa(bool esn, std::uint32_t msb = kNumber >> 32, bool overlap = false) {
  IpsecSa s;
  std::copy(esp_packets::kSalt.begin(), esp_packets::kSalt.end(), s.salt.begin());
  std::copy(esp_packets::kImplicitIv.begin(), esp_packets::kImplicitIv.end(), s.implicit_iv.begin());
  s.esn = esn;
  s.esn_msb = msb;
  s.overlap = overlap;
  return s;
}

Bytes longer() {
  Bytes k(32);
  for (std::size_t i = 0; i < k.size(); ++i) k[i] = static_cast<std::uint8_t>(i * 7);
  return k;
}

TEST(Esp, EncryptsAsAWholeMessageAndBack) {
  for (const Bytes& bytes : {esp_packets::kKey, longer()}) {
    const GcmKey key(bytes.data(), bytes.size());
    for (const bool esn : {false, true}) {
      for (const std::size_t len : {0u, 1u, 2u, 3u, 60u, 1400u, 8900u}) {
        const Bytes plain = packet(kNumber, Bytes(len, 0x5a), 6);
        Bytes p = plain;
        ASSERT_TRUE(esp_encrypt(key, sa(esn), p.data(), p.size()));
        const Bytes wire = sealed(plain, kNumber, esn, bytes);
        EXPECT_EQ(p, wire) << len;
        ASSERT_EQ(esp_decrypt(key, sa(esn), p.data(), p.size()), EspStatus::kOk) << len;
        EXPECT_TRUE(std::equal(p.begin() + 16, p.end() - 16, plain.begin() + 16)) << len;
        EXPECT_TRUE(std::equal(p.begin(), p.begin() + 16, wire.begin())) << "the header stays";
        EXPECT_TRUE(std::equal(p.end() - 16, p.end(), wire.end() - 16)) << "the tag stays";
      }
    }
  }
}

TEST(Esp, AnyByteThatIsNotAsItWasSentIsFoundAndNothingIsDecrypted) {
  const GcmKey key(esp_packets::kKey.data(), esp_packets::kKey.size());
  const Bytes wire = sealed(packet(kNumber, Bytes(40, 1), 17), kNumber, true);
  for (std::size_t i = 0; i < wire.size(); ++i) {
    Bytes forged = wire;
    forged[i] ^= 0x10;
    const Bytes before = forged;
    EXPECT_EQ(esp_decrypt(key, sa(true), forged.data(), forged.size()), EspStatus::kAuthFailed) << i;
    EXPECT_EQ(forged, before) << i;
  }
  const Bytes other = longer();
  const GcmKey wrong(other.data(), 16);
  Bytes p = wire;
  EXPECT_EQ(esp_decrypt(wrong, sa(true), p.data(), p.size()), EspStatus::kAuthFailed);
  EXPECT_EQ(esp_decrypt(key, sa(false), p.data(), p.size()), EspStatus::kAuthFailed) << "without ESN";
}

TEST(Esp, TheHighHalfOfTheNumberIsThatOfTheWindow) {
  const GcmKey key(esp_packets::kKey.data(), esp_packets::kKey.size());
  const auto status = [&](std::uint64_t number, const IpsecSa& s) {
    Bytes p = sealed(packet(number, Bytes(20, 1), 17), number, true);
    return esp_decrypt(key, s, p.data(), p.size());
  };
  EXPECT_EQ(status(0x4'fffffff0, sa(true, 4, true)), EspStatus::kOk);
  EXPECT_EQ(status(0x5'00000003, sa(true, 4, true)), EspStatus::kOk) << "it has wrapped";
  EXPECT_EQ(status(0x4'00000003, sa(true, 4, true)), EspStatus::kAuthFailed) << "long ago";
  EXPECT_EQ(status(0x5'00000003, sa(true, 5, false)), EspStatus::kOk);
  EXPECT_EQ(status(0x5'80000003, sa(true, 5, false)), EspStatus::kOk);
}

TEST(Esp, APacketNeedNotEndWithAWord) {
  const GcmKey key(esp_packets::kKey.data(), esp_packets::kKey.size());
  for (std::size_t len = 1; len < 9; ++len) {
    Bytes plain = packet(kNumber, Bytes(len, 0x5a), 6);
    plain.insert(plain.begin() + esp_packets::kHead, 0x33);
    Bytes p = plain;
    ASSERT_TRUE(esp_encrypt(key, sa(false), p.data(), p.size()));
    EXPECT_EQ(p, sealed(plain, kNumber, false));
    EXPECT_EQ(esp_decrypt(key, sa(false), p.data(), p.size()), EspStatus::kOk);
  }
}

TEST(Esp, WhatIsNoPacketIsRefused) {
  const GcmKey key(esp_packets::kKey.data(), esp_packets::kKey.size());
  for (std::size_t len = 0; len < 80; ++len) {
    const bool whole = len >= kEspShortest;
    Bytes p(len, 0);
    EXPECT_EQ(esp_encrypt(key, sa(false), p.data(), p.size()), whole) << len;
    Bytes q(len, 0);
    EXPECT_EQ(esp_decrypt(key, sa(false), q.data(), q.size()),
              whole ? EspStatus::kAuthFailed : EspStatus::kBadTrailer)
        << len;
  }
}

TEST(Esp, PaddingLongerThanThePacketIsABadTrailer) {
  const GcmKey key(esp_packets::kKey.data(), esp_packets::kKey.size());
  Bytes plain = packet(kNumber, Bytes(10, 1), 17);
  const std::size_t pad = plain.size() - esp_packets::kTag - 2;
  plain[pad] = 10;
  Bytes p = sealed(plain, kNumber, false);
  EXPECT_EQ(esp_decrypt(key, sa(false), p.data(), p.size()), EspStatus::kOk) << "all of it is padding";
  plain[pad] = 11;
  p = sealed(plain, kNumber, false);
  const Bytes before = p;
  EXPECT_EQ(esp_decrypt(key, sa(false), p.data(), p.size()), EspStatus::kBadTrailer);
  EXPECT_EQ(p, before);
}

}  // namespace
}  // namespace hcasim
