// SPDX-License-Identifier: BSD-3-Clause
// The match engine of flow tables, against a slow one of the test's own.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "model/eth/headers.h"
#include "model/steer/flow.h"

namespace hcasim {
namespace {

using Lyr = prm::fte_match_set_lyr_2_4;
using Misc = prm::fte_match_set_misc;
constexpr std::size_t kBlock = Lyr::bytes;
enum : std::uint8_t { kOuter = 1, kMisc = 2, kInner = 4 };

// What a frame is made of; values from small sets, so that rules meet frames.
struct Spec {
  std::uint16_t dmac = 0, smac = 0;  // last two bytes
  bool tagged = false, svlan = false, second = false;
  std::uint16_t tci = 0, second_tci = 0;
  unsigned version = 4;  // 4, 6; 0: another ethertype
  std::uint8_t protocol = 17;
  std::uint8_t tclass = 0, ttl = 64;
  bool fragment = false;
  std::uint32_t src = 0, dst = 0;  // last four bytes
  std::uint32_t dst_high = 0;      // first four bytes of an IPv6 destination
  std::uint16_t sport = 0, dport = 0, tcp_flags = 0;
  bool vxlan = false;
  std::uint32_t vni = 0, inner_dst = 0;

  bool tcp() const { return version && protocol == 6 && !fragment; }
  bool udp() const { return version && protocol == 17 && !fragment; }
  bool tunnel() const { return vxlan && udp(); }
};

class Bytes {
 public:
  std::vector<std::uint8_t> data;
  void u8(unsigned v) { data.push_back(static_cast<std::uint8_t>(v)); }
  void u16(unsigned v) { u8(v >> 8), u8(v & 0xff); }
  void u32(std::uint32_t v) { u16(v >> 16), u16(v & 0xffff); }
  void zeros(std::size_t n) { data.insert(data.end(), n, 0); }
};

std::vector<std::uint8_t> inner_frame(const Spec& s) {
  Bytes b;
  b.zeros(12);
  b.u16(0x0800);
  b.u32(0x45000014), b.u32(0), b.u32(0x40fd0000), b.u32(0x0a000001), b.u32(s.inner_dst);
  return b.data;
}

std::vector<std::uint8_t> make_frame(const Spec& s) {
  Bytes b;
  b.u32(0x02000000), b.u16(s.dmac), b.u32(0x02110000), b.u16(s.smac);
  if (s.tagged) {
    b.u16(s.svlan ? 0x88a8 : 0x8100), b.u16(s.tci);
    if (s.second) b.u16(0x8100), b.u16(s.second_tci);
  }
  if (!s.version) {
    b.u16(0x88cc), b.zeros(46);
    return b.data;
  }
  Bytes l4;
  if (s.protocol == 6) {
    l4.u16(s.sport), l4.u16(s.dport), l4.u32(1), l4.u32(2), l4.u16(0x5000u | s.tcp_flags), l4.u16(0),
        l4.u32(0);
  } else {
    l4.u16(s.sport), l4.u16(s.vxlan ? 4789 : s.dport);
    std::vector<std::uint8_t> inner = s.vxlan ? inner_frame(s) : std::vector<std::uint8_t>(8);
    l4.u16(static_cast<unsigned>(16 + inner.size())), l4.u16(0);
    l4.u32(0x08000000), l4.u32(s.vni << 8);
    l4.data.insert(l4.data.end(), inner.begin(), inner.end());
  }
  const auto len = static_cast<unsigned>(l4.data.size());
  if (s.version == 4) {
    b.u16(0x0800);
    b.u8(0x45), b.u8(s.tclass), b.u16(20 + len), b.u16(7), b.u16(s.fragment ? 0x2000 : 0x4000);
    b.u8(s.ttl), b.u8(s.protocol), b.u16(0), b.u32(s.src), b.u32(s.dst);
  } else {
    b.u16(0x86dd);
    b.u32(6u << 28 | static_cast<std::uint32_t>(s.tclass) << 20);
    b.u16(len + (s.fragment ? 8 : 0)), b.u8(s.fragment ? 44 : s.protocol), b.u8(s.ttl);
    b.u32(0x20010db8), b.zeros(8), b.u32(s.src);
    b.u32(s.dst_high), b.zeros(8), b.u32(s.dst);
    if (s.fragment) b.u8(s.protocol), b.u8(0), b.u16(1), b.u32(9);
  }
  b.data.insert(b.data.end(), l4.data.begin(), l4.data.end());
  return b.data;
}

// A field of the match parameters: its value in a frame, and where it stands.
struct FieldCase {
  std::uint8_t block;  // criteria bit
  std::uint32_t (*value)(const Spec&);
  void (*put)(std::uint8_t* block, std::uint32_t v);
};

template <class F>
void put(std::uint8_t* p, std::uint32_t v) {
  prm::set<F>(p, v);
}
void put_at(std::uint8_t* p, std::uint32_t v) { prm::store32(p, v); }

#define VALUE(expr) [](const Spec& s) -> std::uint32_t { return static_cast<std::uint32_t>(expr); }
const FieldCase kFields[] = {
    {kOuter, VALUE(s.dmac), put<Lyr::dmac_15_0>},
    {kOuter, VALUE(s.smac), put<Lyr::smac_15_0>},
    {kOuter,
     VALUE(s.version == 4   ? 0x0800
           : s.version == 6 ? 0x86dd
                            : 0x88cc),
     put<Lyr::ethertype>},
    {kOuter, VALUE(s.tagged && !s.svlan), put<Lyr::cvlan_tag>},
    {kOuter, VALUE(s.tagged&& s.svlan), put<Lyr::svlan_tag>},
    {kOuter, VALUE(s.tagged ? s.tci & 0xfff : 0), put<Lyr::first_vid>},
    {kOuter, VALUE(s.tagged ? s.tci >> 13 : 0), put<Lyr::first_prio>},
    {kOuter, VALUE(s.version), put<Lyr::ip_version>},
    {kOuter, VALUE(s.version ? s.protocol : 0), put<Lyr::ip_protocol>},
    {kOuter, VALUE(s.version ? s.tclass >> 2 : 0), put<Lyr::ip_dscp>},
    {kOuter, VALUE(s.version ? s.tclass & 3 : 0), put<Lyr::ip_ecn>},
    {kOuter, VALUE(s.version&& s.fragment), put<Lyr::frag>},
    {kOuter, VALUE(s.version ? s.ttl : 0), put<Lyr::ttl_hoplimit>},
    {kOuter, VALUE(s.tcp() ? s.sport : 0), put<Lyr::tcp_sport>},
    {kOuter, VALUE(s.tcp() ? s.dport : 0), put<Lyr::tcp_dport>},
    {kOuter, VALUE(s.tcp() ? s.tcp_flags : 0), put<Lyr::tcp_flags>},
    {kOuter, VALUE(s.udp() ? s.sport : 0), put<Lyr::udp_sport>},
    {kOuter, VALUE(s.udp() ? (s.vxlan ? 4789 : s.dport) : 0), put<Lyr::udp_dport>},
    {kOuter, VALUE(s.version ? s.src : 0),
     [](std::uint8_t* p, std::uint32_t v) { put_at(prm::ptr<Lyr::src_ipv4_src_ipv6>(p) + 12, v); }},
    {kOuter, VALUE(s.version ? s.dst : 0),
     [](std::uint8_t* p, std::uint32_t v) { put_at(prm::ptr<Lyr::dst_ipv4_dst_ipv6>(p) + 12, v); }},
    {kOuter, VALUE(s.version == 6 ? s.dst_high : 0),
     [](std::uint8_t* p, std::uint32_t v) { put_at(prm::ptr<Lyr::dst_ipv4_dst_ipv6>(p), v); }},
    {kMisc, VALUE(s.tagged&& s.second ? s.second_tci & 0xfff : 0), put<Misc::outer_second_vid>},
    {kMisc, VALUE(s.tagged&& s.second), put<Misc::outer_second_cvlan_tag>},
    {kMisc, VALUE(s.tunnel() ? s.vni : 0), put<Misc::vxlan_vni>},
    {kMisc, VALUE(s.version & 0), put<Misc::source_port>},
    {kInner, VALUE(s.tunnel() ? 4 : 0), put<Lyr::ip_version>},
    {kInner, VALUE(s.tunnel() ? s.inner_dst : 0),
     [](std::uint8_t* p, std::uint32_t v) { put_at(prm::ptr<Lyr::dst_ipv4_dst_ipv6>(p) + 12, v); }},
};
#undef VALUE

// Of the first tag. Who asks for a tag of one kind asks that there is none of the other kind.
bool is_tag(const FieldCase& f) { return f.put == put<Lyr::cvlan_tag> || f.put == put<Lyr::svlan_tag>; }
bool tags_fit(const std::vector<const FieldCase*>& fields, const Spec& rule, const Spec& frame) {
  bool asked = false, customer = false, service = false;
  for (const FieldCase* f : fields) {
    if (!is_tag(*f)) continue;
    asked = true;
    (f->put == put<Lyr::cvlan_tag> ? customer : service) |= f->value(rule) != 0;
  }
  return !asked || (customer == (frame.tagged && !frame.svlan) && service == (frame.tagged && frame.svlan));
}

std::uint8_t* block_of(MatchParam& p, const FieldCase& f) {
  return p.data() + (f.block == kOuter ? 0 : f.block == kMisc ? kBlock : 2 * kBlock);
}

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
  bool one_in(unsigned n) { return below(n) == 0; }
  Spec spec() {
    Spec s;
    s.dmac = static_cast<std::uint16_t>(below(3));
    s.smac = static_cast<std::uint16_t>(below(2));
    s.tagged = one_in(3);
    s.svlan = one_in(3);
    s.second = one_in(2);
    s.tci = static_cast<std::uint16_t>(below(2) << 13 | (below(2) + 5));
    s.second_tci = static_cast<std::uint16_t>(below(2) + 9);
    s.version = one_in(6) ? 0 : one_in(2) ? 6 : 4;
    s.protocol = one_in(2) ? 6 : 17;
    s.tclass = static_cast<std::uint8_t>(below(4));
    s.ttl = static_cast<std::uint8_t>(63 + below(2));
    s.fragment = one_in(5);
    s.src = 0x0a000000 + below(2);
    s.dst = 0x0a000000 + below(3);
    s.dst_high = 0x20010000 + below(2);
    s.sport = static_cast<std::uint16_t>(1000 + below(2));
    s.dport = static_cast<std::uint16_t>(2000 + below(2));
    s.tcp_flags = static_cast<std::uint16_t>(below(2) << 4);
    s.vxlan = one_in(3);
    s.vni = below(2) + 70;
    s.inner_dst = 0xc0a80000 + below(2);
    return s;
  }

