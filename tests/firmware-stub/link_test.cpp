// SPDX-License-Identifier: BSD-3-Clause
// What the registers of diagnostics say of a link: PDDR, SLTP.
#include <cstring>

#include "fixture.h"
#include "prm/access_registers.h"
#include "prm/link_diagnostics.h"

namespace hcasim::bare {
namespace {

using namespace prm::reg;

class LinkTest : public FirmwareTest {
 protected:
  using Pddr = prm::pddr_reg;
  using Operation = prm::pddr_operation_page;
  using Module = prm::pddr_module_page;
  using Trouble = Pddr::page_data::pddr_troubleshooting_page;

  // The page alone.
  std::vector<std::uint8_t> page(unsigned number, unsigned module_info_ext = 0) {
    const auto r = dev().access_register(kPddr, false, request(number, module_info_ext)).must();
    return {r.out.begin() + prm::access_register_out::bytes + Pddr::page_data::bit_off / 8, r.out.end()};
  }
  static std::vector<std::uint8_t> request(unsigned number, unsigned module_info_ext = 0) {
    std::vector<std::uint8_t> data(Pddr::bytes, 0xff);  // what a request holds in the page does not come back
    std::fill(data.begin(), data.begin() + 16, std::uint8_t{0});
    prm::set<Pddr::local_port>(data.data(), 1);
    prm::set<Pddr::page_select>(data.data(), number);
    prm::set<prm::pddr_module_info_ext>(data.data(), module_info_ext);
    return data;
  }
  unsigned phy() { return prm::get<Operation::phy_mngr_fsm_state>(page(prm::kPddrOperation).data()); }
  unsigned trouble() {
    const auto r = dev().access_register(kPddr, false, request(prm::kPddrTroubleshooting)).must();
    const std::uint8_t* data = r.out.data() + prm::access_register_out::bytes;
    return prm::get<Trouble::status_opcode::pddr_monitor_opcode::monitor_opcode>(data);
  }
  unsigned receiver() {
    std::vector<std::uint8_t> data(prm::ppaos_reg::bytes);
    prm::set<prm::ppaos_reg::local_port>(data.data(), 1);
    const auto r = dev().access_register(kPpaos, false, data).must();
    const std::uint8_t* answer = r.out.data() + prm::access_register_out::bytes;
    EXPECT_EQ(prm::get<prm::ppaos_reg::phy_test_mode_status>(answer), 0u);
    return prm::get<prm::ppaos_reg::phy_status>(answer);
  }
  void administratively(bool up) {
    std::vector<std::uint8_t> paos(prm::paos_reg::bytes);
    paos[1] = 1;
    prm::set<prm::paos_reg::admin_status>(paos.data(), up ? 1 : 2);
    prm::set<prm::paos_reg::ase>(paos.data(), 1);
    EXPECT_OK(dev().access_register(kPaos, true, paos));
  }
  // Up, closed, open again without a cable, and with it.
  void states() {
    EXPECT_EQ(phy(), prm::kPhyActive);
    EXPECT_EQ(trouble(), prm::kNoIssue);
    EXPECT_EQ(receiver(), prm::kRxPhyUp);
    administratively(false);
    EXPECT_EQ(receiver(), prm::kRxPhyDownByCommand);
    EXPECT_EQ(phy(), prm::kPhyDisabled);
    EXPECT_EQ(trouble(), prm::kClosedByCommand);
    EXPECT_EQ(prm::get<Operation::link_active>(page(prm::kPddrOperation).data()), 0u);
    ASSERT_EQ(fn().inject("link=down"), "");
    EXPECT_EQ(trouble(), prm::kClosedByCommand);
    administratively(true);
    EXPECT_EQ(phy(), prm::kPhyPolling);
    EXPECT_EQ(trouble(), prm::kCableUnplugged);
    EXPECT_EQ(receiver(), prm::kRxPhyDown);
    EXPECT_EQ(prm::get<Operation::cable_proto_cap>(page(prm::kPddrOperation).data()), 0u);
    ASSERT_EQ(fn().inject("link=up"), "");
    EXPECT_EQ(phy(), prm::kPhyActive);
    EXPECT_EQ(trouble(), prm::kNoIssue);
  }
};

class EthLink : public LinkTest {
  std::size_t hca() const override { return 2; }
};
class IbLink : public LinkTest {};

TEST_F(EthLink, States) { states(); }
TEST_F(IbLink, States) { states(); }

TEST_F(EthLink, ModeAndCorrection) {
  const auto p = page(prm::kPddrOperation);
  EXPECT_EQ(prm::get<Operation::proto_active>(p.data()), 4u);
  EXPECT_EQ(prm::get<Operation::link_active>(p.data()), 1u << 21);         // 100GBASE-SR4, as PTYS has it
  EXPECT_EQ(prm::get<Operation::cable_proto_cap>(p.data()), 0x2024a001u);  // and 50, 40, 25, 10, 1 Gb/s
  EXPECT_EQ(prm::get<Operation::fec_mode_active>(p.data()), 2u);           // RS(528,514)
  EXPECT_EQ(prm::get<Operation::eth_100g_fec_support>(p.data()), 5u);
  EXPECT_EQ(prm::get<Operation::eth_25g_50g_fec_support>(p.data()), 7u);
}

TEST_F(IbLink, Mode) {
  const auto p = page(prm::kPddrOperation);
  EXPECT_EQ(prm::get<Operation::proto_active>(p.data()), 1u);
  EXPECT_EQ(prm::get<Operation::ib_phy_fsm_state>(p.data()), prm::kIbPhyLinkUp);
  EXPECT_EQ(prm::get<Operation::link_active>(p.data()), 0x4u << 16 | 0x20u);  // 4X EDR
  EXPECT_EQ(prm::get<Operation::fec_mode_active>(p.data()), 0u);
  const auto cable = page(prm::kPddrModule);
  EXPECT_EQ(prm::get<Module::cable_type>(cable.data()), prm::kPassiveCopper);
  EXPECT_EQ(prm::get<Module::temperature>(cable.data()), 0u);  // nothing is measured
}

TEST_F(EthLink, Module) {
  auto p = page(prm::kPddrModule);
  const auto text = [&p](std::size_t bit, std::size_t size) {
    return std::string(p.begin() + static_cast<std::ptrdiff_t>(bit / 8),
                       p.begin() + static_cast<std::ptrdiff_t>(bit / 8 + size));
  };
  const auto word = [&p](std::size_t bit) {
    return static_cast<std::int16_t>(p[bit / 8] << 8 | p[bit / 8 + 1]);
  };
  EXPECT_EQ(prm::get<Module::cable_type>(p.data()), prm::kOpticalModule);
  EXPECT_EQ(text(Module::vendor_name::bit_off, 6), "hcasim");
  EXPECT_EQ(text(Module::vendor_pn::bit_off, 14), "SIM-QSFP28-SR4");
  EXPECT_EQ(prm::get<Module::wavelength>(p.data()), 850u);
  EXPECT_EQ(prm::get<Module::cable_power_class>(p.data()), 3u);
  EXPECT_EQ(prm::get<Module::temperature>(p.data()), 35u * 256 + 128);
  EXPECT_EQ(prm::get<Module::voltage>(p.data()), 33000u);
  EXPECT_EQ(word(Module::rx_power::bit_off), -1);                   // 0.85 mW in dBm
  EXPECT_EQ(word(Module::thresholds::bit_off), 75 * 256);           // highest temperature ...
  EXPECT_EQ(word(Module::thresholds::bit_off + 16), -5 * 256);      // ... and lowest
  EXPECT_EQ(word(Module::thresholds::bit_off + 4 * 32), 12 * 500);  // highest bias
  p = page(prm::kPddrModule, 1);
  EXPECT_EQ(word(Module::rx_power::bit_off), 850);  // uW
  EXPECT_EQ(word(Module::rx_power::bit_off + 3 * 16), 850);
  EXPECT_EQ(word(Module::rx_power::bit_off + 4 * 16), 0) << "a fifth lane";
  ASSERT_EQ(fn().inject("link=down"), "");
  p = page(prm::kPddrModule);
  EXPECT_EQ(prm::get<Module::cable_type>(p.data()), prm::kModuleUnplugged);
  EXPECT_EQ(text(Module::vendor_name::bit_off, 2), std::string(2, '\0'));
  ASSERT_EQ(fn().inject("link=up"), "");
}

TEST_F(EthLink, ModuleState) {
  breaks({"register-value"});
  using R = prm::pmaos_reg;
  std::vector<std::uint8_t> data(R::bytes);
  const auto state = [&] {
    const auto r = dev().access_register(kPmaos, false, data).must();
    return prm::get<R::oper_status>(r.out.data() + prm::access_register_out::bytes);
  };
  EXPECT_EQ(state(), 1u);
  ASSERT_EQ(fn().inject("link=down"), "");
  EXPECT_EQ(state(), 2u);
  ASSERT_EQ(fn().inject("link=up"), "");
  EXPECT_EQ(state(), 1u);
  prm::set<R::module>(data.data(), 1);
  EXPECT_STATUS(dev().access_register(kPmaos, false, data), CmdStatus::kBadParam);
}

TEST_F(EthLink, TheBeaconBlinksForItsTime) {
  using R = prm::mlcr_reg;
  const auto beacon = [&](int set = -1) {
    std::vector<std::uint8_t> data(R::bytes);
    prm::set<R::local_port>(data.data(), 1);
    if (set >= 0) prm::set<R::beacon_duration>(data.data(), static_cast<unsigned>(set));
    const auto r = dev().access_register(kMlcr, set >= 0, data).must();
    const std::uint8_t* answer = r.out.data() + prm::access_register_out::bytes;
    return std::make_pair(prm::get<R::beacon_duration>(answer), prm::get<R::beacon_remain>(answer));
  };
  using Times = std::pair<std::uint32_t, std::uint32_t>;
  constexpr unsigned kGeneral = 0;
  EXPECT_EQ(prm::get<prm::cmd_hca_cap::beacon_led>(caps(kGeneral, true).data()), 1u);
  EXPECT_EQ(beacon(), Times(0, 0));
  EXPECT_EQ(beacon(3), Times(3, 3));
  EXPECT_EQ(fn().counter("port_beacon_s"), 3u) << "and the host's user sees it";
  machine().advance(1'500'000'000);
  EXPECT_EQ(beacon(), Times(3, 2));
  machine().advance(2'000'000'000);
  EXPECT_EQ(beacon(), Times(3, 0)) << "and no longer";
  EXPECT_EQ(beacon(0xffff), Times(0xffff, 0xffff)) << "until it is told to stop";
  machine().advance(1'000'000'000);
  EXPECT_EQ(beacon(), Times(0xffff, 0xffff));
  EXPECT_EQ(beacon(0), Times(0, 0));
}

TEST_F(EthLink, NoSettingsOfTransmitters) {
  breaks({"register-value"});
  using R = prm::sltp_reg;
  std::vector<std::uint8_t> data(R::bytes);
  prm::set<R::local_port>(data.data(), 1);
  prm::set<R::lane>(data.data(), 3);
  const auto r = dev().access_register(kSltp, false, data).must();
  const std::uint8_t* answer = r.out.data() + prm::access_register_out::bytes;
  EXPECT_EQ(prm::get<R::status>(answer), 0u);
  EXPECT_EQ(prm::get<R::version>(answer), prm::kSltp28nm);
  EXPECT_EQ(prm::get<R::lane>(answer), 3u);
  prm::set<R::lane>(data.data(), 4);
  EXPECT_STATUS(dev().access_register(kSltp, false, data), CmdStatus::kBadParam);
}

TEST_F(EthLink, OtherPagesAndGroups) {
  breaks({"register-value"});
  for (const unsigned number : {2u, 4u, 6u, 8u, 255u})
    EXPECT_STATUS(dev().access_register(kPddr, false, request(number)), CmdStatus::kBadParam);
  auto data = request(prm::kPddrTroubleshooting);
  prm::set<Trouble::group_opcode>(data.data(), 2);
  EXPECT_STATUS(dev().access_register(kPddr, false, data), CmdStatus::kBadParam);
  prm::set<Trouble::group_opcode>(data.data(), 1);
  const auto r = dev().access_register(kPddr, false, data).must();
  const auto* text = reinterpret_cast<const char*>(r.out.data() + prm::access_register_out::bytes) +
                     Trouble::status_message::bit_off / 8;
  EXPECT_STREQ(text, "no issue observed");
}

}  // namespace
}  // namespace hcasim::bare
