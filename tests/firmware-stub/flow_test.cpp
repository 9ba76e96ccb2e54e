// SPDX-License-Identifier: BSD-3-Clause
// Flow tables, groups, entries, counters: references, limits, what is refused.
#include "fixture.h"
#include "prm/qos.h"
#include "prm/user_commands.h"

#include "driver/bare/devx.h"
#include "driver/bare/eth.h"

namespace hcasim::bare {
namespace {

using Fte = prm::set_fte_in;

class Flow : public FirmwareTest {
 protected:
  std::size_t hca() const override { return 2; }

  CommandResult create_table(const std::function<void(Mailbox&)>& change) {
    Mailbox in(prm::op::CREATE_FLOW_TABLE, prm::create_flow_table_in::bytes);
    change(in);
    return dev().exec(in);
  }
  CommandResult create_group(std::uint32_t table, std::uint32_t first, std::uint32_t last,
                             unsigned criteria = 0) {
    using In = prm::create_flow_group_in;
    Mailbox in(prm::op::CREATE_FLOW_GROUP, In::bytes);
    in.set<In::table_id>(table).set<In::start_flow_index>(first).set<In::end_flow_index>(last);
    in.set<In::match_criteria_enable>(criteria);
    return dev().exec(in);
  }
  // An entry that drops, with room for two items in its lists.
  Mailbox entry(std::uint32_t table, std::uint32_t group, std::uint32_t index) {
    Mailbox in(prm::op::SET_FLOW_TABLE_ENTRY, Fte::bytes + 16);
    in.set<Fte::table_id>(table).set<Fte::flow_context::group_id>(group).set<Fte::flow_index>(index);
    in.set<Fte::flow_context::action>(2);
    return in;
  }
  static std::uint8_t* item(Mailbox& in, unsigned i) {
    return in.data() + Fte::flow_context::destination::bit_off / 8 + 8 * i;
  }
  static void forward(Mailbox& in, std::uint32_t type, std::uint32_t id) {
    in.set<Fte::flow_context::action>(4).set<Fte::flow_context::destination_list_size>(1);
    prm::set<prm::dest_format_struct::destination_type>(item(in, 0), type);
    prm::set<prm::dest_format_struct::destination_id>(item(in, 0), id);
  }
  CommandResult delete_entry(std::uint32_t table, std::uint32_t index) {
    using In = prm::delete_fte_in;
    Mailbox in(prm::op::DELETE_FLOW_TABLE_ENTRY, In::bytes);
    return dev().exec(in.set<In::table_id>(table).set<In::flow_index>(index));
  }
  CommandResult query_entry(std::uint32_t table, std::uint32_t index) {
    using In = prm::query_fte_in;
    Mailbox in(prm::op::QUERY_FLOW_TABLE_ENTRY, In::bytes);
    return dev().exec(in.set<In::table_id>(table).set<In::flow_index>(index), prm::query_fte_out::bytes + 16);
  }
};

TEST_F(Flow, TypesThatAreOfferedExist) {
  using cap = prm::flow_table_nic_cap;
  for (const bool current : {false, true}) {
    const auto block = caps(7, current);
    const auto offers = [&](auto field) { return prm::get<decltype(field)>(block.data()) != 0; };
    EXPECT_TRUE(offers(cap::flow_table_properties_nic_receive::ft_support{}));
    using Rx = cap::flow_table_properties_nic_receive;
    using Tx = cap::flow_table_properties_nic_transmit;
    EXPECT_TRUE(offers(prm::table_log_max_ft_sampler_num<Rx::bit_off>{}));
    EXPECT_FALSE(offers(prm::table_log_max_ft_sampler_num<Tx::bit_off>{}));  // those refuse samplers
    EXPECT_TRUE(offers(prm::table_flow_tag<Rx::bit_off>{}));
    EXPECT_FALSE(offers(prm::table_flow_tag<Tx::bit_off>{}));
    EXPECT_EQ(prm::get<prm::qos_cap_flow_meter_reg_id>(caps(12, current).data()), 0xff) << "any of eight";
    EXPECT_TRUE(offers(cap::flow_table_properties_nic_receive_sniffer::ft_support{}));
    EXPECT_TRUE(offers(cap::flow_table_properties_nic_transmit_sniffer::ft_support{}));
    EXPECT_TRUE(offers(cap::allow_sniffer_and_nic_rx_shared_tir{}));
    EXPECT_TRUE(offers(cap::flow_table_properties_nic_transmit::ft_support{}));
    EXPECT_TRUE(offers(cap::flow_table_properties_nic_receive_rdma::ft_support{}));
    EXPECT_TRUE(offers(cap::flow_table_properties_nic_transmit_rdma::ft_support{}));
  }
  using In = prm::create_flow_table_in;
  constexpr unsigned kHighest = 255;
  for (const unsigned type : {0u, 1u, 5u, 6u, 7u, 8u}) {
    const auto r = create_table(
        [&](Mailbox& m) { m.set<In::table_type>(type).set<In::flow_table_context::level>(kHighest); });
    EXPECT_OK(r);
    using Gone = prm::destroy_flow_table_in;
    Mailbox gone(prm::op::DESTROY_FLOW_TABLE, Gone::bytes);
    gone.set<Gone::table_id>(r.get<prm::create_flow_table_out::table_id>());
    EXPECT_OK(dev().exec(gone.set<Gone::table_type>(type)));
  }
}

TEST_F(Flow, TableAttributes) {
  breaks({"cap-limit", "cap-not-offered", "cmd-function", "cmd-op-mod", "flow-action", "object-reference"});
  using In = prm::create_flow_table_in;
  using C = In::flow_table_context;
  for (const unsigned type : {2u, 3u, 4u, 9u, 99u})
    EXPECT_STATUS(create_table([&](Mailbox& m) { m.set<In::table_type>(type); }), CmdStatus::kBadParam);
  EXPECT_STATUS(create_table([](Mailbox& m) { m.set<C::log_size>(23); }), CmdStatus::kLim);
  EXPECT_STATUS(create_table([](Mailbox& m) { m.set<C::table_miss_action>(2); }), CmdStatus::kBadParam);
  EXPECT_STATUS(create_table([](Mailbox& m) { m.set<C::table_miss_action>(1).set<C::table_miss_id>(77); }),
                CmdStatus::kBadRes);
  constexpr unsigned kSnifferRx = 5;
  EXPECT_STATUS(create_table([](Mailbox& m) { m.set<C::sw_owner>(1).set<In::table_type>(kSnifferRx); }),
                CmdStatus::kBadParam);
  EXPECT_STATUS(create_table([](Mailbox& m) { m.set<In::vport_number>(1); }), CmdStatus::kBadParam);
  EXPECT_STATUS(create_table([](Mailbox& m) { prm::store32(m.data() + 4, 1); }), CmdStatus::kBadParam);
}

TEST_F(Flow, MissActionHoldsItsTable) {
  breaks({"destroy-busy", "flow-level", "modify-mask"});
  auto low = make_flow_table(dev(), 2, 1);
  auto high = make_flow_table(dev(), 2, 5);
  using In = prm::modify_flow_table_in;
  using C = In::flow_table_context;
  Mailbox in(prm::op::MODIFY_FLOW_TABLE, In::bytes);
  in.set<In::table_id>(low.number()).set<In::modify_field_select>(1);
  in.set<C::table_miss_action>(1).set<C::table_miss_id>(high.number());
  EXPECT_OK(dev().exec(in));
  EXPECT_STATUS(high.destroy(), CmdStatus::kBadResState);
  // Not back down, nor to itself.
  in.set<In::table_id>(high.number()).set<C::table_miss_id>(low.number());
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadParam);
  in.set<C::table_miss_id>(high.number());
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadParam);
  using Query = prm::query_flow_table_in;
  Mailbox query(prm::op::QUERY_FLOW_TABLE, Query::bytes);
  query.set<Query::table_id>(low.number());
  using Out = prm::query_flow_table_out::flow_table_context;
  const auto q = dev().exec(query, prm::query_flow_table_out::bytes).must();
  EXPECT_EQ(q.get<Out::table_miss_id>(), high.number());
  EXPECT_EQ(q.get<Out::level>(), 1u);
  in.set<In::table_id>(low.number()).set<C::table_miss_action>(0).set<C::table_miss_id>(0);
  EXPECT_OK(dev().exec(in));
  EXPECT_OK(high.destroy());
  in.set<In::modify_field_select>(2);
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadParam);
}

