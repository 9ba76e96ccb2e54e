// SPDX-License-Identifier: BSD-3-Clause
// The E-Switch: where frames go by the FDB's entries, and what the vports and the other port's switch make of
// them.
#include "eswitch_rig.h"

namespace hcasim {
namespace {

using namespace eswitch_rig;

TEST_F(ESwitchTest, IsOnFromTheFirstTableOnAndNotWithoutACardThatHasOne) {
  EXPECT_FALSE(eswitch.on());
  make_fdb();
  EXPECT_TRUE(eswitch.on());
  eswitch.set_present(false);
  EXPECT_FALSE(eswitch.on());
}

TEST_F(ESwitchTest, FramesGoWhereTheTableSays) {
  make_fdb();
  EXPECT_EQ(send(1, frame(0x12, 0x11)), (To{2}));
  EXPECT_EQ(send(0, frame(0x11, 0x10)), (To{1}));
  EXPECT_EQ(send(kOut, frame(0x12, 0x77)), (To{2}));
  EXPECT_EQ(send(1, frame(0x11, 0x11)), (To{1})) << "to itself";
  EXPECT_EQ(arrived(1), frame(0x11, 0x11));
}

TEST_F(ESwitchTest, UnknownOnesLeaveOrAreTheManagers) {
  make_fdb();
  EXPECT_EQ(send(2, frame(0x77, 0x12)), (To{kOut}));
  EXPECT_EQ(send(0, frame(0x77, 0x10)), (To{kOut}));
  EXPECT_EQ(send(kOut, frame(0x77, 0x78)), (To{0}));
}

TEST_F(ESwitchTest, AGroupsFramesReachAllAndReturnToTheirSenderAlone) {
  make_fdb();
  EXPECT_EQ(send(1, frame(0xff, 0x11)), (To{0, 1, 2, kOut}));  // its own copy is its own affair
  EXPECT_EQ(send(kOut, frame(0xff, 0x77)), (To{0, 1, 2}));
}

TEST_F(ESwitchTest, AClosedVportSendsAndTakesNothing) {
  make_fdb();
  v1.open = false;
  EXPECT_EQ(send(0, frame(0x11, 0x10)), To{});
  EXPECT_EQ(send(1, frame(0x12, 0x11)), To{});
  EXPECT_EQ(v1.rx_down, 1u);
  EXPECT_EQ(v1.tx_down, 1u);
  EXPECT_EQ(v0.rx_down + v0.tx_down + v2.rx_down + v2.tx_down, 0u);
  v1.open = true;
  EXPECT_EQ(send(0, frame(0x11, 0x10)), (To{1}));
}

TEST_F(ESwitchTest, VportsAreToldApartByTheirSource) {
  FlowTable& fdb = table(FlowTableType::kFdb);
  MatchParam mask{}, value{};
  prm::set<Misc::source_port>(mask.data() + kMiscBlock, 0xffff);
  prm::set<Misc::source_port>(value.data() + kMiscBlock, kUplinkVport);
  const std::uint32_t sources = group(fdb, kMisc, mask);
  entry(fdb, sources, value, kFlowForward, {{FlowDestination::kVport, 2}});
  prm::set<Misc::source_port>(value.data() + kMiscBlock, 1);
  entry(fdb, sources, value, kFlowForward, {{FlowDestination::kVport, 0}});
  EXPECT_EQ(send(kOut, frame(0x55, 0x77)), (To{2}));
  EXPECT_EQ(send(1, frame(0x55, 0x11)), (To{0}));
  EXPECT_EQ(send(2, frame(0x55, 0x12)), (To{kOut}));
}

TEST_F(ESwitchTest, TagsAreGivenAndTakenByTheVport) {
  make_fdb();
  v1.vlans.insert_cvlan = VportVlans::kIfThereIsNone;
  v1.vlans.strip_cvlan = true;
  v1.vlans.cvlan = 5;
  EXPECT_EQ(send(1, frame(0x77, 0x11)), (To{kOut}));
  Bytes tagged = frame(0x77, 0x11, 5);
  tagged.resize(68, 0x5a);
  EXPECT_EQ(arrived(kOut), tagged);
  EXPECT_EQ(send(1, frame(0x77, 0x11, 9)), (To{kOut}));
  EXPECT_EQ(arrived(kOut), frame(0x77, 0x11, 9)) << "it has one";
  EXPECT_EQ(send(kOut, frame(0x11, 0x77, 5)), (To{1}));
  Bytes plain = frame(0x11, 0x77);
  plain.resize(60);
  EXPECT_EQ(arrived(1), plain);
}

TEST_F(ESwitchTest, AclsLetPassDropCountAndTag) {
  make_fdb();
  ASSERT_TRUE(flows.create_counter(1));
  // In: frames of the vport's own address get a tag, all others are dropped and counted.
  FlowTable& in = table(FlowTableType::kEswIngressAcl, 1);
  MatchParam mask{}, own{};
  prm::set<Lyr::smac_15_0>(mask.data(), 0xffff);
  prm::set<Lyr::smac_15_0>(own.data(), 0x11);
  entry(in, group(in, kOuter, mask), own, kFlowAllow | kFlowPushVlan);
  entry(in, group(in, 0, {}), {}, kFlowDrop | kFlowCount, {}, 1);
  // Out: the tag is taken off; what has none is dropped.
  FlowTable& out = table(FlowTableType::kEswEgressAcl, 1);
  MatchParam vlan_mask{}, vlan{};
  prm::set<Lyr::cvlan_tag>(vlan_mask.data(), 1);
  prm::set<Lyr::first_vid>(vlan_mask.data(), 0xfff);
  prm::set<Lyr::cvlan_tag>(vlan.data(), 1);
  prm::set<Lyr::first_vid>(vlan.data(), 5);
  entry(out, group(out, kOuter, vlan_mask), vlan, kFlowAllow | kFlowPopVlan);
  entry(out, group(out, 0, {}), {}, kFlowDrop);

  EXPECT_EQ(send(1, frame(0x77, 0x11)), (To{kOut}));
  EXPECT_EQ(ethertype(arrived(kOut), 4), (Bytes{0x81, 0, 0, 5}));
  EXPECT_EQ(send(1, frame(0x77, 0x66)), To{});
  EXPECT_EQ(flows.counter(1)->packets, 1u);
  EXPECT_EQ(send(2, frame(0x77, 0x66)), (To{kOut})) << "of another vport";
  EXPECT_EQ(send(kOut, frame(0x11, 0x77)), To{});
  EXPECT_EQ(send(kOut, frame(0x11, 0x77, 5)), (To{1}));
  EXPECT_EQ(ethertype(arrived(1), 2), (Bytes{0x88, 0xb5}));
}

TEST_F(ESwitchTest, WhatTheManagerGetsSaysWhereItCameFrom) {
  make_offloads();
  EXPECT_EQ(send(1, frame(0x12, 0x11)), (To{0}));
  EXPECT_EQ(register_at(0), 0u) << "registers end with the FDB, unless the vport is given them";
  EXPECT_EQ(copies[0].packet->source_vport, 1u);
  v0.reg_c_ids = 1;
  EXPECT_EQ(send(1, frame(0x12, 0x11)), (To{0}));
  EXPECT_EQ(register_at(0), tag_of(1) << 16);
  EXPECT_EQ(arrived(0), frame(0x12, 0x11));
  EXPECT_EQ(send(kOut, frame(0x12, 0x77)), (To{0}));
  EXPECT_EQ(register_at(0), tag_of(kUplinkVport) << 16);
  EXPECT_EQ(copies[0].packet->source_vport, kUplinkVport);
}

TEST_F(ESwitchTest, ARepresentorsQueueSendsToItsFunction) {
  make_offloads();
  EXPECT_EQ(send(0, frame(0x12, 0x10), kSqn), (To{2}));
  EXPECT_EQ(copies[0].packet->reg_c[0], 0u);
  EXPECT_EQ(send(1, frame(0x12, 0x11), kSqn), (To{0})) << "a queue of another function has that number";
  EXPECT_EQ(send(kOut, frame(0x12, 0x77), kSqn), (To{0}));
  EXPECT_EQ(send(0, frame(0x12, 0x10), kSqn + 1), To{}) << "a queue of the manager that represents nobody";
}

TEST_F(ESwitchTest, EntriesForOneSideOfTheSwitch) {
  FlowTable& fdb = table(FlowTableType::kFdb);
  const std::uint32_t all = group(fdb, 0, {});
  FlowEntry e;
  e.group = all;
  e.action = kFlowForward;
  e.source = FlowEntry::kFromUplink;
  e.destinations = {{FlowDestination::kVport, 1}};
  ASSERT_TRUE(flows.set_entry(fdb, 16 * all, e));
  e.source = FlowEntry::kFromVport;
  e.destinations = {{FlowDestination::kVport, 2}};
  ASSERT_TRUE(flows.set_entry(fdb, 16 * all + 1, e));
  EXPECT_EQ(send(kOut, frame(0x55, 0x77)), (To{1}));
  EXPECT_EQ(send(0, frame(0x55, 0x10)), (To{2}));
}

TEST_F(ESwitchTest, ADestinationMayHaveAReformatOfItsOwn) {
  FlowTable& fdb = table(FlowTableType::kFdb);
  PacketReformat tunnel;
  tunnel.type = prm::k::REFORMAT_TYPE_L2_TO_NVGRE;
  tunnel.data = {2, 0, 0, 0, 0, 0x77, 2, 0, 0, 0, 0, 0x10, 8, 0};
  tunnel.data.insert(tunnel.data.end(), {0x45, 0, 0, 0, 0, 0, 0, 0, 64, 47, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2});
  tunnel.data.insert(tunnel.data.end(), {0x20, 0, 0x65, 0x58, 0, 0, 1, 0});
  flows.reformats[7] = tunnel;
  const std::size_t head = tunnel.data.size();
  entry(fdb, group(fdb, 0, {}), {}, kFlowForward,
        {{FlowDestination::kVport, 2}, {FlowDestination::kUplink, 0, 7}, {FlowDestination::kVport, 0, 8}});
  EXPECT_EQ(send(1, frame(0x12, 0x11)), (To{2, kOut})) << "there is no reformat 8";
  EXPECT_EQ(arrived(2), frame(0x12, 0x11));
  const Bytes out = arrived(kOut);
  ASSERT_EQ(out.size(), head + 64);
  EXPECT_EQ(Bytes(out.begin() + static_cast<long>(head), out.end()), frame(0x12, 0x11));
  EXPECT_EQ(out[17], 20 + 8 + 64) << "the length of the outer IP packet";
}

// Ethernet has no shorter ones; what stays inside of the card is as long as the rule leaves it.
TEST_F(ESwitchTest, ShortFramesLeavePadded) {
  FlowTable& fdb = table(FlowTableType::kFdb);
  entry(fdb, group(fdb, 0, {}), {}, kFlowForward | kFlowPopVlan,
        {{FlowDestination::kVport, 2}, {FlowDestination::kVport, kUplinkVport}});
  Bytes tagged = frame(0x12, 0x11, 5);
  tagged.resize(60);
  Bytes plain = tagged;
  plain.erase(plain.begin() + 12, plain.begin() + 16);
  EXPECT_EQ(send(1, tagged), (To{2, kOut}));
  EXPECT_EQ(arrived(2), plain);
  plain.resize(60);
  EXPECT_EQ(arrived(kOut), plain);
}

TEST_F(ESwitchTest, WhatNamesNoFunctionGoesNowhere) {
  FlowTable& fdb = table(FlowTableType::kFdb);
  entry(fdb, group(fdb, 0, {}), {}, kFlowForward,
        {{FlowDestination::kVport, 3}, {FlowDestination::kVport, 0xfffe}});
  EXPECT_EQ(send(1, frame(0x12, 0x11)), To{});
}

// What the records say of each frame's way: kind of record and, of ends, how and where.
TEST_F(ESwitchTest, TheWayOfAFrameIsTracedOnRequest) {
  make_fdb();
  tracer.open_memory();
  send(1, frame(0xff, 0x11));
  EXPECT_TRUE(tracer.drain().empty()) << "nobody has asked";
  std::string err;
  ASSERT_TRUE(tracer.set_filter("path", &err)) << err;
  send(1, frame(0xff, 0x11));
  std::vector<std::vector<std::uint8_t>> blobs;
  const std::vector<traces::Record> records = tracer.drain(&blobs);
  ASSERT_EQ(records.size(), 6u);
  EXPECT_EQ(records[0].p(), traces::Point::kFrameEnters);
  EXPECT_EQ(records[0].a0, std::uint64_t{1} << 8 | static_cast<unsigned>(FlowTableType::kFdb));
  EXPECT_EQ(blobs[0], frame(0xff, 0x11));
  EXPECT_EQ(records[1].p(), traces::Point::kFrameTable);
  EXPECT_EQ(records[1].a0 >> 32, records[0].index);
  EXPECT_EQ(records[1].a1 & 0xffff, kFlowForward);
  EXPECT_EQ(records[1].a1 >> 40, 16u + 3u) << "the fourth entry of the first group";
  std::vector<std::pair<traces::FrameEnd, std::uint32_t>> ends;
  for (std::size_t i = 2; i < records.size(); ++i) {
    EXPECT_EQ(records[i].p(), traces::Point::kFrameLeaves);
    EXPECT_EQ(records[i].a0 >> 32, records[1].index) << "copies part at the table";
    EXPECT_EQ(records[i].obj, records[0].index) << "all are steps of one path";
    EXPECT_EQ(records[i].a1 >> 32, 64u);
    ends.emplace_back(static_cast<traces::FrameEnd>(records[i].a1 & 0xff), records[i].a0 & 0xffffffff);
  }
  using E = traces::FrameEnd;
  EXPECT_EQ(ends,
            (decltype(ends){{E::kUplink, kUplinkVport}, {E::kVport, 0}, {E::kBack, 1}, {E::kVport, 2}}));
  // What a function gets goes on under the same number.
  for (const EmbeddedSwitch::Copy& c : copies) {
    if (c.to == 2) {
      EXPECT_EQ(c.packet->trail.path, records[0].index);
    }
  }
}

TEST_F(ESwitchTest, TheEndOfAFrameThatIsLostIsTraced) {
  make_fdb();
  const auto acl = [&](std::uint16_t action) {
    FlowTable& t = table(FlowTableType::kEswIngressAcl, 2);
    entry(t, group(t, 0, {}), {}, action);
  };
  tracer.open_memory();
  std::string err;
  ASSERT_TRUE(tracer.set_filter("kind=path", &err)) << err;
  const auto end = [&] { return static_cast<traces::FrameEnd>(tracer.drain().back().a1 & 0xff); };
  v1.open = false;
  send(0, frame(0x11, 0x10));
  EXPECT_EQ(end(), traces::FrameEnd::kVportDown);
  send(kOut, frame(0x77, 0x78));
  EXPECT_EQ(end(), traces::FrameEnd::kVport);
  acl(kFlowDrop);
  send(2, frame(0x10, 0x12));
  EXPECT_EQ(end(), traces::FrameEnd::kRule);
}

// The two ports of a card have a switch each.
TEST_F(ESwitchTest, AnEntryMayLeadToTheSwitchAtTheOtherPort) {
  Vport w0{0}, w1{1}, w2{2};
  Vports others{PerFunction<Vport>(std::vector<Vport*>{&w0, &w1, &w2})};
  FlowSteering other_flows;
  ESwitch other{{others, other_flows}};
  other.set_present(true);
  FlowTable& fdb = table(FlowTableType::kFdb);
  const FlowDestination there{FlowDestination::kVport, 2, 0, true};
  const FlowDestination out{FlowDestination::kUplink, 0, 0, true};
  entry(fdb, group(fdb, 0, {}), {}, kFlowForward, {there, out, {FlowDestination::kVport, 2}});
  EXPECT_EQ(send(1, frame(0x55, 0x11)), (To{2})) << "there is none";
  ESwitch::join(eswitch, other);
  EXPECT_EQ(send(1, frame(0x55, 0x11)), (To{2, 2, kOut}));
  ASSERT_EQ(copies.size(), 3u);
  EXPECT_TRUE(copies[0].other);
  EXPECT_TRUE(copies[1].other);
  EXPECT_FALSE(copies[2].other);
  EXPECT_EQ(copies[0].packet->source_vport, 1u);
  EXPECT_EQ(w2.rx_down, 0u);
  // What is closed, or stopped by an ACL, is so at that switch.
  w2.open = false;
  EXPECT_EQ(send(1, frame(0x55, 0x11)), (To{2, kOut}));
  EXPECT_EQ(w2.rx_down, 1u);
  w2.open = true;
  FlowTable* acl = other_flows.create_table(1, FlowTableType::kEswEgressAcl);
  acl->vport = 2;
  acl->log_size = 1;
  ASSERT_TRUE(other_flows.set_root(FlowTableType::kEswEgressAcl, 1, 2));
  FlowGroup all;
  all.id = 1;
  all.last = 1;
  ASSERT_TRUE(other_flows.create_group(*acl, all));
  FlowEntry drop;
  drop.group = 1;
  drop.action = kFlowDrop;
  ASSERT_TRUE(other_flows.set_entry(*acl, 0, drop));
  EXPECT_EQ(send(1, frame(0x55, 0x11)), (To{2, kOut}));
  EXPECT_FALSE(copies.back().other);
}

// A card's two switches, a frame's way each: `eswitch` is the second port's, whose frames the first one's FDB
// decides about.
class SharedFdbTest : public ESwitchTest {
 protected:
  SharedFdbTest() {
    ESwitch::join(first.eswitch, eswitch);
    first.eswitch.set_owner(1);
    eswitch.set_owner(2);
    FlowTable* t = first.flows.create_table(kRoot, FlowTableType::kFdb);
    t->log_size = 8;
    first.flows.set_root(FlowTableType::kFdb, kRoot);
  }
  // What all frames meet there.
  void rule(const std::vector<FlowDestination>& to) {
    FlowTable& t = *first.flows.find_table(kRoot);
    FlowGroup all;
    all.id = 1;
    all.last = 1;
    EXPECT_TRUE(first.flows.create_group(t, all));
    FlowEntry e;
    e.group = 1;
    e.action = kFlowForward;
    e.destinations = to;
    EXPECT_TRUE(first.flows.set_entry(t, 0, e));
  }
  // What comes to that vport of a switch goes on to the one given.
  static void bounce(FlowSteering& at, std::uint16_t vport, const FlowDestination& to) {
    FlowTable* t = at.create_table(100u + vport, FlowTableType::kEswEgressAcl);
    ASSERT_NE(t, nullptr);
    t->vport = vport;
    t->log_size = 1;
    EXPECT_TRUE(at.set_root(FlowTableType::kEswEgressAcl, t->id, vport));
    FlowGroup foreign;
    foreign.id = 1;
    foreign.criteria = kMisc;
    prm::set<Misc::source_eswitch_owner_vhca_id>(foreign.mask.data() + kMiscBlock, 0xffff);
    EXPECT_TRUE(at.create_group(*t, foreign));
    FlowEntry e;
    e.group = 1;
    prm::set<Misc::source_eswitch_owner_vhca_id>(e.value.data() + kMiscBlock, 2);
    e.action = kFlowForward;
    e.destinations = {to};
    EXPECT_TRUE(at.set_entry(*t, 0, e));
  }
  static constexpr std::uint32_t kRoot = 9;
  Switch first{4};
};

TEST_F(SharedFdbTest, TheOtherSwitchsTableDecides) {
  EXPECT_FALSE(eswitch.share(kRoot + 1)) << "there is no such table";
  first.flows.create_table(10, FlowTableType::kNicRx);
  EXPECT_FALSE(eswitch.share(10)) << "that is no FDB";
  EXPECT_FALSE(eswitch.on());
  ASSERT_TRUE(eswitch.share(kRoot));
  EXPECT_TRUE(eswitch.on());
  // Vports are the FDB's, unless it says otherwise; registers come along from the frame's own ACL.
  rule({{FlowDestination::kVport, 2}, {FlowDestination::kVport, 2, 0, true}, {FlowDestination::kUplink}});
  EXPECT_EQ(send(1, frame(0x55, 0x11)), (To{2, 2, kOut}));
  EXPECT_TRUE(copies[0].other);
  EXPECT_FALSE(copies[1].other);
  EXPECT_TRUE(copies[2].other);
  EXPECT_EQ(copies[0].packet->source_vport, 1u);
  // Its uplinks are one, to which nothing goes back.
  EXPECT_EQ(send(kOut, frame(0x55, 0x77)), (To{2, 2}));
  eswitch.unshare();
  EXPECT_FALSE(eswitch.on());
}

TEST_F(SharedFdbTest, ItLastsAsLongAsTheTable) {
  ASSERT_TRUE(eswitch.share(kRoot));
  EXPECT_EQ(eswitch.shared_root(), kRoot);
  first.eswitch.forget(kRoot + 1);
  EXPECT_TRUE(eswitch.on());
  first.eswitch.forget(kRoot);
  EXPECT_FALSE(eswitch.on());
  ASSERT_TRUE(eswitch.share(kRoot));
  first.eswitch.clear();
  EXPECT_FALSE(eswitch.on());
  ASSERT_TRUE(eswitch.share(kRoot));
  eswitch.clear();
  EXPECT_FALSE(eswitch.on());
}

TEST_F(SharedFdbTest, ItIsState) {
  const std::uint64_t before = digest_state(eswitch);
  ASSERT_TRUE(eswitch.share(kRoot));
  EXPECT_NE(digest_state(eswitch), before);
  reset_state(eswitch);
  EXPECT_EQ(digest_state(eswitch), before);
}

TEST_F(SharedFdbTest, AMissIsTheFdbsSwitchs) {
  ASSERT_TRUE(eswitch.share(kRoot));
  EXPECT_EQ(send(1, frame(0x55, 0x11)), (To{kOut}));
  EXPECT_EQ(send(kOut, frame(0x55, 0x77)), (To{0}));
  EXPECT_TRUE(copies[0].other);
}

// What comes in at the second port goes to the first manager by the FDB's rule, and from there back.
TEST_F(SharedFdbTest, AnEgressAclLeadsToAnotherVport) {
  ASSERT_TRUE(eswitch.share(kRoot));
  rule({{FlowDestination::kVport, 0}});
  bounce(first.flows, 0, {FlowDestination::kVport, 0, 0, true});
  EXPECT_EQ(send(kOut, frame(0x55, 0x77)), (To{0}));
  EXPECT_FALSE(copies[0].other);
  EXPECT_EQ(copies[0].packet->source_vport, kUplinkVport);
  // The first port's own are not bounced.
  PacketRef p = packet(frame(0x55, 0x77), 0);
  copies.clear();
  first.eswitch.from_uplink(0, p, copies);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_FALSE(copies[0].other);
  // That vport's state and ACL count, but an ACL does not lead on what another one has led to it.
  v0.open = false;
  EXPECT_EQ(send(kOut, frame(0x55, 0x77)), To{});
  EXPECT_EQ(v0.rx_down, 1u);
  v0.open = true;
  bounce(flows, 0, {FlowDestination::kVport, 0, 0, true});
  EXPECT_EQ(send(kOut, frame(0x55, 0x77)), To{});
}

TEST_F(SharedFdbTest, TheWayIsTracedOverBothSwitches) {
  ASSERT_TRUE(eswitch.share(kRoot));
  rule({{FlowDestination::kVport, 2, 0, true}});
  for (traces::Tracer* t : {&tracer, &first.tracer}) {
    t->open_memory();
    std::string err;
    ASSERT_TRUE(t->set_filter("path", &err)) << err;
  }
  send(1, frame(0x55, 0x11));
  const auto second = tracer.drain(), in_first = first.tracer.drain();
  ASSERT_EQ(second.size(), 2u);
  ASSERT_EQ(in_first.size(), 1u);
  EXPECT_EQ(second[0].p(), traces::Point::kFrameEnters);
  EXPECT_EQ(in_first[0].p(), traces::Point::kFrameTable);
  EXPECT_EQ(in_first[0].a0 >> 32, second[0].index) << "a step of the same path";
  EXPECT_EQ(in_first[0].obj, second[0].obj);
  EXPECT_EQ(second[1].p(), traces::Point::kFrameLeaves);
  EXPECT_EQ(second[1].a0 >> 32, in_first[0].index);
}

TEST_F(ESwitchTest, FramesAreKnownByTheManagerOfTheirSwitch) {
  eswitch.set_owner(5);
  FlowTable& fdb = table(FlowTableType::kFdb);
  MatchParam mask{}, value{};
  prm::set<Misc::source_eswitch_owner_vhca_id>(mask.data() + kMiscBlock, 0xffff);
  prm::set<Misc::source_eswitch_owner_vhca_id>(value.data() + kMiscBlock, 4);
  const std::uint32_t owners = group(fdb, kMisc, mask);
  entry(fdb, owners, value, kFlowForward, {{FlowDestination::kVport, 0}});
  prm::set<Misc::source_eswitch_owner_vhca_id>(value.data() + kMiscBlock, 5);
  entry(fdb, owners, value, kFlowForward, {{FlowDestination::kVport, 2}});
  EXPECT_EQ(send(1, frame(0x55, 0x11)), (To{2}));
  EXPECT_EQ(send(kOut, frame(0x55, 0x77)), (To{2}));
}

}  // namespace
}  // namespace hcasim
