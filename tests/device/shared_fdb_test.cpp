// SPDX-License-Identifier: BSD-3-Clause
// One FDB for both ports of a card: the second port's switch has its root in the first one's (VF LAG with a
// shared FDB). Each port has a physical and a virtual function, and a wire whose far end is the test. (A
// process each: HCAs are made before time starts.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "eth_fixture.h"
#include "traces/path.h"
#include "traces/reader.h"

namespace hcasim::bare {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

enum : unsigned { kEgressAclTable = 2, kFdbTable = 4 };
enum : std::uint8_t { kOuter = 1, kMisc = 2 };
constexpr std::uint32_t kUplink = 0xffff;
constexpr int kFirst = 0,
              kSecond = 2;  // vhca_id of the physical functions, each with a virtual one behind it
constexpr std::uint64_t kAnywhere = 0x0200000000aa, kToFirst = 0x020000000011, kToSecond = 0x020000000022;

struct TraceFile {
  TraceFile() { close(mkstemp(path)); }
  ~TraceFile() { unlink(path); }
  char path[40] = "/tmp/hcasim-shared-fdb-XXXXXX";
};

class SharedFdb : public ::testing::Test {
 protected:
  SharedFdb() {
    const std::string common =
        std::string(",link=eth,vfs=1,card=near,wire=host,trace_filter=path,trace=") + trace.path;
    machine = std::make_unique<Machine>(std::size_t{256} << 20);
    machine->add_hca("name=near0" + common);
    machine->add_hca("name=near1" + common);
    for (std::size_t port = 0; port < 2; ++port) machine->add_virtual(machine->function(port), 1);
    machine->start();
    for (std::size_t port = 0; port < 2; ++port) {
      pf[port] = std::make_unique<Device>(machine->function(port));
      pf[port]->probe();
      Mailbox in(prm::op::ENABLE_HCA, prm::enable_hca_in::bytes);
      pf[port]->exec(in.set<prm::enable_hca_in::function_id>(1)).must();
      vf[port] = std::make_unique<Device>(machine->function(2 + port));
      vf[port]->probe();
      of_pf[port] = std::make_unique<EthLink>(*pf[port]);
      of_vf[port] = std::make_unique<EthLink>(*vf[port]);
      for (EthLink* link : {of_pf[port].get(), of_vf[port].get()})
        for (unsigned i = 0; i < 32; ++i) link->rq.post({link->rx_sge(2048 * i, 2048)});
    }
  }

  ~SharedFdb() override { close_all(); }
  void close_all() {
    for (std::size_t port = 0; port < 2; ++port) {
      if (vf[port]) close_virtual(port);
      of_pf[port].reset();
      pf[port].reset();
    }
  }
  void close_virtual(std::size_t port) {
    of_vf[port].reset();
    vf[port].reset();
    Mailbox in(prm::op::DISABLE_HCA, prm::disable_hca_in::bytes);
    pf[port]->exec(in.set<prm::disable_hca_in::function_id>(1)).must();
  }