TEST_F(Flow, RootMayGo) {
  breaks({"object-unknown"});
  auto table = make_flow_table(dev(), 2);
  EXPECT_STATUS(set_flow_root(dev(), 0x777), CmdStatus::kBadRes);
  EXPECT_OK(set_flow_root(dev(), table.number()));
  EXPECT_OK(table.destroy());
}

TEST_F(Flow, GroupsDoNotOverlap) {
  breaks({"destroy-busy", "flow-criteria", "flow-group-range", "flow-index", "object-reference",
          "object-unknown"});
  auto table = make_flow_table(dev(), 4);
  EXPECT_STATUS(create_group(table.number(), 0, 16), CmdStatus::kBadParam);
  EXPECT_STATUS(create_group(table.number(), 5, 4), CmdStatus::kBadParam);
  EXPECT_STATUS(create_group(table.number(), 0, 3, 0x20), CmdStatus::kBadParam);
  EXPECT_STATUS(create_group(0x777, 0, 3), CmdStatus::kBadRes);
  auto group = make_flow_group(dev(), table.number(), 4, 7);
  EXPECT_STATUS(create_group(table.number(), 7, 8), CmdStatus::kBadParam);
  EXPECT_STATUS(create_group(table.number(), 0, 15), CmdStatus::kBadParam);
  EXPECT_STATUS(table.destroy(), CmdStatus::kBadResState);
  EXPECT_OK(dev().exec(entry(table.number(), group.number(), 4)));
  EXPECT_STATUS(group.destroy(), CmdStatus::kBadResState);
  EXPECT_OK(delete_entry(table.number(), 4));
  EXPECT_STATUS(delete_entry(table.number(), 4), CmdStatus::kIx);
  EXPECT_OK(group.destroy());
  EXPECT_STATUS(group.destroy(), CmdStatus::kBadRes);
}

