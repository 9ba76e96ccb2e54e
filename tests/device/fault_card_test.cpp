// SPDX-License-Identifier: BSD-3-Clause
// Faults of the card as a whole: its firmware, its port and what goes over the wire.
#include <gmock/gmock.h>

#include <cstring>

#include "fault_fixture.h"
#include "prm/access_registers.h"

namespace hcasim::bare {
namespace {

using prm::EqeType;
using ::testing::HasSubstr;

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

}  // namespace
}  // namespace hcasim::bare