 private:
  std::mt19937 random_;
};

// Rules in the test's own shape.
struct Rule {
  std::uint32_t index;
  std::vector<const FieldCase*> fields;
  Spec spec;
  std::uint32_t tir;
};

SteeredFrame steered(const std::vector<std::uint8_t>& frame) {
  PacketRef packet = PacketPool::make();
  packet->kind = PacketKind::kEthernet;
  packet->frame_len = static_cast<std::uint16_t>(frame.size());
  std::copy(frame.begin(), frame.end(), packet->frame());
  return SteeredFrame(std::move(packet));
}

std::vector<std::uint32_t> tirs_of(const FlowVerdict& verdict) {
  std::vector<std::uint32_t> tirs;
  for (const FlowDelivery& d : verdict.deliveries)
    if (d.fate == FlowDelivery::kTir) tirs.push_back(d.tirn);
  return tirs;
}

TEST(Flow, AgreesWithASlowEngine) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    Dice dice(seed);
    FlowSteering steering;
    FlowTable* table = steering.create_table(1, FlowTableType::kNicRx);
    table->log_size = 10;
    ASSERT_TRUE(steering.set_root(FlowTableType::kNicRx, 1));
    std::vector<Rule> rules;
    // Groups are made in an order that is not theirs of flow indices.
    std::vector<std::uint32_t> starts = {0, 32, 64, 96, 128, 160};
    for (std::size_t i = starts.size(); i > 1; --i)
      std::swap(starts[i - 1], starts[dice.below(static_cast<unsigned>(i))]);
    for (const std::uint32_t start : starts) {
      FlowGroup group;
      group.id = start + 1;
      group.first = start;
      group.last = start + 31;
      std::vector<const FieldCase*> fields;
      const unsigned wanted = dice.below(4);
      for (unsigned i = 0; i < wanted; ++i) fields.push_back(&kFields[dice.below(std::size(kFields))]);
      for (const FieldCase* f : fields) {
        group.criteria |= f->block;
        f->put(block_of(group.mask, *f), ~0u);
      }
      ASSERT_TRUE(steering.create_group(*table, group));
      for (unsigned i = 0; i < 8; ++i) {
        const Rule rule{start + dice.below(32), fields, dice.spec(), 100 + start + i};
        FlowEntry entry;
        entry.group = group.id;
        entry.action = kFlowForward;
        entry.destinations = {{FlowDestination::kTir, rule.tir}};
        for (const FieldCase* f : fields) f->put(block_of(entry.value, *f), f->value(rule.spec));
        ASSERT_TRUE(steering.set_entry(*table, rule.index, entry));
        rules.erase(
            std::remove_if(rules.begin(), rules.end(), [&](const Rule& r) { return r.index == rule.index; }),
            rules.end());
        rules.push_back(rule);
      }
    }
    // Some go again.
    for (unsigned i = 0; i < 10; ++i) {
      const unsigned n = dice.below(static_cast<unsigned>(rules.size()));
      ASSERT_TRUE(steering.delete_entry(*table, rules[n].index));
      rules.erase(rules.begin() + n);
    }
    std::sort(rules.begin(), rules.end(), [](const Rule& a, const Rule& b) { return a.index < b.index; });