TEST_F(Flow, EntriesAreCheckedAndHoldWhatTheyName) {
  breaks({"cap-not-offered", "destroy-busy", "flow-action", "flow-index", "flow-level", "modify-mask",
          "object-unknown"});
  Pd pd(dev());
  Cq cq(dev());
  EthRq rq(dev(), pd, cq);
  auto td = make_transport_domain(dev());
  TirSpec spec;
  spec.rqn = rq.rqn();
  spec.transport_domain = td.number();
  auto tir = make_tir(dev(), spec);
  auto next = make_flow_table(dev(), 2, 3);
  auto table = make_flow_table(dev(), 4, 1);
  auto group = make_flow_group(dev(), table.number(), 4, 7);
  const std::uint32_t t = table.number(), g = group.number();

  EXPECT_STATUS(dev().exec(entry(t, g, 3)), CmdStatus::kIx);
  EXPECT_STATUS(dev().exec(entry(t, 0x777, 4)), CmdStatus::kBadRes);
  const auto refused = [&](CmdStatus status, const std::function<void(Mailbox&)>& change) {
    Mailbox in = entry(t, g, 4);
    change(in);
    EXPECT_STATUS(dev().exec(in), status);
    EXPECT_STATUS(query_entry(t, 4), CmdStatus::kIx);
  };
  using C = Fte::flow_context;
  refused(CmdStatus::kBadParam, [](Mailbox& m) { m.set<C::action>(0); });
  refused(CmdStatus::kBadParam, [](Mailbox& m) { m.set<C::action>(2 | 4); });
  refused(CmdStatus::kBadRes, [](Mailbox& m) { m.set<C::action>(2 | 0x40); });  // no such context
  refused(CmdStatus::kBadParam, [](Mailbox& m) { m.set<C::action>(4); });
  refused(CmdStatus::kBadParam, [](Mailbox& m) { m.set<C::extended_destination>(1); });
  refused(CmdStatus::kBadRes, [](Mailbox& m) { forward(m, 2, 0x7777); });
  refused(CmdStatus::kBadRes, [](Mailbox& m) { forward(m, 1, 0x7777); });
  refused(CmdStatus::kBadParam, [](Mailbox& m) { forward(m, 0, 0); });
  refused(CmdStatus::kBadParam, [&](Mailbox& m) { forward(m, 1, t); });  // no higher level
  refused(CmdStatus::kBadParam, [](Mailbox& m) { m.set<C::destination_list_size>(33); });
  refused(CmdStatus::kBadInpLen, [](Mailbox& m) { m.set<C::destination_list_size>(9); });
  refused(CmdStatus::kBadRes, [](Mailbox& m) {
    m.set<C::action>(2 | 8).set<C::flow_counter_list_size>(1);
    prm::set<prm::flow_counter_list::flow_counter_id>(item(m, 0), 0x7777);
  });

  Mailbox to_table = entry(t, g, 4);
  forward(to_table, 1, next.number());
  EXPECT_OK(dev().exec(to_table));
  EXPECT_STATUS(dev().exec(to_table), CmdStatus::kBadResState);  // there is one
  EXPECT_STATUS(next.destroy(), CmdStatus::kBadResState);
  // Another destination in its place; the rest stays.
  Mailbox to_tir = entry(t, g, 4);
  forward(to_tir, 2, tir.number());
  prm::store32(to_tir.data() + 4, 1);
  to_tir.set<Fte::modify_enable_mask>(1u << 2).set<C::flow_tag>(0x1234);
  EXPECT_OK(dev().exec(to_tir));
  EXPECT_OK(next.destroy());
  EXPECT_STATUS(tir.destroy(), CmdStatus::kBadResState);
  const auto q = query_entry(t, 4).must();
  EXPECT_EQ(q.get<prm::query_fte_out::flow_context::action>(), 4u);
  EXPECT_EQ(q.get<prm::query_fte_out::flow_context::flow_tag>(), 0u);
  to_tir.set<Fte::flow_index>(5);
  EXPECT_STATUS(dev().exec(to_tir), CmdStatus::kIx);
  to_tir.set<Fte::flow_index>(4).set<Fte::modify_enable_mask>(0x10);
  EXPECT_STATUS(dev().exec(to_tir), CmdStatus::kBadParam);
  EXPECT_OK(delete_entry(t, 4));
  EXPECT_OK(tir.destroy());
}

