// SPDX-License-Identifier: BSD-3-Clause
// Link aggregation of a card's two ports, with a third HCA at the far end, all on one switch. (A process
// each: HCAs are made before time starts.)
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "driver/bare/dct.h"
#include "driver/bare/qp.h"
#include "fixture.h"
#include "prm/prm.h"

namespace hcasim::bare {
namespace {

constexpr std::size_t kMemory = std::size_t{256} << 20;
constexpr std::uint32_t kOptLagAffinity = 1u << 15;  // MLX5_QP_OPTPAR_LAG_TX_AFF

struct End {
  explicit End(Device& device, const QpOptions& options = {})
      : dev(device),
        pd(device),
        cq(device),
        qp(device, pd, cq, cq, options),
        mem(device.memory().allocate(1 << 20)),
        mr(device, Mr::of(pd, mem, kAllAccess)) {}

  Device& dev;
  Pd pd;
  Cq cq;
  Qp qp;
  Buffer mem;
  Mr mr;
};

class LagTest : public ::testing::Test {
 protected:
  LagTest() {
    machine.add_hca("name=near0,link=eth,card=near,switch=s");
    machine.add_hca("name=near1,link=eth,card=near,switch=s");
    machine.add_hca("name=far,link=eth,switch=s");
    machine.start();
    for (std::size_t i = 0; i < 3; ++i) {
      dev[i] = std::make_unique<Device>(machine.function(i));
      dev[i]->probe();
    }
  }
  CommandResult create(std::uint32_t first, std::uint32_t second, std::size_t from = 0,
                       std::uint32_t mode = 0, bool native = false) {
    using In = prm::create_lag_in;
    Mailbox in(prm::op::CREATE_LAG, In::bytes);
    in.set<In::ctx::tx_remap_affinity_1>(first).set<In::ctx::tx_remap_affinity_2>(second);
    in.set<In::ctx::port_select_mode>(mode).set<In::ctx::fdb_selection_mode>(native);
    return dev[from]->exec(in);
  }
  CommandResult remap(std::uint32_t first, std::uint32_t second, std::uint32_t select = 1) {
    using In = prm::modify_lag_in;
    Mailbox in(prm::op::MODIFY_LAG, In::bytes);
    in.set<In::ctx::tx_remap_affinity_1>(first).set<In::ctx::tx_remap_affinity_2>(second);
    return dev[0]->exec(in.set<In::field_select>(select));
  }
  CommandResult plain(std::uint16_t opcode, std::size_t from = 0) {
    Mailbox in(opcode, prm::destroy_lag_in::bytes);
    return dev[from]->exec(in);
  }
  CommandResult query(std::size_t from) {
    Mailbox in(prm::op::QUERY_LAG, prm::query_lag_in::bytes);
    return dev[from]->exec(in, prm::query_lag_out::bytes).must();
  }
  static CommandResult set_affinity(Qp& qp, std::uint32_t port) {
    return qp.modify(prm::op::RTS2RTS_QP, kOptLagAffinity,
                     [port](std::uint8_t* qpc) { prm::set<prm::qpc::lag_tx_port_affinity>(qpc, port); });
  }
  std::uint64_t sent(std::size_t i) { return machine.function(i).counter("tx_packets"); }
  // Writes from the first port's device to the far one, so many packets; how many have left by each port.
  std::pair<std::uint64_t, std::uint64_t> write(End& from, End& to) {
    const std::uint64_t before[] = {sent(0), sent(1)};
    fill_random(from.mem.data(), kBytes, ++seed);
    SendWr w;
    w.op = WqeOp::kRdmaWrite;
    w.sges = {{from.mr.start(), from.mr.key(), kBytes}};
    w.raddr = to.mr.start();
    w.rkey = to.mr.key();
    expect_good(from.cq, from.qp.post(w));
    machine.advance(100'000);
    EXPECT_EQ(std::memcmp(from.mem.data(), to.mem.data(), kBytes), 0);
    return {sent(0) - before[0], sent(1) - before[1]};
  }
  static constexpr std::uint32_t kBytes = 64 << 10;
  static constexpr std::uint64_t kPackets = kBytes / 4096;

  Machine machine{kMemory};
  std::unique_ptr<Device> dev[3];
  std::uint64_t seed = 0;
};

using Sent = std::pair<std::uint64_t, std::uint64_t>;

// Each port sends what there is for it: many queues that wait for one are not before the one queue of the
// other.
TEST_F(LagTest, AQueueDoesNotWaitForThoseOfTheOtherPort) {
  create(1, 2).must();
  QpOptions uc;
  uc.type = QpType::kUc;  // what the far end's one cable does not take is lost, and nobody waits for it
  std::vector<std::unique_ptr<End>> from, to;
  for (unsigned i = 0; i < 17; ++i) {
    from.push_back(std::make_unique<End>(*dev[0], uc));
    to.push_back(std::make_unique<End>(*dev[2], uc));
    connect_pair(from[i]->qp, to[i]->qp);
    set_affinity(from[i]->qp, i == 16 ? 2 : 1).must();
  }
  const Sent before{sent(0), sent(1)};
  for (unsigned i = 0; i < 17; ++i) {
    SendWr w;
    w.op = WqeOp::kRdmaWrite;
    w.sges = {{from[i]->mr.start(), from[i]->mr.key(), 1 << 20}};
    w.raddr = to[i]->mr.start();
    w.rkey = to[i]->mr.key();
    for (int n = 0; n < 4; ++n) from[i]->qp.post(w);
  }
  machine.advance(200'000);
  const std::uint64_t one = sent(0) - before.first, other = sent(1) - before.second;
  EXPECT_GT(one, 300u);
  EXPECT_GT(other, one * 3 / 4);
  machine.advance(10'000'000);
}

TEST_F(LagTest, OnlyTheFirstPortsFunctionSetsIt) {
  breaks_any_rule();
  using C = prm::query_lag_out::ctx;
  EXPECT_EQ(query(0).get<C::lag_state>(), 0u);
  EXPECT_CMD_STATUS(create(1, 2, 1), CmdStatus::kBadParam);
  EXPECT_CMD_STATUS(create(1, 2, 2), CmdStatus::kBadOp);  // a card of one port
  EXPECT_CMD_STATUS(create(0, 2), CmdStatus::kBadParam);
  EXPECT_CMD_STATUS(create(1, 3), CmdStatus::kBadParam);
  EXPECT_CMD_STATUS(create(1, 2, 0, 1), CmdStatus::kBadParam);        // by flow table
  EXPECT_CMD_STATUS(create(1, 2, 0, 0, true), CmdStatus::kBadParam);  // without an E-Switch
  EXPECT_CMD_STATUS(remap(1, 1), CmdStatus::kBadResState);
  EXPECT_CMD_STATUS(plain(prm::op::DESTROY_LAG), CmdStatus::kBadResState);
  EXPECT_CMD_STATUS(plain(prm::op::CREATE_VPORT_LAG), CmdStatus::kBadResState);
  EXPECT_CMD_OK(create(1, 2));
  EXPECT_CMD_STATUS(create(1, 2), CmdStatus::kBadResState);
  EXPECT_CMD_STATUS(remap(1, 4), CmdStatus::kBadParam);
  EXPECT_CMD_STATUS(remap(1, 1, 2), CmdStatus::kBadParam);
  EXPECT_CMD_OK(remap(2, 2));
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const CommandResult r = query(i);
    EXPECT_EQ(r.get<C::lag_state>(), 1u);
    EXPECT_EQ(r.get<C::tx_remap_affinity_1>(), 2u);
    EXPECT_EQ(r.get<C::tx_remap_affinity_2>(), 2u);
  }
  EXPECT_EQ(query(2).get<C::lag_state>(), 0u);
  EXPECT_CMD_OK(plain(prm::op::CREATE_VPORT_LAG));
  EXPECT_CMD_STATUS(plain(prm::op::CREATE_VPORT_LAG), CmdStatus::kBadResState);
  EXPECT_CMD_OK(plain(prm::op::DESTROY_VPORT_LAG));
  EXPECT_CMD_STATUS(plain(prm::op::DESTROY_VPORT_LAG), CmdStatus::kBadResState);
  EXPECT_CMD_OK(plain(prm::op::DESTROY_LAG));
  EXPECT_EQ(query(1).get<C::lag_state>(), 0u);
}

TEST_F(LagTest, AQueueLeavesByThePortThatStandsForItsAffinity) {
  breaks_any_rule();
  End near(*dev[0]), far(*dev[2]);
  connect_pair(near.qp, far.qp);
  EXPECT_EQ(write(near, far), (Sent{kPackets, 0}));
  // Without a LAG, the affinity means nothing.
  EXPECT_CMD_OK(set_affinity(near.qp, 2));
  EXPECT_EQ(write(near, far), (Sent{kPackets, 0}));
  EXPECT_EQ(near.qp.query().must().get<prm::query_qp_out::qpc::lag_tx_port_affinity>(), 2u);
  ASSERT_TRUE(create(1, 2).ok());
  ASSERT_TRUE(plain(prm::op::CREATE_VPORT_LAG).ok());
  EXPECT_EQ(write(near, far), (Sent{0, kPackets}));
  EXPECT_CMD_OK(set_affinity(near.qp, 1));
  EXPECT_EQ(write(near, far), (Sent{kPackets, 0}));
  EXPECT_CMD_OK(remap(2, 1));
  EXPECT_EQ(write(near, far), (Sent{0, kPackets}));
  EXPECT_CMD_OK(set_affinity(near.qp, 0));  // its function's own
  EXPECT_EQ(write(near, far), (Sent{0, kPackets}));
  EXPECT_CMD_STATUS(set_affinity(near.qp, 3), prm::CmdStatus::kBadParam);
  EXPECT_CMD_STATUS(set_affinity(far.qp, 1), prm::CmdStatus::kBadParam);  // not offered
}

// As a QP's, that of a DC target: Linux gives targets of a bond ports 1 and 2 in turn.
TEST_F(LagTest, ATargetsAnswersLeaveByItsPort) {
  breaks_any_rule();
  EXPECT_NE(dev[0]->cap<prm::cmd_hca_cap::lag_dct>(), 0u) << "or mlx5_ib makes no targets on a bond";
  EXPECT_EQ(dev[2]->cap<prm::cmd_hca_cap::lag_dct>(), 0u);
  End near(*dev[0]), far(*dev[2]);
  Srq srq(*dev[0], near.pd), far_srq(*dev[2], far.pd);
  ASSERT_TRUE(create(1, 2).ok());
  ASSERT_TRUE(plain(prm::op::CREATE_VPORT_LAG).ok());
  QpOptions o;
  o.type = QpType::kDci;
  Qp initiator(*dev[2], far.pd, far.cq, far.cq, o, &far_srq);
  initiator.connect({});
  for (const unsigned port : {1u, 2u, 2u}) {
    DctOptions d;
    d.port = port;
    const Dct target(*dev[0], near.pd, near.cq, srq, d);
    SendWr w;
    w.op = WqeOp::kRdmaRead;
    w.sges = {{far.mr.start(), far.mr.key(), kBytes}};
    w.raddr = near.mr.start();
    w.rkey = near.mr.key();
    w.av.qpn = target.dctn();
    w.av.dc_key = target.key();
    w.av.roce.dgid = dev[0]->roce_entry(dev[0]->sgid_index()).gid;
    w.av.roce.dmac = dev[0]->mac();
    const std::uint64_t before[] = {sent(0), sent(1)};
    expect_good(far.cq, initiator.post(w));
    EXPECT_GE(sent(port - 1) - before[port - 1], kPackets) << port;
    EXPECT_EQ(sent(2 - port) - before[2 - port], 0u) << port;
  }
  DctOptions d;
  d.port = 3;
  EXPECT_THROW(Dct(*dev[0], near.pd, near.cq, srq, d), BareError);
  d.port = 2;
  EXPECT_THROW(Dct(*dev[2], far.pd, far.cq, far_srq, d), BareError) << "a card of one port";
}

// What the far end sends reaches the first port's queues by either port, once the two are one vport.
TEST_F(LagTest, BothPortsReceiveForTheMaster) {
  End near(*dev[0]), far(*dev[2]);
  connect_pair(near.qp, far.qp);
  ASSERT_TRUE(create(1, 2).ok());
  ASSERT_TRUE(plain(prm::op::CREATE_VPORT_LAG).ok());
  for (const std::uint32_t port : {2u, 1u, 2u}) {
    EXPECT_CMD_OK(set_affinity(near.qp, port));
    write(near, far);  // from where on the switch has learned its address
    const std::uint64_t before[] = {machine.function(0).counter("rx_packets"),
                                    machine.function(1).counter("rx_packets")};
    fill_random(far.mem.data(), kBytes, port);
    SendWr w;
    w.op = WqeOp::kRdmaWrite;
    w.sges = {{far.mr.start(), far.mr.key(), kBytes}};
    w.raddr = near.mr.start();
    w.rkey = near.mr.key();
    expect_good(far.cq, far.qp.post(w));
    machine.advance(100'000);
    EXPECT_EQ(std::memcmp(near.mem.data(), far.mem.data(), kBytes), 0);
    EXPECT_GE(machine.function(port - 1).counter("rx_packets") - before[port - 1], kPackets);
    EXPECT_EQ(machine.function(2 - port).counter("rx_packets") - before[2 - port], 0u);
  }
  // Until then it is not its.
  EXPECT_CMD_OK(plain(prm::op::DESTROY_VPORT_LAG));
  const std::uint64_t dropped = machine.function(1).counter("rx_dropped");
  SendWr w;
  w.op = WqeOp::kRdmaWrite;
  w.sges = {{far.mr.start(), far.mr.key(), 64}};
  w.raddr = near.mr.start();
  w.rkey = near.mr.key();
  far.qp.post(w);
  machine.advance(1'000'000);
  EXPECT_GT(machine.function(1).counter("rx_dropped"), dropped);
  EXPECT_FALSE(far.cq.poll().has_value());
}

// A cable is pulled and the other port takes over: a retransmission later, no more.
TEST_F(LagTest, APulledCableCostsNoError) {
  End near(*dev[0]), far(*dev[2]);
  connect_pair(near.qp, far.qp);
  ASSERT_TRUE(create(1, 1).ok());
  ASSERT_TRUE(plain(prm::op::CREATE_VPORT_LAG).ok());
  EXPECT_EQ(write(near, far), (Sent{kPackets, 0}));
  ASSERT_EQ(machine.function(0).inject("link=down"), "");
  SendWr w;
  w.op = WqeOp::kRdmaWrite;
  w.sges = {{near.mr.start(), near.mr.key(), kBytes}};
  w.raddr = far.mr.start();
  w.rkey = far.mr.key();
  const std::uint16_t posted = near.qp.post(w);
  machine.advance(1'000'000);
  EXPECT_CMD_OK(remap(2, 2));
  expect_good(near.cq, posted);
  EXPECT_GT(machine.function(0).counter("retransmits"), 0u);
  EXPECT_EQ(write(near, far), (Sent{0, kPackets}));
}

TEST_F(LagTest, AResetOfTheMasterEndsIt) {
  breaks({"cmdq-doorbell-early"});  // its driver does not know of the reset
  using C = prm::query_lag_out::ctx;
  ASSERT_TRUE(create(2, 2).ok());
  dev[0]->teardown();
  EXPECT_EQ(query(1).get<C::lag_state>(), 0u);
  dev[0].reset();
  dev[0] = std::make_unique<Device>(machine.function(0));
  dev[0]->probe();
  ASSERT_TRUE(create(2, 2).ok());
  machine.function(0).reset();
  EXPECT_EQ(query(1).get<C::lag_state>(), 0u);
}

// Which of the ports' frames are whose, a table in the master's says.
TEST_F(LagTest, ADemuxTableIsTheMastersAlone) {
  breaks_any_rule();
  using In = prm::create_flow_table_in;
  const auto make = [&](std::size_t from, std::uint32_t type, std::uint32_t next) {
    Mailbox in(prm::op::CREATE_FLOW_TABLE, In::bytes, 1);
    in.set<In::table_type>(type).set<In::flow_table_context::lag_master_next_table_id>(next);
    return dev[from]->exec(in, prm::create_flow_table_out::bytes);
  };
  EXPECT_CMD_STATUS(make(2, 0, 0), prm::CmdStatus::kBadParam);
  EXPECT_CMD_STATUS(make(0, 1, 0), prm::CmdStatus::kBadParam);  // NIC TX
  EXPECT_CMD_STATUS(make(0, 0, 77), prm::CmdStatus::kBadRes);
  const CommandResult made = make(0, 0, 0);
  EXPECT_CMD_OK(made);
  using Modify = prm::modify_flow_table_in;
  Mailbox in(prm::op::MODIFY_FLOW_TABLE, Modify::bytes);
  in.set<Modify::table_id>(made.get<prm::create_flow_table_out::table_id>())
      .set<Modify::modify_field_select>(1);
  EXPECT_CMD_STATUS(dev[0]->exec(in), prm::CmdStatus::kBadParam);
  in.set<Modify::modify_field_select>(1u << 15);
  EXPECT_CMD_OK(dev[0]->exec(in));
}

}  // namespace
}  // namespace hcasim::bare
