// SPDX-License-Identifier: BSD-3-Clause
// Memory windows as drivers bind them by UMR, and strided lists of indirect keys.
#include <cstring>

#include "fixture.h"

namespace hcasim::bare {
namespace {

namespace mask = prm::mkey_mask;

constexpr std::uint64_t kBindMask =
    mask::kFree | mask::kKey | mask::kLen | mask::kStartAddr | mask::kLw | mask::kRr | mask::kRw | mask::kA;

class MemoryWindow : public DeviceTest {
 protected:
  // A window as the driver allocates it: free, no rights but local read, room for four entries.
  static MkeySpec window(const Pd& pd, bool type2) {
    MkeySpec s;
    s.pd = pd.pdn();
    s.mode = 2;
    s.free = s.umr_en = true;
    s.access = kLocalRead;
    s.remote_invalidate = type2;
    s.reserve_octowords = 4;
    s.key = 0;
    return s;
  }
  static UmrWr bind(const Mr& mw, const Mr& mr, std::uint64_t start, std::uint32_t len, unsigned access,
                    std::uint8_t key, std::uint64_t at = 0) {
    UmrWr u;
    u.mkey = mw.key();
    u.mask = kBindMask;
    u.flags = prm::kUmrTranslationOffsetEn;
    u.spec.mode = 2;
    u.spec.umr_en = true;
    u.spec.access = access;
    u.spec.key = key;
    u.spec.start = start;
    u.spec.len = len;
    u.spec.klm = {{len, mr.key(), at != 0 ? at : start}};
    return u;
  }
  static UmrWr bind2(const Mr& mw, const Mr& mr, const Qp& qp, unsigned access, std::uint8_t key) {
    UmrWr u = bind(mw, mr, mr.start(), static_cast<std::uint32_t>(mr.len()), access, key);
    u.mask |= mask::kQpn;
    u.flags |= prm::kUmrCheckNotFree;
    u.spec.qpn = qp.qpn();
    return u;
  }
  // IBV_WR_LOCAL_INV; with type 1's flags: a bind of length 0.
  static UmrWr unbind(std::uint32_t key, bool type2) {
    UmrWr u;
    u.mkey = key;
    u.mask = mask::kFree | mask::kKey;
    if (type2) u.mask |= mask::kQpn;
    u.flags = static_cast<std::uint8_t>(prm::kUmrTranslationOffsetEn | (type2 ? prm::kUmrCheckQpn : 0));
    u.spec.free = u.spec.umr_en = true;
    u.spec.key = static_cast<std::uint8_t>(key);
    return u;
  }
  static Completion write(Qp& from, const Sge& sge, std::uint32_t key, std::uint64_t va) {
    SendWr w;
    w.op = WqeOp::kRdmaWrite;
    w.sges = {sge};
    w.raddr = va;
    w.rkey = key;
    from.post(w);
    return from.send_cq().wait_one();
  }
  static void reconnect(Pair& p) {
    ASSERT_TRUE(p.a.to_reset().ok());
    ASSERT_TRUE(p.b.to_reset().ok());
    while (p.acq.poll()) {
    }
    while (p.bcq.poll()) {
    }
    connect_pair(p.a, p.b);
  }
  static void expect_refused(Pair& p, std::uint32_t key, std::uint64_t va) {
    expect_error(write(p.a, p.asge(0, 64), key, va), prm::CqeSyndrome::kRemoteAccess);
    reconnect(p);
  }
};

TEST_F(MemoryWindow, GrantsWhatTheRegionAllowsLocally) {
  breaks({"rkey-bounds", "rkey-rights", "rkey-unknown"});
  Pair p(dev());
  p.fill(1);
  // The region itself is closed to the far end.
  Mr mr(dev(), Mr::of(p.pd, p.bmem, kLocalRead | kLocalWrite));
  Mr mw(dev(), window(p.pd, false));
  const std::uint64_t start = mr.start() + 5000;
  expect_refused(p, mr.key(), start);
  expect_refused(p, mw.key(), start);
  expect_good(p.bcq, p.b.post_umr(bind(mw, mr, start, 1000, kLocalRead | kLocalWrite | kRemoteWrite, 1)));
  mw.set_key_byte(1);
  const Completion c = write(p.a, p.asge(0, 1000), mw.key(), start);
  EXPECT_FALSE(c.error()) << c.text();
  EXPECT_EQ(std::memcmp(p.amem.data(), p.bmem.data() + 5000, 1000), 0);
  // Not a byte beyond, no other right, not by its old key.
  expect_refused(p, mw.key(), start + 1000 - 63);
  expect_refused(p, mw.key() ^ 1, start);
  auto r = p.wr(WqeOp::kRdmaRead, 0, 8);
  r.raddr = start;
  r.rkey = mw.key();
  p.a.post(r);
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kRemoteAccess);
  reconnect(p);
  // Bound anew without asking; then to nothing.
  expect_good(p.bcq, p.b.post_umr(bind(mw, mr, mr.start(), 100, kLocalRead | kRemoteWrite, 2)));
  expect_refused(p, mw.key(), start);
  mw.set_key_byte(2);
  EXPECT_FALSE(write(p.a, p.asge(0, 64), mw.key(), mr.start()).error());
  expect_good(p.bcq, p.b.post_umr(unbind(mw.key(), false)));
  expect_refused(p, mw.key(), mr.start());
}

TEST_F(MemoryWindow, DoesNotWidenTheRegion) {
  breaks({"rkey-bounds", "rkey-rights"});
  Pair p(dev());
  Mr mr(dev(), Mr::of(p.pd, p.bmem, kLocalRead));
  Mr mw(dev(), window(p.pd, false));
  expect_good(p.bcq,
              p.b.post_umr(bind(mw, mr, mr.start(), 4096, kLocalRead | kRemoteRead | kRemoteWrite, 0)));
  auto r = p.wr(WqeOp::kRdmaRead, 0, 64);
  r.raddr = mr.start();
  r.rkey = mw.key();
  expect_good(p.acq, p.a.post(r));
  expect_refused(p, mw.key(), mr.start());
  // Beyond the region: found when it is used.
  expect_good(p.bcq, p.b.post_umr(bind(mw, mr, mr.start() + mr.len() - 8, 64, kLocalRead | kRemoteRead, 0)));
  r.raddr = mr.start() + mr.len() - 8;
  p.a.post(r);
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kRemoteAccess);
  expect_serves_on();
}

