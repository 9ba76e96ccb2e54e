// SPDX-License-Identifier: BSD-3-Clause
#include "model/tpt/tpt.h"

#include <gtest/gtest.h>

#include <random>

namespace hcasim {

bool operator==(const Fragment& a, const Fragment& b) {
  return a.addr == b.addr && a.len == b.len && a.space == b.space;
}
std::ostream& operator<<(std::ostream& out, const Fragment& f) {
  return out << std::hex << f.addr << "+" << f.len;
}
std::ostream& operator<<(std::ostream& out, TptStatus s) { return out << static_cast<int>(s); }

namespace {

constexpr std::uint32_t kPd = 5, kQpn = 42;

class TptTest : public ::testing::Test {
 protected:
  Mkey& make(std::uint32_t index, AccessMode mode, std::uint64_t start, std::uint64_t len,
             std::vector<std::uint64_t> xlt = {}) {
    Mkey* m = keys.create(index);
    EXPECT_NE(m, nullptr);
    m->key = 0x77;
    m->mode = mode;
    m->pd = kPd;
    m->start = start;
    m->len = len;
    m->xlt = std::move(xlt);
    m->rights = {true, true, true, true, true};
    return *m;
  }
  static std::uint32_t key(std::uint32_t index) { return index << 8 | 0x77; }
  static std::uint64_t entry(std::uint32_t bytes, std::uint32_t index) {
    return static_cast<std::uint64_t>(bytes) << 32 | key(index);
  }
  TptStatus get(std::uint32_t wire_key, std::uint64_t va, std::uint64_t len,
                Access access = Access::kLocalRead, std::uint32_t pd = kPd, std::uint32_t qpn = kQpn) {
    out.clear();
    last = tpt.translate(now, wire_key, {pd, qpn, 0}, access, va, len, out);
    return last.status;
  }
  Profile profile;
  Time now = 1000;
  ContextFetch contexts{profile, [this](Time t, unsigned) { return t + profile.pcie.read_latency; }};
  MkeyTable keys;
  PsvTable psvs;
  Tpt tpt{profile, contexts, keys, psvs};
  std::vector<Fragment> out;
  Translation last;
};

using Fragments = std::vector<Fragment>;

TEST_F(TptTest, PagesOfARegionThatStartsInsideAPage) {
  make(9, AccessMode::kMtt, 0x7f0000000123, 0x3000, {0x10003, 0x50003, 0x51003, 0x90003});
  ASSERT_EQ(get(key(9), 0x7f0000000123, 0x3000), TptStatus::kOk);
  // Entries' flag bits are no address; neighbours in bus addresses are one fragment.
  EXPECT_EQ(out, (Fragments{{0x10123, 0x1000 - 0x123}, {0x50000, 0x2000}, {0x90000, 0x123}}));
  ASSERT_EQ(get(key(9), 0x7f0000001000, 1), TptStatus::kOk);
  EXPECT_EQ(out, (Fragments{{0x50000, 1}}));
}

TEST_F(TptTest, LargePages) {
  Mkey& m = make(9, AccessMode::kMtt, 0x200000, 0x400000, {0x40000000, 0x80000000});
  m.log_page = 21;
  ASSERT_EQ(get(key(9), 0x3ffff0, 0x20), TptStatus::kOk);
  EXPECT_EQ(out, (Fragments{{0x401ffff0, 0x10}, {0x80000000, 0x10}}));
}

TEST_F(TptTest, DeviceMemoryCountsFromZero) {
  make(9, AccessMode::kSwIcm, 0, 0x1000).base = 0x700000000000;
  ASSERT_EQ(get(key(9), 0x40, 0x80), TptStatus::kOk);
  EXPECT_EQ(out, (Fragments{{0x700000000040, 0x80, Space::kSwIcm}}));
  EXPECT_EQ(get(key(9), 0xfff, 2), TptStatus::kOutOfRange);
  EXPECT_EQ(get(key(9), 0x700000000000, 1), TptStatus::kOutOfRange);
  // Pieces of two memories are two fragments, whatever their addresses.
  make(10, AccessMode::kMemic, 0, 0x1000).base = 0x700000001000;
  make(11, AccessMode::kKlm, 0, 0x2000, {entry(0x1000, 9), 0, entry(0x1000, 10), 0});
  ASSERT_EQ(get(key(11), 0xfc0, 0x80), TptStatus::kOk);
  EXPECT_EQ(out, (Fragments{{0x700000000fc0, 0x40, Space::kSwIcm}, {0x700000001000, 0x40, Space::kMemic}}));
}

// On-demand paging: an entry grants what its flags say.
TEST_F(TptTest, EntriesWithoutTheirFlagsFault) {
  Mkey& m = make(9, AccessMode::kMtt, 0x1000, 0x4000, {0x10001, 0x20002, 0x30003});
  m.xlt_words = 4;
  EXPECT_EQ(get(key(9), 0x2000, 1), TptStatus::kOk) << "plain addresses";
  m.paged = true;
  EXPECT_EQ(get(key(9), 0x1000, 0x1000), TptStatus::kOk);
  EXPECT_EQ(get(key(9), 0x1000, 1, Access::kRemoteRead), TptStatus::kOk);
  EXPECT_EQ(get(key(9), 0x1000, 1, Access::kLocalWrite), TptStatus::kFault);
  EXPECT_EQ(get(key(9), 0x1fff, 2), TptStatus::kFault) << "the second page is write-only";
  EXPECT_EQ(get(key(9), 0x2000, 0x2000, Access::kRemoteWrite), TptStatus::kOk);
  EXPECT_EQ(get(key(9), 0x2000, 8, Access::kRemoteAtomic), TptStatus::kFault);
  EXPECT_EQ(get(key(9), 0x3000, 8, Access::kRemoteAtomic), TptStatus::kOk);
  EXPECT_EQ(get(key(9), 0x4000, 1), TptStatus::kFault) << "never written";
  m.xlt_words = 3;
  EXPECT_EQ(get(key(9), 0x4000, 1), TptStatus::kBadList);
  m.rights.local_write = false;
  EXPECT_EQ(get(key(9), 0x1000, 1, Access::kLocalWrite), TptStatus::kNoRight) << "rights come first";
}

TEST_F(TptTest, NullEntriesOfAKsmListFault) {
  make(9, AccessMode::kMtt, 0x10000, 0x10000, std::vector<std::uint64_t>(16, 0x50000));
  Mkey& m = make(10, AccessMode::kKsm, 0, 0x30000,
                 {entry(0, 9), 0x10000, std::uint64_t{kNullKey}, 0, entry(0, 9), 0x10000});
  m.log_page = 16;
  EXPECT_EQ(get(key(10), 0xffff, 1), TptStatus::kOk);
  EXPECT_EQ(get(key(10), 0xffff, 2), TptStatus::kFault);
  EXPECT_EQ(get(key(10), 0x20000, 1), TptStatus::kOk);
  m.mode = AccessMode::kKlm;
  m.xlt[2] |= std::uint64_t{0x10000} << 32;
  m.xlt[0] |= std::uint64_t{0x10000} << 32;
  EXPECT_EQ(get(key(10), 0x10000, 1), TptStatus::kBadKey) << "a hole in a list of the user's own";
}

TEST(SparseListTest, WhatIsUniformIsNotFilled) {
  using Piece = SparseList::Piece;
  constexpr std::uint64_t kPieces = 1 << 20;
  SparseList list(kPieces * 2);
  EXPECT_EQ(list.at(kPieces - 1), (Piece{0, 0}));
  std::vector<std::uint64_t> words;
  for (int i = 0; i < 1000; ++i) words.insert(words.end(), {7, 8});
  ASSERT_TRUE(list.write(200, words.data(), words.size()));  // pieces 100 to 1099
  EXPECT_EQ(list.filled(), 2u) << "the chunks at its ends";
  for (const std::uint64_t i : {100u, 255u, 256u, 1023u, 1024u, 1099u})
    EXPECT_EQ(list.at(i), (Piece{7, 8})) << i;
  for (const std::uint64_t i : {99u, 1100u}) EXPECT_EQ(list.at(i), (Piece{0, 0})) << i;
  const std::uint64_t other[] = {9, 10};
  ASSERT_TRUE(list.write(2 * 700, other, 2));
  EXPECT_EQ(list.filled(), 3u);
  EXPECT_EQ(list.at(700), (Piece{9, 10}));
  EXPECT_EQ(list.at(701), (Piece{7, 8}));
  ASSERT_TRUE(list.write(512, words.data(), 512)) << "all of that chunk";
  EXPECT_EQ(list.filled(), 3u);
  ASSERT_TRUE(list.write(1024, words.data(), 512));
  EXPECT_EQ(list.filled(), 2u);
  EXPECT_EQ(list.at(700), (Piece{7, 8}));
}

TEST(SparseListTest, TakesSoMuchMemoryAndNoMore) {
  SparseList list(std::uint64_t{1} << 22);
  const std::uint64_t piece[] = {1, 2};
  for (std::uint64_t i = 0; i < SparseList::kMostFilled; ++i)
    ASSERT_TRUE(list.write(i * 2 * SparseList::kChunk, piece, 2));
  const std::uint64_t next = SparseList::kMostFilled * 2 * SparseList::kChunk;
  EXPECT_FALSE(list.write(next, piece, 2));
  EXPECT_EQ(list.at(next / 2), (SparseList::Piece{0, 0}));
  EXPECT_TRUE(list.write(2, piece, 2)) << "one that is filled already";
}

TEST_F(TptTest, BoundsAreExact) {
  make(9, AccessMode::kMtt, 0x1000, 0x1000, {0x10000});
  EXPECT_EQ(get(key(9), 0x1000, 0x1000), TptStatus::kOk);
  EXPECT_EQ(get(key(9), 0xfff, 1), TptStatus::kOutOfRange);
  EXPECT_EQ(get(key(9), 0x1fff, 2), TptStatus::kOutOfRange);
  EXPECT_EQ(get(key(9), 0x2000, 1), TptStatus::kOutOfRange);
  EXPECT_EQ(get(key(9), ~0ULL, 2), TptStatus::kOutOfRange);
  EXPECT_EQ(get(key(9), 0x1000, ~0ULL), TptStatus::kOutOfRange);
}

TEST_F(TptTest, ZeroLengthChecksNothing) {
  EXPECT_EQ(get(0xdeadbeef, 0, 0), TptStatus::kOk);
  EXPECT_TRUE(out.empty());
}

TEST_F(TptTest, KeysThatAreNone) {
  Mkey& m = make(9, AccessMode::kMtt, 0, 0x1000, {0x10000});
  EXPECT_EQ(get(key(8), 0, 1), TptStatus::kBadKey);
  EXPECT_EQ(get(0xffffffff, 0, 1), TptStatus::kBadKey);
  EXPECT_EQ(get(key(9) ^ 1, 0, 1), TptStatus::kBadKey);
  m.free = true;
  EXPECT_EQ(get(key(9), 0, 1), TptStatus::kBadKey);
  EXPECT_EQ(keys.create(9), nullptr);
  EXPECT_EQ(keys.create(1 << 24), nullptr);
  EXPECT_TRUE(tpt.destroy(0, 9));
  EXPECT_FALSE(tpt.destroy(0, 9));
  EXPECT_EQ(keys.count(), 0u);
}

TEST_F(TptTest, ProtectionDomainAndQueuePair) {
  Mkey& m = make(9, AccessMode::kMtt, 0, 0x1000, {0x10000});
  EXPECT_EQ(get(key(9), 0, 1, Access::kLocalRead, kPd + 1), TptStatus::kBadPd);
  m.qpn = kQpn;
  EXPECT_EQ(get(key(9), 0, 1), TptStatus::kOk);
  EXPECT_EQ(get(key(9), 0, 1, Access::kLocalRead, kPd, kQpn + 1), TptStatus::kBadPd);
}

TEST_F(TptTest, EachAccessNeedsItsRight) {
  Mkey& m = make(9, AccessMode::kMtt, 0, 0x1000, {0x10000});
  const Access all[] = {Access::kLocalRead, Access::kLocalWrite, Access::kRemoteRead, Access::kRemoteWrite,
                        Access::kRemoteAtomic};
  bool AccessRights::*const rights[] = {&AccessRights::local_read, &AccessRights::local_write,
                                        &AccessRights::remote_read, &AccessRights::remote_write,
                                        &AccessRights::atomic};
  for (unsigned given = 0; given < 5; ++given) {
    m.rights = {false, false, false, false, false};
    m.rights.*rights[given] = true;
    for (unsigned asked = 0; asked < 5; ++asked) {
      EXPECT_EQ(get(key(9), 0, 8, all[asked]), asked == given ? TptStatus::kOk : TptStatus::kNoRight);
      EXPECT_EQ(tpt.check(key(9), {kPd, kQpn, 0}, all[asked], 0, 8),
                asked == given ? TptStatus::kOk : TptStatus::kNoRight);
    }
  }
}

TEST_F(TptTest, PhysicalAddresses) {
  Mkey& m = make(9, AccessMode::kPa, 0, 0);
  m.length64 = true;
  ASSERT_EQ(get(key(9), 0xfffffffff0, 0x20), TptStatus::kOk);
  EXPECT_EQ(out, (Fragments{{0xfffffffff0, 0x20}}));
  EXPECT_EQ(get(key(9), ~0ULL - 3, 4), TptStatus::kOk);
  EXPECT_EQ(get(key(9), ~0ULL - 3, 5), TptStatus::kOutOfRange);
  EXPECT_EQ(get(key(9), 0, 1ULL << 40), TptStatus::kOutOfRange);
  m.length64 = false;
  m.len = 0x1000;
  EXPECT_EQ(get(key(9), 0x1000, 1), TptStatus::kOutOfRange);
}

TEST_F(TptTest, AListTooShortForItsLength) {
  make(9, AccessMode::kMtt, 0, 0x2000, {0x10000});
  EXPECT_EQ(get(key(9), 0x1000, 1), TptStatus::kBadList);
  make(10, AccessMode::kKlm, 0, 0x2000, {entry(0x800, 9), 0});
  EXPECT_EQ(get(key(10), 0x7ff, 2), TptStatus::kBadList);
}

TEST_F(TptTest, KlmPiecesOfUnequalLength) {
  make(9, AccessMode::kMtt, 0x1000, 0x2000, {0x10000, 0x20000});
  make(10, AccessMode::kPa, 0, 0).length64 = true;
  make(11, AccessMode::kKlm, 0x5000, 0x900,
       {entry(0x100, 10), 0xa000, entry(0, 10), 0, entry(0x800, 9), 0x1c00});
  ASSERT_EQ(get(key(11), 0x5080, 0x880), TptStatus::kOk);
  EXPECT_EQ(out, (Fragments{{0xa080, 0x80}, {0x10c00, 0x400}, {0x20000, 0x400}}));
}

TEST_F(TptTest, KsmEntitiesOfOneSize) {
  make(9, AccessMode::kPa, 0, 0).length64 = true;
  Mkey& m =
      make(10, AccessMode::kKsm, 0, 0x3000, {entry(0, 9), 0x7000, entry(0, 9), 0x3000, entry(0, 9), 0x9000});
  m.log_page = 12;
  ASSERT_EQ(get(key(10), 0xff0, 0x1020), TptStatus::kOk);
  EXPECT_EQ(out, (Fragments{{0x7ff0, 0x10}, {0x3000, 0x1000}, {0x9000, 0x10}}));
}

TEST_F(TptTest, AnInnerKeyIsCheckedToo) {
  Mkey& inner = make(9, AccessMode::kMtt, 0, 0x1000, {0x10000});
  make(10, AccessMode::kKlm, 0, 0x1000, {entry(0x1000, 9), 0});
  // On its own side: the outer one says what the far end may do.
  inner.rights.remote_write = inner.rights.local_write = false;
  EXPECT_EQ(get(key(10), 0, 8, Access::kRemoteRead), TptStatus::kOk);
  EXPECT_EQ(get(key(10), 0, 8, Access::kRemoteWrite), TptStatus::kNoRight);
  EXPECT_EQ(get(key(10), 0, 8, Access::kRemoteAtomic), TptStatus::kNoRight);
  inner.rights.local_write = true;
  EXPECT_EQ(get(key(10), 0, 8, Access::kRemoteWrite), TptStatus::kOk);
  inner.pd = kPd + 1;
  EXPECT_EQ(get(key(10), 0, 8), TptStatus::kBadPd);
}

TEST_F(TptTest, KeysThatNameThemselvesEnd) {
  make(10, AccessMode::kKlm, 0, 0x1000, {entry(0x1000, 10), 0});
  EXPECT_EQ(get(key(10), 0, 8), TptStatus::kBadList);
  Mkey& m = make(11, AccessMode::kKsm, 0, 0x1000, {entry(0, 11), 0});
  m.log_page = 0;
  EXPECT_NE(get(key(11), 0, 8), TptStatus::kOk);
}

TEST_F(TptTest, ListsMadeToBeSlowEnd) {
  // Each level looks at thousands of empty entries for each byte: without a bound, 10^12 steps.
  std::vector<std::uint64_t> list;
  make(9, AccessMode::kPa, 0, 0).length64 = true;
  for (std::uint32_t level = 0; level < 3; ++level) {
    list.clear();
    for (int i = 0; i < 10000; ++i) list.insert(list.end(), {entry(1, 9 + level), 0});
    make(10 + level, AccessMode::kKlm, 0, 10000, list);
  }
  EXPECT_EQ(get(key(12), 0, 10000), TptStatus::kOk);  // every byte is the same one
  list.assign(2 * 70000, entry(0, 9));
  list.insert(list.end(), {entry(1, 9), 0});
  make(20, AccessMode::kKlm, 0, 1, list);
  EXPECT_EQ(get(key(20), 0, 1), TptStatus::kBadList);
}

// Whatever the page is that is known: what reach() says of a short piece is what check() and translate() say.
TEST_F(TptTest, ShortPiecesAreReachedAsTheyAreTranslated) {
  make(9, AccessMode::kMtt, 0x7f0000000123, 0x2f00, {0x10003, 0x50003, 0x51003, 0x90003});
  make(10, AccessMode::kMtt, 0x200000, 0x400000, {0x40000000, 0x80000000}).log_page = 21;
  make(11, AccessMode::kMtt, 0x7f0000000000, 0, {0x70003, 0x20003}).length64 = true;
  make(12, AccessMode::kPa, 0x7f0000000000, 0x10000);
  make(13, AccessMode::kKlm, 0x7f0000000000, 0x2f00, {entry(0x2f00, 9), 0x7f0000000123});
  make(14, AccessMode::kSwIcm, 0, 0x1000).base = 0x700000000000;
  make(15, AccessMode::kMtt, 0x7f0000000000, 0x3000, {0x10001, 0x20002, 0x30003}).paged = true;
  make(16, AccessMode::kMtt, 0x7f0000000000, 0x3000, {0x10003, 0x20003, 0x30003}).rights.remote_write = false;
  std::mt19937 random(3);
  const std::uint64_t starts[] = {0x7f0000000000, 0x7f0000000000, 0x7f0000000000, 0x3ff000, 0};
  Tpt::Page page;
  std::uint32_t index = 9;
  std::uint64_t start = 0;
  unsigned reached = 0, repeated = 0;
  for (unsigned i = 0; i < 20000; ++i) {
    if (random() % 16 == 0) index = 8 + random() % 9;
    if (random() % 8 == 0) start = starts[random() % 5];
    if (random() % 50 == 0) page = {};
    const std::uint64_t va = start + random() % 0x4100, len = 1 + random() % 200;
    const Access access = Access::kRemoteWrite;
    const TptStatus status = get(key(index), va, len, access);  // and its entries are in the caches then
    const bool good = status == TptStatus::kOk && out.size() == 1 && out[0].space == Space::kHost &&
                      tpt.check(key(index), {kPd, kQpn, 0}, access, va, len) == TptStatus::kOk;
    const bool known = page.key == key(index) && va >= page.first && va + len - 1 <= page.last;
    Tpt::Piece piece;
    ASSERT_EQ(tpt.reach(now, page, key(index), {kPd, kQpn, 0}, access, va, len, piece), good)
        << index << " " << std::hex << va << "+" << len;
    now += 10;
    if (!good) {
      EXPECT_FALSE(known) << index;
      continue;
    }
    ++reached;
    repeated += known;
    EXPECT_EQ(piece.addr, out[0].addr);
    EXPECT_EQ(piece.ready, std::max(last.ready, now - 10 + profile.engine.translate));
    EXPECT_FALSE(piece.missed);
  }
  EXPECT_GT(reached, 4000u);
  EXPECT_GT(repeated, 500u);
}

TEST_F(TptTest, MissesCostAReadEach) {
  make(9, AccessMode::kMtt, 0, 64 * 4096, std::vector<std::uint64_t>(64, 0x10000));
  const Time read = profile.pcie.read_latency;
  const auto took = [&] { return last.ready - now - profile.engine.translate; };
  get(key(9), 0, 1);
  EXPECT_EQ(took(), 2 * read);  // the key, then its list
  EXPECT_EQ(last.misses, 2u);
  now += read;
  get(key(9), 0, 1);
  EXPECT_EQ(took(), read);  // both are under way: waited for, not read again
  EXPECT_EQ(last.misses, 0u);
  now += 9 * read;
  get(key(9), 7 * 4096, 4096);
  EXPECT_EQ(took(), 0);  // eight entries came together
  get(key(9), 0, 64 * 4096);
  EXPECT_EQ(took(), read);  // the rest of the list, read together
  now += 9 * read;
  get(key(9), 0, 64 * 4096);
  EXPECT_EQ(took(), 0);
  tpt.invalidate(*keys.find(9));
  get(key(9), 0, 1);
  EXPECT_EQ(last.misses, 2u);
}

}  // namespace
}  // namespace hcasim
