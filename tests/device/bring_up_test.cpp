// SPDX-License-Identifier: BSD-3-Clause
// Probe, removal, reset: what a driver's life looks like.
#include <cstring>

#include "card_state.h"
#include "fixture.h"

namespace hcasim::bare {
namespace {

using BringUp = DeviceTest;

TEST_F(BringUp, PortIsActiveWithALid) {
  EXPECT_EQ(dev().port_state(), 4);
  EXPECT_NE(dev().lid(), 0);
  using Out = prm::query_hca_vport_context_out;
  const auto r = dev().query_vport().must();
  EXPECT_EQ(r.get<Out::hca_vport_context::port_physical_state>(), 5u);
  EXPECT_NE(r.get<Out::hca_vport_context::node_guid>(), 0u);
  EXPECT_NE(r.get<Out::hca_vport_context::port_guid>(), 0u);
  EXPECT_NE(dev().gid(0), std::vector<std::uint8_t>(16));
}

TEST_F(BringUp, CapabilitiesThatTheDriversNeed) {
  using C = prm::cmd_hca_cap;
  EXPECT_EQ(dev().cap<C::port_type>(), 0u);
  EXPECT_EQ(dev().cap<C::num_ports>(), 1u);
  EXPECT_EQ(dev().cap<C::xrc>(), 1u);
  EXPECT_EQ(dev().cap<C::ib_virt>(), 1u);
  EXPECT_EQ(dev().cap<C::cqe_version>(), 1u);
  EXPECT_EQ(dev().cap<C::log_bf_reg_size>(), 9u);
  EXPECT_EQ(dev().cap<C::log_pg_sz>(), 12u);
  EXPECT_GE(dev().cap<C::max_num_eqs>(), 6u);
  EXPECT_GE(dev().cap<C::log_max_eq_sz>(), 13u);
  EXPECT_LE(dev().cap<C::log_max_qp>(), 18u) << "what SET_HCA_CAP asked for is in force";
}

TEST_F(BringUp, RepeatedTenTimes) {
  const std::size_t pages = dev().pages_given();
  EXPECT_GT(pages, 0u) << "page requests are real";
  for (int i = 0; i < 10; ++i) {
    expect_serves_on();
    dev().teardown();
    EXPECT_EQ(leftover_objects(fn()), "") << "round " << i;
    dev().probe();
    EXPECT_EQ(dev().pages_given(), pages);
  }
  expect_serves_on();
}

TEST_F(BringUp, HealthCounterMoves) {
  const auto read = [this] { return fn().read32(offsetof(prm::InitSeg, health_counter)); };
  for (int i = 0; i < 5; ++i) {
    const std::uint32_t before = read();
    machine().advance(2'000'000'000);
    EXPECT_NE(read(), before);
  }
  EXPECT_EQ(fn().read8(offsetof(prm::InitSeg, health) + offsetof(prm::HealthBuffer, synd)), 0);
  EXPECT_NE(fn().read32(offsetof(prm::InitSeg, health) + offsetof(prm::HealthBuffer, fw_ver)), 0xffffffffu);
}

TEST_F(BringUp, TimerRunsAtTheAdvertisedFrequency) {
  const auto khz = dev().cap<prm::cmd_hca_cap::device_frequency_khz>();
  ASSERT_NE(khz, 0u);
  const auto ticks = [this] {
    const std::uint64_t h = fn().read32(offsetof(prm::InitSeg, internal_timer_h));
    return h << 32 | fn().read32(offsetof(prm::InitSeg, internal_timer_l));
  };
  const std::uint64_t t0 = ticks();
  machine().advance(1'000'000);
  EXPECT_NEAR(static_cast<double>(ticks() - t0), static_cast<double>(khz), static_cast<double>(khz) * 0.001);
}

TEST_F(BringUp, FunctionLevelResetReturnsToPowerOn) {
  auto p = std::make_unique<Pair>(dev());
  p->fill(1);
  p->a.post(p->wr(WqeOp::kRdmaWrite, 0, 32768));
  machine().advance(1000);
  dev().function_reset();
  const std::uint64_t interrupts = fn().interrupts();
  const std::uint64_t written = machine().memory().bytes_written();
  machine().advance(50'000'000);
  EXPECT_EQ(fn().interrupts(), interrupts) << "no interrupt after FLR";
  EXPECT_EQ(machine().memory().bytes_written(), written) << "no DMA after FLR";
  EXPECT_EQ(leftover_objects(fn()), "");
  EXPECT_EQ(fn().read32(offsetof(prm::InitSeg, cmdq_addr_h)), 0u);
  p.reset();
  dev().probe();
  expect_serves_on();
}

TEST_F(BringUp, AResetLeavesNothingOfTheLifeBefore) {
  dev().function_reset();
  const std::uint64_t now = fn().state_digest();
  EXPECT_EQ(fn().state_digest(), now) << "asking changes nothing";
  // Statistics and the clock go on.
  const std::uint64_t power_on = test::digest_of_life(fn().handle());
  dev().probe();
  auto p = std::make_unique<Pair>(dev());
  EXPECT_NE(test::digest_of_life(fn().handle()), power_on);
  dev().function_reset();
  EXPECT_EQ(test::digest_of_life(fn().handle()), power_on);
  p.reset();
  dev().probe();
  expect_serves_on();
}

TEST_F(BringUp, FaultsInForceAreState) {
  const auto faults = [&] {
    std::string all;
    for (const auto& [path, value] : test::state_of(fn().handle()))
      if (path.rfind("model.injector.", 0) == 0) all += path + "=" + value + "\n";
    return all;
  };
  const std::string none = faults();
  const std::uint64_t digest = fn().state_digest();
  ASSERT_EQ(fn().inject("fault=command,opcode=QUERY_ISSI,nth=2,answer=no-event"), "");
  const std::string loaded = faults();
  EXPECT_NE(loaded, none);
  EXPECT_NE(fn().state_digest(), digest);
  EXPECT_TRUE(dev().exec(Mailbox(prm::op::QUERY_ISSI, prm::query_issi_in::bytes), 128).ok());
  const std::string seen = faults();
  EXPECT_NE(seen, loaded) << "it has seen one";
  dev().function_reset();
  EXPECT_EQ(faults(), seen) << "the host's, who ends them";
  fn().inject("none");
  EXPECT_EQ(faults().find("model.injector.faults."), std::string::npos);
  dev().probe();
}

TEST_F(BringUp, EnableAfterACrashWithoutTeardown) {
  breaks({"enable-twice"});
  // A driver that dies leaves everything behind; the next one just starts over.
  auto p = std::make_unique<Pair>(dev());
  p->a.post(p->wr(WqeOp::kRdmaWrite, 0, 4096));
  Device second(fn());
  const std::uint64_t refused = machine().memory().refused();
  EXPECT_NO_THROW(second.probe());
  EXPECT_EQ(machine().memory().refused(), refused);
  EXPECT_NO_THROW(second.teardown());
  EXPECT_EQ(leftover_objects(fn()), "");
  dev().function_reset();
}

TEST_F(BringUp, ShutdownWithFastOrForcedTeardown) {
  using C = prm::cmd_hca_cap;
  ASSERT_NE(dev().cap<C::force_teardown>(), 0u) << "not offered";
  dev().cmd().use_events(false);
  const auto r = dev().teardown_hca(1).must();
  EXPECT_EQ(prm::load32(r.out.data() + 12) & 1, 0u) << "state: success";
  const std::uint64_t written = machine().memory().bytes_written();
  machine().advance(10'000'000);
  EXPECT_EQ(machine().memory().bytes_written(), written);
  dev().function_reset();
}

// As Linux shuts down; it sends and polls on behind that.
TEST_F(BringUp, DoorbellsOfAnInterfaceThatIsOffAreNoBadOnes) {
  dev().cmd().use_events(false);
  dev().teardown_hca(2).must();
  constexpr std::uint64_t kAt = offsetof(prm::InitSeg, cmdq_addr_l_sz);
  constexpr std::uint32_t kState = 7u << 8, kDisabled = 1u << 8;
  fn().write32(kAt, (fn().read32(kAt) & ~kState) | kDisabled);
  const std::uint64_t bad = fn().counter("bad_doorbells");
  const std::uint32_t doorbell[2] = {};
  for (const auto reg : {prm::uar::kSqDoorbell, prm::uar::kCqArm})
    fn().write(dev().uar_offset() + reg, doorbell, sizeof doorbell);
  machine().advance(10'000'000);
  EXPECT_EQ(fn().counter("bad_doorbells"), bad);
  dev().function_reset();
}

TEST_F(BringUp, QueuesStopAtTeardown) {
  breaks({"teardown-objects"});
  auto p = std::make_unique<Pair>(dev());
  p->a.post(p->wr(WqeOp::kRdmaWrite, 0, 65536));
  machine().advance(500);
  dev().cmd().use_events(false);
  EXPECT_CMD_OK(dev().teardown_hca());
  const std::uint64_t written = machine().memory().bytes_written();
  const std::uint64_t interrupts = fn().interrupts();
  machine().advance(10'000'000);
  EXPECT_EQ(machine().memory().bytes_written(), written) << "no CQE or EQE after TEARDOWN_HCA";
  EXPECT_EQ(fn().interrupts(), interrupts);
  dev().function_reset();
  p.reset();
}

TEST_F(BringUp, CommandsOutOfOrder) {
  breaks({"access-before-enable", "access-before-init"});
  dev().teardown();
  dev().cmd().start();
  // Before ENABLE_HCA nothing but the first steps is allowed.
  EXPECT_CMD_STATUS(dev().exec(Mailbox(prm::op::ALLOC_PD, prm::alloc_pd_in::bytes)), CmdStatus::kBadSysState);
  EXPECT_CMD_STATUS(dev().init_hca(), CmdStatus::kBadSysState);
  EXPECT_CMD_OK(dev().enable_hca());
  EXPECT_CMD_STATUS(dev().exec(Mailbox(prm::op::ALLOC_UAR, prm::alloc_uar_in::bytes)),
                    CmdStatus::kBadSysState);
  EXPECT_CMD_OK(dev().disable_hca());
  dev().probe();
  expect_serves_on();
}

TEST_F(BringUp, InitWithoutItsPages) {
  breaks({"init-pages"});
  dev().teardown();
  dev().cmd().start();
  dev().enable_hca().must();
  EXPECT_GT(dev().query_pages(1), 0);
  EXPECT_CMD_STATUS(dev().init_hca(), CmdStatus::kBadSysState);
  dev().disable_hca();
  dev().probe();
}

TEST_F(BringUp, TwoHcasDoNotSeeEachOther) {
  Device other(machine().function(1));
  other.probe();
  const std::uint64_t interrupts = fn().interrupts();
  {
    Pair p(other);
    p.fill(9);
    const auto n = p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 10000));
    expect_good(p.acq, n);
    EXPECT_TRUE(p.same(0, 10000));
    EXPECT_EQ(fn().interrupts(), interrupts);
    EXPECT_NE(other.gid(0), dev().gid(0));
    Pair q(dev());
    q.fill(10);
    p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 60000));
    q.a.post(q.wr(WqeOp::kRdmaWrite, 0, 60000));
    EXPECT_EQ(p.acq.wait(1).size(), 1u);
    EXPECT_EQ(q.acq.wait(1).size(), 1u);
    EXPECT_TRUE(p.same(0, 60000));
    EXPECT_TRUE(q.same(0, 60000));
    dev()
        .cmd()
        .exec(Mailbox(prm::op::QUERY_ADAPTER, prm::query_adapter_in::bytes), prm::query_adapter_out::bytes)
        .must();
  }
  machine().function(1).inject("none");
  other.teardown();
  expect_serves_on();
}

