// SPDX-License-Identifier: BSD-3-Clause
// The lists of state (model/state/state.h) of the firmware's objects: each member of each object is listed,
// each kind of object tells in the digest of all of them, references by the number of what they name, and a
// reset leaves what a new firmware has.
#include "model/state/state.h"

#include <gtest/gtest.h>

#include <map>

#include "firmware-stub/firmware.h"
#include "firmware-stub/objects/objects.h"

namespace hcasim::fw {
namespace {

// ---- Every member is listed ----

// How many values a list names at its top.
struct Listed {
  static constexpr bool kResets = false, kStores = false, kLoads = false;
  unsigned count = 0;
  template <class T, class... Initial>
  void operator()(const char*, T&, const Initial&...) {
    ++count;
  }
  template <class T>
  void lasting(const char*, T&) {
    ++count;
  }
  template <class T>
  void kept(const char*, T&) {
    ++count;
  }
  template <class... T>
  void all(const char*, T&...) {
    count += sizeof...(T);
  }
};

// How many members a plain structure has: with as many values, and no more, it can be initialized.
struct Any {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor): in place of a value of any type
};
template <class T, class... Values>
constexpr auto takes(int) -> decltype(T{std::declval<Values>()...}, true) {
  return true;
}
template <class T, class... Values>
constexpr bool takes(...) {
  return false;
}
template <class T, class... Values>
constexpr unsigned members() {
  if constexpr (takes<T, Values..., Any>(0))
    return members<T, Values..., Any>();
  else
    return sizeof...(Values);
}
// A base is initialized like a member, by braces.
template <class T, class... Values>
constexpr auto takes_behind_base(int) -> decltype(T{{}, std::declval<Values>()...}, true) {
  return true;
}
template <class T, class... Values>
constexpr bool takes_behind_base(...) {
  return false;
}
template <class T, class... Values>
constexpr unsigned members_behind_base() {
  if constexpr (takes_behind_base<T, Values..., Any>(0))
    return members_behind_base<T, Values..., Any>();
  else
    return sizeof...(Values);
}

template <class T>
class EachMember : public ::testing::Test {};
using Plain = ::testing::Types<FlowEntryRefs, NicVport, SubFunction, Command, Health::Assert, PortAgent::Peer,
                               CmdQueue::Counters, FaultSpec, FaultSpec::Range, MigrationState>;
TYPED_TEST_SUITE(EachMember, Plain);
TYPED_TEST(EachMember, IsListed) {
  TypeParam t{};
  Listed listed;
  t.list_state(listed);
  EXPECT_EQ(listed.count, members<TypeParam>());
  EXPECT_GT(listed.count, 1u);
}

template <class T>
class EachMemberOfAnObject : public ::testing::Test {};
using OfObjects = ::testing::Types<PlainObject, MkeyObject, PsvObject, EqObject, CqObject, SrqObject,
                                   TisObject, QpObject, RqObject, RqtObject, TirObject, FlowTableObject,
                                   SwIcmObject, FlowSamplerObject, UctxObject, UmemObject, SchedObject,
                                   Objects::CounterBulk, DekObject, SaObject, PageTrackObject>;
TYPED_TEST_SUITE(EachMemberOfAnObject, OfObjects);
TYPED_TEST(EachMemberOfAnObject, IsListed) {
  TypeParam t;
  Listed listed;
  t.list_state(listed);
  EXPECT_EQ(listed.count, 1 + members_behind_base<TypeParam>()) << "and how often it is referred to";
}

TEST(MembersAreCounted, AsTheyAre) {
  struct Three {
    std::array<int, 5> a;
    Ref<PlainObject> b;
    std::vector<int> c;
  };
  EXPECT_EQ(members<Three>(), 3u);
  struct Two : Referred {
    int a = 0;
    std::map<int, int> b;
  };
  EXPECT_EQ(members_behind_base<Two>(), 2u);
}

// ---- Objects ----

std::map<std::string, std::string> listing(Objects& o) {
  std::map<std::string, std::string> all;
  print_state(o, [&](const std::string& path, const std::string& value) { all[path] = value; });
  return all;
}

// make() changes the objects in a way that tells, and of which a reset leaves nothing.
template <class Make>
void expect_listed(const char* what, Make make) {
  const Options options;
  Objects fresh(options), used(options);
  ASSERT_EQ(digest_state(fresh), digest_state(used));
  make(used);
  EXPECT_NE(digest_state(fresh), digest_state(used)) << what;
  reset_state(used);
  EXPECT_EQ(digest_state(fresh), digest_state(used)) << what;
  EXPECT_EQ(listing(fresh), listing(used)) << what;
}

template <class T>
T* made(Table<T>& table) {
  std::uint32_t n = 0;
  return table.create(n);
}

TEST(FirmwareState, EachKindOfObjectIsListedAndGoneAfterAReset) {
  expect_listed("PD", [](Objects& o) { made(o.pds); });
  expect_listed("UAR", [](Objects& o) { made(o.uars); });
  expect_listed("XRC domain", [](Objects& o) { made(o.xrcds); });
  expect_listed("transport domain", [](Objects& o) { made(o.tds); });
  expect_listed("Q counter", [](Objects& o) { made(o.q_counters); });
  expect_listed("mkey", [](Objects& o) { made(o.mkeys)->pd = Ref(made(o.pds)); });
  expect_listed("PSV", [](Objects& o) { made(o.psvs); });
  expect_listed("EQ", [](Objects& o) { made(o.eqs); });
  expect_listed("CQ", [](Objects& o) { made(o.cqs)->eq = Ref(made(o.eqs)); });
  expect_listed("SRQ", [](Objects& o) { made(o.srqs)->cq = Ref(made(o.cqs)); });
  expect_listed("QP", [](Objects& o) { made(o.qps)->srq = Ref(made(o.srqs)); });
  expect_listed("TIS", [](Objects& o) { made(o.tises)->td = Ref(made(o.tds)); });
  expect_listed("TIR", [](Objects& o) { made(o.tirs)->rqt = Ref(made(o.rqts)); });
  expect_listed("RQT", [](Objects& o) { made(o.rqts)->rqs.emplace_back(made(o.rqs)); });
  expect_listed("RQ", [](Objects& o) { made(o.rqs)->counter_set = Ref(made(o.q_counters)); });
  expect_listed("flow table", [](Objects& o) { made(o.flow_tables); });
  expect_listed("tables that lead to each other", [](Objects& o) {
    FlowTableObject *a = made(o.flow_tables), *b = made(o.flow_tables);
    a->miss = Ref(b);
    b->entries[3].tables.emplace_back(a);
    a->entries[1].tirs.emplace_back(made(o.tirs));
    a->entries[1].others.emplace_back(made(o.flow_counters));
  });
  expect_listed("flow group", [](Objects& o) { made(o.flow_groups); });
  expect_listed("flow counter", [](Objects& o) { made(o.flow_counters); });
  expect_listed("bulk of counters", [](Objects& o) { o.counter_bulks[kFirstBulkCounter].count = 128; });
  expect_listed("modify header context", [](Objects& o) { made(o.modify_headers); });
  expect_listed("reformat context", [](Objects& o) { made(o.reformats); });
  expect_listed("device memory", [](Objects& o) { o.memics[4096].set_number(4096); });
  expect_listed("multicast group",
                [](Objects& o) { o.multicast.emplace(std::make_pair(5u, Gid{0xff}), Ref(made(o.qps))); });
  expect_listed("SW ICM", [](Objects& o) { made(o.sw_icms); });
  expect_listed("encryption key", [](Objects& o) { made(o.deks); });
  expect_listed("object of IPsec", [](Objects& o) { made(o.ipsecs)->dek = Ref(made(o.deks)); });
  expect_listed("object of MACsec", [](Objects& o) { made(o.macsecs)->pd = Ref(made(o.pds)); });
  expect_listed("flow sampler",
                [](Objects& o) { made(o.flow_samplers)->tables[1] = Ref(made(o.flow_tables)); });
  expect_listed("page track", [](Objects& o) { made(o.page_tracks)->qp = Ref(made(o.qps)); });
  expect_listed("reserved QP numbers", [](Objects& o) { made(o.reserved_qpns); });
  expect_listed("user context", [](Objects& o) { made(o.users.table); });
  expect_listed("what a user context owns", [](Objects& o) {
    made(o.users.table);
    o.users.own(ObjType::kPd, 1, 1);
  });
  expect_listed("UMEM", [](Objects& o) { made(o.umems)->pages = {4096}; });
  expect_listed("queue in a UMEM", [](Objects& o) {
    std::uint32_t n = 0;
    o.umems.create(n);
    o.umem_users.hold(o, ObjType::kCq, 7, UmemUsers::kDoorbell, n);
  });
  expect_listed("scheduling elements", [](Objects& o) {
    SchedObject* root = made(o.sched_elements);
    made(o.sched_elements)->parent_ref = Ref(root);
    o.sched_users[{ObjType::kQp, 128}][1] = Ref(root);
  });
  expect_listed("numbers of flow entries", [](Objects& o) { ++o.flows; });
  expect_listed("translation list", [](Objects& o) { o.list_words += 8; });
  expect_listed("numbers of general objects", [](Objects& o) { ++o.general_objects; });
  expect_listed("how many QPs a driver wants", [](Objects& o) { o.qps.limit(100); });
}

// How often a number has been given out tells whether it once named something (rules of objects that were).
TEST(FirmwareState, AnObjectThatIsGoneHasLeftItsNumber) {
  const Options options;
  Objects fresh(options), used(options);
  std::uint32_t n = 0;
  used.cqs.create(n);
  used.cqs.destroy(n);
  auto rest = listing(used);
  EXPECT_EQ(rest.at("cqs.given_out." + std::to_string(n)), "1");
  EXPECT_NE(digest_state(fresh), digest_state(used));
  for (auto it = rest.begin(); it != rest.end();)
    it = it->first.rfind("cqs.pool.", 0) == 0 || it->first.rfind("cqs.given_out.", 0) == 0 ? rest.erase(it)
                                                                                           : ++it;
  auto none = listing(fresh);
  for (const char* pool : {"cqs.pool.limit", "cqs.pool.fresh", "cqs.pool.start", "cqs.pool.used"})
    none.erase(pool);
  EXPECT_EQ(rest, none);
}

TEST(FirmwareState, AReferenceTellsWhomItNamesNotWhereThatLies) {
  const Options options;
  Objects a(options), b(options);
  for (Objects* o : {&a, &b}) {
    std::uint32_t n = 0;
    // The same objects in another order of allocation.
    if (o == &b) {
      o->eqs.create(n);
      o->cqs.create(n);
    } else {
      o->cqs.create(n);
      o->eqs.create(n);
    }
    o->eqs.create(n);
  }
  const auto name = [](Objects& o, std::uint32_t eqn) {
    o.cqs.for_each([&](std::uint32_t, CqObject& cq) { cq.eq = Ref(o.eqs.find(eqn)); });
  };
  name(a, 1);
  name(b, 1);
  EXPECT_EQ(digest_state(a), digest_state(b));
  name(b, 2);
  EXPECT_NE(digest_state(a), digest_state(b));
  EXPECT_EQ(listing(b).at("eqs.2.refs"), "1");
}

TEST(FirmwareState, CapabilitiesTellWhatADriverHasSet) {
  Caps fresh{Options{}}, used{Options{}};
  Caps::Block block = *used.current(static_cast<std::uint16_t>(CapGroup::kGeneral));
  prm::set<prm::cmd_hca_cap::log_max_qp>(block.data(), 10);
  ASSERT_EQ(used.set(static_cast<std::uint16_t>(CapGroup::kGeneral), block.data()), Syndrome::kOk);
  EXPECT_NE(digest_state(fresh), digest_state(used));
  reset_state(used);
  EXPECT_EQ(digest_state(fresh), digest_state(used));
}

}  // namespace
}  // namespace hcasim::fw