TEST_F(MemoryWindow, ZeroBased) {
  breaks({"rkey-bounds"});
  Pair p(dev());
  p.fill(2);
  Mr mw(dev(), window(p.pd, true));
  expect_good(p.bcq,
              p.b.post_umr(bind(mw, p.bmr, 0, 4096, kLocalRead | kRemoteWrite, 0, p.bmr.start() + 8192)));
  EXPECT_FALSE(write(p.a, p.asge(0, 500), mw.key(), 100).error());
  EXPECT_EQ(std::memcmp(p.amem.data(), p.bmem.data() + 8292, 500), 0);
  expect_refused(p, mw.key(), p.bmr.start() + 8192);
}

TEST_F(MemoryWindow, AtomicsNeedTheirRight) {
  breaks({"rkey-rights"});
  Pair p(dev());
  Mr mr(dev(), Mr::of(p.pd, p.bmem, kLocalRead | kLocalWrite));
  Mr mw(dev(), window(p.pd, false));
  expect_good(p.bcq, p.b.post_umr(bind(mw, mr, mr.start(), 64, kLocalRead | kLocalWrite | kRemoteAtomic, 0)));
  auto w = p.wr(WqeOp::kAtomicFa, 0, 8);
  w.raddr = mr.start();
  w.rkey = mw.key();
  w.swap_add = 7;
  std::uint64_t before, after;
  std::memcpy(&before, p.bmem.data(), 8);
  expect_good(p.acq, p.a.post(w));
  std::memcpy(&after, p.bmem.data(), 8);
  EXPECT_EQ(after, before + 7);
  expect_good(p.bcq, p.b.post_umr(bind(mw, mr, mr.start(), 64, kLocalRead | kLocalWrite | kRemoteWrite, 0)));
  p.a.post(w);
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kRemoteAccess);
}

