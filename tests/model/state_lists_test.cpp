// SPDX-License-Identifier: BSD-3-Clause
// The lists of state (model/state/state.h) of objects and tables: what a driver has set, or an engine has
// done, tells in the digest, and is gone after a reset.
#include <gtest/gtest.h>

#include "model/crypto/dek.h"
#include "model/crypto/ipsec.h"
#include "model/crypto/macsec.h"
#include "model/crypto/psp.h"
#include "model/ctx/cache.h"
#include "model/ctx/eth.h"
#include "model/ctx/qp.h"
#include "model/occupancy.h"
#include "model/sched/qos.h"
#include "model/state/state.h"
#include "model/steer/flow.h"
#include "model/steer/icm.h"
#include "model/steer/steer.h"
#include "model/tpt/memic.h"
#include "model/tpt/mkey.h"
#include "model/unit_pool.h"

namespace hcasim {
namespace {

// use() changes the state of a T; a reset takes it back to that of a new one.
template <class T, class Use>
void expect_listed(T& fresh, T& used, Use use) {
  ASSERT_EQ(digest_state(fresh), digest_state(used));
  use(used);
  EXPECT_NE(digest_state(fresh), digest_state(used));
  reset_state(used);
  EXPECT_EQ(digest_state(fresh), digest_state(used));
}

TEST(StateLists, QpsAndSrqsByNumber) {
  QpTable fresh, used;
  expect_listed(fresh, used, [](QpTable& t) {
    t.create(5)->state = QpState::kRts;
    t.create_srq(3);
  });
}

TEST(StateLists, AQpTellsItsAttributesItsWindowAndItsMessage) {
  QpTable table;
  Qp& qp = *table.create(1);
  const auto tells = [&](auto change) {
    const std::uint64_t before = digest_state(qp);
    change();
    return digest_state(qp) != before;
  };
  EXPECT_TRUE(tells([&] { qp.path.rgid[15] = 1; }));
  EXPECT_TRUE(tells([&] { qp.req.window.push().sges.push_back(Sge{1, 2, 3}); }));
  EXPECT_TRUE(tells([&] { qp.req.window.front().av.dqp_dct = 1; }));
  EXPECT_TRUE(tells([&] { qp.req.window.pop(); }));
  EXPECT_TRUE(tells([&] { qp.req.timer_due = 1; }));
  EXPECT_TRUE(tells([&] { qp.resp.resources.emplace_back(); }));
  EXPECT_TRUE(tells([&] { qp.resp.tagged.header[0] = 1; }));
  EXPECT_TRUE(tells([&] { qp.cc.alpha = 0.5; }));
  EXPECT_TRUE(tells([&] { qp.qos.clock.next = 1; }));
}

TEST(StateLists, ObjectsOfTheEthernetDataPath) {
  EthTable fresh, used;
  expect_listed(fresh, used, [](EthTable& t) {
    t.rqs[1].consumer = 1;
    t.tirs[1].outer.selected = 3;
    t.rqts[1].rqs = {1, 2};
  });
}

TEST(StateLists, OccupancyTellsItsGapsButNotWhereTheyLieInMemory) {
  Occupancy fresh, used;
  expect_listed(fresh, used, [](Occupancy& o) {
    o.reserve(100, 10);
    o.reserve(200, 10);
  });
  Occupancy twice;
  for (Occupancy* o : {&fresh, &twice}) {
    o->reserve(100, 10);
    if (o == &twice) o->clear();
  }
  twice.reserve(100, 10);
  EXPECT_EQ(digest_state(fresh), digest_state(twice));
}

TEST(StateLists, UnitsKeepTheirNumber) {
  UnitPool fresh(3), used(3);
  expect_listed(fresh, used, [](UnitPool& u) { u.best(0) = 100; });
  EXPECT_TRUE(used.idle_at(0));
}

TEST(StateLists, TagsOfACacheAndWhoWasTouchedLast) {
  ContextCache fresh(16, 4), used(16, 4);
  expect_listed(fresh, used, [](ContextCache& c) {
    c.touch(3);
    c.arrives(7);
  });
}

TEST(StateLists, MulticastGroupsAndSpecialQps) {
  QpTable qps;
  Steering fresh(qps), used(qps);
  expect_listed(fresh, used, [](Steering& s) {
    s.set_special(1, 17);
    s.attach(Gid{0xff}, 5);
  });
}

TEST(StateLists, FlowTablesGroupsEntriesAndCounters) {
  FlowSteering fresh, used;
  expect_listed(fresh, used, [](FlowSteering& f) {
    FlowTable* t = f.create_table(1, FlowTableType::kNicRx);
    t->log_size = 3;
    f.set_root(FlowTableType::kNicRx, 1);
    f.create_counter(9);
    f.counter(9)->packets = 1;
  });
}

TEST(StateLists, MemoryOfTheDevicesOwn) {
  Memic fresh, used;
  expect_listed(fresh, used, [](Memic& m) {
    std::uint64_t addr = 0;
    ASSERT_TRUE(m.allocate(Memic::kBase, Memic::kBytes, Memic::kGranule, 6, addr));
    const std::uint8_t byte = 1;
    ASSERT_TRUE(m.write(addr, &byte, 1));
  });
  SwIcm icm_fresh, icm_used;
  expect_listed(icm_fresh, icm_used, [](SwIcm& m) {
    const std::uint64_t addr = SwIcm::base(SwIcm::kSteering);
    ASSERT_TRUE(m.allocate(addr, 4096));
    const std::uint8_t byte = 1;
    ASSERT_TRUE(m.write(addr, &byte, 1));
  });
}

TEST(StateLists, LimitersAndSchedulingElements) {
  Qos fresh(100000), used(100000);
  expect_listed(fresh, used, [](Qos& q) {
    q.set_pace(1, 1000, 0);
    q.create_element(4, 0);
  });
}

TEST(StateLists, ASignatureStreamInTheMiddleOfABlock) {
  PsvTable fresh, used;
  expect_listed(fresh, used, [](PsvTable& p) {
    p.create(1, 2);
    p.set(1, 2, 3, 4);
  });
  MkeySignature a, b;
  b.format.mem.type = SigType::kCrc32;
  b.format.mem.block = 512;
  EXPECT_NE(digest_state(a), digest_state(b));
  a.format = b.format;
  EXPECT_EQ(digest_state(a), digest_state(b));
  std::vector<std::uint8_t> out;
  const std::uint8_t byte = 1;
  a.tx.start(a.format, true, 0);
  const std::uint64_t before = digest_state(a);
  a.tx.push(a.format, &byte, 1, out);
  EXPECT_NE(digest_state(a), before);
}

TEST(StateLists, KeysAndRecordsOfTlsInTheirMiddle) {
  DekTable fresh, used;
  expect_listed(fresh, used, [](DekTable& d) { d.create(1, 2, 1, std::vector<std::uint8_t>(16, 3)); });
  IpsecTable none, some;
  expect_listed(none, some, [](IpsecTable& t) { t.create(1, {}); });
  MacsecTable no_macsec, macsec;
  expect_listed(no_macsec, macsec, [](MacsecTable& t) { t.create(1, {}); });
  PspKeys first_keys, told;
  expect_listed(first_keys, told, [](PspKeys& k) {
    std::vector<std::uint8_t> key;
    k.generate(16, key);
  });
  const std::uint64_t before_rotation = digest_state(told);
  told.rotate();
  reset_state(told);
  EXPECT_NE(digest_state(told), before_rotation) << "no device key comes again";
  EthTable plain, encrypts;
  expect_listed(plain, encrypts, [](EthTable& t) { t.tises[1].tls.emplace(); });
  expect_listed(plain, encrypts, [](EthTable& t) { t.tirs[1].tls.emplace(); });
  const std::vector<std::uint8_t> bytes(16, 3);
  const GcmKey key(bytes.data(), bytes.size());
  TlsTx tx;
  tx.params.set = true;
  tx.restart();
  std::uint8_t record[] = {23, 3, 3, 0, 100, 0, 0, 0, 0, 0, 0, 0, 1, 5, 5};
  for (std::uint8_t& byte : record) {
    const std::uint64_t before = digest_state(tx);
    ASSERT_TRUE(tx.push(key, &byte, 1));
    EXPECT_NE(digest_state(tx), before);
  }
}

}  // namespace
}  // namespace hcasim
