// SPDX-License-Identifier: BSD-3-Clause
// Link aggregation of a card's two ports where flow tables select the port by a hash of headers, with a third
// HCA at the far end, all on one switch. (A process each: HCAs are made before time starts.)
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "driver/bare/qp.h"
#include "eth_fixture.h"
#include "prm/prm.h"

namespace hcasim::bare {
namespace {

constexpr unsigned kPortTable = 9;
constexpr std::uint16_t kPortSelection = 0x25;       // capability group
constexpr std::uint32_t kOptLagAffinity = 1u << 15;  // MLX5_QP_OPTPAR_LAG_TX_AFF
constexpr std::uint8_t kOuter = 1;
constexpr int kFirst = 0, kSecond = 1;  // vhca_id of the card's functions

using Mask = std::array<std::uint8_t, prm::match_definer::match_mask_format::bytes>;
using Flow4 = prm::match_definer_format_22;
using Link = prm::match_definer_format_0;

template <class... F>
Mask ones() {
  Mask mask{};
  (prm::set<F>(mask.data(), static_cast<typename F::type>(~0ull)), ...);
  return mask;
}
const Mask kPorts4 =
    ones<Flow4::outer_l4_sport, Flow4::outer_l4_dport, Flow4::outer_ip_src_addr, Flow4::outer_ip_dest_addr>();
const Mask kAddresses = ones<Link::outer_smac_47_16, Link::outer_smac_15_0, Link::outer_ethertype,
                             Link::outer_dmac_47_16, Link::outer_dmac_15_0>();

CommandResult try_definer(Device& d, unsigned format, const Mask& mask) {
  using In = prm::create_match_definer_in;
  Mailbox in(prm::op::CREATE_GENERAL_OBJECT, In::bytes);
  in.set<In::general_obj_in_cmd_hdr::obj_type>(prm::k::OBJ_TYPE_MATCH_DEFINER);
  in.set<In::obj_context::format_id>(format);
  std::copy(mask.begin(), mask.end(), in.data() + In::obj_context::match_mask_format::bit_off / 8);
  return d.exec(in, prm::general_obj_out_cmd_hdr::bytes);
}

CommandResult of_definer(Device& d, std::uint16_t opcode, std::uint32_t id) {
  using In = prm::general_obj_in_cmd_hdr;
  Mailbox in(opcode, In::bytes);
  in.set<In::obj_type>(prm::k::OBJ_TYPE_MATCH_DEFINER).set<In::obj_id>(id);
  return d.exec(in, prm::general_obj_out_cmd_hdr::bytes + prm::match_definer::bytes);
}

EthObject make_definer(Device& d, unsigned format, const Mask& mask) {
  const auto made = try_definer(d, format, mask);
  const auto id = static_cast<std::uint32_t>(made.must().get<prm::general_obj_out_cmd_hdr::obj_id>());
  return {d, id, [&d, id] { return of_definer(d, prm::op::DESTROY_GENERAL_OBJECT, id); }};
}

CommandResult try_split(Device& d, std::uint32_t table, std::uint32_t first, std::uint32_t last,
                        std::uint32_t definer, unsigned type = kPortTable) {
  using In = prm::create_flow_group_in;
  Mailbox in(prm::op::CREATE_FLOW_GROUP, In::bytes);
  in.set<In::table_type>(type).set<In::table_id>(table).set<In::match_definer_id>(definer);
  in.set<In::group_type>(prm::k::CREATE_FLOW_GROUP_IN_GROUP_TYPE_HASH_SPLIT);
  in.set<In::start_flow_index>(first).set<In::end_flow_index>(last);
  return d.exec(in, prm::create_flow_group_out::bytes);
}

EthObject make_split(Device& d, std::uint32_t table, std::uint32_t first, std::uint32_t last,
                     std::uint32_t definer) {
  const auto made = try_split(d, table, first, last, definer);
  const auto id = static_cast<std::uint32_t>(made.must().get<prm::create_flow_group_out::group_id>());
  return {d, id, [&d, table, id] {
            using In = prm::destroy_flow_group_in;
            Mailbox in(prm::op::DESTROY_FLOW_GROUP, In::bytes);
            return d.exec(in.set<In::table_type>(kPortTable).set<In::table_id>(table).set<In::group_id>(id));
          }};
}

FlowRule rule_of(const EthObject& table, const EthObject& group, std::uint32_t index, FlowDest to) {
  FlowRule r;
  r.table = table.number();
  r.group = group.number();
  r.index = index;
  r.type = kPortTable;
  r.to = {to};
  return r;
}

// As the driver makes them: traffic types, each to a table that hashes what there is of it.
struct Tables {
  explicit Tables(Device& d, int second = kSecond)
      : of_udp(make_definer(d, 22, kPorts4)),
        of_any(make_definer(d, 0, kAddresses)),
        udp(make_flow_table(d, 1, 2, kPortTable)),
        any(make_flow_table(d, 1, 2, kPortTable)),
        types(make_flow_table(d, 1, 0, kPortTable)),
        udp_group(make_split(d, udp.number(), 0, 1, of_udp.number())),
        any_group(make_split(d, any.number(), 0, 1, of_any.number())),
        type_udp(make_flow_group(d, types.number(), 0, 0, kOuter, udp_fields(0xff, 0xf), kPortTable)),
        type_any(make_flow_group(d, types.number(), 1, 1, 0, {}, kPortTable)) {
    for (const std::uint32_t i : {0u, 1u}) {
      const FlowDest port{FlowDest::kUplink, 0, i == 0 ? kFirst : second};
      rules.push_back(make_flow(d, rule_of(udp, udp_group, i, port)));
      rules.push_back(make_flow(d, rule_of(any, any_group, i, port)));
    }
    FlowRule of_type = rule_of(types, type_udp, 0, {FlowDest::kTable, udp.number()});
    of_type.value = udp_fields(17, 4);
    rules.push_back(make_flow(d, of_type));
    rules.push_back(make_flow(d, rule_of(types, type_any, 1, {FlowDest::kTable, any.number()})));
    set_flow_root(d, types.number(), kPortTable).must();
  }
  static MatchParam udp_fields(unsigned protocol, unsigned version) {
    using Lyr = prm::fte_match_set_lyr_2_4;
    MatchParam m{};
    prm::set<Lyr::ip_protocol>(m.data(), protocol);
    prm::set<Lyr::ip_version>(m.data(), version);
    return m;
  }