TEST_F(BringUp, ResetOfOneHcaLeavesTheOther) {
  Device other(machine().function(1));
  other.probe();
  dev().function_reset();
  {
    Pair p(other);
    p.fill(3);
    expect_good(p.acq, p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 4096)));
    EXPECT_TRUE(p.same(0, 4096));
  }
  other.teardown();
  dev().probe();
  expect_serves_on();
}

TEST_F(BringUp, BusMasterOffStopsEverything) {
  breaks({"dma-refused-read"});
  machine().memory().set_bus_master(false);
  const auto r = dev().cmd().exec(Mailbox(prm::op::ALLOC_PD, prm::alloc_pd_in::bytes), 16, 10'000'000);
  EXPECT_FALSE(r.done) << "the command entry cannot be fetched";
  machine().memory().set_bus_master(true);
  dev().function_reset();
  dev().probe();
  expect_serves_on();
}

TEST_F(BringUp, RegistersOutOfRangeReadAllOnes) {
  breaks({"bar-access-size", "bar-range"});
  EXPECT_EQ(hca_mmio_read(fn().handle(), HCA_BAR0_SIZE, 4), 0xffffffffu);
  EXPECT_EQ(hca_mmio_read(fn().handle(), ~0ULL - 2, 4), 0xffffffffu);
  hca_mmio_write(fn().handle(), HCA_BAR0_SIZE + 64, 1, 4);
  hca_mmio_write(fn().handle(), ~0ULL, 1, 8);
  for (std::uint64_t off = 0; off < 0x3000; off += 4) {  // every register can be read
    if (off != 0) fn().read32(off);
  }
  hca_mmio_read(fn().handle(), 0xffe, 4);  // unaligned, across registers
  hca_mmio_write(fn().handle(), 0xffe, 0, 4);
  expect_serves_on();
}

}  // namespace
}  // namespace hcasim::bare
