// SPDX-License-Identifier: BSD-3-Clause
#include "model/crypto/psp.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "psp_packets.h"

namespace hcasim {
namespace {

using psp_packets::Bytes;
using psp_packets::Head;

struct Spi {
  std::uint32_t number = 0;
  Bytes key;
};
Spi generate(PspKeys& keys, std::size_t len = 16) {
  Spi s;
  s.number = keys.generate(len, s.key);
  return s;
}
PspStatus decrypt(PspKeys& keys, Bytes& p) { return psp_decrypt(keys, p.data(), p.size()); }

TEST(Psp, WhatIsSealedWithAnSpisKeyIsOpened) {
  PspKeys keys;
  keys.set_owner(7);
  for (const unsigned version : {0u, 1u}) {
    const Spi spi = generate(keys, version == 0 ? 16 : 32);
    for (const std::size_t len : {0u, 1u, 20u, 1400u}) {
      Head head;
      head.version = version, head.iv = 99;
      const Bytes plain = psp_packets::packet(spi.number, Bytes(len, 0x5a), head);
      Bytes p = psp_packets::sealed(plain, spi.key);
      const Bytes wire = p;
      ASSERT_EQ(decrypt(keys, p), PspStatus::kOk) << "version " << version << ", " << len << " bytes";
      EXPECT_TRUE(std::equal(p.begin(), p.end() - 16, plain.begin()));
      EXPECT_TRUE(std::equal(p.end() - 16, p.end(), wire.end() - 16)) << "the ICV stays";
    }
  }
}

TEST(Psp, WhatIsSentInClearIsAuthenticated) {
  PspKeys keys;
  const Spi spi = generate(keys);
  Head head;
  head.options = 1, head.crypt_offset = 4;  // a cookie, and the ports behind it
  const Bytes plain = psp_packets::packet(spi.number, Bytes(100, 3), head);
  Bytes p = psp_packets::sealed(plain, spi.key);
  EXPECT_TRUE(std::equal(p.begin(), p.begin() + 32, plain.begin()));
  EXPECT_NE(p[32], plain[32]);
  Bytes forged = p;
  EXPECT_EQ(decrypt(keys, p), PspStatus::kOk);
  forged[20] ^= 1;
  EXPECT_EQ(decrypt(keys, forged), PspStatus::kAuthFailed);
}

TEST(Psp, TheCardSealsAsOthersDo) {
  PspKeys keys;
  for (const unsigned version : {0u, 1u}) {
    const Spi spi = generate(keys, version == 0 ? 16 : 32);
    const GcmKey key(spi.key.data(), spi.key.size());
    Head head;
    head.version = version;
    Bytes p = psp_packets::packet(spi.number, Bytes(333, 9), head);
    const Bytes plain = p;
    EXPECT_FALSE(psp_encrypt(key, version == 0 ? 32 : 16, 1, p.data(), p.size()))
        << "a key of another length";
    EXPECT_EQ(p, plain);
    ASSERT_TRUE(psp_encrypt(key, spi.key.size(), 0x1122334455667788, p.data(), p.size()));
    EXPECT_EQ(prm::load64(p.data() + 8), 0x1122334455667788u);
    EXPECT_EQ(psp_packets::opened(p, spi.key), Bytes(333, 9));
  }
}

TEST(Psp, WhatIsWrongIsLeftAsItCame) {
  PspKeys keys;
  const Spi spi = generate(keys);
  const auto with = [&](std::size_t at, std::uint8_t value) {
    Bytes p = psp_packets::sealed(psp_packets::packet(spi.number, Bytes(50, 1), {}), spi.key);
    p[at] = value;
    const Bytes before = p;
    const PspStatus s = decrypt(keys, p);
    EXPECT_EQ(p, before);
    return s;
  };
  EXPECT_EQ(with(40, 0), PspStatus::kAuthFailed);
  EXPECT_EQ(with(8, 77), PspStatus::kAuthFailed) << "another IV";
  EXPECT_EQ(with(7, 0), PspStatus::kUnknown) << "SPI 0";
  EXPECT_EQ(with(3, 0), PspStatus::kUnknown) << "the bit that is always one";
  EXPECT_EQ(with(3, 2 << 2 | 1), PspStatus::kUnknown) << "GMAC";
  EXPECT_EQ(with(3, 15 << 2 | 1), PspStatus::kUnknown);
  EXPECT_EQ(with(1, 0), PspStatus::kBadFrame) << "a header shorter than its base";
  EXPECT_EQ(with(1, 8), PspStatus::kBadFrame) << "a header longer than the packet";
  EXPECT_EQ(with(2, 0x3f), PspStatus::kBadFrame) << "clear beyond the ICV";
  EXPECT_EQ(with(2, 13), PspStatus::kBadFrame);
  Bytes shortest = psp_packets::packet(spi.number, {}, {});
  shortest.pop_back();
  EXPECT_EQ(decrypt(keys, shortest), PspStatus::kBadFrame);
}

TEST(Psp, NumbersAndKeysAreOfOneDeviceKey) {
  PspKeys keys, other;
  keys.set_owner(1), other.set_owner(2);
  std::set<Bytes> all;
  std::vector<Spi> old;
  for (unsigned rotation = 0; rotation < 3; ++rotation) {
    for (const std::size_t len : {16u, 32u, 16u}) {
      const Spi spi = generate(keys, len);
      EXPECT_EQ(spi.key.size(), len);
      EXPECT_NE(spi.number & 0x7fffffff, 0u);
      EXPECT_EQ(spi.number >> 31, rotation & 1);
      all.insert(spi.key);
      old.push_back(spi);
    }
    keys.rotate();
  }
  EXPECT_EQ(all.size(), 9u);
  EXPECT_NE(generate(other).key, old[0].key) << "another card's";
}

// SPIs of the last two device keys are understood.
TEST(Psp, ARotationLeavesTheKeysBeforeIt) {
  PspKeys keys;
  const Spi spi = generate(keys);
  const Bytes wire = psp_packets::sealed(psp_packets::packet(spi.number, Bytes(50, 1), {}), spi.key);
  const auto now = [&] {
    Bytes p = wire;
    return decrypt(keys, p);
  };
  EXPECT_EQ(now(), PspStatus::kOk);
  keys.rotate();
  EXPECT_EQ(now(), PspStatus::kOk);
  keys.rotate();
  EXPECT_EQ(now(), PspStatus::kAuthFailed);
}

// A driver that begins anew gets numbers as before, and none of the keys; what was under these is not opened.
TEST(Psp, ANewSessionHasKeysOfItsOwn) {
  PspKeys keys;
  std::set<Bytes> all;
  for (unsigned session = 0; session < 3; ++session) {
    const Spi first = generate(keys);
    EXPECT_EQ(first.number, 1u);
    const Bytes wire = psp_packets::sealed(psp_packets::packet(first.number, Bytes(50, 1), {}), first.key);
    all.insert(first.key);
    keys.rotate();
    all.insert(generate(keys).key);
    if (session == 1) keys.rotate();
    keys.clear();
    Bytes p = wire;
    EXPECT_EQ(decrypt(keys, p), PspStatus::kAuthFailed);
    keys.rotate();
    keys.clear();
  }
  EXPECT_EQ(all.size(), 6u);
}

}  // namespace
}  // namespace hcasim
