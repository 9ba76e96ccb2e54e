// SPDX-License-Identifier: BSD-3-Clause
// Memory keys: page sizes, offsets, PA mode, indirect keys, and registration by UMR.
#include <cstring>

#include "fixture.h"

namespace hcasim::bare {
namespace {

namespace mask = prm::mkey_mask;

class Mkey : public DeviceTest {
 protected:
  // Writes a's bytes through `key` at `va`; they must appear at `to`.
  static void expect_write(Pair& p, std::uint32_t key, std::uint64_t va, const std::uint8_t* to,
                           std::uint32_t len) {
    auto w = p.wr(WqeOp::kRdmaWrite, 0, len);
    w.raddr = va;
    w.rkey = key;
    p.a.post(w);
    const Completion c = p.acq.wait_one();
    ASSERT_FALSE(c.error()) << c.text();
    EXPECT_EQ(std::memcmp(p.amem.data(), to, len), 0);
  }
  static void expect_refused(Pair& p, std::uint32_t key, std::uint64_t va, std::uint32_t len) {
    auto w = p.wr(WqeOp::kRdmaWrite, 0, len);
    w.raddr = va;
    w.rkey = key;
    p.a.post(w);
    expect_error(p.acq.wait_one(), prm::CqeSyndrome::kRemoteAccess);
    ASSERT_TRUE(p.a.to_reset().ok());
    ASSERT_TRUE(p.b.to_reset().ok());
    while (p.acq.poll()) {
    }
    while (p.bcq.poll()) {
    }
    connect_pair(p.a, p.b);
  }
};

class MkeyPage : public Mkey, public ::testing::WithParamInterface<unsigned> {};

TEST_P(MkeyPage, TranslatesEveryByte) {
  breaks({"rkey-bounds"});
  const unsigned log_page = GetParam();
  const std::size_t page = std::size_t{1} << log_page;
  Pair p(dev());
  p.fill(log_page);
  // Three pages, in another order than in memory, the region starting and ending inside of a page.
  Buffer mem = dev().memory().allocate(3 * page, page);
  MkeySpec s;
  s.pd = p.pd.pdn();
  s.log_page = log_page;
  const std::uint64_t va = 0x123400000000 + 777;
  s.start = va;
  s.len = 2 * page + 100;
  s.mtt = {mem.bus(2 * page) | 3, mem.bus(0) | 3, mem.bus(page) | 3};
  Mr mr(dev(), s);
  expect_write(p, mr.key(), va, mem.data() + 2 * page + 777, 1000);
  p.fill(log_page + 1);
  expect_write(p, mr.key(), va + 2 * page - 100, mem.data() + page + 777 - 100, 200);
  p.fill(log_page + 2);
  // Across a page border: bytes on both sides.
  auto w = p.wr(WqeOp::kRdmaWrite, 0, 3000);
  w.raddr = va - 777 + page - 1000;
  w.rkey = mr.key();
  expect_good(p.acq, p.a.post(w));
  EXPECT_EQ(std::memcmp(p.amem.data(), mem.data() + 3 * page - 1000, 1000), 0);
  EXPECT_EQ(std::memcmp(p.amem.data() + 1000, mem.data(), 2000), 0);
  expect_refused(p, mr.key(), va - 1, 1);
  expect_refused(p, mr.key(), va + s.len - 10, 11);
  expect_refused(p, mr.key(), va + s.len, 1);
}

INSTANTIATE_TEST_SUITE_P(Log2, MkeyPage, ::testing::Values(12, 13, 16, 18, 21, 25));

TEST_F(Mkey, KeyByteIsCompared) {
  breaks({"rkey-unknown"});
  Pair p(dev());
  expect_refused(p, p.bmr.key() + 1, p.bmr.start(), 8);
  expect_refused(p, p.bmr.key() ^ 0x80, p.bmr.start(), 8);
  expect_write(p, p.bmr.key(), p.bmr.start(), p.bmem.data(), 8);
}

TEST_F(Mkey, BoundToAQp) {
  breaks({"rkey-pd"});
  Pair p(dev());
  MkeySpec s = Mr::of(p.pd, p.bmem);
  s.qpn = p.a.qpn();
  Mr mr(dev(), s);
  expect_refused(p, mr.key(), mr.start(), 8);
  s.qpn = p.b.qpn();
  Mr good(dev(), s);
  expect_write(p, good.key(), good.start(), p.bmem.data(), 8);
}

TEST_F(Mkey, FreeKeyRefusesAccess) {
  breaks({"rkey-unknown"});
  Pair p(dev());
  MkeySpec s = Mr::of(p.pd, p.bmem);
  s.free = true;
  s.umr_en = true;
  Mr mr(dev(), s);
  expect_refused(p, mr.key(), mr.start(), 8);
}

TEST_F(Mkey, PhysicalModeIsAllOfMemory) {
  Pair p(dev());
  p.fill(1);
  Mr pa(dev(), Mr::physical(p.pd, kAllAccess));
  expect_write(p, pa.key(), p.bmem.bus(100), p.bmem.data() + 100, 5000);
  auto w = p.wr(WqeOp::kRdmaRead, 0, 5000);
  w.sges = {{p.amem.bus(0), pa.key(), 5000}};
  expect_good(p.acq, p.a.post(w));
  EXPECT_TRUE(p.same(0, 5000));
}

TEST_F(Mkey, PhysicalModeWithALength) {
  breaks({"rkey-bounds"});
  Pair p(dev());
  MkeySpec s = Mr::physical(p.pd, kAllAccess);
  s.length64 = false;
  s.start = p.bmem.bus(4096);
  s.len = 100;
  Mr pa(dev(), s);
  expect_write(p, pa.key(), p.bmem.bus(4096), p.bmem.data() + 4096, 100);
  expect_refused(p, pa.key(), p.bmem.bus(4096) + 1, 100);
}

TEST_F(Mkey, IndirectKeyOfPieces) {
  breaks({"rkey-bounds"});
  Pair p(dev());
  p.fill(2);
  MkeySpec s;
  s.pd = p.pd.pdn();
  s.mode = 2;
  s.start = 0x5000000000;
  s.klm = {{1000, p.bmr.key(), p.bmr.start() + 30000},
           {5000, p.bmr.key(), p.bmr.start() + 11},
           {17, p.bmr.key(), p.bmr.start() + 60000},
           {2000, p.bmr.key(), p.bmr.start() + 20000}};
  s.len = 8017;
  Mr klm(dev(), s);
  auto w = p.wr(WqeOp::kRdmaWrite, 0, 7800);
  w.raddr = s.start + 200;
  w.rkey = klm.key();
  expect_good(p.acq, p.a.post(w));
  const std::uint8_t *a = p.amem.data(), *b = p.bmem.data();
  EXPECT_EQ(std::memcmp(a, b + 30200, 800), 0);
  EXPECT_EQ(std::memcmp(a + 800, b + 11, 5000), 0);
  EXPECT_EQ(std::memcmp(a + 5800, b + 60000, 17), 0);
  EXPECT_EQ(std::memcmp(a + 5817, b + 20000, 1983), 0);
  expect_refused(p, klm.key(), s.start + 8000, 18);
}

TEST_F(Mkey, IndirectKeyOfABadOne) {
  breaks({"rkey-bounds"});
  Pair p(dev());
  MkeySpec s;
  s.pd = p.pd.pdn();
  s.mode = 2;
  s.start = 0x5000000000;
  s.klm = {{1000, p.bmr.key() ^ 0x100, p.bmr.start()}};
  s.len = 1000;
  Mr klm(dev(), s);
  expect_refused(p, klm.key(), s.start, 10);
}

TEST_F(Mkey, IndirectKeyOfItselfEnds) {
  breaks({"mr-list"});
  Pair p(dev());
  MkeySpec s;
  s.pd = p.pd.pdn();
  s.mode = 2;
  s.start = 0;
  s.len = 1 << 20;
  s.umr_en = true;
  s.reserve_octowords = 4;
  s.klm = {{1 << 20, 0, 0}};
  Mr klm(dev(), s);
  // Its number is known only now: another key that points to it, and it to that one.
  MkeySpec t = s;
  t.klm = {{1 << 20, klm.key(), 0}};
  Mr other(dev(), t);
  UmrWr u;
  u.mkey = klm.key();
  u.spec = s;
  u.spec.klm = {{1 << 20, other.key(), 0}};
  p.a.post_umr(u);
  p.acq.wait(1);
  expect_refused(p, other.key(), 0, 100);
  expect_serves_on();
}

TEST_F(Mkey, QueryReturnsTheContext) {
  Pair p(dev());
  const auto r = p.bmr.query().must();
  using M = prm::query_mkey_out::memory_key_mkey_entry;
  EXPECT_EQ(r.get<M::start_addr>(), p.bmr.start());
  EXPECT_EQ(r.get<M::len>(), p.bmr.len());
  EXPECT_EQ(r.get<M::pd>(), p.pd.pdn());
  EXPECT_EQ(r.get<M::mkey_7_0>(), p.bmr.key() & 0xff);
}

TEST_F(Mkey, ListsThatLie) {
  breaks({"mkey-list", "object-reference"});
  Pd pd(dev());
  Buffer b = dev().memory().allocate(4 * kPage);
  // The mailbox holds fewer entries than it says, or than the length needs.
  Mailbox in = create_mkey_mailbox(Mr::of(pd, b));
  in.set<prm::create_mkey_in::translations_octword_actual_size>(0xffffffff);
  EXPECT_CMD_STATUS(dev().exec(in, prm::create_mkey_out::bytes), CmdStatus::kBadParam);
  in = create_mkey_mailbox(Mr::of(pd, b));
  in.set<prm::create_mkey_in::memory_key_mkey_entry::pd>(0xabcdef);
  const auto r = dev().exec(in, prm::create_mkey_out::bytes);
  EXPECT_NE(static_cast<int>(r.status), 0) << "no such PD";
  expect_serves_on();
}

TEST_F(Mkey, ListThatIsShorterThanItsLengthIsRefused) {
  breaks({"mkey-list"});
  Pair p(dev());
  MkeySpec s = Mr::of(p.pd, p.bmem);
  s.len = 1 << 30;  // 16 pages are listed
  EXPECT_CMD_STATUS(dev().exec(create_mkey_mailbox(s), prm::create_mkey_out::bytes), CmdStatus::kBadParam);
  expect_serves_on();
}

// One that made its own number's key believes to have it.
TEST_F(Mkey, ItsNumberIsNotTheDriversToChoose) {
  breaks({"cmd-reserved-bits", "cap-not-offered"});
  Pair p(dev());
  Mailbox in = create_mkey_mailbox(Mr::of(p.pd, p.bmem));
  in.set<prm::Field<prm::create_mkey_in::pg_access::bit_off - 24, 24>>(0x1234);
  EXPECT_CMD_STATUS(dev().exec(in, prm::create_mkey_out::bytes), CmdStatus::kBadParam);
}

// --- UMR

class Umr : public Mkey {
 protected:
  // An empty key with room for `octowords`, as a driver's pool has them.
  MkeySpec empty(const Pd& pd, std::size_t octowords, unsigned mode = 1) {
    MkeySpec s;
    s.pd = pd.pdn();
    s.mode = mode;
    s.free = true;
    s.umr_en = true;
    s.access = 0;
    s.reserve_octowords = octowords;
    return s;
  }
};

TEST_F(Umr, FastRegistrationInlineThenLocalInvalidate) {
  breaks({"rkey-unknown"});
  Pair p(dev());
  p.fill(1);
  MkeySpec s = empty(p.pd, 8);
  Mr mr(dev(), s);
  expect_refused(p, mr.key(), p.bmem.bus(), 8);
  for (int round = 0; round < 5; ++round) {
    // As the verbs layer registers: list inline, key byte moves on; fails if the key is not free.
    UmrWr u;
    u.mkey = mr.key();
    u.spec = Mr::of(p.pd, p.bmem, kAllAccess, 12, 4096 * static_cast<std::size_t>(round), 3 * 4096);
    u.spec.key = static_cast<std::uint8_t>(mr.key() + 1);
    u.spec.umr_en = true;
    u.mask = mask::kLen | mask::kPageSize | mask::kStartAddr | mask::kKey | mask::kLr | mask::kLw |
             mask::kRr | mask::kRw | mask::kA | mask::kFree | mask::kEnRinval | mask::kSmallFence;
    u.flags = prm::kUmrCheckNotFree;
    const auto n = p.b.post_umr(u);
    expect_good(p.bcq, n);
    mr.set_key_byte(u.spec.key);
    p.fill(static_cast<std::uint64_t>(round));
    expect_write(p, mr.key(), u.spec.start + 5, p.bmem.data() + 4096 * round + 5, 8000);
    // LOCAL_INV
    UmrWr inv;
    inv.mkey = mr.key();
    inv.mask = mask::kFree;
    inv.spec.free = true;
    inv.spec.umr_en = true;
    inv.flags = prm::kUmrCheckFree;
    expect_good(p.bcq, p.b.post_umr(inv));
    expect_refused(p, mr.key(), u.spec.start, 8);
  }
}

TEST_F(Umr, RegistrationThroughAListInMemory) {
  breaks({"rkey-bounds", "rkey-unknown"});
  Pair p(dev());
  Buffer target = dev().memory().allocate_scattered(1 << 20);  // 256 pages
  Buffer list = dev().memory().allocate(256 * 8);
  const auto pages = target.page_list();
  for (std::size_t i = 0; i < pages.size(); ++i) prm::store64(list.data() + 8 * i, pages[i] | 3);
  // Drivers of Linux up to 5.10 have the list's key in another domain than the queue.
  Pd other(dev());
  Mr pa(dev(), Mr::physical(other));
  Mr mr(dev(), empty(p.pd, 128));
  QpOptions o;
  o.type = QpType::kRegUmr;
  o.no_rq = true;
  Qp umr(dev(), p.pd, p.bcq, p.bcq, o);
  umr.connect({});
  UmrWr u;
  u.mkey = mr.key();
  u.inline_list = false;
  u.spec.mode = 1;
  u.spec.pd = p.pd.pdn();
  u.spec.start = 0x600000000000 + 5;
  u.spec.len = (1 << 20) - 5;
  u.spec.umr_en = true;
  u.spec.key = static_cast<std::uint8_t>(mr.key());
  u.mask = mask::kFree | mask::kLen | mask::kStartAddr | mask::kPd | mask::kPageSize | mask::kLr | mask::kLw |
           mask::kRr | mask::kRw | mask::kA;
  // In two chunks, the second with an offset; only the last takes the key into use.
  UmrWr first = u;
  first.mask = 0;
  first.flags = prm::kUmrTranslationOffsetEn;
  first.list = {list.bus(), pa.key(), 1024};
  first.spec.free = true;
  expect_good(p.bcq, umr.post_umr(first));
  u.flags = prm::kUmrTranslationOffsetEn;
  u.offset_octowords = 64;
  u.list = {list.bus(1024), pa.key(), 1024};
  expect_good(p.bcq, umr.post_umr(u));
  p.fill(5);
  expect_write(p, mr.key(), u.spec.start, target.data() + 5, 60000);
  p.fill(6);
  expect_write(p, mr.key(), u.spec.start + 900000, target.data() + 900005, 60000);
  expect_refused(p, mr.key(), u.spec.start + u.spec.len - 10, 11);
  // Revoke, as at deregistration.
  UmrWr inv;
  inv.mkey = mr.key();
  inv.mask = mask::kFree;
  inv.spec.free = true;
  expect_good(p.bcq, umr.post_umr(inv));
  expect_refused(p, mr.key(), u.spec.start, 8);
}

TEST_F(Umr, AccessBitsAlone) {
  breaks({"rkey-rights"});
  Pair p(dev());
  MkeySpec s = Mr::of(p.pd, p.bmem);
  s.umr_en = true;
  Mr mr(dev(), s);
  expect_write(p, mr.key(), mr.start(), p.bmem.data(), 8);
  UmrWr u;
  u.mkey = mr.key();
  u.mask = mask::kRw | mask::kRr | mask::kLr | mask::kLw | mask::kA;
  u.spec.access = kLocalRead | kRemoteRead;
  u.spec.umr_en = true;
  expect_good(p.bcq, p.b.post_umr(u));
  expect_refused(p, mr.key(), mr.start(), 8);
  auto w = p.wr(WqeOp::kRdmaRead, 0, 64);
  w.rkey = mr.key();
  expect_good(p.acq, p.a.post(w));
}

TEST_F(Umr, OfAKeyThatMayNot) {
  breaks({"wqe-umr"});
  Pair p(dev());
  UmrWr u;
  u.mkey = p.bmr.key();  // umr_en is off
  u.mask = mask::kFree;
  u.spec.free = true;
  p.a.post_umr(u);
  const Completion c = p.acq.wait_one();
  EXPECT_TRUE(c.error()) << c.text();
  EXPECT_EQ(p.a.state(), QpState::kErr);
  expect_serves_on();
}

// A list of pages holds bus addresses: a process that could give one would reach all of memory. It may give
// lists of keys, which are looked at.
TEST_F(Umr, OfPagesByAQueueThatMayNot) {
  breaks({"wqe-umr"});
  Pair p(dev());
  QpOptions user;
  user.fast_registers = false;
  const auto by_user = [&](const UmrWr& u) {
    Cq cq(dev());
    Qp qp(dev(), p.pd, cq, cq, user);
    QpAttr attr;
    attr.remote_qpn = qp.qpn();
    qp.connect(attr);
    qp.post_umr(u);
    return cq.wait_one();
  };
  const Buffer other = dev().memory().allocate(4096);
  MkeySpec s = Mr::of(p.pd, p.bmem);
  s.umr_en = true;
  Mr mr(dev(), s);
  UmrWr list;
  list.mkey = mr.key();
  list.spec = Mr::of(p.pd, other);
  list.spec.umr_en = true;
  list.flags = prm::kUmrTranslationOffsetEn;
  expect_error(by_user(list), prm::CqeSyndrome::kMwBind);
  UmrWr rights;
  rights.mkey = mr.key();
  rights.mask = mask::kLw;
  rights.spec.access = kLocalWrite;
  rights.spec.umr_en = true;
  expect_error(by_user(rights), prm::CqeSyndrome::kMwBind);
  p.fill(3);
  expect_write(p, mr.key(), mr.start(), p.bmem.data(), 64);

  Mr pieces(dev(), empty(p.pd, 4, 2));
  UmrWr window;
  window.mkey = pieces.key();
  window.mask = mask::kFree | mask::kLen | mask::kStartAddr | mask::kRw;
  window.spec.mode = 2;
  window.spec.umr_en = true;
  window.spec.access = kRemoteWrite;
  window.spec.len = 4096;
  window.spec.klm = {{4096, p.bmr.key(), p.bmr.start()}};
  EXPECT_FALSE(by_user(window).error());
  p.fill(4);
  expect_write(p, pieces.key(), 0, p.bmem.data(), 64);
}

TEST_F(Umr, OfAKeyThatIsNotThere) {
  breaks({"wqe-umr"});
  Pair p(dev());
  UmrWr u;
  u.mkey = 0xabcdef00;
  u.mask = mask::kFree;
  p.a.post_umr(u);
  EXPECT_TRUE(p.acq.wait_one().error());
  expect_serves_on();
}

TEST_F(Umr, CheckNotFreeFailsOnAKeyInUse) {
  breaks({"wqe-umr"});
  Pair p(dev());
  MkeySpec s = Mr::of(p.pd, p.bmem);
  s.umr_en = true;
  Mr mr(dev(), s);
  UmrWr u;
  u.mkey = mr.key();
  u.mask = mask::kFree;
  u.flags = prm::kUmrCheckNotFree;
  u.spec.umr_en = true;
  p.a.post_umr(u);
  EXPECT_TRUE(p.acq.wait_one().error());
}

TEST_F(Umr, ListLongerThanTheKeyHasRoomFor) {
  breaks({"wqe-umr"});
  Pair p(dev());
  Mr mr(dev(), empty(p.pd, 4));
  Mr pa(dev(), Mr::physical(p.pd));
  Buffer list = dev().memory().allocate(64 << 10);
  UmrWr u;
  u.mkey = mr.key();
  u.inline_list = false;
  u.list = {list.bus(), pa.key(), 64 << 10};
  u.mask = mask::kFree | mask::kLen;
  u.spec.umr_en = true;
  p.a.post_umr(u);
  EXPECT_TRUE(p.acq.wait_one().error());
  expect_serves_on();
}

TEST_F(Umr, PagesOfASizeThatNobodyHas) {
  breaks({"rkey-unknown", "wqe-umr"});
  Pair p(dev());
  Mr mr(dev(), empty(p.pd, 8));
  UmrWr u;
  u.mkey = mr.key();
  u.spec = Mr::of(p.pd, p.bmem, kAllAccess, 4, 0, 64);
  u.spec.umr_en = true;
  u.mask = mask::kLen | mask::kPageSize | mask::kStartAddr | mask::kFree | mask::kLr | mask::kRr | mask::kRw;
  p.a.post_umr(u);
  EXPECT_TRUE(p.acq.wait_one().error());
  expect_serves_on();
}

TEST_F(Umr, IndirectListByUmr) {
  Pair p(dev());
  p.fill(7);
  Mr mr(dev(), empty(p.pd, 8, 2));
  UmrWr u;
  u.mkey = mr.key();
  u.spec.mode = 2;
  u.spec.umr_en = true;
  u.spec.start = 0x9000;
  u.spec.len = 3000;
  u.spec.key = static_cast<std::uint8_t>(mr.key());
  u.spec.klm = {{1000, p.bmr.key(), p.bmr.start() + 5000}, {2000, p.bmr.key(), p.bmr.start()}};
  u.mask = mask::kFree | mask::kLen | mask::kStartAddr | mask::kLr | mask::kLw | mask::kRr | mask::kRw;
  expect_good(p.bcq, p.b.post_umr(u));
  auto w = p.wr(WqeOp::kRdmaWrite, 0, 3000);
  w.raddr = 0x9000;
  w.rkey = mr.key();
  expect_good(p.acq, p.a.post(w));
  EXPECT_EQ(std::memcmp(p.amem.data(), p.bmem.data() + 5000, 1000), 0);
  EXPECT_EQ(std::memcmp(p.amem.data() + 1000, p.bmem.data(), 2000), 0);
}

// Implicit on-demand paging of a process with five levels of page tables: one key over 2^56 bytes, in pieces
// of 1 GiB.
TEST_F(Umr, AKsmOverAllOfAProcess) {
  constexpr std::uint64_t kPieces = std::uint64_t{1} << 26, kPart = 65536, kUsed = kPieces - 5;
  const auto special =
      dev().exec(Mailbox(prm::op::QUERY_SPECIAL_CONTEXTS, prm::query_special_contexts_in::bytes),
                 prm::query_special_contexts_out::bytes);
  const auto null =
      static_cast<std::uint32_t>(special.must().get<prm::query_special_contexts_out::null_mkey>());
  Pair p(dev());
  p.fill(8);
  Mr pa(dev(), Mr::physical(p.pd));
  std::vector<std::unique_ptr<Mr>> keys;
  MkeySpec s;
  s.pd = p.pd.pdn();
  s.mode = 3;
  s.free = s.umr_en = true;
  s.log_page = 30;
  s.reserve_octowords = kPieces;
  for (int i = 0; i < 8; ++i) keys.push_back(std::make_unique<Mr>(dev(), s));
  MkeySpec child = Mr::of(p.pd, p.bmem);
  child.start = 0;
  Mr part(dev(), child);
  Buffer list = dev().memory().allocate(kPart * 16);
  for (std::uint64_t i = 0; i < kPart; ++i) prm::store64(list.data() + 16 * i, null);
  UmrWr u;
  u.mkey = keys[3]->key();
  u.inline_list = false;
  u.spec.mode = 3;
  u.spec.pd = p.pd.pdn();
  u.spec.umr_en = true;
  u.spec.log_page = 30;
  u.spec.start = 0;
  u.spec.len = 0;
  u.spec.length64 = true;
  u.spec.key = static_cast<std::uint8_t>(u.mkey);
  u.mask = mask::kFree | mask::kLen | mask::kStartAddr | mask::kPageSize | mask::kPd | mask::kLr | mask::kLw |
           mask::kRr | mask::kRw;
  u.flags = prm::kUmrTranslationOffsetEn;
  u.list = {list.bus(), pa.key(), kPart * 16};
  for (const std::uint64_t at : {std::uint64_t{0}, kPieces - kPart}) {
    u.offset_octowords = static_cast<std::uint32_t>(at);
    expect_good(p.bcq, p.b.post_umr(u));
  }
  prm::store64(list.data(), part.key());
  u.offset_octowords = kUsed;
  u.list = {list.bus(), pa.key(), 64};  // the three behind it are null
  u.mask = 0;
  expect_good(p.bcq, p.b.post_umr(u));
  expect_write(p, u.mkey, (kUsed << 30) + 100, p.bmem.data() + 100, 1000);
}

TEST_F(Umr, OrderedWithTheWqesAroundIt) {
  breaks({"mr-key"});
  // WRITE with the old key, invalidate, WRITE again: the first is good, the last is not.
  Pair p(dev());
  MkeySpec s = Mr::of(p.pd, p.amem);
  s.umr_en = true;
  Mr local(dev(), s);
  auto w = p.wr(WqeOp::kRdmaWrite, 0, 30000);
  w.sges[0].lkey = local.key();
  UmrWr inv;
  inv.mkey = local.key();
  inv.mask = mask::kFree;
  inv.spec.free = true;
  p.a.post(w, false);
  inv.fence = prm::kFenceStrong;
  p.a.post_umr(inv, false);
  p.a.post(w);
  const auto got = p.acq.wait(3);
  ASSERT_EQ(got.size(), 3u);
  EXPECT_FALSE(got[0].error()) << got[0].text();
  EXPECT_FALSE(got[1].error()) << got[1].text();
  expect_error(got[2], prm::CqeSyndrome::kLocalProt);
}

}  // namespace
}  // namespace hcasim::bare