    unsigned matched = 0;
    for (unsigned i = 0; i < 300; ++i) {
      const Spec spec = dice.spec();
      const std::vector<std::uint8_t> frame = make_frame(spec);
      const auto rule = std::find_if(rules.begin(), rules.end(), [&](const Rule& r) {
        return tags_fit(r.fields, r.spec, spec) &&
               std::all_of(r.fields.begin(), r.fields.end(), [&](const FieldCase* f) {
                 return is_tag(*f) || f->value(r.spec) == f->value(spec);
               });
      });
      const FlowVerdict& verdict = steering.run(0, FlowTableType::kNicRx, steered(frame));
      std::vector<std::uint32_t> expected;
      if (rule != rules.end()) {
        expected.push_back(rule->tir);
        ++matched;
      }
      ASSERT_EQ(tirs_of(verdict), expected) << "seed " << seed << " frame " << i;
    }
    EXPECT_GT(matched, 0u);
  }
}

class FlowChain : public ::testing::Test {
 protected:
  // A table whose only group looks at nothing.
  FlowTable* table(std::uint32_t id, FlowTableType type = FlowTableType::kNicRx) {
    FlowTable* t = steering.create_table(id, type);
    t->log_size = 4;
    FlowGroup group;
    group.id = 1;
    group.last = 7;
    EXPECT_TRUE(steering.create_group(*t, group));
    return t;
  }
  FlowEntry entry(std::uint16_t action, std::vector<FlowDestination> to = {}) {
    FlowEntry e;
    e.group = 1;
    e.action = action;
    e.destinations = std::move(to);
    return e;
  }
  FlowVerdict& match(FlowTableType type = FlowTableType::kNicRx) {
    return steering.run(0, type, steered(frame));
  }
  FlowSteering steering;
  std::vector<std::uint8_t> frame = make_frame(Spec{});
};