// Levels may be ignored, with the entry's own word for it.
TEST_F(Flow, IgnoredLevels) {
  breaks({"flow-level"});
  auto table = make_flow_table(dev(), 2, 3);
  auto low = make_flow_table(dev(), 2, 1);
  auto group = make_flow_group(dev(), table.number(), 0, 3);
  Mailbox in = entry(table.number(), group.number(), 0);
  forward(in, 1, low.number());
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadParam);
  in.set<Fte::ignore_flow_level>(1);
  EXPECT_OK(dev().exec(in));
  EXPECT_OK(delete_entry(table.number(), 0));
}

TEST_F(Flow, Counters) {
  breaks({"cmd-output-short", "destroy-busy", "flow-counter-bulk", "object-unknown"});
  using Alloc = prm::alloc_flow_counter_in;
  Mailbox alloc(prm::op::ALLOC_FLOW_COUNTER, Alloc::bytes);
  const auto id = dev().exec(alloc).must().get<prm::alloc_flow_counter_out::flow_counter_id>();
  alloc.set<Alloc::flow_counter_bulk>(0x80);
  EXPECT_STATUS(dev().exec(alloc), CmdStatus::kBadParam);

  auto table = make_flow_table(dev(), 2);
  auto group = make_flow_group(dev(), table.number(), 0, 3);
  Mailbox in = entry(table.number(), group.number(), 0);
  in.set<Fte::flow_context::action>(2 | 8).set<Fte::flow_context::flow_counter_list_size>(1);
  prm::set<prm::flow_counter_list::flow_counter_id>(item(in, 0), id);
  EXPECT_OK(dev().exec(in));
  const auto dealloc = [&](std::uint32_t n) {
    return name<prm::dealloc_flow_counter_in::flow_counter_id>(prm::op::DEALLOC_FLOW_COUNTER,
                                                               prm::dealloc_flow_counter_in::bytes, n);
  };
  EXPECT_STATUS(dealloc(id), CmdStatus::kBadResState);

  using Query = prm::query_flow_counter_in;
  const auto query = [&](std::uint32_t first, std::uint32_t n, std::size_t room) {
    Mailbox m(prm::op::QUERY_FLOW_COUNTER, Query::bytes);
    m.set<Query::flow_counter_id>(first).set<Query::num_of_counters>(n);
    return dev().exec(m, prm::query_flow_counter_out::bytes + 16 * room);
  };
  EXPECT_OK(query(id, 0, 1));
  EXPECT_STATUS(query(id + 1, 0, 1), CmdStatus::kBadRes);
  EXPECT_STATUS(query(id, 0, 0), CmdStatus::kBadOutpLen);
  EXPECT_OK(query(id & ~3u, 8, 8));
  EXPECT_STATUS(query((id & ~3u) + 1, 4, 4), CmdStatus::kBadParam);
  EXPECT_STATUS(query(id & ~3u, 2048, 2048), CmdStatus::kBadParam);
  EXPECT_OK(delete_entry(table.number(), 0));
  EXPECT_OK(dealloc(id));
  EXPECT_STATUS(dealloc(id), CmdStatus::kBadRes);
}

