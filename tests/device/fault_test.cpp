// SPDX-License-Identifier: BSD-3-Clause
// Faults injected while the device runs: each kind does what it says, the others are left alone, and the
// device serves on.
#include <gmock/gmock.h>

#include <cstring>

#include "fixture.h"
#include "prm/access_registers.h"
#include "prm/init_seg.h"

namespace hcasim::bare {
namespace {

using prm::EqeType;
using ::testing::HasSubstr;
using S = prm::CqeSyndrome;

class Fault : public DeviceTest {
 protected:
  void inject(const std::string& text) { ASSERT_EQ(fn().inject(text), "") << text; }
  std::uint64_t injected() { return fn().counter("faults_injected") - before_; }
  void SetUp() override {
    DeviceTest::SetUp();
    before_ = fn().counter("faults_injected");
  }
  void TearDown() override {
    fn().inject("none");
    DeviceTest::TearDown();
  }
  CommandResult alloc_pd() { return dev().exec(Mailbox(prm::op::ALLOC_PD, prm::alloc_pd_in::bytes)); }
  CommandResult dealloc_pd(const CommandResult& made) {
    Mailbox in(prm::op::DEALLOC_PD, prm::dealloc_pd_in::bytes);
    in.set<prm::dealloc_pd_in::pd>(made.get<prm::alloc_pd_out::pd>());
    return dev().exec(in);
  }
  CommandResult query_issi() {
    return dev().exec(Mailbox(prm::op::QUERY_ISSI, prm::query_issi_in::bytes), prm::query_issi_out::bytes);
  }
  // A write of `len` bytes from a to b; its completion.
  static Completion write(Pair& p, std::uint32_t len = 1000) {
    p.a.post(p.wr(WqeOp::kRdmaWrite, 0, len));
    return p.acq.wait_one();
  }
  std::uint32_t health(std::size_t offset) { return fn().read32(offsetof(prm::InitSeg, health) + offset); }
  std::uint64_t before_ = 0;
};

// ---- commands ----

TEST_F(Fault, TheNthCommandOfAnOpcodeIsRefused) {
  inject("fault=command,opcode=ALLOC_PD,nth=2,status=BAD_RES_STATE,syndrome=0x1234");
  const auto first = alloc_pd();
  EXPECT_CMD_OK(first);
  EXPECT_CMD_OK(query_issi());
  const auto second = alloc_pd();
  EXPECT_CMD_STATUS(second, CmdStatus::kBadResState);
  EXPECT_EQ(second.syndrome, 0x1234u);
  const auto third = alloc_pd();
  EXPECT_CMD_OK(third);
  EXPECT_EQ(injected(), 1u);
  EXPECT_CMD_OK(dealloc_pd(first));
  EXPECT_CMD_OK(dealloc_pd(third));
}

TEST_F(Fault, ACommandIsLate) {
  const auto timed = [&] {
    const std::int64_t t = machine().now();
    EXPECT_CMD_OK(query_issi());
    return machine().now() - t;
  };
  const std::int64_t usual = timed();
  inject("fault=command;opcode=QUERY_ISSI;delay=3ms");
  const std::int64_t late = timed();
  EXPECT_GE(late, usual + 2'900'000);
  EXPECT_LT(late, usual + 3'100'000);
  EXPECT_LT(timed(), usual + 100'000);
}

TEST_F(Fault, ACommandIsNeverAnswered) {
  inject("fault=command,opcode=QUERY_ISSI,answer=never");
  bool answered = false;
  const int slot =
      dev().cmd().submit(Mailbox(prm::op::QUERY_ISSI, prm::query_issi_in::bytes), prm::query_issi_out::bytes,
                         [&](const CommandResult&) { answered = true; });
  machine().advance(2'000'000'000);
  EXPECT_FALSE(answered);
  EXPECT_CMD_OK(query_issi());  // in another slot
  EXPECT_FALSE(answered);
  dev().cmd().abandon(slot);
  dev().function_reset();
  dev().probe();
}

// A driver that crashed left it; the next one (of a crash kernel) begins with the same slot.
TEST_F(Fault, AnotherDriversQueueIsEmpty) {
  breaks({"enable-twice"});
  inject("fault=command,opcode=QUERY_ISSI,answer=never");
  const auto hang = [&](CommandQueue& queue) {
    return queue.submit(Mailbox(prm::op::QUERY_ISSI, prm::query_issi_in::bytes), prm::query_issi_out::bytes,
                        [](const CommandResult&) { FAIL() << "answered"; });
  };
  const int slot = hang(dev().cmd());
  machine().advance(1'000'000);
  {
    CommandQueue next(fn());
    next.start();
    // In that very slot.
    bool answered = false;
    next.submit(
        Mailbox(prm::op::ENABLE_HCA, prm::enable_hca_in::bytes), prm::enable_hca_out::bytes,
        [&](const CommandResult& r) {
          answered = true;
          EXPECT_CMD_OK(r);
        },
        slot);
    machine().advance(100'000'000);
    next.poll();
    EXPECT_TRUE(answered);
  }
  dev().cmd().abandon(slot);
  dev().function_reset();
  dev().probe();
  expect_serves_on();
}

TEST_F(Fault, ACommandsEventIsLost) {
  inject("fault=command,opcode=QUERY_ISSI,answer=no-event");
  bool answered = false;
  dev().cmd().submit(Mailbox(prm::op::QUERY_ISSI, prm::query_issi_in::bytes), prm::query_issi_out::bytes,
                     [&](const CommandResult& r) {
                       answered = true;
                       EXPECT_CMD_OK(r);
                     });
  machine().advance(10'000'000);
  EXPECT_FALSE(answered);
  dev().cmd().poll();  // as a driver does that recovers: the owner bit tells
  EXPECT_TRUE(answered);
}

// ---- DMA ----

TEST_F(Fault, ADmaReadOfAQpIsRefused) {
  Pair p(dev());
  p.fill(1);
  inject("fault=dma,owner=qp,direction=read,number=" + std::to_string(p.a.qpn()) +
         ",address=" + std::to_string(p.amem.bus(0)) + "-" + std::to_string(p.amem.bus(0) + 4095));
  const Completion c = write(p);
  expect_error(c, S::kLocalQpOp);
  EXPECT_EQ(injected(), 1u);
  expect_serves_on();
}

TEST_F(Fault, APoisonedReadIsAnErrorOfItsQp) {
  Pair p(dev());
  inject("fault=dma,action=poisoned,owner=qp,address=" + std::to_string(p.amem.bus(0)) + "-" +
         std::to_string(p.amem.bus(0) + 4095));
  const auto before = fn().pcie_errors().size();
  EXPECT_TRUE(write(p).error());
  ASSERT_EQ(fn().pcie_errors().size(), before + 1);
  EXPECT_NE(fn().pcie_errors()[before].what, HCA_PCIE_CORRECTABLE);
  EXPECT_EQ(fn().pcie_errors()[before].name, "poisoned-tlp");
  expect_serves_on();
}

TEST_F(Fault, ARefusedCqeWriteFailsTheCq) {
  Pair p(dev());
  dev().clear_async_events();
  inject("fault=dma,direction=write,owner=cq,number=" + std::to_string(p.acq.cqn()));
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  machine().advance(1'000'000);
  EXPECT_FALSE(p.acq.ready());
  EXPECT_EQ(dev().count_async(EqeType::kCqError, p.acq.cqn()), 1u);
  EXPECT_EQ(dev().count_async(EqeType::kCqError, p.bcq.cqn()), 0u);
  expect_serves_on();
}

TEST_F(Fault, ASlowReadTakesLonger) {
  Pair p(dev());
  const auto timed = [&] {
    const std::int64_t t = machine().now();
    EXPECT_FALSE(write(p).error());
    return machine().now() - t;
  };
  timed();
  const std::int64_t usual = timed();
  inject("fault=dma,action=slow,delay=70us,owner=qp,direction=read,address=" + std::to_string(p.amem.bus(0)) +
         "-" + std::to_string(p.amem.bus(0) + 4095));
  const std::int64_t late = timed();
  EXPECT_GE(late, usual + 69'000);
  EXPECT_LT(late, usual + 75'000);
}

TEST_F(Fault, PcieErrorsAreTheHostsToShow) {
  const auto before = fn().pcie_errors().size();
  inject("fault=pcie,error=bad-tlp");
  inject("fault=pcie,error=completion-timeout,severity=fatal");
  inject("fault=pcie,error=malformed-tlp");
  inject("fault=pcie,action=remove");
  const auto& seen = fn().pcie_errors();
  ASSERT_EQ(seen.size(), before + 4);
  EXPECT_EQ(seen[before].what, HCA_PCIE_CORRECTABLE);
  EXPECT_EQ(seen[before].bit, 0x40u);
  EXPECT_EQ(seen[before].name, "bad-tlp");
  EXPECT_EQ(seen[before + 1].what, HCA_PCIE_FATAL);
  EXPECT_EQ(seen[before + 1].bit, 0x4000u);
  // Without a severity it is the host's to tell.
  EXPECT_NE(seen[before + 2].what, HCA_PCIE_CORRECTABLE);
  EXPECT_EQ(seen[before + 2].name, "malformed-tlp");
  EXPECT_EQ(seen[before + 3].what, HCA_PCIE_REMOVED);
}

// ---- interrupts, CQEs, EQEs ----

TEST_F(Fault, AnInterruptIsLostAndItsEqeIsThere) {
  Pair p(dev());
  const auto eqn = dev().comp_eq(0).eqn();
  p.acq.arm();
  inject("fault=msix,eqn=" + std::to_string(eqn));
  EXPECT_FALSE(write(p).error());
  machine().advance(1'000'000);
  EXPECT_EQ(p.acq.events(), 0u);
  dev().comp_eq(0).poll();
  EXPECT_EQ(p.acq.events(), 1u);
  p.acq.arm();
  EXPECT_FALSE(write(p).error());
  machine().advance(1'000'000);
  EXPECT_EQ(p.acq.events(), 2u);
  EXPECT_EQ(injected(), 1u);
}

TEST_F(Fault, AnInterruptIsLate) {
  Pair p(dev());
  p.acq.arm();
  inject("fault=msix,action=delayed,delay=500us");
  EXPECT_FALSE(write(p).error());
  machine().advance(300'000);
  EXPECT_EQ(p.acq.events(), 0u);
  machine().advance(300'000);
  EXPECT_EQ(p.acq.events(), 1u);
}

TEST_F(Fault, ACqeIsLateAndThoseBehindItStayBehind) {
  Pair p(dev());
  inject("fault=cqe,delay=200us,cqn=" + std::to_string(p.acq.cqn()));
  const auto first = p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  const auto second = p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  machine().advance(100'000);
  EXPECT_FALSE(p.acq.ready());
  expect_good(p.acq, first);
  expect_good(p.acq, second);
}

TEST_F(Fault, ACqeIsLost) {
  Pair p(dev());
  inject("fault=cqe,action=lost,qpn=" + std::to_string(p.a.qpn()));
  p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
  machine().advance(1'000'000);
  EXPECT_FALSE(p.acq.ready());
  EXPECT_FALSE(write(p).error());
}

TEST_F(Fault, AnEqeIsLost) {
  Pair p(dev());
  p.acq.arm();
  inject("fault=eqe,type=COMP");
  EXPECT_FALSE(write(p).error());
  machine().advance(1'000'000);
  dev().comp_eq(0).poll();
  EXPECT_EQ(p.acq.events(), 0u);
}

TEST_F(Fault, AnEventQueueOverruns) {
  Pair p(dev());
  inject("fault=eqe,action=overrun,eqn=" + std::to_string(dev().comp_eq(0).eqn()));
  for (int i = 0; i < 3; ++i) {
    p.acq.arm();
    EXPECT_FALSE(write(p).error());
    machine().advance(100'000);
    dev().comp_eq(0).poll();
    EXPECT_EQ(p.acq.events(), 0u);
  }
  EXPECT_EQ(injected(), 1u);
  EXPECT_GE(fn().counter("eq_overruns"), 1u);
}

// ---- queues ----

TEST_F(Fault, AQpGoesToItsErrorStateOnItsNthDoorbell) {
  Pair p(dev());
  dev().clear_async_events();
  inject("fault=qp,nth=2,qpn=" + std::to_string(p.a.qpn()));
  EXPECT_FALSE(write(p).error());
  expect_error(write(p), S::kWrFlush);
  EXPECT_EQ(p.a.state(), QpState::kErr);
  machine().advance(100'000);
  EXPECT_EQ(dev().count_async(EqeType::kWqCatas, p.a.qpn()), 1u);
  expect_serves_on();
}

TEST_F(Fault, AQpGoesToItsErrorStateAtATime) {
  struct Case {
    const char* action;
    EqeType event;
    bool fails;
  };
  for (const Case& c :
       {Case{"catas", EqeType::kWqCatas, true}, Case{"access", EqeType::kWqAccess, true},
        Case{"invalid", EqeType::kWqInvalidReq, true}, Case{"path-mig", EqeType::kPathMigFailed, false}}) {
    Pair p(dev());
    dev().clear_async_events();
    inject(std::string("fault=qp,at=+50us,action=") + c.action + ",qpn=" + std::to_string(p.a.qpn()));
    machine().advance(40'000);
    EXPECT_EQ(dev().count_async(c.event), 0u) << c.action;
    machine().advance(100'000);
    EXPECT_EQ(dev().count_async(c.event, p.a.qpn()), 1u) << c.action;
    EXPECT_EQ(p.a.state() == QpState::kErr, c.fails) << c.action;
    EXPECT_EQ(p.b.state(), QpState::kRts) << c.action;
  }
}

TEST_F(Fault, ACqFails) {
  for (const auto& [action, syndrome] : {std::pair{"overrun", 1}, std::pair{"access", 2}}) {
    Pair p(dev());
    dev().clear_async_events();
    inject(std::string("fault=cq,at=0,action=") + action + ",cqn=" + std::to_string(p.acq.cqn()));
    machine().advance(100'000);
    ASSERT_EQ(dev().count_async(EqeType::kCqError, p.acq.cqn()), 1u);
    for (const AsyncEvent& e : dev().async_events()) {
      if (e.type == EqeType::kCqError) {
        EXPECT_EQ(e.detail, syndrome);
      }
    }
    EXPECT_EQ(p.a.state(), QpState::kErr);
    EXPECT_EQ(p.b.state(), QpState::kRts);
  }
  expect_serves_on();
}

// ---- functions ----

TEST_F(Fault, OfAFunctionThatTheCardDoesNotHaveNothingIsStruck) {
  const auto before = dev().pages_given();
  inject("fault=command,opcode=QUERY_ISSI,status=BAD_RES_STATE,function=1");
  inject("fault=page_request,action=ask,at=0,pages=10,function=1");
  inject("fault=fw_reset,at=0,function=1023");
  inject("fault=qp,at=0,times=0,function=1");
  machine().advance(1'000'000);
  EXPECT_CMD_OK(query_issi());
  EXPECT_EQ(dev().pages_given(), before);
  EXPECT_EQ(injected(), 0u);
  inject("fault=command,opcode=QUERY_ISSI,status=BAD_RES_STATE,syndrome=7,function=0");
  EXPECT_CMD_STATUS(query_issi(), CmdStatus::kBadResState);
  EXPECT_EQ(injected(), 1u);
}

// ---- the firmware ----

TEST_F(Fault, TheFirmwareAsksForPagesAndGivesThemBack) {
  const auto before = dev().pages_given();
  inject("fault=page_request,action=ask,at=0,pages=10");
  machine().advance(1'000'000);
  EXPECT_EQ(dev().pages_given(), before + 10);
  EXPECT_EQ(injected(), 1u);
}

TEST_F(Fault, PagesAreRefused) {
  const auto failed = fn().counter("fw_commands_failed");
  inject("fault=page_request,action=refused,status=NO_RES,syndrome=0x77");
  inject("fault=page_request,action=ask,at=0,pages=10");
  machine().advance(1'000'000);
  EXPECT_EQ(injected(), 2u);
  EXPECT_EQ(fn().counter("fw_commands_failed"), failed + 1);
  ASSERT_EQ(dev().failed_destroys().size(), 1u);
  EXPECT_THAT(dev().failed_destroys()[0], HasSubstr("MANAGE_PAGES: delivery OK, status NO_RES"));
  dev().clear_failed_destroys();
  dev().function_reset();
  dev().probe();
}

TEST_F(Fault, APageRequestIsLost) {
  const auto asked = dev().page_requests();
  inject("fault=page_request,action=lost");
  inject("fault=page_request,action=ask,at=0,pages=10");
  machine().advance(1'000'000);
  EXPECT_EQ(dev().page_requests(), asked);
  EXPECT_EQ(injected(), 2u);
}

TEST_F(Fault, HealthShowsASyndromeForAWhile) {
  inject("fault=health,syndrome=16,ext_syndrome=0x77,duration=5ms");
  EXPECT_EQ(health(offsetof(prm::HealthBuffer, irisc_index)) >> 16 & 0xff, 16u);
  EXPECT_EQ(health(offsetof(prm::HealthBuffer, irisc_index)) & 0xffff, 0x77u);
  EXPECT_EQ(health(offsetof(prm::HealthBuffer, rfr_severity)) >> 31, 0u);
  EXPECT_NE(health(offsetof(prm::HealthBuffer, assert_var)), 0u);
  EXPECT_NE(health(offsetof(prm::HealthBuffer, assert_exit_ptr)), 0u);
  EXPECT_CMD_OK(query_issi());
  machine().advance(6'000'000);
  EXPECT_EQ(health(offsetof(prm::HealthBuffer, irisc_index)), 0u);
  EXPECT_EQ(health(offsetof(prm::HealthBuffer, assert_var)), 0u);
}

TEST_F(Fault, HealthRequestsAReset) {
  inject("fault=health,syndrome=1,reset=on");
  EXPECT_EQ(health(offsetof(prm::HealthBuffer, rfr_severity)) >> 31, 1u);
  dev().function_reset();
  dev().probe();
  EXPECT_EQ(health(offsetof(prm::HealthBuffer, irisc_index)), 0u);
}

TEST_F(Fault, TheFirmwareStalls) {
  const auto count = [&] { return fn().read32(offsetof(prm::InitSeg, health_counter)); };
  inject("fault=health,action=stall,duration=1s");
  const std::uint32_t stood = count();
  bool answered = false;
  dev().cmd().submit(Mailbox(prm::op::QUERY_ISSI, prm::query_issi_in::bytes), prm::query_issi_out::bytes,
                     [&](const CommandResult& r) {
                       answered = true;
                       EXPECT_CMD_OK(r);
                     });
  machine().advance(900'000'000);
  EXPECT_EQ(count(), stood);
  EXPECT_FALSE(answered);
  machine().advance(200'000'000);
  EXPECT_GT(count(), stood);
  EXPECT_TRUE(answered);
}

TEST_F(Fault, TheNicInterfaceIsDisabled) {
  inject("fault=health,action=nic-disabled");
  EXPECT_EQ(fn().read32(offsetof(prm::InitSeg, cmdq_addr_l_sz)) >> 8 & 7, prm::kNicDisabled);
  dev().function_reset();
  dev().probe();
  expect_serves_on();
}

TEST_F(Fault, TheFirmwareResetsTheCard) {
  inject("fault=fw_reset,at=+1ms");
  EXPECT_EQ(fn().read32(offsetof(prm::InitSeg, cmdq_addr_l_sz)) >> 8 & 7, prm::kNicFull);
  machine().advance(2'000'000);
  EXPECT_EQ(fn().read32(offsetof(prm::InitSeg, cmdq_addr_l_sz)) >> 8 & 7, prm::kNicDisabled);
  dev().cmd().ring(1);  // a driver that has not noticed: no rule of its is broken
  dev().function_reset();
  dev().probe();
  expect_serves_on();
}

// ---- port ----

TEST_F(Fault, TheCableIsOutForAWhileAndAgain) {
  dev().clear_async_events();
  inject("fault=port,action=down,duration=2ms,at=+1ms,every=10ms,times=2");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(dev().port_state(), 4);
    machine().advance(2'000'000);
    EXPECT_NE(dev().port_state(), 4);
    machine().advance(8'000'000);
  }
  EXPECT_EQ(dev().port_state(), 4);
  machine().advance(20'000'000);
  EXPECT_EQ(dev().port_state(), 4);
  EXPECT_GE(dev().count_async(EqeType::kPortChange), 4u);
  EXPECT_EQ(injected(), 2u);
}

TEST_F(Fault, ThePhysicalLayerCountsErrors) {
  constexpr std::uint32_t kPhysical = 0x12;
  Device eth(machine().function(kEthFunction));
  eth.probe();
  constexpr std::uint32_t k802_3 = 0, kInfiniBand = 0x20;
  using Set = prm::ppcnt_reg::counter_set;
  const auto read = [&](std::uint32_t group, auto field) {
    std::vector<std::uint8_t> r(prm::ppcnt_reg::bytes);
    prm::set<prm::ppcnt_reg::local_port>(r.data(), 1);
    prm::set<prm::ppcnt_reg::grp>(r.data(), group);
    const auto out = eth.access_register(prm::reg::kPpcnt, false, r).must();
    return std::uint32_t{prm::get<decltype(field)>(out.out.data() + prm::access_register_out::bytes)};
  };
  const auto errors = [&] { return read(kPhysical, Set::phys_layer_cntrs::symbol_errors_low{}); };
  const auto ib = [&] {
    return read(kInfiniBand, Set::ib_port_cntrs_grp_data_layout::symbol_error_counter{});
  };
  EXPECT_EQ(errors(), 0u);
  ASSERT_EQ(eth.function().inject("fault=port,action=errors,count=17"), "");
  EXPECT_EQ(errors(), 17u);
  EXPECT_EQ(read(k802_3, Set::eth_802_3_cntrs_grp_data_layout::a_symbol_error_during_carrier_low{}), 17u);
  EXPECT_EQ(ib(), 17u);
  ASSERT_EQ(eth.function().inject("fault=port,action=errors,count=65530"), "");
  EXPECT_EQ(errors(), 65547u);
  EXPECT_EQ(ib(), 0xffffu) << "it stops at its highest value";
  eth.teardown();
}

TEST_F(Fault, EventsOfTheCardsSurroundings) {
  std::vector<prm::Eqe> seen;
  std::array<std::uint64_t, 4> mask{};
  mask[0] = std::uint64_t{1} << static_cast<unsigned>(EqeType::kTempWarn) |
            std::uint64_t{1} << static_cast<unsigned>(EqeType::kPortModule) |
            std::uint64_t{1} << static_cast<unsigned>(EqeType::kGpio);
  EventQueue eq(dev(), 6, 0, mask, [&](const prm::Eqe& e) { seen.push_back(e); });
  eq.set_automatic(false);
  inject("fault=temperature,sensors=0x8000000000000001");
  inject("fault=module,error=high-temperature,module=3");
  inject("fault=module,action=unplugged");
  inject("fault=event,type=GPIO,sub_type=9,data=01 02ff");
  machine().advance(100'000);
  eq.poll();
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(static_cast<EqeType>(seen[0].type), EqeType::kTempWarn);
  EXPECT_EQ(seen[0].data.temp_warn.sensors_low, 0x8000000000000001u);
  EXPECT_EQ(seen[1].data.port_module.module, 3);
  EXPECT_EQ(seen[1].data.port_module.status, prm::EqePortModule::kError);
  EXPECT_EQ(seen[1].data.port_module.error_type, 6);
  EXPECT_EQ(seen[2].data.port_module.status, prm::EqePortModule::kUnplugged);
  EXPECT_EQ(static_cast<EqeType>(seen[3].type), EqeType::kGpio);
  EXPECT_EQ(seen[3].sub_type, 9);
  EXPECT_EQ(std::memcmp(seen[3].data.raw, "\1\2\xff", 3), 0);
  inject("fault=module,action=plugged");
  EXPECT_CMD_OK(eq.destroy());
}

// However it goes, its registers and events say the same.
TEST_F(Fault, AModuleThatIsOut) {
  breaks({"register-value"});
  Device eth(machine().function(kEthFunction));
  eth.probe();
  std::vector<prm::Eqe> seen;
  std::array<std::uint64_t, 4> mask{};
  mask[0] = std::uint64_t{1} << static_cast<unsigned>(EqeType::kPortModule);
  {
    EventQueue eq(eth, 6, 0, mask, [&](const prm::Eqe& e) { seen.push_back(e); });
    eq.set_automatic(false);
    const auto mcia_status = [&] {
      using R = prm::mcia_reg;
      std::vector<std::uint8_t> data(R::bytes);
      prm::set<R::i2c_device_address>(data.data(), 0x50);
      prm::set<R::size>(data.data(), 16);
      const auto out = eth.access_register(prm::reg::kMcia, false, data).must();
      return prm::get<R::status>(out.out.data() + prm::access_register_out::bytes);
    };
    const auto sensor = [&] {
      using R = prm::mtmp_reg;
      std::vector<std::uint8_t> data(R::bytes);
      prm::set<R::sensor_index>(data.data(), 64);
      const auto out = eth.access_register(prm::reg::kMtmp, false, data).must();
      return prm::get<R::temperature>(out.out.data() + prm::access_register_out::bytes);
    };
    constexpr std::uint32_t kGood = 0, kNotConnected = 3;
    for (const auto& [out, in] :
         {std::pair("fault=port,action=down", "fault=port,action=up"),
          std::pair("fault=module,action=unplugged", "fault=module,action=plugged")}) {
      seen.clear();
      EXPECT_EQ(mcia_status(), kGood);
      EXPECT_NE(sensor(), 0u);
      ASSERT_EQ(eth.function().inject(out), "");
      machine().advance(10'000);
      EXPECT_EQ(mcia_status(), kNotConnected) << out;
      EXPECT_EQ(sensor(), 0u) << out;
      EXPECT_EQ(eth.port_state(), 1) << out;
      ASSERT_EQ(eth.function().inject(in), "");
      machine().advance(10'000);
      eq.poll();
      ASSERT_EQ(seen.size(), 2u) << out;
      EXPECT_EQ(seen[0].data.port_module.module, 0);
      EXPECT_EQ(seen[0].data.port_module.status, prm::EqePortModule::kUnplugged);
      EXPECT_EQ(seen[1].data.port_module.status, prm::EqePortModule::kPlugged);
      EXPECT_EQ(eth.port_state(), 4) << in;
    }
    EXPECT_EQ(mcia_status(), kGood);
    EXPECT_CMD_OK(eq.destroy());
  }
  eth.teardown();
}

// ---- the wire ----

TEST_F(Fault, PacketsOfAnOpcodeAreLost) {
  Pair p(dev());
  p.fill(7);
  inject("fault=wire,direction=tx,opcode=WRITE_MIDDLE,nth=2,qpn=" + std::to_string(p.b.qpn()));
  const auto lost = fn().counter("injected_drop");
  EXPECT_FALSE(write(p, 32768).error());
  EXPECT_EQ(fn().counter("injected_drop"), lost + 1);
  EXPECT_TRUE(p.same(0, 32768));
  EXPECT_GT(fn().counter("retransmits"), 0u);
}

TEST_F(Fault, PacketsAreHarmedEitherWay) {
  for (const char* direction : {"tx", "rx"}) {
    for (const char* action : {"drop", "corrupt", "duplicate", "reorder", "garble", "delay,delay=3us"}) {
      Pair p(dev());
      p.fill(8);
      const auto before = injected();
      inject(std::string("fault=wire,direction=") + direction +
             ",opcode=WRITE_MIDDLE,qpn=" + std::to_string(p.b.qpn()) + ",action=" + action);
      const Completion c = write(p, 32768);
      EXPECT_EQ(injected(), before + 1) << direction << " " << action;
      // What is garbled may mean anything.
      if (std::strcmp(action, "garble") == 0) continue;
      EXPECT_FALSE(c.error()) << direction << " " << action << " " << c.text();
      EXPECT_TRUE(p.same(0, 32768)) << direction << " " << action;
    }
  }
}

TEST_F(Fault, APacketTakesTheLinkDown) {
  Pair p(dev());
  dev().clear_async_events();
  inject("fault=wire,action=down,duration=1ms,opcode=ACK");
  EXPECT_FALSE(write(p).error());
  machine().advance(3'000'000);
  EXPECT_GE(dev().count_async(EqeType::kPortChange), 2u);
  EXPECT_EQ(dev().port_state(), 4);
  expect_serves_on();
}

// ---- triggers ----

TEST_F(Fault, TimesAndEveryAndWindows) {
  const auto pattern = [&](const std::string& trigger, int n) {
    EXPECT_EQ(fn().inject("none"), "");
    EXPECT_EQ(fn().inject("fault=command,opcode=QUERY_ISSI,status=LIM_ERR" + trigger), "");
    std::string text;
    for (int i = 0; i < n; ++i) {
      text += query_issi().ok() ? '.' : 'X';
      machine().advance(1'000'000);
    }
    return text;
  };
  EXPECT_EQ(pattern("", 5), "X....");
  EXPECT_EQ(pattern(",nth=3", 5), "..X..");
  EXPECT_EQ(pattern(",nth=2,times=2", 5), ".XX..");
  EXPECT_EQ(pattern(",nth=3,times=0", 5), "..XXX");
  EXPECT_EQ(pattern(",every=2,times=0", 6), "X.X.X.");
  EXPECT_EQ(pattern(",nth=2,every=3,times=2", 9), ".X..X....");
  EXPECT_EQ(pattern(",times=0,until=+2500us", 5), "XXX..");
  EXPECT_EQ(pattern(",times=0,after=+2500us", 5), "...XX");
  EXPECT_EQ(pattern(",at=+2500us", 5), "...X.");
  const std::string some = pattern(",probability=0.5,seed=3", 40);
  EXPECT_GT(std::count(some.begin(), some.end(), 'X'), 8);
  EXPECT_LT(std::count(some.begin(), some.end(), 'X'), 32);
  EXPECT_EQ(pattern(",probability=0.5,seed=3", 40), some);
  EXPECT_NE(pattern(",probability=0.5,seed=4", 40), some);
}

TEST_F(Fault, NoneEndsAllAndTakesBack) {
  inject("fault=port,action=down");
  inject("fault=health,syndrome=16");
  inject("fault=command,opcode=QUERY_ISSI,status=LIM_ERR,times=0");
  machine().advance(1'000'000);
  EXPECT_NE(dev().port_state(), 4);
  EXPECT_FALSE(query_issi().ok());
  inject("none");
  machine().advance(1'000'000);
  EXPECT_EQ(dev().port_state(), 4);
  EXPECT_CMD_OK(query_issi());
  EXPECT_EQ(health(offsetof(prm::HealthBuffer, irisc_index)), 0u);
}

TEST_F(Fault, WhatIsWrongIsSaid) {
  struct Case {
    const char *text, *said;
  };
  for (const Case& c : {
           Case{"fault=smoke", "there are command, dma, msix"},
           Case{"fault=command", "command: what is to happen?"},
           Case{"fault=command,opcode=MAKE_COFFEE,status=1",
                "opcode=MAKE_COFFEE: allowed: a command such as"},
           Case{"fault=command,status=0", "status=0: allowed: a status such as BAD_RES_STATE"},
           Case{"fault=command,vector=3,status=1", "vector: command takes at, after"},
           Case{"fault=command,status=1,status=2", "status: given twice"},
           Case{"fault=command,status=1,nth=0", "nth=0: allowed: 1 to 2^32"},
           Case{"fault=command,delay=soon", "delay=soon: allowed: a time, such as 20us"},
           Case{"fault=command,status=1,probability=2", "probability=2: allowed: 0 to 1"},
           Case{"fault=command,status=1,after=5us,until=2us", "until: not after"},
           Case{"fault=dma,action=slow", "slow: needs delay="},
           Case{"fault=dma,address=5-3", "address=5-3: allowed: a number or A-B"},
           Case{"fault=dma,action=poisoned,direction=write", "of reads alone"},
           Case{"fault=wire,direction=read", "direction=read: allowed: tx, rx"},
           Case{"fault=module,error=9q", "error=9q: allowed: power-budget"},
           Case{"fault=pcie,error=oops", "error=oops: allowed: receiver-error"},
           Case{"fault=pcie,error=bad-tlp,severity=fatal", "severity: bad-tlp is correctable"},
           Case{"fault=health", "health: needs syndrome="},
           Case{"fault=event", "event: needs type="},
           Case{"fault=temperature,nth=2", "nth: temperature takes at"},
           Case{"drop=0.1,fault=wire,action=melt", "action=melt: allowed: drop, corrupt"},
       }) {
    EXPECT_THAT(fn().inject(c.text), HasSubstr(c.said)) << c.text;
  }
  EXPECT_FALSE(write(*std::make_unique<Pair>(dev())).error());
  EXPECT_EQ(injected(), 0u);
}

}  // namespace
}  // namespace hcasim::bare