TEST_F(FlowChain, WithoutARootNicRxTakesNothingAndNicTxPasses) {
  EXPECT_TRUE(tirs_of(match()).empty());
  EXPECT_FALSE(match().dropped_by_rule);
  ASSERT_EQ(match(FlowTableType::kNicTx).deliveries.size(), 1u);
  EXPECT_EQ(match(FlowTableType::kNicTx).deliveries[0].fate, FlowDelivery::kPass);
}

TEST_F(FlowChain, FollowsTablesMissesTagsAndCounts) {
  FlowTable* first = steering.create_table(1, FlowTableType::kNicRx);
  first->miss_to_table = true;
  first->miss_table = 2;
  FlowTable* second = table(2);
  FlowTable* third = table(3);
  ASSERT_TRUE(steering.set_root(FlowTableType::kNicRx, 1));
  ASSERT_TRUE(steering.create_counter(5));
  FlowEntry jump = entry(kFlowForward | kFlowCount, {{FlowDestination::kTable, 3}});
  jump.counters = {5};
  jump.tag = 77;
  ASSERT_TRUE(steering.set_entry(*second, 3, jump));
  ASSERT_TRUE(steering.set_entry(*third, 0, entry(kFlowForward, {{FlowDestination::kTir, 9}})));
  const FlowVerdict& v = match();
  EXPECT_EQ(tirs_of(v), std::vector<std::uint32_t>{9});
  EXPECT_EQ(v.deliveries[0].frame.flow_tag, 77u);
  EXPECT_EQ(steering.counter(5)->packets, 1u);
  EXPECT_EQ(steering.counter(5)->bytes, frame.size());
}