// A run of counters is read, and cleared, by whoever owns all of them.
TEST_F(Flow, UsersCountersAreTheirOwn) {
  breaks({"devx-owner"});
  using Alloc = prm::alloc_flow_counter_in;
  using Query = prm::query_flow_counter_in;
  constexpr unsigned kBulk = 128;
  Mailbox alloc(prm::op::ALLOC_FLOW_COUNTER, Alloc::bytes);
  alloc.set<Alloc::flow_counter_bulk>(1);
  const auto bulk = [&] {
    return dev().exec(alloc).must().get<prm::alloc_flow_counter_out::flow_counter_id>();
  };
  const auto query = [&](std::uint64_t first, unsigned n) {
    Mailbox m(prm::op::QUERY_FLOW_COUNTER, Query::bytes);
    m.set<Query::flow_counter_id>(first).set<Query::num_of_counters>(n).set<Query::clear>(1);
    return dev().exec(m, prm::query_flow_counter_out::bytes + 16 * n);
  };
  Uctx user(dev());
  std::uint64_t own = 0;
  {
    const Uctx::As as(dev(), user);
    own = bulk();
  }
  const std::uint64_t drivers = bulk();
  ASSERT_EQ(drivers, own + kBulk);
  {
    const Uctx::As as(dev(), user);
    EXPECT_OK(query(own, kBulk));
    EXPECT_STATUS(query(own, 2 * kBulk), CmdStatus::kBadRes);
    EXPECT_STATUS(query(own + kBulk - 4, 8), CmdStatus::kBadRes);
    EXPECT_STATUS(query(drivers, 4), CmdStatus::kBadRes);
  }
  EXPECT_OK(query(own, 4 * kBulk));  // with numbers that nobody has
  for (const std::uint64_t id : {own, drivers})
    EXPECT_OK((name<prm::dealloc_flow_counter_in::flow_counter_id>(
        prm::op::DEALLOC_FLOW_COUNTER, prm::dealloc_flow_counter_in::bytes, static_cast<std::uint32_t>(id))));
}

TEST_F(Flow, TablesThatPartALagAreTheDrivers) {
  breaks({"devx-command"});
  Uctx user(dev());
  const Uctx::As as(dev(), user);
  Mailbox in(prm::op::CREATE_FLOW_TABLE, prm::create_flow_table_in::bytes, 1);
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadOp);
}

// What the driver shares is a destination of users' entries, and theirs to change in nothing.
TEST_F(Flow, UsersTablesLeadToSharedOnes) {
  breaks({"devx-owner"});
  const auto block = caps(0, true);
  EXPECT_EQ(prm::get<prm::cmd_hca_cap::shared_object_to_user_object_allowed>(block.data()), 1u);
  auto drivers = make_flow_table(dev(), 1, 2);
  std::unique_ptr<EthObject> shared;
  {
    const Uctx::As as(dev(), std::uint16_t{0xffff});
    shared = std::make_unique<EthObject>(make_flow_table(dev(), 1, 2));
  }
  Uctx user(dev());
  const Uctx::As as(dev(), user);
  auto own = make_flow_table(dev(), 1, 1);
  auto group = make_flow_group(dev(), own.number(), 0, 1);
  Mailbox in = entry(own.number(), group.number(), 0);
  forward(in, 1, drivers.number());
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadRes);
  forward(in, 1, shared->number());
  EXPECT_OK(dev().exec(in));
  EXPECT_STATUS(create_group(shared->number(), 0, 1), CmdStatus::kBadRes);
  EXPECT_STATUS(shared->destroy(), CmdStatus::kBadRes);
  EXPECT_OK(delete_entry(own.number(), 0));
}

}  // namespace
}  // namespace hcasim::bare