TEST_F(MemoryWindow, OfTypeTwoBelongsToItsQp) {
  breaks({"rkey-pd", "wqe-umr"});
  Pair p(dev());
  Qp c(dev(), p.pd, p.acq, p.acq), d(dev(), p.pd, p.bcq, p.bcq);
  connect_pair(c, d);
  Mr mw(dev(), window(p.pd, true));
  const unsigned access = kLocalRead | kLocalWrite | kRemoteWrite;
  expect_good(p.bcq, p.b.post_umr(bind2(mw, p.bmr, p.b, access, 9)));
  mw.set_key_byte(9);
  EXPECT_FALSE(write(p.a, p.asge(0, 64), mw.key(), p.bmr.start()).error());
  expect_error(write(c, p.asge(0, 64), mw.key(), p.bmr.start()), prm::CqeSyndrome::kRemoteAccess);
  // Bound already.
  p.b.post_umr(bind2(mw, p.bmr, p.b, access, 10));
  expect_error(p.bcq.wait(1).back(), prm::CqeSyndrome::kMwBind);
  reconnect(p);
  EXPECT_FALSE(write(p.a, p.asge(0, 64), mw.key(), p.bmr.start()).error());
}

TEST_F(MemoryWindow, OfTypeTwoIsInvalidatedByItsQpOnly) {
  breaks({"rkey-unknown", "wqe-umr"});
  Pair p(dev());
  Qp c(dev(), p.pd, p.acq, p.acq), d(dev(), p.pd, p.bcq, p.bcq);
  connect_pair(c, d);
  Mr mw(dev(), window(p.pd, true));
  const unsigned access = kLocalRead | kLocalWrite | kRemoteWrite;
  for (const bool remote : {false, true}) {
    expect_good(p.bcq, p.b.post_umr(bind2(mw, p.bmr, p.b, access, 9)));
    mw.set_key_byte(9);
    if (remote) {
      auto w = p.wr(WqeOp::kSendInval, 0, 16);
      w.imm = mw.key();
      d.post_recv({p.bsge(0, 4096)});
      c.post(w);
      expect_error(p.acq.wait_one(), prm::CqeSyndrome::kRemoteAccess);
      p.bcq.wait(1);
    } else {
      d.post_umr(unbind(mw.key(), true));
      expect_error(p.bcq.wait_one(), prm::CqeSyndrome::kMwBind);
    }
    ASSERT_TRUE(c.to_reset().ok());
    ASSERT_TRUE(d.to_reset().ok());
    while (p.acq.poll()) {
    }
    while (p.bcq.poll()) {
    }
    connect_pair(c, d);
    EXPECT_FALSE(write(p.a, p.asge(0, 64), mw.key(), p.bmr.start()).error());
    if (remote) {
      auto w = p.wr(WqeOp::kSendInval, 0, 16);
      w.imm = mw.key();
      p.b.post_recv({p.bsge(0, 4096)});
      expect_good(p.acq, p.a.post(w));
      EXPECT_EQ(p.bcq.wait_one().op, prm::CqeOp::kRespSendInv);
    } else {
      expect_good(p.bcq, p.b.post_umr(unbind(mw.key(), true)));
    }
    expect_refused(p, mw.key(), p.bmr.start());
  }
}

TEST_F(MemoryWindow, OfTypeOneIsNotInvalidatedFromAfar) {
  breaks({"rkey-unknown"});
  Pair p(dev());
  Mr mw(dev(), window(p.pd, false));
  expect_good(p.bcq, p.b.post_umr(bind(mw, p.bmr, p.bmr.start(), 64, kLocalRead | kRemoteWrite, 0)));
  auto w = p.wr(WqeOp::kSendInval, 0, 16);
  w.imm = mw.key();
  p.b.post_recv({p.bsge(0, 4096)});
  p.a.post(w);
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kRemoteAccess);
  reconnect(p);
  EXPECT_FALSE(write(p.a, p.asge(0, 64), mw.key(), p.bmr.start()).error());
}