// As Linux asks for untagged frames: a mask of one kind of tag, with the value 0.
TEST_F(FlowChain, UntaggedIsWithoutTagsOfEitherKind) {
  for (const bool service : {false, true}) {
    const std::uint32_t id = service ? 2 : 1;
    FlowTable* t = steering.create_table(id, FlowTableType::kNicRx);
    ASSERT_TRUE(steering.set_root(FlowTableType::kNicRx, id));
    t->log_size = 4;
    FlowGroup group;
    group.id = 1;
    group.last = 7;
    group.criteria = kOuter;
    (service ? put<Lyr::svlan_tag> : put<Lyr::cvlan_tag>)(group.mask.data(), 1);
    ASSERT_TRUE(steering.create_group(*t, group));
    FlowEntry untagged = entry(kFlowForward, {{FlowDestination::kTir, 5}});
    // What the mask does not name does not count.
    (service ? put<Lyr::cvlan_tag> : put<Lyr::svlan_tag>)(untagged.value.data(), 1);
    ASSERT_TRUE(steering.set_entry(*t, 0, untagged));
    Spec spec;
    const auto found = [&] {
      const std::vector<std::uint8_t> bytes = make_frame(spec);
      return tirs_of(steering.run(0, FlowTableType::kNicRx, steered(bytes))).size();
    };
    EXPECT_EQ(found(), 1u);
    spec.tagged = true;
    EXPECT_EQ(found(), 0u);
    spec.svlan = true;
    EXPECT_EQ(found(), 0u);
  }
}

TEST_F(FlowChain, CopiesToSeveralDestinations) {
  FlowTable* first = table(1);
  FlowTable* second = table(2);
  ASSERT_TRUE(steering.set_root(FlowTableType::kNicRx, 1));
  ASSERT_TRUE(steering.set_entry(
      *first, 0,
      entry(kFlowForward,
            {{FlowDestination::kTir, 4}, {FlowDestination::kTable, 2}, {FlowDestination::kTir, 5}})));
  ASSERT_TRUE(steering.set_entry(*second, 0, entry(kFlowForward, {{FlowDestination::kTir, 6}})));
  EXPECT_EQ(tirs_of(match()), (std::vector<std::uint32_t>{4, 5, 6}));
}

TEST_F(FlowChain, LowestIndexWinsAndDropDrops) {
  FlowTable* t = table(1);
  ASSERT_TRUE(steering.set_root(FlowTableType::kNicRx, 1));
  ASSERT_TRUE(steering.set_entry(*t, 5, entry(kFlowForward, {{FlowDestination::kTir, 5}})));
  ASSERT_TRUE(steering.set_entry(*t, 2, entry(kFlowDrop)));
  EXPECT_TRUE(match().dropped_by_rule);
  EXPECT_TRUE(tirs_of(match()).empty());
  ASSERT_TRUE(steering.delete_entry(*t, 2));
  EXPECT_EQ(tirs_of(match()), std::vector<std::uint32_t>{5});
}