  EthObject of_udp, of_any, udp, any, types, udp_group, any_group, type_udp, type_any;
  std::vector<EthObject> rules;
};

class LagHash : public ::testing::Test {
 protected:
  explicit LagHash(bool bypass = false) {
    machine.add_hca("name=near0,link=eth,card=near,switch=s,port_select=hash");
    machine.add_hca("name=near1,link=eth,card=near,switch=s,port_select=hash");
    machine.add_hca("name=far,link=eth,switch=s");
    machine.start();
    for (std::size_t i = 0; i < 3; ++i) {
      DeviceOptions options;
      options.port_select_bypass = bypass && i != 2;
      dev[i] = std::make_unique<Device>(machine.function(i), options);
      dev[i]->probe();
    }
  }
  CommandResult create(std::uint32_t active = 0, std::size_t from = 0) {
    using In = prm::create_lag_in;
    Mailbox in(prm::op::CREATE_LAG, In::bytes);
    in.set<In::ctx::port_select_mode>(prm::k::LAG_PORT_SELECT_MODE_PORT_SELECT_FT);
    return dev[from]->exec(in.set<In::ctx::active_port>(active));
  }
  CommandResult modify(std::uint32_t select, std::uint32_t active) {
    using In = prm::modify_lag_in;
    Mailbox in(prm::op::MODIFY_LAG, In::bytes);
    in.set<In::ctx::tx_remap_affinity_1>(1).set<In::ctx::tx_remap_affinity_2>(1);
    return dev[0]->exec(in.set<In::field_select>(select).set<In::ctx::active_port>(active));
  }
  CommandResult plain(std::uint16_t opcode) {
    return dev[0]->exec(Mailbox(opcode, prm::destroy_lag_in::bytes));
  }
  CommandResult query() {
    return dev[1]->exec(Mailbox(prm::op::QUERY_LAG, prm::query_lag_in::bytes), prm::query_lag_out::bytes);
  }
  void aggregate(std::uint32_t active = 0) {
    create(active).must();
    plain(prm::op::CREATE_VPORT_LAG).must();
  }
  // The entry of a hash table leads elsewhere from now on.
  CommandResult redirect(const EthObject& table, const EthObject& group, std::uint32_t index, int owner) {
    using In = prm::set_fte_in;
    using C = In::flow_context;
    using To = prm::dest_format_struct;
    constexpr std::size_t kList = C::destination::bit_off / 8;
    Mailbox in(prm::op::SET_FLOW_TABLE_ENTRY, std::max<std::size_t>(In::bytes, kList + To::bytes), 1);
    in.set<In::table_type>(kPortTable).set<In::table_id>(table.number()).set<In::flow_index>(index);
    in.set<In::modify_enable_mask>(4).set<C::group_id>(group.number()).set<C::action>(4);
    in.set<C::destination_list_size>(1);
    std::uint8_t* p = in.data() + kList;
    prm::set<To::destination_type>(p, FlowDest::kUplink);
    prm::set<To::destination_eswitch_owner_vhca_id_valid>(p, 1);
    prm::set<To::destination_eswitch_owner_vhca_id>(p, static_cast<std::uint32_t>(owner));
    return dev[0]->exec(in);
  }
  std::uint64_t sent(std::size_t i) { return machine.function(i).counter("tx_packets"); }