  static Frame frame(std::uint64_t to) {
    Frame f = plain_frame(100);
    for (unsigned i = 0; i < 6; ++i) f[i] = static_cast<std::uint8_t>(to >> 8 * (5 - i));
    return f;
  }
  // Where frames arrive: functions, wires.
  std::vector<std::string> arrive(const std::function<void()>& send) {
    for (std::size_t port = 0; port < 2; ++port) machine->function(port).take_frames();
    send();
    machine->advance(200'000);
    std::vector<std::string> at;
    for (std::size_t port = 0; port < 2; ++port) {
      const std::string number = std::to_string(port);
      while (of_pf[port]->rcq.poll()) at.push_back("pf" + number);
      while (of_vf[port] && of_vf[port]->rcq.poll()) at.push_back("vf" + number);
      for (std::size_t i = machine->function(port).take_frames().size(); i != 0; --i)
        at.push_back("wire" + number);
    }
    return at;
  }
  std::vector<std::string> from_vf(std::size_t port, std::uint64_t to) {
    return arrive([&] { of_vf[port]->send(frame(to)); });
  }
  std::vector<std::string> from_wire(std::size_t port, std::uint64_t to) {
    return arrive([&] { EXPECT_TRUE(machine->function(port).wire_receive(frame(to))); });
  }

  static MatchParam match_mac(std::uint64_t mac) {
    using Lyr = prm::fte_match_set_lyr_2_4;
    MatchParam m{};
    prm::set<Lyr::dmac_47_16>(m.data(), mac >> 16);
    prm::set<Lyr::dmac_15_0>(m.data(), mac & 0xffff);
    return m;
  }
  EthObject rule(Device& d, const EthObject& table, const EthObject& group, std::uint32_t index,
                 const std::vector<FlowDest>& to, const MatchParam& value = {}, unsigned type = kFdbTable) {
    FlowRule r;
    r.table = table.number();
    r.group = group.number();
    r.index = index;
    r.type = type;
    r.value = value;
    r.to = to;
    return make_flow(d, r);
  }
  // An FDB of that port's: two addresses, and what no entry knows.
  struct Fdb {
    EthObject table, macs, all;
    std::vector<EthObject> rules;
  };
  std::unique_ptr<Fdb> make_fdb(std::size_t port, const FlowDest& to_first, const FlowDest& to_second,
                                const FlowDest& otherwise) {
    Device& d = *pf[port];
    EthObject table = make_flow_table(d, 4, 0, kFdbTable);
    EthObject macs = make_flow_group(d, table.number(), 0, 7, kOuter, match_mac(0xffffffffffff), kFdbTable);
    EthObject all = make_flow_group(d, table.number(), 15, 15, 0, {}, kFdbTable);
    auto fdb = std::make_unique<Fdb>(Fdb{std::move(table), std::move(macs), std::move(all), {}});
    fdb->rules.push_back(rule(d, fdb->table, fdb->macs, 0, {to_first}, match_mac(kToFirst)));
    fdb->rules.push_back(rule(d, fdb->table, fdb->macs, 1, {to_second}, match_mac(kToSecond)));
    fdb->rules.push_back(rule(d, fdb->table, fdb->all, 15, {otherwise}));
    set_flow_root(d, fdb->table.number(), kFdbTable).must();
    return fdb;
  }
  // The first port's, which knows the virtual functions of both.
  std::unique_ptr<Fdb> make_first() {
    return make_fdb(0, {FlowDest::kVport, 1}, {FlowDest::kVport, 1, kSecond}, {FlowDest::kVport, kUplink});
  }

  CommandResult share(Device& d, std::uint32_t table, int owner, unsigned type = kFdbTable,
                      std::uint16_t op_mod = 0) {
    using In = prm::set_flow_table_root_in;
    Mailbox in(prm::op::SET_FLOW_TABLE_ROOT, In::bytes, op_mod);
    in.set<In::table_eswitch_owner_vhca_id_valid>(1).set<In::table_eswitch_owner_vhca_id>(owner);
    return d.exec(in.set<In::table_id>(table).set<In::table_type>(type));
  }
  CommandResult create_lag(bool native, std::uint32_t first = 1, std::uint32_t second = 2) {
    using In = prm::create_lag_in;
    Mailbox in(prm::op::CREATE_LAG, In::bytes);
    in.set<In::ctx::tx_remap_affinity_1>(first).set<In::ctx::tx_remap_affinity_2>(second);
    return pf[0]->exec(in.set<In::ctx::fdb_selection_mode>(native));
  }
  CommandResult destroy_lag() {
    Mailbox in(prm::op::DESTROY_LAG, prm::destroy_lag_in::bytes);
    return pf[0]->exec(in);
  }
  void remap(std::uint32_t first, std::uint32_t second) {
    using In = prm::modify_lag_in;
    Mailbox in(prm::op::MODIFY_LAG, In::bytes);
    in.set<In::ctx::tx_remap_affinity_1>(first).set<In::ctx::tx_remap_affinity_2>(second);
    pf[0]->exec(in.set<In::field_select>(1)).must();
  }
  std::uint64_t native(std::size_t port) {
    Mailbox in(prm::op::QUERY_LAG, prm::query_lag_in::bytes);
    return pf[port]
        ->exec(in, prm::query_lag_out::bytes)
        .must()
        .get<prm::query_lag_out::ctx::fdb_selection_mode>();
  }

  TraceFile trace;
  std::unique_ptr<Machine> machine;
  std::array<std::unique_ptr<Device>, 2> pf, vf;
  std::array<std::unique_ptr<EthLink>, 2> of_pf, of_vf;
};

TEST_F(SharedFdb, IsOfferedToTheManagersOfBothSwitches) {
  using g = prm::cmd_hca_cap;
  constexpr unsigned at = prm::query_hca_cap_out::capability::bit_off;
  for (std::size_t port = 0; port < 2; ++port) {
    EXPECT_EQ(pf[port]->cap<g::lag_native_fdb_selection>(), 1u);
    EXPECT_EQ(vf[port]->cap<g::lag_native_fdb_selection>(), 0u);
    Mailbox in(prm::op::QUERY_HCA_CAP, prm::query_hca_cap_in::bytes, 9 << 1);
    const CommandResult r = pf[port]->exec(in, prm::query_hca_cap_out::bytes).must();
    EXPECT_EQ(r.get<prm::e_switch_cap_at<at>::root_ft_on_other_esw>(), 1u);
    EXPECT_EQ(r.get<prm::e_switch_cap_at<at>::esw_shared_ingress_acl>(), 1u);
  }
}

TEST_F(SharedFdb, ARootIsATableOfThePeersFdb) {
  breaks_any_rule();
  const auto fdb = make_first();
  const std::uint32_t id = fdb->table.number();
  EXPECT_CMD_STATUS(share(*pf[1], id, 77), CmdStatus::kBadParam);          // nobody
  EXPECT_CMD_STATUS(share(*pf[1], id, kFirst + 1), CmdStatus::kBadParam);  // a virtual function
  EXPECT_CMD_STATUS(share(*pf[1], id + 1, kFirst), CmdStatus::kBadRes);
  EXPECT_CMD_STATUS(share(*pf[1], of_pf[0]->table.number(), kFirst), CmdStatus::kBadRes);  // no FDB
  EXPECT_CMD_STATUS(share(*pf[1], id, kFirst, kNicRxTable), CmdStatus::kBadParam);
  EXPECT_CMD_STATUS(share(*pf[1], id, kFirst, kEgressAclTable), CmdStatus::kBadParam);
  EXPECT_CMD_STATUS(share(*pf[1], id, kFirst, kFdbTable, 1), CmdStatus::kBadParam);
  EXPECT_FALSE(share(*vf[1], id, kFirst).ok());
  EXPECT_CMD_OK(share(*pf[0], id, kFirst));  // which is its own
  EXPECT_CMD_OK(share(*pf[1], id, kFirst));
}

TEST_F(SharedFdb, TheNativeSelectionIsALagsUntilItEnds) {
  breaks_any_rule();
  EXPECT_CMD_OK(create_lag(true));
  EXPECT_EQ(native(0), 1u);
  EXPECT_EQ(native(1), 1u);
  EXPECT_CMD_OK(destroy_lag());
  EXPECT_EQ(native(1), 0u);
  EXPECT_CMD_OK(create_lag(false));
  EXPECT_EQ(native(0), 0u);
}

TEST_F(SharedFdb, TheFirstPortsFdbDecidesForBoth) {
  const auto fdb = make_first();
  // The second switch has no FDB of its own, until it has this one.
  share(*pf[1], fdb->table.number(), kFirst).must();
  EXPECT_THAT(from_vf(0, kToSecond), ElementsAre("vf1"));
  EXPECT_THAT(from_vf(1, kToFirst), ElementsAre("vf0"));
  EXPECT_THAT(from_vf(1, kToSecond), ElementsAre("vf1"));
  EXPECT_THAT(from_wire(1, kToFirst), ElementsAre("vf0"));
  EXPECT_THAT(from_wire(1, kToSecond), ElementsAre("vf1"));
  EXPECT_THAT(from_wire(0, kToSecond), ElementsAre("vf1"));
  // The uplink is the first port's, as long as there is no LAG.
  EXPECT_THAT(from_vf(1, kAnywhere), ElementsAre("wire0"));
  EXPECT_THAT(from_wire(1, kAnywhere), IsEmpty()) << "nothing that has come in by one goes out by the other";
  create_lag(true).must();
  EXPECT_THAT(from_vf(0, kAnywhere), ElementsAre("wire0"));
  EXPECT_THAT(from_vf(1, kAnywhere), ElementsAre("wire1"));
  remap(2, 2);
  EXPECT_THAT(from_vf(0, kAnywhere), ElementsAre("wire1"));
  EXPECT_THAT(from_vf(1, kAnywhere), ElementsAre("wire1"));
  remap(1, 1);
  EXPECT_THAT(from_vf(1, kAnywhere), ElementsAre("wire0"));
}

// What has come in at the port may leave by it again from a termination table (mlx5e's hairpin), and from no
// other.
TEST_F(SharedFdb, TerminationTablesLeadBackToTheUplink) {
  for (const bool terminates : {false, true}) {
    Device& d = *pf[0];
    const EthObject last = make_flow_table(d, 4, 1, kFdbTable, false, terminates);
    const EthObject any = make_flow_group(d, last.number(), 0, 0, 0, {}, kFdbTable);
    const EthObject back = rule(d, last, any, 0, {{FlowDest::kVport, kUplink}});
    const auto fdb =
        make_fdb(0, {FlowDest::kTable, last.number()}, {FlowDest::kVport, 1}, {FlowDest::kVport, kUplink});
    if (terminates)
      EXPECT_THAT(from_wire(0, kToFirst), ElementsAre("wire0"));
    else
      EXPECT_THAT(from_wire(0, kToFirst), IsEmpty());
    EXPECT_THAT(from_vf(0, kToFirst), ElementsAre("wire0"));
    EXPECT_THAT(from_wire(0, kToSecond), ElementsAre("vf0"));
    EXPECT_THAT(from_wire(0, kAnywhere), IsEmpty());
  }
}

TEST_F(SharedFdb, WhatTurnsAroundLeavesByThePortThatServesTheBond) {
  Device& d = *pf[0];
  const EthObject last = make_flow_table(d, 4, 1, kFdbTable, false, true);
  const EthObject any = make_flow_group(d, last.number(), 0, 0, 0, {}, kFdbTable);
  const EthObject back = rule(d, last, any, 0, {{FlowDest::kVport, kUplink}});
  const auto fdb =
      make_fdb(0, {FlowDest::kTable, last.number()}, {FlowDest::kVport, 1}, {FlowDest::kVport, kUplink});
  share(*pf[1], fdb->table.number(), kFirst).must();
  create_lag(true).must();
  remap(2, 2);
  EXPECT_THAT(from_wire(0, kToFirst), ElementsAre("wire1"));
  EXPECT_THAT(from_wire(1, kToFirst), ElementsAre("wire1"));
  remap(1, 1);
  EXPECT_THAT(from_wire(0, kToFirst), ElementsAre("wire0"));
  EXPECT_THAT(from_wire(1, kToFirst), ElementsAre("wire0"));
}

// Nothing holds back who sends them: of frames that come in once and go out twice, what finds no room is
// lost.
TEST_F(SharedFdb, WhatTurnsAroundHasABuffer) {
  Device& d = *pf[0];
  const EthObject last = make_flow_table(d, 4, 1, kFdbTable, false, true);
  const EthObject any = make_flow_group(d, last.number(), 0, 0, 0, {}, kFdbTable);
  const EthObject twice = rule(d, last, any, 0, {{FlowDest::kVport, kUplink}, {FlowDest::kVport, kUplink}});
  const auto fdb =
      make_fdb(0, {FlowDest::kTable, last.number()}, {FlowDest::kVport, 1}, {FlowDest::kVport, kUplink});
  Function& port = machine->function(0);
  Frame large = frame(kToFirst);
  large.resize(1500);
  port.take_frames();
  const std::uint64_t dropped = port.counter("rx_dropped");
  std::size_t in = 0, out = 0;
  for (int burst = 0; burst < 40; ++burst) {
    for (int i = 0; i < 50; ++i) in += port.wire_receive(large) ? 1 : 0;
    machine->advance(1000);
    out += port.take_frames().size();
  }
  machine->advance(1'000'000);
  out += port.take_frames().size();
  EXPECT_GT(in, 1000u);
  EXPECT_GT(out, 200u);
  EXPECT_LT(out, 2 * in) << "more than the cable takes";
  EXPECT_EQ(port.counter("rx_dropped") - dropped, 2 * in - out);
}

// Two on the cable are two, each as long as it is there.
TEST_F(SharedFdb, CopiesForTheCableAreCountedEach) {
  const auto fdb = make_fdb(0, {FlowDest::kVport, 1}, {FlowDest::kVport, 1}, {FlowDest::kVport, kUplink});
  const EthObject twice =
      rule(*pf[0], fdb->table, fdb->macs, 2, {{FlowDest::kVport, kUplink}, {FlowDest::kVport, kUplink}},
           match_mac(kAnywhere));
  Function& port = machine->function(0);
  const std::uint64_t packets = port.counter("tx_packets"), bytes = port.counter("tx_bytes");
  EXPECT_THAT(from_vf(0, kAnywhere), ElementsAre("wire0", "wire0"));
  EXPECT_EQ(port.counter("tx_packets") - packets, 2u);
  EXPECT_EQ(port.counter("tx_bytes") - bytes, 2 * (frame(kAnywhere).size() + 4));
}

// Whose frame it is, the entries may ask all the same.
TEST_F(SharedFdb, EntriesTellTheSwitchesApart) {
  using Misc = prm::fte_match_set_misc;
  constexpr std::size_t kMiscBlock = prm::fte_match_set_lyr_2_4::bytes;
  Device& d = *pf[0];
  MatchParam mask{}, value{};
  prm::set<Misc::source_port>(mask.data() + kMiscBlock, 0xffff);
  prm::set<Misc::source_eswitch_owner_vhca_id>(mask.data() + kMiscBlock, 0xffff);
  const EthObject table = make_flow_table(d, 4, 0, kFdbTable);
  const EthObject group = make_flow_group(d, table.number(), 0, 7, kMisc, mask, kFdbTable);
  prm::set<Misc::source_port>(value.data() + kMiscBlock, 1);
  prm::set<Misc::source_eswitch_owner_vhca_id>(value.data() + kMiscBlock, kFirst);
  const EthObject one = rule(d, table, group, 0, {{FlowDest::kVport, 1, kSecond}}, value);
  prm::set<Misc::source_eswitch_owner_vhca_id>(value.data() + kMiscBlock, kSecond);
  const EthObject two = rule(d, table, group, 1, {{FlowDest::kVport, 0}}, value);
  set_flow_root(d, table.number(), kFdbTable).must();
  share(*pf[1], table.number(), kFirst).must();
  EXPECT_THAT(from_vf(0, kAnywhere), ElementsAre("vf1"));
  EXPECT_THAT(from_vf(1, kAnywhere), ElementsAre("pf0"));
}

// What no entry knows is the first manager's; its egress ACL gives what has come in at the second port to
// that one's.
TEST_F(SharedFdb, AnEgressAclLeadsToThePeersManager) {
  using Misc = prm::fte_match_set_misc;
  constexpr std::size_t kMiscBlock = prm::fte_match_set_lyr_2_4::bytes;
  const auto fdb = make_fdb(0, {FlowDest::kVport, 1}, {FlowDest::kVport, 1, kSecond}, {FlowDest::kVport, 0});
  share(*pf[1], fdb->table.number(), kFirst).must();
  EXPECT_THAT(from_wire(1, kAnywhere), ElementsAre("pf0"));
  MatchParam mask{}, value{};
  prm::set<Misc::source_port>(mask.data() + kMiscBlock, 0xffff);
  prm::set<Misc::source_eswitch_owner_vhca_id>(mask.data() + kMiscBlock, 0xffff);
  prm::set<Misc::source_port>(value.data() + kMiscBlock, kUplink);
  prm::set<Misc::source_eswitch_owner_vhca_id>(value.data() + kMiscBlock, kSecond);
  const EthObject acl = make_flow_table(*pf[0], 0, 0, kEgressAclTable);
  const EthObject group = make_flow_group(*pf[0], acl.number(), 0, 0, kMisc, mask, kEgressAclTable);
  const EthObject bounce =
      rule(*pf[0], acl, group, 0, {{FlowDest::kVport, 0, kSecond}}, value, kEgressAclTable);
  set_flow_root(*pf[0], acl.number(), kEgressAclTable).must();
  EXPECT_THAT(from_wire(1, kAnywhere), ElementsAre("pf1"));
  EXPECT_THAT(from_wire(0, kAnywhere), ElementsAre("pf0"));
  EXPECT_THAT(from_vf(1, kAnywhere), ElementsAre("pf0"));
  EXPECT_THAT(from_wire(1, kToFirst), ElementsAre("vf0"));
}

TEST_F(SharedFdb, ARootOfItsOwnUndoesIt) {
  const auto first = make_first();
  const auto second = make_fdb(1, {FlowDest::kVport, 0}, {FlowDest::kVport, 1}, {FlowDest::kVport, kUplink});
  EXPECT_THAT(from_vf(1, kToFirst), ElementsAre("pf1"));
  const std::uint64_t before = machine->function(1).state_digest();
  share(*pf[1], first->table.number(), kFirst).must();
  EXPECT_NE(machine->function(1).state_digest(), before);
  EXPECT_THAT(from_vf(1, kToFirst), ElementsAre("vf0"));
  EXPECT_THAT(from_vf(0, kToFirst), ElementsAre("vf0"));
  set_flow_root(*pf[1], second->table.number(), kFdbTable).must();
  EXPECT_THAT(from_vf(1, kToFirst), ElementsAre("pf1"));
  share(*pf[1], first->table.number(), kFirst).must();
  share(*pf[1], second->table.number(), kSecond).must();  // its own, by name
  EXPECT_THAT(from_vf(1, kToFirst), ElementsAre("pf1"));
}

TEST_F(SharedFdb, ItEndsWithTheTableAndItsManager) {
  auto first = make_first();
  share(*pf[1], first->table.number(), kFirst).must();
  EXPECT_THAT(from_vf(1, kToFirst), ElementsAre("vf0"));
  first.reset();
  EXPECT_THAT(from_vf(1, kToFirst), ElementsAre("wire1")) << "by its address alone";
  first = make_first();
  share(*pf[1], first->table.number(), kFirst).must();
  EXPECT_THAT(from_vf(1, kToFirst), ElementsAre("vf0"));
  close_virtual(0);
  pf[0]->function_reset();
  pf[0]->probe();
  EXPECT_THAT(from_vf(1, kToFirst), ElementsAre("wire1"));
}

TEST_F(SharedFdb, TheWayOfAFrameIsTracedOverBothSwitches) {
  {
    const auto fdb = make_first();
    share(*pf[1], fdb->table.number(), kFirst).must();
    EXPECT_THAT(from_vf(1, kToSecond), ElementsAre("vf1"));
  }
  close_all();
  machine.reset();
  traces::Paths paths;
  ASSERT_EQ(
      traces::read_records(trace.path, [&](const traces::Record& r,
                                           const std::vector<std::uint8_t>& blob) { paths.add(r, blob); }),
      0);
  paths.finish();
  std::string text;
  for (const traces::FramePath& p : paths.all()) text += path_text(p);
  EXPECT_THAT(text, HasSubstr("E-Switch, from vport 1\n  HCA 0: FDB table")) << text;
  EXPECT_THAT(text, HasSubstr(": entry 1: forward  [command")) << text;
  EXPECT_THAT(text, HasSubstr("dmac_15_0=0x22]\n  HCA 1: => to vport 1 (100 bytes)\n")) << text;
  EXPECT_THAT(text, HasSubstr("HCA 1 function 1, NIC receive\n")) << text;
}

}  // namespace
}  // namespace hcasim::bare