TEST_F(FlowChain, LoopsEnd) {
  FlowTable* a = table(1);
  FlowTable* b = table(2);
  ASSERT_TRUE(steering.set_root(FlowTableType::kNicRx, 1));
  ASSERT_TRUE(steering.set_entry(
      *a, 0, entry(kFlowForward, {{FlowDestination::kTable, 2}, {FlowDestination::kTable, 2}})));
  ASSERT_TRUE(steering.set_entry(
      *b, 0, entry(kFlowForward, {{FlowDestination::kTable, 1}, {FlowDestination::kTir, 3}})));
  EXPECT_FALSE(tirs_of(match()).empty());
  EXPECT_LE(tirs_of(match()).size(), FlowSteering::kMaxHops);
}

// As many groups as one likes, before the same table again and again: the frame is given up, where one of a
// few passes.
TEST_F(FlowChain, WhatAFrameMayCostEnds) {
  FlowTable* t = steering.create_table(1, FlowTableType::kNicTx);
  ASSERT_TRUE(steering.set_root(FlowTableType::kNicTx, 1));
  t->log_size = 20;
  t->miss_to_table = true;
  t->miss_table = 1;
  constexpr unsigned kGroups = 2 * FlowSteering::kMaxWork / FlowSteering::kMaxHops;
  FlowEntry e = entry(kFlowAllow);
  prm::set<Lyr::dmac_47_16>(e.value.data(), 1);
  for (unsigned i = 0; i < kGroups; ++i) {
    FlowGroup g;
    g.id = i + 1;
    g.first = g.last = i;
    g.criteria = kOuter;
    prm::set<Lyr::dmac_47_16>(g.mask.data(), ~0u);
    ASSERT_TRUE(steering.create_group(*t, g));
    e.group = g.id;
    ASSERT_TRUE(steering.set_entry(*t, i, e));
    if (i == 9) {
      EXPECT_FALSE(match(FlowTableType::kNicTx).dropped_by_rule);
    }
  }
  EXPECT_TRUE(match(FlowTableType::kNicTx).dropped_by_rule);
  // And entries of one group that are alike but for the side that they are for.
  FlowTable* fdb = steering.create_table(2, FlowTableType::kFdb);
  ASSERT_TRUE(steering.set_root(FlowTableType::kFdb, 2));
  fdb->log_size = 20;
  fdb->miss_to_table = true;
  fdb->miss_table = 2;
  FlowGroup all;
  all.id = kGroups + 1;
  all.last = kGroups;
  ASSERT_TRUE(steering.create_group(*fdb, all));
  FlowEntry one = entry(kFlowAllow);
  one.group = all.id;
  one.source = FlowEntry::kFromUplink;
  for (unsigned i = 0; i < kGroups; ++i) {
    ASSERT_TRUE(steering.set_entry(*fdb, i, one));
    if (i == 9) {
      EXPECT_FALSE(match(FlowTableType::kFdb).dropped_by_rule);
    }
  }
  EXPECT_TRUE(match(FlowTableType::kFdb).dropped_by_rule);
  one.source = FlowEntry::kFromVport;
  ASSERT_TRUE(steering.set_entry(*fdb, kGroups, one));
  EXPECT_EQ(match(FlowTableType::kFdb).deliveries.size(), 1u) << "it is found before that";
}

// Copies that are changed cost more than those that are not.
TEST_F(FlowChain, ReformatsOfDestinationsEnd) {
  constexpr unsigned kDestinations = 64;
  FlowTable* t = table(1);
  ASSERT_TRUE(steering.set_root(FlowTableType::kNicRx, 1));
  PacketReformat tag;
  tag.type = prm::k::REFORMAT_TYPE_INSERT_HDR;
  tag.anchor = prm::k::REFORMAT_CONTEXT_ANCHOR_MAC_START;
  tag.offset = 12;
  tag.data = {0x81, 0, 0, 1};
  steering.reformats[7] = tag;
  FlowEntry e = entry(kFlowForward);
  for (unsigned i = 0; i < kDestinations; ++i) e.destinations.push_back({FlowDestination::kTable, 1, 7});
  ASSERT_TRUE(steering.set_entry(*t, 0, e));
  const FlowVerdict& v = match();
  EXPECT_TRUE(v.deliveries.empty());
  EXPECT_TRUE(v.dropped_by_rule);
}