  Machine machine{std::size_t{512} << 20};
  std::unique_ptr<Device> dev[3];
};

class LagHashBypass : public LagHash {
 protected:
  LagHashBypass() : LagHash(true) {}
};

// Pairs of connected QPs, from the first port's device to the far one.
class Pairs {
 public:
  static constexpr std::uint32_t kBytes = 16 << 10, kPackets = kBytes / 4096;

  Pairs(Device& near, Device& far, unsigned count) : from_(near), to_(far) {
    for (unsigned i = 0; i < count; ++i) {
      near_.push_back(std::make_unique<Qp>(near, from_.pd, from_.cq, from_.cq));
      far_.push_back(std::make_unique<Qp>(far, to_.pd, to_.cq, to_.cq));
      connect_pair(*near_.back(), *far_.back());
    }
  }
  Qp& near(std::size_t i) { return *near_[i]; }
  // By which port a message of each QP leaves: 0, 1; 2: it has used both.
  template <class Sent>
  std::vector<int> ways(Machine& machine, Sent sent) {
    std::vector<int> ways;
    for (auto& qp : near_) {
      const std::uint64_t before[] = {sent(0), sent(1)};
      SendWr w;
      w.op = WqeOp::kRdmaWrite;
      w.sges = {{from_.mr.start(), from_.mr.key(), kBytes}};
      w.raddr = to_.mr.start();
      w.rkey = to_.mr.key();
      expect_good(from_.cq, qp->post(w));
      machine.advance(20'000);
      const std::uint64_t by[] = {sent(0) - before[0], sent(1) - before[1]};
      EXPECT_EQ(by[0] + by[1], kPackets);
      ways.push_back(by[1] == 0 ? 0 : by[0] == 0 ? 1 : 2);
    }
    return ways;
  }

 private:
  struct Side {
    explicit Side(Device& d)
        : pd(d), cq(d), mem(d.memory().allocate(kBytes)), mr(d, Mr::of(pd, mem, kAllAccess)) {}
    Pd pd;
    Cq cq;
    Buffer mem;
    Mr mr;
  };
  Side from_, to_;
  std::vector<std::unique_ptr<Qp>> near_, far_;
};

CommandResult set_affinity(Qp& qp, std::uint32_t port) {
  return qp.modify(prm::op::RTS2RTS_QP, kOptLagAffinity,
                   [port](std::uint8_t* qpc) { prm::set<prm::qpc::lag_tx_port_affinity>(qpc, port); });
}

TEST_F(LagHash, Capabilities) {
  using Cap = prm::port_selection_cap_at<prm::query_hca_cap_out::capability::bit_off>;
  using Tables = Cap::flow_table_properties_port_selection;
  EXPECT_EQ(dev[0]->cap<prm::cmd_hca_cap::port_selection_cap>(), 1u);
  EXPECT_NE(dev[0]->cap<prm::cmd_hca_cap::match_definer_format_supported>() >> 22 & 1, 0u);
  EXPECT_EQ(dev[2]->cap<prm::cmd_hca_cap::port_selection_cap>(), 0u);
  const CommandResult now = dev[0]->query_caps(kPortSelection, true),
                      max = dev[0]->query_caps(kPortSelection, false);
  EXPECT_EQ(now.must().get<Cap::port_select_flow_table>(), 1u);
  EXPECT_EQ(now.get<Cap::port_select_flow_table_bypass>(), 0u);
  EXPECT_EQ(max.must().get<Cap::port_select_flow_table_bypass>(), 1u);
  EXPECT_EQ(now.get<Tables::ft_support>(), 1u);
  EXPECT_EQ(now.get<Tables::log_max_destination>(), 0u);
  EXPECT_EQ(now.get<Tables::flow_counter>(), 0u);
}

TEST_F(LagHash, Definers) {
  breaks_any_rule();
  Device& d = *dev[0];
  EXPECT_CMD_STATUS(try_definer(d, 21, kPorts4), CmdStatus::kBadParam);  // no such layout
  Mask unknown = kPorts4;
  prm::set<Flow4::sx_sniffer>(unknown.data(), 1);
  EXPECT_CMD_STATUS(try_definer(d, 22, unknown), CmdStatus::kBadParam);
  EXPECT_CMD_STATUS(try_definer(*dev[2], 22, kPorts4), CmdStatus::kBadParam);  // not offered
  EthObject definer = make_definer(d, 22, kPorts4);
  const CommandResult r = of_definer(d, prm::op::QUERY_GENERAL_OBJECT, definer.number());
  const std::uint8_t* p = r.must().out.data() + prm::general_obj_out_cmd_hdr::bytes;
  EXPECT_EQ(prm::get<prm::match_definer::format_id>(p), 22u);
  EXPECT_EQ(prm::get<Flow4::outer_l4_sport>(p + prm::match_definer::match_mask_format::bit_off / 8), 0xffffu);
  EXPECT_CMD_STATUS(of_definer(d, prm::op::QUERY_GENERAL_OBJECT, definer.number() + 1), CmdStatus::kBadRes);

  const EthObject table = make_flow_table(d, 2, 0, kPortTable);
  EXPECT_CMD_STATUS(try_split(d, table.number(), 0, 1, definer.number() + 1), CmdStatus::kBadRes);
  {
    const EthObject group = make_split(d, table.number(), 0, 1, definer.number());
    EXPECT_CMD_STATUS(of_definer(d, prm::op::DESTROY_GENERAL_OBJECT, definer.number()),
                      CmdStatus::kBadResState);
    EXPECT_FALSE(try_split(d, table.number(), 1, 2, definer.number()).ok());  // overlaps
    EXPECT_FALSE(try_split(d, table.number(), 3, 4, definer.number()).ok());  // beyond the table
  }
  EXPECT_CMD_OK(definer.destroy());
  EXPECT_CMD_STATUS(of_definer(d, prm::op::DESTROY_GENERAL_OBJECT, definer.number()), CmdStatus::kBadRes);
}

TEST_F(LagHash, OnlyTablesOfTheirTypeSplit) {
  breaks_any_rule();
  Device& d = *dev[0];
  const EthObject definer = make_definer(d, 22, kPorts4);
  const EthObject rx = make_flow_table(d, 2, 0, kNicRxTable);
  EXPECT_CMD_STATUS(try_split(d, rx.number(), 0, 1, definer.number(), kNicRxTable), CmdStatus::kBadParam);
  EXPECT_THROW(make_flow_table(*dev[2], 1, 0, kPortTable), BareError);
  const EthObject table = make_flow_table(d, 2, 1, kPortTable), lower = make_flow_table(d, 2, 0, kPortTable);
  const EthObject group = make_split(d, table.number(), 0, 1, definer.number());
  const auto refused = [&](std::vector<FlowDest> to) {
    FlowRule r = rule_of(table, group, 0, {FlowDest::kUplink, 0});
    r.to = std::move(to);
    return try_flow(d, r);
  };
  EXPECT_FALSE(refused({{FlowDest::kVport, 0}}).ok());
  EXPECT_FALSE(refused({{FlowDest::kTable, lower.number()}}).ok());
  EXPECT_FALSE(refused({{FlowDest::kUplink, 0, 7}}).ok());  // a function that there is not
  EXPECT_FALSE(refused({{FlowDest::kUplink, 0, kFirst}, {FlowDest::kUplink, 0, kSecond}}).ok());
  EXPECT_FALSE(refused({}).ok());  // drop
  EXPECT_CMD_OK(refused({{FlowDest::kUplink, 0, kSecond}}));
  using In = prm::delete_fte_in;
  Mailbox in(prm::op::DELETE_FLOW_TABLE_ENTRY, In::bytes);
  EXPECT_CMD_OK(d.exec(in.set<In::table_id>(table.number()).set<In::table_type>(kPortTable)));
}

TEST_F(LagHash, TablesInUseStay) {
  breaks_any_rule();
  EXPECT_CMD_STATUS(create(), CmdStatus::kBadResState);  // no tables
  {
    const EthObject empty = make_flow_table(*dev[0], 1, 0, kPortTable);
    set_flow_root(*dev[0], empty.number(), kPortTable).must();
    EXPECT_CMD_STATUS(create(0, 1), CmdStatus::kBadParam);  // not the master
    EXPECT_CMD_OK(create());
    EXPECT_EQ(query().must().get<prm::query_lag_out::ctx::port_select_mode>(), 1u);
    EXPECT_CMD_STATUS(modify(1, 0), CmdStatus::kBadParam);  // a remapped affinity would mean nothing
    EXPECT_CMD_STATUS(modify(2, 1), CmdStatus::kBadParam);  // nor would ports, without the bypass
    using Destroy = prm::destroy_flow_table_in;
    Mailbox destroy(prm::op::DESTROY_FLOW_TABLE, Destroy::bytes);
    destroy.set<Destroy::table_id>(empty.number()).set<Destroy::table_type>(kPortTable);
    EXPECT_CMD_STATUS(dev[0]->exec(destroy), CmdStatus::kBadResState);
    using Root = prm::set_flow_table_root_in;
    Mailbox disconnect(prm::op::SET_FLOW_TABLE_ROOT, Root::bytes, 1);
    disconnect.set<Root::table_type>(kPortTable);
    EXPECT_CMD_STATUS(dev[0]->exec(disconnect), CmdStatus::kBadResState);
    EXPECT_CMD_OK(plain(prm::op::DESTROY_LAG));
    EXPECT_CMD_OK(dev[0]->exec(disconnect));
  }
  EXPECT_EQ(query().must().get<prm::query_lag_out::ctx::lag_state>(), 0u);
  EXPECT_CMD_STATUS(create(), CmdStatus::kBadResState);
}

TEST_F(LagHash, QueuePairsSpreadAndStay) {
  breaks_any_rule();
  Pairs pairs(*dev[0], *dev[2], 24);
  const auto ways = [&] { return pairs.ways(machine, [&](std::size_t i) { return sent(i); }); };
  EXPECT_EQ(ways(), std::vector<int>(24, 0));  // not yet
  const Tables tables(*dev[0]);
  aggregate();
  const std::vector<int> first = ways();
  const auto by_second = std::count(first.begin(), first.end(), 1);
  EXPECT_EQ(by_second + std::count(first.begin(), first.end(), 0), 24);
  EXPECT_GE(by_second, 6);
  EXPECT_LE(by_second, 18);
  // Their affinity has no say.
  for (std::size_t i = 0; i < 24; ++i) EXPECT_CMD_OK(set_affinity(pairs.near(i), 1 + i % 2));
  EXPECT_EQ(ways(), first);
  // Another port takes over, and gives back.
  EXPECT_CMD_OK(redirect(tables.udp, tables.udp_group, 0, kSecond));
  EXPECT_EQ(ways(), std::vector<int>(24, 1));
  EXPECT_CMD_OK(redirect(tables.udp, tables.udp_group, 0, kFirst));
  EXPECT_EQ(ways(), first);
  EXPECT_CMD_OK(plain(prm::op::DESTROY_VPORT_LAG));
  EXPECT_CMD_OK(plain(prm::op::DESTROY_LAG));
  EXPECT_EQ(ways(), std::vector<int>(24, 0));
}

TEST_F(LagHashBypass, AffinityComesFirst) {
  breaks_any_rule();
  Pairs pairs(*dev[0], *dev[2], 8);
  const auto ways = [&] { return pairs.ways(machine, [&](std::size_t i) { return sent(i); }); };
  const Tables tables(*dev[0]);
  EXPECT_CMD_STATUS(create(), CmdStatus::kBadParam);  // no port is active
  EXPECT_CMD_STATUS(create(7), CmdStatus::kBadParam);
  aggregate(3);
  std::vector<int> expected = ways();
  for (const std::uint32_t port : {1u, 2u}) {
    EXPECT_CMD_OK(set_affinity(pairs.near(0), port));
    expected[0] = static_cast<int>(port) - 1;
    EXPECT_EQ(ways(), expected);
  }
  // Its port is none that is active.
  EXPECT_CMD_OK(modify(2, 1));
  EXPECT_EQ(query().must().get<prm::query_lag_out::ctx::active_port>(), 1u);
  expected[0] = 0;
  EXPECT_EQ(ways(), expected);
  EXPECT_CMD_STATUS(modify(2, 0), CmdStatus::kBadParam);
  EXPECT_CMD_STATUS(modify(1, 1), CmdStatus::kBadParam);
  EXPECT_CMD_OK(modify(2, 3));
  expected[0] = 1;
  EXPECT_EQ(ways(), expected);
  plain(prm::op::DESTROY_VPORT_LAG).must();
  plain(prm::op::DESTROY_LAG).must();
}

TEST_F(LagHash, FramesOfSendQueues) {
  breaks_any_rule();
  const Tables tables(*dev[0]);
  aggregate();
  {
    EthLink link(*dev[0]);
    const auto spread = [&](bool udp) {
      const std::uint64_t before[] = {sent(0), sent(1)};
      for (std::uint16_t i = 0; i < 32; ++i) {
        L4 l4;
        l4.udp = udp;
        l4.sport = static_cast<std::uint16_t>(4000 + i);
        link.send(l4_frame(l4));
        machine.advance(20'000);
        while (link.scq.poll()) {
        }
      }
      return std::pair(sent(0) - before[0], sent(1) - before[1]);
    };
    const auto udp = spread(true);
    EXPECT_EQ(udp.first + udp.second, 32u);
    EXPECT_GE(std::min(udp.first, udp.second), 8u);
    // TCP's ports are not looked at by these tables.
    const auto tcp = spread(false);
    EXPECT_EQ(std::max(tcp.first, tcp.second), 32u);
    // A strict queue has its function's port.
    using In = prm::modify_tis_in;
    Mailbox in(prm::op::MODIFY_TIS, In::bytes);
    in.set<In::tisn>(link.tis.number()).set<In::bitmask::strict_lag_tx_port_affinity>(1);
    EXPECT_CMD_OK(dev[0]->exec(in.set<In::ctx::strict_lag_tx_port_affinity>(1)));
    EXPECT_EQ(spread(true), std::pair(std::uint64_t{32}, std::uint64_t{0}));
  }
  plain(prm::op::DESTROY_VPORT_LAG).must();
  plain(prm::op::DESTROY_LAG).must();
}

// Functions of both ports, whose frames the switches send to their uplinks; each port's wire ends here.
TEST(LagHashVf, FramesBehindTheSwitchesAreSelected) {
  breaks_any_rule();
  Machine machine{std::size_t{256} << 20};
  for (const char* name : {"near0", "near1"})
    machine.add_hca(std::string("name=") + name + ",link=eth,vfs=1,card=near,wire=host,port_select=hash");
  for (std::size_t port = 0; port < 2; ++port) machine.add_virtual(machine.function(port), 1);
  machine.start();
  std::unique_ptr<Device> pf[2], vf[2];
  for (std::size_t port = 0; port < 2; ++port) {
    pf[port] = std::make_unique<Device>(machine.function(port));
    pf[port]->probe();
    Mailbox in(prm::op::ENABLE_HCA, prm::enable_hca_in::bytes);
    pf[port]->exec(in.set<prm::enable_hca_in::function_id>(1)).must();
    vf[port] = std::make_unique<Device>(machine.function(2 + port));
    vf[port]->probe();
  }
  {
    constexpr unsigned kFdbTable = 4, kUplinkVport = 0xffff, kSecondManager = 2;
    const Tables tables(*pf[0], kSecondManager);
    std::vector<EthObject> fdb;
    fdb.reserve(6);
    for (auto& d : pf) {
      const EthObject& table = fdb.emplace_back(make_flow_table(*d, 0, 0, kFdbTable));
      const EthObject& group = fdb.emplace_back(make_flow_group(*d, table.number(), 0, 0, 0, {}, kFdbTable));
      FlowRule out = rule_of(table, group, 0, {FlowDest::kVport, kUplinkVport});
      out.type = kFdbTable;
      fdb.push_back(make_flow(*d, out));
      set_flow_root(*d, table.number(), kFdbTable).must();
    }
    Mailbox lag(prm::op::CREATE_LAG, prm::create_lag_in::bytes);
    lag.set<prm::create_lag_in::ctx::port_select_mode>(prm::k::LAG_PORT_SELECT_MODE_PORT_SELECT_FT);
    pf[0]->exec(lag).must();
    std::vector<int> ways[2];
    for (std::size_t port = 0; port < 2; ++port) {
      EthLink link(*vf[port]);
      for (std::uint16_t i = 0; i < 32; ++i) {
        for (std::size_t wire = 0; wire < 2; ++wire) machine.function(wire).take_frames();
        L4 l4;
        l4.udp = true;
        l4.sport = static_cast<std::uint16_t>(4000 + i);
        link.send(l4_frame(l4));
        machine.advance(20'000);
        while (link.scq.poll()) {
        }
        const std::size_t by[] = {machine.function(0).take_frames().size(),
                                  machine.function(1).take_frames().size()};
        ASSERT_EQ(by[0] + by[1], 1u);
        ways[port].push_back(by[1] == 1 ? 1 : 0);
      }
    }
    // A flow's way does not depend on whose function sends it.
    EXPECT_EQ(ways[0], ways[1]);
    EXPECT_GE(std::count(ways[0].begin(), ways[0].end(), 0), 8);
    EXPECT_GE(std::count(ways[0].begin(), ways[0].end(), 1), 8);
    pf[0]->exec(Mailbox(prm::op::DESTROY_LAG, prm::destroy_lag_in::bytes)).must();
    while (!fdb.empty()) fdb.pop_back();
  }
  for (std::size_t port = 0; port < 2; ++port) {
    vf[port].reset();
    Mailbox in(prm::op::DISABLE_HCA, prm::disable_hca_in::bytes);
    pf[port]->exec(in.set<prm::disable_hca_in::function_id>(1)).must();
    pf[port].reset();
  }
}

}  // namespace
}  // namespace hcasim::bare
