// SPDX-License-Identifier: BSD-3-Clause
// AES-GCM in pieces, and TLS records in a stream: both sides against each other and against nettle's own way
// of doing a whole message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "model/crypto/gcm.h"
#include "model/crypto/tls.h"
#include "tls_records.h"

namespace hcasim {
namespace {

using namespace tls_records;  // NOLINT(google-build-using-namespace)
using prm::CqeTls;

Bytes hex(const std::string& text) {
  Bytes out;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    out.push_back(static_cast<std::uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
  return out;
}

// Test cases 4 and 16 of McGrew and Viega, "The Galois/Counter Mode of Operation", which NIST took over.
struct Vector {
  const char *key, *nonce, *aad, *plain, *cipher, *tag;
};
const char* const kPlain =
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5"
    "aa0de657ba637b39";
const Vector kVectors[] = {
    {"feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
     "feedfacedeadbeeffeedfacedeadbeefabaddad2", kPlain,
     "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b3"
     "9"
     "6a0aac973d58e091",
     "5bc94fbc3221a5db94fae95ae7121a47"},
    {"feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
     "feedfacedeadbeeffeedfacedeadbeefabaddad2", kPlain,
     "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6"
     "3"
     "93ba7a0abcc9f662",
     "76fc6ece0f4e1768cddf8853bb2d551b"},
};

std::array<std::uint8_t, kGcmNonce> nonce_of(const Bytes& b) {
  std::array<std::uint8_t, kGcmNonce> n{};
  std::copy(b.begin(), b.end(), n.begin());
  return n;
}

TEST(Gcm, KnownVectorsWholeAndInPiecesOfAnyLength) {
  for (const Vector& v : kVectors) {
    const Bytes k = hex(v.key), aad = hex(v.aad), plain = hex(v.plain), cipher = hex(v.cipher);
    const GcmKey key(k.data(), k.size());
    for (std::size_t piece = 1; piece <= plain.size(); ++piece) {
      for (const bool decrypt : {false, true}) {
        GcmStream s;
        s.start(key, decrypt, nonce_of(hex(v.nonce)), aad.data(), aad.size());
        Bytes data = decrypt ? cipher : plain;
        for (std::size_t at = 0; at < data.size(); at += piece)
          s.crypt(key, data.data() + at, std::min(piece, data.size() - at));
        EXPECT_EQ(data, decrypt ? plain : cipher);
        EXPECT_THAT(s.tag(key), ::testing::ElementsAreArray(hex(v.tag)));
        EXPECT_THAT(s.tag(key), ::testing::ElementsAreArray(hex(v.tag))) << "asking changes nothing";
      }
    }
  }
}

TEST(Gcm, NoDataAndNoAdditionalData) {
  // Test case 1: a tag alone.
  const Bytes zero(16, 0);
  const GcmKey key(zero.data(), zero.size());
  GcmStream s;
  s.start(key, false, {}, nullptr, 0);
  EXPECT_THAT(s.tag(key), ::testing::ElementsAreArray(hex("58e2fccefa7e3061367f1d57a4e7455a")));
}

// ---- TLS ----

TlsParams params(std::uint64_t first = kFirst, std::uint32_t resync = 0) {
  std::uint8_t p[prm::tls_static_params::bytes] = {};
  using s = prm::tls_static_params;
  prm::set<s::tls_version>(p, prm::kTlsVersion12);
  prm::set<s::const_1>(p, prm::kTlsConst1);
  prm::set<s::const_2>(p, prm::kTlsConst2);
  prm::set<s::encryption_standard>(p, prm::kEncryptionTls);
  prm::set<s::initial_record_number>(p, first);
  prm::set<s::resync_tcp_sn>(p, resync);
  prm::set<s::gcm_iv>(p, kSalt);
  prm::set<s::dek_index>(p, 5);
  TlsParams out;
  EXPECT_TRUE(out.read(p));
  return out;
}

const std::vector<std::size_t> kLengths{100, 0, 1, 16, 3000, 17, 16384, 5, 1448, 31};

const GcmKey& key() {
  static const GcmKey k(kKey.data(), kKey.size());
  return k;
}

TEST(TlsTx, RecordsInPiecesOfAnyLengthAreThoseOfWholeMessages) {
  const Stream stream(kLengths);
  for (const std::size_t piece : {1u, 2u, 7u, 13u, 16u, 100u, 1447u, 1448u, 9000u, 40000u}) {
    TlsTx tx;
    tx.params = params();
    tx.restart();
    Bytes data = stream.plain;
    for (std::size_t at = 0; at < data.size(); at += piece)
      ASSERT_TRUE(tx.push(key(), data.data() + at, std::min(piece, data.size() - at)));
    EXPECT_EQ(data, stream.cipher) << piece;
    EXPECT_EQ(tx.record, kFirst + kLengths.size());
  }
}

TEST(TlsTx, WhatItHasSeenOfARecordMakesTheRestOfIt) {
  const Stream stream({3000, 3000});
  TlsTx tx;
  tx.params = params(kFirst + 1);
  tx.restart();
  Bytes dumped(stream.plain.begin() + static_cast<std::ptrdiff_t>(stream.begins[1]), stream.plain.end());
  ASSERT_TRUE(tx.push(key(), dumped.data(), 1500));
  ASSERT_TRUE(tx.push(key(), dumped.data() + 1500, dumped.size() - 1500));
  const Bytes want(stream.cipher.begin() + static_cast<std::ptrdiff_t>(stream.begins[1]),
                   stream.cipher.end());
  EXPECT_EQ(dumped, want);
}

TEST(TlsTx, NoRecord) {
  for (const Bytes& bad : {Bytes{23, 2, 3, 0, 100}, Bytes{23, 3, 4, 0, 100}, Bytes{23, 3, 3, 0, 23},
                           Bytes{23, 3, 3, 0x40, 0x19}}) {
    TlsTx tx;
    tx.params = params();
    tx.restart();
    Bytes data = bad;
    EXPECT_FALSE(tx.push(key(), data.data(), data.size()));
  }
}

TEST(TlsParamsTest, OtherVersionsAreRefused) {
  std::uint8_t p[prm::tls_static_params::bytes] = {};
  TlsParams out;
  EXPECT_FALSE(out.read(p));
  EXPECT_FALSE(out.set);
}

// RFC 8448 3: the client's record of 50 bytes, which number 0 to 49 and the type application data follow.
struct Record13 {
  const Bytes key = hex("17422dda596ed5d9acd890e3c63f5051");
  const Bytes iv = hex("5b78923dee08579033e523d9");
  const Bytes cipher =
      hex("1703030043a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54a9a20441e2b62"
          "974e1f"
          "5a6292a2977014bd1e3deae63aeebb21694915e4");
  Bytes plain(std::uint8_t tag) const {
    Bytes b(cipher.begin(), cipher.begin() + kTlsHeader);
    for (std::uint8_t i = 0; i < 50; ++i) b.push_back(i);
    b.push_back(23);
    b.insert(b.end(), kGcmTag, tag);
    return b;
  }
  TlsParams params() const {
    std::uint8_t p[prm::tls_static_params::bytes] = {};
    using s = prm::tls_static_params;
    prm::set<s::tls_version>(p, prm::kTlsVersion13);
    prm::set<s::const_1>(p, prm::kTlsConst1);
    prm::set<s::const_2>(p, prm::kTlsConst2);
    prm::set<s::encryption_standard>(p, prm::kEncryptionTls);
    std::copy(iv.begin(), iv.end(), p + s::gcm_iv::bit_off / 8);
    TlsParams out;
    EXPECT_TRUE(out.read(p));
    return out;
  }
};

TEST(Tls13, ARecordOfTheRfcComesAndGoes) {
  const Record13 r;
  const GcmKey k(r.key.data(), r.key.size());
  for (const std::size_t piece : {1u, 4u, 5u, 6u, 16u, 55u, 56u, 71u, 72u}) {
    TlsTx tx;
    tx.set(r.params());
    tx.restart();
    Bytes out = r.plain(0);
    for (std::size_t at = 0; at < out.size(); at += piece)
      ASSERT_TRUE(tx.push(k, out.data() + at, std::min(piece, out.size() - at)));
    EXPECT_EQ(out, r.cipher) << piece;
    EXPECT_EQ(tx.record, 1u);
    TlsRx rx;
    rx.set(r.params());
    rx.restart(kStart);
    Bytes in = r.cipher;
    TlsRx::Events events;
    for (std::size_t at = 0; at < in.size(); at += piece)
      EXPECT_EQ(rx.take(k, kStart + static_cast<std::uint32_t>(at), in.data() + at,
                        std::min(piece, in.size() - at), events),
                CqeTls::kDecrypted)
          << piece << " " << at;
    in.resize(in.size() - kGcmTag);
    Bytes want = r.plain(0);
    want.resize(in.size());
    EXPECT_EQ(in, want) << piece;
    EXPECT_EQ(rx.record, 1u);
  }
}

TEST(Tls13, TheNumberOfARecordIsInItsNonce) {
  const Record13 r;
  const GcmKey k(r.key.data(), r.key.size());
  TlsTx tx;
  tx.set(r.params());
  tx.restart();
  tx.record = 1;
  Bytes out = r.plain(0);
  ASSERT_TRUE(tx.push(k, out.data(), out.size()));
  EXPECT_NE(out, r.cipher);
  TlsRx rx;
  rx.set(r.params());
  rx.restart(kStart);
  TlsRx::Events events;
  EXPECT_EQ(rx.take(k, kStart, out.data(), out.size(), events), CqeTls::kError);
}

TEST(Tls13, AllRecordsAreApplicationData) {
  const Record13 r;
  Bytes head(r.cipher.begin(), r.cipher.begin() + kTlsHeader);
  const TlsParams p = r.params();
  EXPECT_TRUE(p.header(head.data()));
  head[0] = 22;
  EXPECT_FALSE(p.header(head.data()));
  EXPECT_TRUE(params().header(head.data()));
  head = {23, 3, 3, 0x41, 0};  // 2^14 + 256
  EXPECT_TRUE(p.header(head.data()));
  head[4] = 1;
  EXPECT_FALSE(p.header(head.data()));
}

TEST(Tls13, AnotherVersionInTheMidstOfARecordBeginsAnew) {
  const Record13 r;
  const GcmKey k(r.key.data(), r.key.size());
  TlsRx rx;
  rx.set(r.params());
  rx.restart(kStart);
  TlsRx::Events events;
  Bytes in = r.cipher;
  rx.take(k, kStart, in.data(), 60, events);
  rx.set(params());
  EXPECT_FALSE(rx.started);
  EXPECT_EQ(rx.take(k, kStart + 60, in.data() + 60, 5, events), CqeTls::kNotDecrypted);
  TlsTx tx;
  tx.set(params());
  tx.restart();
  tx.push(k, in.data(), 3);
  tx.set(r.params());
  EXPECT_FALSE(tx.started);
  EXPECT_EQ(tx.have, 0);
}

class TlsRxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    rx.params = params();
    rx.restart(kStart);
  }
  // The segment [from, to) of the stream; decrypted, it has to be what was encrypted.
  CqeTls take(const Stream& s, std::size_t from, std::size_t to) {
    Bytes data(s.cipher.begin() + static_cast<std::ptrdiff_t>(from),
               s.cipher.begin() + static_cast<std::ptrdiff_t>(to));
    events = {};
    const CqeTls r =
        rx.take(key(), kStart + static_cast<std::uint32_t>(from), data.data(), data.size(), events);
    if (r == CqeTls::kDecrypted) {
      const Bytes opened = s.opened();
      EXPECT_TRUE(std::equal(data.begin(), data.end(), opened.begin() + static_cast<std::ptrdiff_t>(from)))
          << from;
    }
    return r;
  }
  void rest(const Stream& s, std::size_t from, CqeTls want, std::size_t piece = 1448) {
    for (std::size_t at = from; at < s.cipher.size(); at += piece)
      EXPECT_EQ(take(s, at, std::min(at + piece, s.cipher.size())), want) << at;
  }
  TlsRx rx;
  TlsRx::Events events;
};

TEST_F(TlsRxTest, SegmentsOfAnyLengthInOrder) {
  const Stream s(kLengths);
  for (const std::size_t piece : {1u, 2u, 7u, 13u, 16u, 100u, 1447u, 1448u, 9000u, 40000u}) {
    rx.restart(kStart);
    rest(s, 0, CqeTls::kDecrypted, piece);
    EXPECT_EQ(rx.record, kFirst + kLengths.size());
  }
}

TEST_F(TlsRxTest, WhatCameBeforeTheFirstRecordOrAgainIsLeftAlone) {
  const Stream s({2000, 2000, 2000});
  rx.params = params(kFirst + 1);
  rx.restart(kStart + static_cast<std::uint32_t>(s.begins[1]));
  EXPECT_EQ(take(s, 0, 1000), CqeTls::kNotDecrypted);
  EXPECT_EQ(take(s, 1000, s.begins[1] + 500), CqeTls::kNotDecrypted) << "begins before the record";
  EXPECT_EQ(take(s, s.begins[1] + 500, s.begins[2]), CqeTls::kDecrypted);
  EXPECT_EQ(take(s, s.begins[1], s.begins[2]), CqeTls::kNotDecrypted) << "again";
  EXPECT_EQ(take(s, s.begins[2], s.begins[2] + 700), CqeTls::kDecrypted);
  EXPECT_EQ(take(s, s.begins[2] + 300, s.begins[2] + 1000), CqeTls::kNotDecrypted) << "overlaps";
  EXPECT_EQ(take(s, s.begins[2] + 1000, s.cipher.size()), CqeTls::kDecrypted);
}

// Half of all sequence numbers away, a segment is as far ahead as behind.
TEST_F(TlsRxTest, WhatIsFurthestAwayIsLeftAlone) {
  Bytes data(100, 1);
  EXPECT_EQ(rx.take(key(), kStart + 0x80000000u, data.data(), data.size(), events), CqeTls::kNotDecrypted);
  EXPECT_EQ(data, Bytes(100, 1));
  EXPECT_EQ(rx.next_sn, kStart);
  const Stream s({2000});
  rest(s, 0, CqeTls::kDecrypted);
}

TEST_F(TlsRxTest, AMissingSegmentWithinARecordCostsThatRecordAlone) {
  const Stream s({3000, 3000, 3000});
  EXPECT_EQ(take(s, 0, 1000), CqeTls::kDecrypted);
  EXPECT_EQ(take(s, 2000, s.begins[1]), CqeTls::kNotDecrypted);
  EXPECT_FALSE(events.lost);
  rest(s, s.begins[1], CqeTls::kDecrypted);
  // Missing up to a record's first byte.
  rx.restart(kStart);
  EXPECT_EQ(take(s, 0, 1000), CqeTls::kDecrypted);
  rest(s, s.begins[1], CqeTls::kDecrypted);
}

TEST_F(TlsRxTest, AMissingHeaderIsSearchedForAndConfirmed) {
  const Stream s({3000, 3000, 3000, 3000, 3000, 3000});
  EXPECT_EQ(take(s, 0, 1000), CqeTls::kDecrypted);
  EXPECT_EQ(take(s, s.begins[1] + 3, s.begins[1] + 1000), CqeTls::kNotDecrypted);
  EXPECT_TRUE(events.lost);
  EXPECT_EQ(rx.tracker, prm::kTrackerSearching);
  EXPECT_EQ(take(s, s.begins[1] + 1000, s.begins[2] + 100), CqeTls::kResync);
  std::uint8_t progress[prm::tls_progress_params::bytes] = {};
  rx.write_progress(progress);
  using p = prm::tls_progress_params;
  EXPECT_EQ(prm::get<p::record_tracker_state>(progress), prm::kTrackerTracking);
  EXPECT_EQ(prm::get<p::auth_state>(progress), prm::kAuthNoOffload);
  const std::uint32_t found = kStart + static_cast<std::uint32_t>(s.begins[2]);
  EXPECT_EQ(prm::get<p::hw_resync_tcp_sn>(progress), found);
  EXPECT_EQ(take(s, s.begins[2] + 100, s.begins[4] + 50), CqeTls::kNotDecrypted);
  // Something else, then what it has found.
  rx.params = params(kFirst + 2, found + 1);
  EXPECT_FALSE(rx.confirm());
  rx.params = params(kFirst + 2, found);
  EXPECT_TRUE(rx.confirm());
  EXPECT_FALSE(rx.confirm()) << "once";
  EXPECT_EQ(take(s, s.begins[4] + 50, s.begins[5]), CqeTls::kNotDecrypted) << "the record that had begun";
  rest(s, s.begins[5], CqeTls::kDecrypted);
}

TEST_F(TlsRxTest, ConfirmedBetweenRecords) {
  const Stream s({3000, 3000, 3000});
  EXPECT_EQ(take(s, 10, s.begins[1]), CqeTls::kNotDecrypted) << "the first header is missing";
  EXPECT_EQ(take(s, s.begins[1], s.begins[2]), CqeTls::kResync);
  rx.params = params(kFirst + 1, kStart + static_cast<std::uint32_t>(s.begins[1]));
  EXPECT_TRUE(rx.confirm());
  rest(s, s.begins[2], CqeTls::kDecrypted);
}

TEST_F(TlsRxTest, WhatLooksLikeAHeaderAndIsNoneIsGivenUp) {
  Stream s({200, 3000, 3000, 3000});
  // Within the first record, after its beginning is lost: a header that leads to nowhere.
  const Bytes bait{23, 3, 3, 0, 40};
  std::copy(bait.begin(), bait.end(), s.cipher.begin() + 50);
  EXPECT_EQ(take(s, 20, 70), CqeTls::kResync);
  EXPECT_EQ(take(s, 70, 120), CqeTls::kNotDecrypted);
  EXPECT_TRUE(events.lost);
  EXPECT_EQ(take(s, 120, s.begins[1] + 100), CqeTls::kResync);
  EXPECT_EQ(rx.resync_sn, kStart + static_cast<std::uint32_t>(s.begins[1]));
}

TEST_F(TlsRxTest, ASpoiledByteIsFoundAtTheEndOfItsRecord) {
  const Stream s({100, 3000});
  Bytes data(s.cipher.begin(), s.cipher.begin() + static_cast<std::ptrdiff_t>(s.begins[1]));
  data[60] ^= 1;
  EXPECT_EQ(rx.take(key(), kStart, data.data(), data.size(), events), CqeTls::kError);
  rest(s, s.begins[1], CqeTls::kDecrypted);
}

TEST_F(TlsRxTest, NonsenseOfAnyKindEnds) {
  std::mt19937 random(3);
  for (unsigned round = 0; round < 3000; ++round) {
    Bytes data(random() % 1500);
    for (std::uint8_t& b : data) b = static_cast<std::uint8_t>(random() % 3 ? 3 : 20 + random() % 5);
    if (random() % 50 == 0) rx.restart(static_cast<std::uint32_t>(random()));
    if (random() % 10 == 0) rx.params = params(round, rx.resync_sn), rx.confirm();
    const auto sn =
        random() % 4 ? rx.next_sn : static_cast<std::uint32_t>(rx.next_sn + random() % 4000 - 2000);
    rx.take(key(), sn, data.data(), data.size(), events);
    EXPECT_LE(rx.have, kMostTlsHead);
  }
}

}  // namespace
}  // namespace hcasim