// Entries that are alike: the lowest of them that there is, whatever the order they come and go in.
TEST_F(FlowChain, OfEntriesAlikeTheLowestIsTaken) {
  FlowTable* t = table(1);
  ASSERT_TRUE(steering.set_root(FlowTableType::kNicRx, 1));
  std::set<std::uint32_t> there;
  std::mt19937 random(5);
  for (unsigned step = 0; step < 500; ++step) {
    const std::uint32_t index = random() % 8;
    if (there.erase(index) != 0) {
      ASSERT_TRUE(steering.delete_entry(*t, index));
    } else {
      there.insert(index);
      ASSERT_TRUE(steering.set_entry(*t, index, entry(kFlowForward, {{FlowDestination::kTir, index}})));
    }
    const std::vector<std::uint32_t> tirs = tirs_of(match());
    ASSERT_EQ(tirs,
              there.empty() ? std::vector<std::uint32_t>{} : std::vector<std::uint32_t>{*there.begin()});
  }
}

TEST_F(FlowChain, GroupsKeepTheirOrder) {
  FlowTable* t = steering.create_table(1, FlowTableType::kNicRx);
  t->log_size = 6;
  std::set<std::uint32_t> there;
  std::mt19937 random(6);
  for (unsigned step = 0; step < 500; ++step) {
    FlowGroup g;
    g.first = random() % 16 * 4;
    g.last = g.first + 3;
    g.id = g.first + 1;
    if (there.erase(g.first) != 0) {
      ASSERT_TRUE(steering.destroy_group(*t, g.id));
    } else {
      there.insert(g.first);
      ASSERT_TRUE(steering.create_group(*t, g));
      FlowGroup wide = g;
      wide.id = 1000;
      for (const auto& [first, last] : {std::pair{g.first + 1, g.last - 1}, std::pair{g.first, g.first},
                                        std::pair{g.last, g.last}, std::pair{0u, 63u}}) {
        wide.first = first, wide.last = last;
        ASSERT_FALSE(steering.create_group(*t, wide)) << first << " to " << last;
      }
    }
    std::vector<std::uint32_t> order;
    for (const FlowGroup* group : t->order) order.push_back(group->first);
    ASSERT_EQ(order, std::vector<std::uint32_t>(there.begin(), there.end()));
  }
}

TEST_F(FlowChain, RefusesWhatDoesNotFit) {
  FlowTable* t = table(1);
  FlowGroup overlap;
  overlap.id = 2;
  overlap.first = 7;
  overlap.last = 9;
  EXPECT_FALSE(steering.create_group(*t, overlap));
  overlap.first = 8;
  overlap.last = 16;  // beyond the table
  EXPECT_FALSE(steering.create_group(*t, overlap));
  overlap.last = 15;
  EXPECT_TRUE(steering.create_group(*t, overlap));
  FlowEntry e = entry(kFlowDrop);
  EXPECT_FALSE(steering.set_entry(*t, 8, e));  // of the other group
  EXPECT_TRUE(steering.set_entry(*t, 7, e));
  EXPECT_FALSE(steering.destroy_group(*t, 1));  // has an entry
  EXPECT_FALSE(steering.delete_entry(*t, 6));
  EXPECT_TRUE(steering.delete_entry(*t, 7));
  EXPECT_TRUE(steering.destroy_group(*t, 1));
  EXPECT_FALSE(steering.set_root(FlowTableType::kNicTx, 1));
  EXPECT_FALSE(steering.create_table(1, FlowTableType::kNicRx));
}

}  // namespace
}  // namespace hcasim