TEST_F(MemoryWindow, OfAnotherDomainIsNotBound) {
  breaks({"wqe-umr"});
  Pair p(dev());
  Pd other(dev());
  Mr mw(dev(), window(other, false));
  p.b.post_umr(bind(mw, p.bmr, p.bmr.start(), 64, kLocalRead | kRemoteWrite, 0));
  expect_error(p.bcq.wait_one(), prm::CqeSyndrome::kMwBind);
}

TEST_F(MemoryWindow, OutlivesItsRegionWithoutReachingIt) {
  breaks({"rkey-unknown"});
  Pair p(dev());
  Mr mw(dev(), window(p.pd, false));
  {
    Mr mr(dev(), Mr::of(p.pd, p.bmem, kLocalRead | kLocalWrite));
    expect_good(p.bcq, p.b.post_umr(bind(mw, mr, mr.start(), 64, kLocalRead | kRemoteWrite, 0)));
    EXPECT_FALSE(write(p.a, p.asge(0, 64), mw.key(), mr.start()).error());
  }
  expect_refused(p, mw.key(), p.bmr.start());
}

// --- Keys of special meaning

class SpecialKeys : public MemoryWindow {
 protected:
  template <class F>
  std::uint32_t key() {
    const auto r = dev().exec(Mailbox(prm::op::QUERY_SPECIAL_CONTEXTS, prm::query_special_contexts_in::bytes),
                              prm::query_special_contexts_out::bytes);
    return static_cast<std::uint32_t>(r.must().get<F>());
  }
};

TEST_F(SpecialKeys, DumpFillTakesAllAndGivesZeros) {
  breaks({"rkey-rights"});
  Pair p(dev());
  const std::uint32_t dump = key<prm::query_special_contexts_out::dump_fill_mkey>();
  ASSERT_NE(dump, 0u);
  p.fill(4);
  // The middle of what is sent is read from nowhere, and of what arrives it is dropped.
  p.b.post_recv({p.bsge(0, 100), {0x1234, dump, 2000}, p.bsge(100, 4000)});
  auto w = p.wr(WqeOp::kSend, 0, 0);
  w.sges = {p.asge(0, 2000), {~0ull - 4000, dump, 50}, p.asge(2000, 500)};
  expect_good(p.acq, p.a.post(w));
  EXPECT_FALSE(p.bcq.wait_one().error());
  EXPECT_EQ(std::memcmp(p.amem.data(), p.bmem.data(), 100), 0);
  const std::uint8_t zeros[50] = {};
  EXPECT_NE(std::memcmp(p.amem.data() + 100, p.bmem.data() + 100, 50), 0);
  // Of 2000 sent bytes 100 are kept; the zeros and 50 more fill the hole; the last 450 come behind.
  EXPECT_EQ(std::memcmp(p.amem.data() + 2050, p.bmem.data() + 100, 450), 0);
  p.b.post_recv({p.bsge(0, 64)});
  w.sges = {{0, dump, 50}};
  expect_good(p.acq, p.a.post(w));
  EXPECT_FALSE(p.bcq.wait_one().error());
  EXPECT_EQ(std::memcmp(p.bmem.data(), zeros, 50), 0);
  // Nobody reaches it from afar.
  expect_refused(p, dump, 0);
}

// All memory by its bus addresses, for queues that may use it.
TEST_F(SpecialKeys, TheReservedKeyIsOfQueuesThatMayUseIt) {
  breaks({"mr-key", "rkey-unknown"});
  Pair p(dev());
  const std::uint32_t reserved = key<prm::query_special_contexts_out::resd_lkey>();
  ASSERT_NE(reserved, 0u);
  QpOptions o;
  o.reserved_lkey = true;
  Qp a(dev(), p.pd, p.acq, p.acq, o), b(dev(), p.pd, p.bcq, p.bcq, o);
  QpAttr to_a, to_b;
  to_a.remote_qpn = a.qpn();
  to_b.remote_qpn = b.qpn();
  a.connect(to_b);
  b.connect(to_a);
  p.fill(6);
  b.post_recv({{p.bmem.bus(64), reserved, 3000}});
  SendWr w;
  w.sges = {{p.amem.bus(64), reserved, 3000}};
  expect_good(p.acq, a.post(w));
  EXPECT_FALSE(p.bcq.wait_one().error());
  EXPECT_TRUE(p.same(64, 3000));
  // Nobody reaches it from afar, and other queues not at all.
  expect_refused(p, reserved, p.bmem.bus());
  p.a.post(w);
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kLocalProt);
}

