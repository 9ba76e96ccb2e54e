// SPDX-License-Identifier: BSD-3-Clause
// Steering by software as its user sees it: SW ICM objects and keys, entries written with RDMA WRITE by a QP
// whose packets loop inside the HCA, tables that begin there, what entries say done to frames.
#include "later_chip.h"
#include "prm/header_argument.h"
#include "ste_writer.h"

namespace hcasim::bare {
namespace {

using prm::CmdStatus;
using prm::SteRx;
using prm::SteTx;
using Dev = prm::device_mem_cap;
using Nic = prm::flow_table_nic_cap;
using IcmIn = prm::create_sw_icm_in;
using GeneralIn = prm::general_obj_in_cmd_hdr;

class SwSteering : public EthTest {
 protected:
  void SetUp() override {
    EthTest::SetUp();
    const auto memory = caps(dev(), 15), tables = caps(dev(), 7);
    icm_start = prm::get<Dev::steering_sw_icm_start_address>(memory.data());
    icm_log = prm::get<Dev::log_steering_sw_icm_size>(memory.data());
    granule = 1ull << prm::get<Dev::log_sw_icm_alloc_granularity>(memory.data());
    rx_drop = prm::get<Nic::sw_steering_nic_rx_action_drop_icm_address>(tables.data());
    tx_allow = prm::get<Nic::sw_steering_nic_tx_action_allow_icm_address>(tables.data());
    EXPECT_EQ(prm::get<Nic::flow_table_properties_nic_receive::sw_owner>(tables.data()), 1u);
  }
  std::uint64_t icm_start = 0, granule = 0, rx_drop = 0, tx_allow = 0;
  unsigned icm_log = 0;
};

TEST_F(SwSteering, MemoryIsGivenOutInGranulesOfItsAreas) {
  breaks({"object-unknown", "sw-icm-range"});
  EXPECT_CMD_STATUS(create_icm(dev(), icm_start + 64, kLogIcm), CmdStatus::kBadParam);
  EXPECT_CMD_STATUS(create_icm(dev(), icm_start, 3), CmdStatus::kBadParam);
  EXPECT_CMD_STATUS(create_icm(dev(), icm_start, icm_log + 1), CmdStatus::kBadParam);
  EXPECT_CMD_STATUS(create_icm(dev(), 0x1000, kLogIcm), CmdStatus::kBadParam);
  EXPECT_CMD_STATUS(create_icm(dev(), icm_start + (1ull << icm_log), kLogIcm), CmdStatus::kBadParam);
  EthObject icm = make_icm(dev(), icm_start + granule, kLogIcm);
  EXPECT_CMD_STATUS(create_icm(dev(), icm_start, kLogIcm), CmdStatus::kBadParam);
  const auto q = general(dev(), prm::op::QUERY_GENERAL_OBJECT, prm::k::OBJ_TYPE_SW_ICM, icm.number()).must();
  EXPECT_EQ(q.get<IcmIn::sw_icm::sw_icm_start_addr>(), icm_start + granule);
  EXPECT_EQ(q.get<IcmIn::sw_icm::log_sw_icm_size>(), kLogIcm);
  EXPECT_CMD_OK(icm.destroy());
  EXPECT_CMD_STATUS(general(dev(), prm::op::DESTROY_GENERAL_OBJECT, prm::k::OBJ_TYPE_SW_ICM, icm.number()),
                    CmdStatus::kBadRes);
  EXPECT_CMD_OK(dev().exec(Mailbox(prm::op::SYNC_STEERING, prm::sync_steering_in::bytes)));
}

// A driver that goes without a word leaves no memory to the next one.
TEST_F(SwSteering, MemoryGoesWithTheDriver) {
  breaks({"sw-icm-range", "teardown-objects"});
  const auto make = [this] { return create_icm(dev(), icm_start, kLogIcm); };
  EXPECT_CMD_OK(make());
  EXPECT_CMD_STATUS(make(), CmdStatus::kBadParam);
  dev().teardown();
  dev().probe();
  EXPECT_CMD_OK(make());
  dev().teardown();
  dev().cmd().start();
  dev().enable_hca().must();
  dev().give_pages(dev().query_pages(1));
  dev().give_pages(dev().query_pages(2));
  for (unsigned forced = 0; forced < 2; ++forced) {
    dev().init_hca().must();
    EXPECT_CMD_OK(make());
    EXPECT_CMD_OK(dev().teardown_hca(1));
  }
  dev().function_reset();
  dev().probe();
}

TEST_F(SwSteering, KeysReachAllocatedMemoryAlone) {
  breaks({"mkey-list", "rkey-bounds"});
  Writer w(dev(), icm_start);
  Mailbox out_of = create_mkey_mailbox(icm_key(w.link.pd, icm_start + granule, 1u << kLogIcm));
  EXPECT_CMD_STATUS(dev().exec(out_of), CmdStatus::kBadParam);
  EXPECT_CMD_STATUS(dev().exec(create_mkey_mailbox(icm_key(w.link.pd, 0x1000, 64))), CmdStatus::kBadParam);
  fill_random(w.buffer.data(), w.buffer.size(), 9);
  const std::vector<std::uint8_t> sent(w.buffer.data() + 0, w.buffer.data() + 5000);
  w.move(WqeOp::kRdmaWrite, 100, 5000);
  std::memset(w.buffer.data(), 0, 5000);
  w.move(WqeOp::kRdmaRead, 100, 5000);
  EXPECT_EQ(std::memcmp(w.buffer.data(), sent.data(), sent.size()), 0);
  SendWr wr;
  wr.op = WqeOp::kRdmaRead;
  wr.sges = {{w.mr.start(), w.mr.key(), 64}};
  wr.raddr = (1u << kLogIcm) - 32;
  wr.rkey = w.key.key();
  w.qp.post(wr);
  EXPECT_TRUE(w.cq.wait_one().error());
}

TEST_F(SwSteering, FramesFollowTheEntriesAsTheyStand) {
  Writer w(dev(), icm_start);
  const EthObject counter = make_flow_counter(dev());
  const SteTir tir(w.link);
  w.write(0, Entry(prm::SteType::kRx, icm_start + 64));
  w.write(64, Entry(prm::SteType::kRx, tir.icm)
                  .set<SteRx::flow_tag_en>(1)
                  .set<SteRx::flow_tag>(0x123)
                  .set<prm::Ste::counter_15_0>(counter.number()));
  EthObject table = w.table(0, kNicRxTable);
  auto rule = w.lead_to(table.number());
  w.link.rq.post({w.link.rx_sge(0, 2048)});
  w.link.send(plain_frame(300));
  const Completion c = w.link.rcq.wait_one();
  EXPECT_EQ(c.byte_cnt, 300u);
  EXPECT_EQ(c.raw.sop_drop_qpn & 0xffffff, 0x123u);
  EXPECT_EQ(w.link.received(0, 300), plain_frame(300));
  EXPECT_EQ(counted(dev(), counter.number()), 1u);
  // The second entry now drops, and counts all the same.
  w.write(64, Entry(prm::SteType::kRx, rx_drop).set<prm::Ste::counter_15_0>(counter.number()));
  w.link.scq.wait_one();
  expect_good(w.link.scq, w.link.send(plain_frame(300)));
  EXPECT_EQ(counted(dev(), counter.number()), 2u);
  // Without its memory the table leads nowhere.
  w.icm.destroy().must();
  expect_good(w.link.scq, w.link.send(plain_frame(300)));
  EXPECT_EQ(counted(dev(), counter.number()), 2u);
  EXPECT_FALSE(w.link.rcq.ready());
}

TEST_F(SwSteering, WhatIsSentIsSteeredToo) {
  Writer w(dev(), icm_start);
  w.write(0, Entry(prm::SteType::kTx, tx_allow)
                 .set<SteTx::action_type>(SteTx::kPushVlan)
                 .set<SteTx::encap_vlan>(0x81000123));
  EthObject table = w.table(0, kNicTxTable);
  set_flow_root(dev(), table.number(), kNicTxTable).must();
  w.link.rq.post({w.link.rx_sge(0, 2048)});
  w.link.send(plain_frame(300));
  EXPECT_EQ(w.link.rcq.wait_one().byte_cnt, 304u);
  Frame want = plain_frame(300);
  const std::uint8_t tag[] = {0x81, 0x00, 0x01, 0x23};
  want.insert(want.begin() + 12, tag, tag + 4);
  EXPECT_EQ(w.link.received(0, 304), want);
}

// Every frame to the firmware's table, every fourth to the sampled one too.
TEST_F(SwSteering, SamplersAndTablesAreReachedByAddress) {
  breaks({"destroy-busy", "flow-sampler"});
  Writer w(dev(), icm_start);
  EthObject sampled = make_flow_table(dev(), 1, 61), rest = make_flow_table(dev(), 1, 61);
  const EthObject sampled_all = make_flow_group(dev(), sampled.number(), 0, 0);
  const EthObject rest_all = make_flow_group(dev(), rest.number(), 0, 0);
  FlowRule to_tir;
  to_tir.table = sampled.number();
  to_tir.group = sampled_all.number();
  to_tir.to = {{FlowDest::kTir, w.link.tir.number()}};
  const EthObject rule1 = make_flow(dev(), to_tir);
  FlowRule drop;
  drop.table = rest.number();
  drop.group = rest_all.number();
  const EthObject rule2 = make_flow(dev(), drop);
  using In = prm::create_sampler_obj_in;
  Mailbox in(prm::op::CREATE_GENERAL_OBJECT, In::bytes);
  in.set<GeneralIn::obj_type>(prm::k::GENERAL_OBJECT_TYPES_SAMPLER);
  in.set<In::sampler_object::level>(60).set<In::sampler_object::sample_table_id>(sampled.number());
  in.set<In::sampler_object::default_table_id>(rest.number());
  EXPECT_CMD_STATUS(dev().exec(in, 16), CmdStatus::kBadParam);  // ratio 0
  in.set<In::sampler_object::sample_ratio>(4);
  const auto id = dev().exec(in, 16).must().get<prm::general_obj_out_cmd_hdr::obj_id>();
  const auto q =
      general(dev(), prm::op::QUERY_GENERAL_OBJECT, prm::k::GENERAL_OBJECT_TYPES_SAMPLER, id).must();
  EXPECT_EQ(q.get<prm::query_sampler_obj_out::sampler_object::sample_ratio>(), 4u);
  EXPECT_EQ(q.get<prm::query_sampler_obj_out::sampler_object::sw_steering_icm_address_tx>(),
            q.get<prm::query_sampler_obj_out::sampler_object::sw_steering_icm_address_rx>())
      << "for what functions send";
  w.write(0, Entry(prm::SteType::kRx,
                   q.get<prm::query_sampler_obj_out::sampler_object::sw_steering_icm_address_rx>()));
  EXPECT_FALSE(sampled.destroy().ok());
  {
    EthObject table = w.table(0, kNicRxTable);
    const auto rule = w.lead_to(table.number());
    for (unsigned i = 0; i < 3; ++i) w.link.rq.post({w.link.rx_sge(2048 * i, 2048)});
    for (unsigned i = 0; i < 12; ++i) expect_good(w.link.scq, w.link.send(plain_frame(300)));
    EXPECT_EQ(w.link.rcq.wait(3).size(), 3u);
    // And a table's own address.
    using Q = prm::query_flow_table_in;
    Mailbox query(prm::op::QUERY_FLOW_TABLE, Q::bytes);
    const auto t =
        dev().exec(query.set<Q::table_id>(sampled.number()), prm::query_flow_table_out::bytes).must();
    w.write(0, Entry(prm::SteType::kRx,
                     t.get<prm::query_flow_table_out::flow_table_context::sws::sw_owner_icm_root_0>()));
    w.link.rq.post({w.link.rx_sge(0, 2048)});
    w.link.send(plain_frame(200));
    EXPECT_EQ(w.link.rcq.wait_one().byte_cnt, 200u);
  }
  general(dev(), prm::op::DESTROY_GENERAL_OBJECT, prm::k::GENERAL_OBJECT_TYPES_SAMPLER, id).must();
}

// Entries name samplers, which name tables: whatever a reset takes first is still referred to (what it reads
// then, the sanitizers see).
TEST_F(SwSteering, AResetTakesSamplersThatEntriesName) {
  breaks({"destroy-busy"});
  for (unsigned i = 0; i < 3; ++i) {
    EthObject sampled = make_flow_table(dev(), 1, 61), first = make_flow_table(dev(), 1, 1);
    EthObject all = make_flow_group(dev(), first.number(), 0, 0);
    using In = prm::create_sampler_obj_in;
    Mailbox in(prm::op::CREATE_GENERAL_OBJECT, In::bytes);
    in.set<GeneralIn::obj_type>(prm::k::GENERAL_OBJECT_TYPES_SAMPLER);
    in.set<In::sampler_object::level>(60).set<In::sampler_object::sample_ratio>(2);
    in.set<In::sampler_object::sample_table_id>(sampled.number());
    in.set<In::sampler_object::default_table_id>(sampled.number());
    FlowRule rule;
    rule.table = first.number(), rule.group = all.number();
    rule.to = {{FlowDest::kSampler, dev().exec(in, 16).must().get<prm::general_obj_out_cmd_hdr::obj_id>()}};
    try_flow(dev(), rule).must();
    EXPECT_FALSE(
        general(dev(), prm::op::DESTROY_GENERAL_OBJECT, prm::k::GENERAL_OBJECT_TYPES_SAMPLER, rule.to[0].id)
            .ok());
    dev().function_reset();
    dev().probe();
  }
  expect_frames_go_on();
}

// Entries of the later chips (HCASIM_TEST_OPTIONS=generation=connectx7): with a mask of their own or without,
// tags, counters, headers rewritten.
using SwSteeringLater = EthTest;
TEST_F(SwSteeringLater, FramesFollowTheEntriesOfTheChip) {
  using prm::SteV1;
  using Act = prm::SteV1Action;
  Device& d = dev();
  const auto memory = caps(d, 15), tables = caps(d, 7);
  if (!later_chip()) GTEST_SKIP() << "the default chip";
  ASSERT_EQ(prm::get<Nic::flow_table_properties_nic_receive::sw_owner_v2>(tables.data()), 1u);
  Writer w(d, prm::get<Dev::steering_sw_icm_start_address>(memory.data()));
  const EthObject counter = make_flow_counter(d);
  const SteTir tir(w.link);
  Entry first = later_entry(w.base + 64), second = later_entry(tir.icm);
  first.set<SteV1::counter>(counter.number());
  prm::store32(first.bytes.data() + SteV1::kActions, Act::kFlowTag << 24 | 0x123);
  second.set<SteV1::format>(4);
  // The first four bytes of the destination.
  prm::store32(second.bytes.data() + SteV1::kLongActions, Act::kSet << 24 | 32 << 8 | 32);
  prm::store32(second.bytes.data() + SteV1::kLongActions + 4, 0x02a1b2c3);
  w.write(0, first);
  w.write(64, second);
  EthObject table = w.table(0, kNicRxTable);
  const auto rule = w.lead_to(table.number());
  w.link.rq.post({w.link.rx_sge(0, 2048)});
  w.link.send(plain_frame(300));
  const Completion c = w.link.rcq.wait_one();
  EXPECT_EQ(c.raw.sop_drop_qpn & 0xffffff, 0x123u);
  Frame want = plain_frame(300);
  const std::uint8_t to[] = {0x02, 0xa1, 0xb2, 0xc3};
  std::copy(to, to + 4, want.begin());
  EXPECT_EQ(w.link.received(0, 300), want);
  EXPECT_EQ(counted(d, counter.number()), 1u);
}

// By an object that says which fields there are in the entry: here the first four bytes of the destination.
TEST_F(SwSteeringLater, EntriesMatchByDefiner) {
  using prm::SteV1;
  using In = prm::create_match_definer_in;
  constexpr std::uint16_t kType = prm::k::OBJ_TYPE_MATCH_DEFINER;
  constexpr std::size_t kDmac = 8;  // in the words of format 0
  Device& d = dev();
  if (!later_chip()) GTEST_SKIP() << "the default chip";
  EXPECT_GT(d.cap<prm::cmd_hca_cap::max_num_match_definer>(), 0u);
  EXPECT_NE(d.cap<prm::cmd_hca_cap::general_obj_types>() >> kType & 1, 0u);
  // What rdma-core asks for, one after the other, for masks that they hold.
  for (const unsigned format : {0, 2, 6, 16, 22, 24, 25, 26, 28, 33})
    EXPECT_NE(d.cap<prm::cmd_hca_cap::match_definer_format_supported>() >> format & 1, 0u) << format;
  Mailbox in(prm::op::CREATE_GENERAL_OBJECT, In::bytes);
  in.set<GeneralIn::obj_type>(kType).set<In::obj_context::format_id>(0);
  std::uint8_t* mask = in.data() + In::obj_context::match_mask_format::bit_off / 8 + 32;
  prm::store32(mask + kDmac, ~0u);
  const auto id = d.exec(in, 16).must().get<prm::general_obj_out_cmd_hdr::obj_id>();
  {
    const auto memory = caps(d, 15), tables = caps(d, 7);
    Writer w(d, prm::get<Dev::steering_sw_icm_start_address>(memory.data()));
    const SteTir tir(w.link);
    const std::uint64_t drop = prm::get<Nic::sw_steering_nic_rx_action_drop_icm_address>(tables.data());
    const Frame frame = plain_frame(300);
    Entry e = later_entry(tir.icm);
    e.set<SteV1::format>(4).set<SteV1::definer>(id);
    e.set<SteV1::miss_39_32>(drop >> 32).set<SteV1::miss_31_6>((drop & 0xffffffff) >> 6);
    std::copy(frame.begin(), frame.begin() + 4, e.bytes.begin() + prm::kSteV1MatchTag + kDmac);
    w.write(0, e);
    EthObject table = w.table(0, kNicRxTable);
    const auto rule = w.lead_to(table.number());
    w.link.rq.post({w.link.rx_sge(0, 2048)});
    w.link.send(frame);
    EXPECT_EQ(w.link.rcq.wait_one().byte_cnt, 300u);
    Frame other = frame;
    other[3] ^= 1;
    w.link.rq.post({w.link.rx_sge(0, 2048)});
    w.link.scq.wait_one();
    expect_good(w.link.scq, w.link.send(other));
    machine().advance(100'000);
    EXPECT_FALSE(w.link.rcq.ready());
  }
  general(d, prm::op::DESTROY_GENERAL_OBJECT, kType, id).must();
}

// Arguments of rewriting lists: objects of a range, written by queues of their PD alone.
TEST_F(SwSteeringLater, QueuesWriteArguments) {
  breaks({"object-unknown", "object-reference", "cap-not-offered", "wqe-segment"});
  using prm::SteV1;
  using Act = prm::SteV1Action;
  constexpr std::uint16_t kType = prm::k::OBJ_TYPE_HEADER_MODIFY_ARGUMENT;
  Device& d = dev();
  if (!later_chip()) GTEST_SKIP() << "the default chip";
  ASSERT_NE(d.cap<prm::cmd_hca_cap::general_obj_types>() >> kType & 1, 0u);
  const auto memory = caps(d, 15);
  const std::uint64_t patterns = prm::get<Dev::header_modify_pattern_sw_icm_start_address>(memory.data());
  Writer w(d, prm::get<Dev::steering_sw_icm_start_address>(memory.data()));
  const unsigned most = d.cap<prm::cmd_hca_cap::log_header_modify_argument_max_alloc>();
  const auto create = [&](unsigned range, std::uint32_t pd) {
    using In = prm::create_modify_header_arg_in;
    Mailbox in(prm::op::CREATE_GENERAL_OBJECT, In::bytes);
    in.set<In::hdr::obj_type>(kType).set<In::hdr::op_param::create::log_obj_range>(range);
    return d.exec(in.set<In::arg::access_pd>(pd), prm::general_obj_out_cmd_hdr::bytes);
  };
  EXPECT_CMD_STATUS(create(most + 1, w.link.pd.pdn()), CmdStatus::kBadParam);
  EXPECT_CMD_STATUS(create(0, 0x7777), CmdStatus::kBadRes);
  const std::uint32_t id = create(1, w.link.pd.pdn()).must().get<prm::general_obj_out_cmd_hdr::obj_id>();
  const auto access = [&](std::uint32_t number, std::uint32_t value, std::uint8_t opmod, unsigned units) {
    std::vector<std::uint8_t> wqe(128);
    prm::CtrlSeg ctrl{};
    ctrl.set(WqeOp::kFlowTableAccess, w.qp.sq_producer(), w.qp.qpn(), units, prm::kCeAlways, false, opmod);
    ctrl.imm = number;
    std::memcpy(wqe.data(), &ctrl, sizeof ctrl);
    prm::store32(wqe.data() + sizeof ctrl + prm::kFlowUpdateCtrl + 4, value);
    w.qp.post_raw(wqe, 2);
    return !w.cq.wait_one().error();
  };
  EXPECT_TRUE(access(id + 1, 0x02a1b2c3, prm::kUpdateHeaderArgument, 8));
  // The first four bytes of the destination, which the pattern leaves to the arguments.
  const EthObject area = make_icm(d, patterns, 12);
  const Mr key(d, icm_key(w.link.pd, patterns, 1u << 12));
  std::memset(w.buffer.data(), 0, 64);
  prm::store32(w.buffer.data(), Act::kSet << 24 | 32 << 8 | 32);
  w.move(WqeOp::kRdmaWrite, 64, 64, key);
  const SteTir tir(w.link);
  Entry e = later_entry(tir.icm);
  prm::store32(e.bytes.data() + SteV1::kActions, Act::kAcceleratedList << 24 | 1);
  prm::store32(e.bytes.data() + SteV1::kActions + 4, 1u << 24 | (id + 1));
  w.write(0, e);
  EthObject table = w.table(0, kNicRxTable);
  const auto rule = w.lead_to(table.number());
  w.link.rq.post({w.link.rx_sge(0, 2048)});
  w.link.send(plain_frame(300));
  EXPECT_FALSE(w.link.rcq.wait_one().error());
  Frame want = plain_frame(300);
  const std::uint8_t to[] = {0x02, 0xa1, 0xb2, 0xc3};
  std::copy(to, to + 4, want.begin());
  EXPECT_EQ(w.link.received(0, 300), want);
  // Last, as the queue ends by it: no such arguments.
  EXPECT_FALSE(access(id + 2, 1, prm::kUpdateHeaderArgument, 8));
  general(d, prm::op::DESTROY_GENERAL_OBJECT, kType, id).must();
  EXPECT_CMD_STATUS(general(d, prm::op::DESTROY_GENERAL_OBJECT, kType, id), CmdStatus::kBadRes);
}

}  // namespace
}  // namespace hcasim::bare