TEST_F(SpecialKeys, NullIsNoMemory) {
  breaks({"mr-key", "rkey-unknown"});
  Pair p(dev());
  const std::uint32_t null = key<prm::query_special_contexts_out::null_mkey>();
  ASSERT_NE(null, 0u);
  auto w = p.wr(WqeOp::kSend, 0, 0);
  w.sges = {{0, null, 64}};
  p.a.post(w);
  expect_error(p.acq.wait_one(), prm::CqeSyndrome::kLocalProt);
  reconnect(p);
  expect_refused(p, null, 0);
}

// --- Strided lists

class Strided : public MemoryWindow {
 protected:
  static constexpr std::uint32_t kRepeat = 0x400;
  static KlmEntry head(std::uint32_t round, std::uint32_t rounds, std::uint16_t entries) {
    return {round, kRepeat, static_cast<std::uint64_t>(rounds) << 32 | entries};
  }
  static KlmEntry entry(const Mr& mr, std::size_t off, std::uint16_t bytes, std::uint16_t stride) {
    return {static_cast<std::uint32_t>(stride) << 16 | bytes, mr.key(), mr.start() + off};
  }
};

TEST_F(Strided, TakesTurns) {
  breaks({"rkey-bounds"});
  Pair p(dev());
  p.fill(3);
  MkeySpec s;
  s.pd = p.pd.pdn();
  s.mode = 2;
  // 100 blocks of 512 bytes, each followed by 8 from elsewhere; then a plain entry.
  s.klm = {head(520, 100, 2),
           entry(p.bmr, 0, 512, 512),
           entry(p.bmr, 60000, 8, 16),
           {100, p.bmr.key(), p.bmr.start() + 55000}};
  s.len = 520 * 100 + 100;
  Mr mr(dev(), s);
  const auto image = [&](std::size_t at) {
    if (at >= 52000) return p.bmem.data()[55000 + at - 52000];
    const std::size_t round = at / 520, in = at % 520;
    return in < 512 ? p.bmem.data()[512 * round + in] : p.bmem.data()[60000 + 16 * round + in - 512];
  };
  const std::pair<std::size_t, std::uint32_t> cases[] = {
      {0, 520}, {0, 52100}, {511, 2}, {519, 3}, {520 * 37 + 515, 5000}, {51995, 105}, {52000, 100}};
  for (const auto& [at, len] : cases) {
    EXPECT_FALSE(write(p.a, p.asge(0, len), mr.key(), at).error());
    for (std::size_t i = 0; i < len; ++i) ASSERT_EQ(image(at + i), p.amem.data()[i]) << at << "+" << i;
    p.fill(at + len);
  }
  expect_refused(p, mr.key(), 52100 - 63);
}

TEST_F(Strided, ListsThatLie) {
  breaks({"mr-list", "rkey-bounds"});
  Pair p(dev());
  const std::vector<std::vector<KlmEntry>> lists = {
      {head(8, 4, 0)},                                          // nothing to repeat
      {head(8, 4, 2), entry(p.bmr, 0, 8, 8)},                   // fewer entries than it says
      {head(9, 4, 1), entry(p.bmr, 0, 8, 8)},                   // another sum
      {head(0, 4, 1), entry(p.bmr, 0, 0, 8)},                   // of nothing
      {head(8, 0, 1), entry(p.bmr, 0, 8, 8)},                   // no rounds
      {head(8, 4, 1), {8 << 16 | 8, 0xabcdef00, 0}},            // no such key
      {head(8, 0xffffffff, 1), entry(p.bmr, 65000, 8, 65535)},  // leaves the region
  };
  for (const auto& list : lists) {
    MkeySpec s;
    s.pd = p.pd.pdn();
    s.mode = 2;
    s.klm = list;
    s.len = 1 << 20;
    Mr mr(dev(), s);
    expect_refused(p, mr.key(), 4096);
  }
  expect_serves_on();
}

}  // namespace
}  // namespace hcasim::bare
