// SPDX-License-Identifier: BSD-3-Clause
// The Ethernet port: capabilities, NIC vport, RoCE addresses, registers, carrier.
#include "fixture.h"
#include "prm/access_registers.h"

namespace hcasim::bare {
namespace {

using Vport = prm::query_nic_vport_context_out::nic_vport_context;
using namespace prm::reg;

class EthPort : public FirmwareTest {
 protected:
  std::size_t hca() const override { return 2; }

  template <class Reg>
  std::vector<std::uint8_t> request() {
    std::vector<std::uint8_t> data(Reg::bytes);
    data[1] = 1;  // local_port
    return data;
  }
  std::vector<std::uint8_t> read(std::uint16_t id, const std::vector<std::uint8_t>& request) {
    const auto r = dev().access_register(id, false, request).must();
    return {r.out.begin() + prm::access_register_out::bytes, r.out.end()};
  }
  CommandResult vport(std::uint32_t list_type = 0, std::size_t room = 0) {
    using In = prm::query_nic_vport_context_in;
    Mailbox in(prm::op::QUERY_NIC_VPORT_CONTEXT, In::bytes);
    in.set<In::allowed_list_type>(list_type);
    return dev().exec(in, prm::query_nic_vport_context_out::bytes + 8 * room);
  }
  std::uint64_t mac() {
    const auto r = vport().must();
    return std::uint64_t{r.get<Vport::permanent_address::mac_addr_47_32>()} << 32 |
           r.get<Vport::permanent_address::mac_addr_31_0>();
  }
};

TEST_F(EthPort, CapabilityGroups) {
  breaks({"cap-set"});
  using Cap = prm::cmd_hca_cap;
  const auto c = caps(0, true);
  EXPECT_EQ(prm::get<Cap::port_type>(c.data()), 1u);
  for (unsigned group = 0; group < 0x40; ++group) {
    const bool there = group == 0 || group == 1 || group == 2 || group == 3 || group == 4 || group == 7 ||
                       group == 8 || group == 9 || (group == 12 && prm::get<Cap::qos>(c.data())) ||
                       (group == 13 && prm::get<Cap::debug>(c.data())) ||
                       (group == 15 && prm::get<Cap::device_memory>(c.data())) ||
                       (group == 32 && prm::get<Cap::hca_cap_2>(c.data()));
    for (const bool current : {true, false})
      EXPECT_EQ(dev().query_caps(group, current).ok(), there) << "group " << group;
  }
  const auto flow = caps(7, true);
  using Rx = prm::flow_table_nic_cap::flow_table_properties_nic_receive;
  EXPECT_EQ(prm::get<Rx::ft_support>(flow.data()), 1u);
  EXPECT_GE(prm::get<Rx::log_max_ft_size>(flow.data()), 16u);
  EXPECT_EQ(prm::get<prm::roce_cap::r_roce_dest_udp_port>(caps(4, true).data()), 4791u);
}

TEST_F(EthPort, MacIsOfTheGuidAndUnicast) {
  const auto r = vport().must();
  const std::uint64_t guid = r.get<Vport::node_guid>();
  EXPECT_EQ(mac() >> 24, guid >> 40);
  EXPECT_EQ(mac() & 0xffffff, guid & 0xffffff);
  EXPECT_EQ(mac() >> 40 & 1, 0u);
}

TEST_F(EthPort, VportFieldsAreKept) {
  breaks({"cmd-function", "cmd-input-short", "vport-field"});
  using In = prm::modify_nic_vport_context_in;
  using F = In::field_select;
  using C = In::nic_vport_context;
  Mailbox in(prm::op::MODIFY_NIC_VPORT_CONTEXT, In::bytes + 16);
  in.set<F::mtu>(1).set<C::mtu>(9022).set<F::roce_en>(1).set<C::roce_en>(1);
  in.set<F::promisc>(1).set<C::promisc_mc>(1);
  in.set<F::addresses_list>(1).set<C::allowed_list_type>(1).set<C::allowed_list_size>(2);
  std::uint8_t* list = in.data() + C::current_uc_mac_address::bit_off / 8;
  prm::store64(list, 0x33330000'0001);
  prm::store64(list + 8, 0x33330000'0002);
  EXPECT_OK(dev().exec(in));
  const auto r = vport(1, 4).must();
  EXPECT_EQ(r.get<Vport::mtu>(), 9022u);
  EXPECT_EQ(r.get<Vport::roce_en>(), 1u);
  EXPECT_EQ(r.get<Vport::promisc_mc>(), 1u);
  EXPECT_EQ(r.get<Vport::promisc_all>(), 0u);
  ASSERT_EQ(r.get<Vport::allowed_list_size>(), 2u);
  EXPECT_EQ(prm::load64(r.out.data() + Vport::current_uc_mac_address::bit_off / 8 + 8), 0x33330000'0002u);
  EXPECT_EQ(vport(0, 4).must().get<Vport::allowed_list_size>(), 0u);
  EXPECT_EQ(vport(1, 1).must().get<Vport::allowed_list_size>(), 1u);  // as far as there is room
  EXPECT_STATUS(vport(3), CmdStatus::kBadParam);
  in.set<C::allowed_list_size>(3);
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadInpLen);
  in.set<C::allowed_list_size>(0xfff);
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadParam);
  in.set<C::allowed_list_size>(0).set<C::mtu>(20000);
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadParam);
  in.set<C::mtu>(1522).set<F::node_guid>(1);
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadParam);
  in.set<F::node_guid>(0).set<F::disable_uc_local_lb>(1);
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadParam);
  in.set<F::disable_uc_local_lb>(0).set<In::vport_number>(1);
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadParam);
}

TEST_F(EthPort, RoceAddresses) {
  breaks({"roce-address", "table-index"});
  using Set = prm::set_roce_address_in;
  using A = Set::roce_address;
  Mailbox in(prm::op::SET_ROCE_ADDRESS, Set::bytes);
  in.set<Set::roce_address_index>(7).set<A::source_mac_31_0>(0xc9abcdef).set<A::source_mac_47_32>(0x0002);
  std::uint8_t* gid = prm::ptr<A::source_l3_address>(in.data());
  prm::store32(gid + 8, 0xffff);
  prm::store32(gid + 12, 0x0a000001);
  in.set<A::roce_version>(2).set<A::vlan_valid>(1).set<A::vlan_id>(5);
  EXPECT_OK(dev().exec(in));
  using Query = prm::query_roce_address_in;
  using Out = prm::query_roce_address_out::roce_address;
  const auto query = [&](std::uint32_t index) {
    Mailbox m(prm::op::QUERY_ROCE_ADDRESS, Query::bytes);
    return dev().exec(m.set<Query::roce_address_index>(index), prm::query_roce_address_out::bytes);
  };
  const auto r = query(7).must();
  EXPECT_EQ(r.get<Out::roce_version>(), 2u);
  EXPECT_EQ(r.get<Out::roce_l3_type>(), 0u);
  EXPECT_EQ(r.get<Out::vlan_id>(), 5u);
  EXPECT_EQ(r.get<Out::source_mac_31_0>(), 0xc9abcdefu);
  EXPECT_EQ(prm::load32(prm::ptr<Out::source_l3_address>(r.out.data()) + 12), 0x0a000001u);
  in.set<A::roce_version>(1);
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadParam);
  in.set<A::roce_version>(2).set<Set::roce_address_index>(256);
  EXPECT_STATUS(dev().exec(in), CmdStatus::kIx);
  EXPECT_STATUS(query(256), CmdStatus::kIx);
  Mailbox gone(prm::op::SET_ROCE_ADDRESS, Set::bytes);
  EXPECT_OK(dev().exec(gone.set<Set::roce_address_index>(7)));
  EXPECT_EQ(query(7).must().get<Out::roce_version>(), 0u);
}

TEST_F(EthPort, CarrierFollowsAdminAndCable) {
  breaks({"vport-field"});
  dev().clear_async_events();
  using Paos = prm::paos_reg;
  auto paos = request<Paos>();
  const auto state = [&] { return dev().port_state(); };
  EXPECT_EQ(state(), 4);
  prm::set<Paos::admin_status>(paos.data(), 2);
  EXPECT_OK(dev().access_register(kPaos, true, paos));
  EXPECT_EQ(state(), 4) << "not to be taken over";
  prm::set<Paos::ase>(paos.data(), 1);
  EXPECT_OK(dev().access_register(kPaos, true, paos));
  EXPECT_EQ(state(), 1);
  ASSERT_EQ(fn().inject("link=down"), "");
  prm::set<Paos::admin_status>(paos.data(), 1);
  EXPECT_OK(dev().access_register(kPaos, true, paos));
  EXPECT_EQ(state(), 1);
  EXPECT_EQ(prm::get<Paos::oper_status>(read(kPaos, request<Paos>()).data()), 2u);
  ASSERT_EQ(fn().inject("link=up"), "");
  EXPECT_EQ(state(), 4);
  machine().advance(1'000'000);
  ASSERT_EQ(dev().async_events().size(), 2u);
  EXPECT_EQ(dev().async_events()[0].sub_type, prm::kPortDown);
  EXPECT_EQ(dev().async_events()[1].sub_type, prm::kPortActive);
  using Modify = prm::modify_vport_state_in;
  Mailbox in(prm::op::MODIFY_VPORT_STATE, Modify::bytes);
  EXPECT_STATUS(dev().exec(in.set<Modify::admin_state>(1)), CmdStatus::kBadParam);
  EXPECT_OK(dev().exec(in.set<Modify::admin_state>(2)));
  // The uplink itself (op_mod 2): down, up, and as it goes by itself.
  const auto uplink = [&](std::uint32_t wanted) {
    Mailbox of_port(prm::op::MODIFY_VPORT_STATE, Modify::bytes, 2);
    return dev().exec(of_port.set<Modify::admin_state>(wanted));
  };
  EXPECT_OK(uplink(0));
  EXPECT_EQ(state(), 1);
  EXPECT_OK(uplink(2));
  EXPECT_EQ(state(), 4);
  EXPECT_STATUS(uplink(3), CmdStatus::kBadParam);
}

TEST_F(EthPort, MtuAndSpeed) {
  breaks({"register-unknown", "register-value"});
  using Mtu = prm::pmtu_reg;
  auto data = request<Mtu>();
  EXPECT_GE(prm::get<Mtu::max_mtu>(read(kPmtu, data).data()), 9022u);
  prm::set<Mtu::admin_mtu>(data.data(), 9022);
  EXPECT_OK(dev().access_register(kPmtu, true, data));
  EXPECT_EQ(prm::get<Mtu::oper_mtu>(read(kPmtu, request<Mtu>()).data()), 9022u);
  for (const unsigned mtu : {0u, 60u, 20000u}) {
    prm::set<Mtu::admin_mtu>(data.data(), mtu);
    EXPECT_STATUS(dev().access_register(kPmtu, true, data), CmdStatus::kBadParam);
  }
  using Ptys = prm::ptys_reg;
  auto ptys = request<Ptys>();
  prm::set<Ptys::proto_mask>(ptys.data(), 4);
  const auto r = read(kPtys, ptys);
  constexpr std::uint32_t kPortNone = 1, kPortFibre = 6;  // mlx5e_connector_type
  EXPECT_EQ(prm::get<Ptys::connector_type>(r.data()), kPortFibre);
  ASSERT_EQ(fn().inject("link=down"), "");
  EXPECT_EQ(prm::get<Ptys::connector_type>(read(kPtys, ptys).data()), kPortNone);
  ASSERT_EQ(fn().inject("link=up"), "");
  const std::uint32_t oper = prm::get<Ptys::eth_proto_oper>(r.data());
  EXPECT_NE(oper, 0u);
  EXPECT_EQ(oper & (oper - 1), 0u);
  EXPECT_EQ(prm::get<Ptys::ib_proto_oper>(r.data()), 0u);
  prm::set<Ptys::eth_proto_admin>(ptys.data(), oper);
  EXPECT_OK(dev().access_register(kPtys, true, ptys));
  prm::set<Ptys::eth_proto_admin>(ptys.data(), ~prm::get<Ptys::eth_proto_capability>(r.data()));
  EXPECT_STATUS(dev().access_register(kPtys, true, ptys), CmdStatus::kBadParam);
  EXPECT_STATUS(dev().access_register(kPvlc, false, request<prm::pvlc_reg>()), CmdStatus::kBadParam);
}

TEST_F(EthPort, PauseIsKept) {
  breaks({"register-value"});
  using R = prm::pfcc_reg;
  auto data = request<R>();
  prm::set<R::pptx>(data.data(), 0);
  prm::set<R::pprx>(data.data(), 1);
  prm::set<R::pfcrx>(data.data(), 0x3c);
  prm::set<R::prio_mask_rx>(data.data(), 0x18);
  EXPECT_OK(dev().access_register(kPfcc, true, data));
  const auto r = read(kPfcc, request<R>());
  EXPECT_EQ(prm::get<R::pptx>(r.data()), 0u);
  EXPECT_EQ(prm::get<R::pprx>(r.data()), 1u);
  EXPECT_EQ(prm::get<R::pfcrx>(r.data()), 0x18u);
  // The masks keep what they cover.
  prm::set<R::pprx>(data.data(), 0);
  prm::set<R::pprx_mask_n>(data.data(), 1);
  EXPECT_OK(dev().access_register(kPfcc, true, data));
  EXPECT_EQ(prm::get<R::pprx>(read(kPfcc, request<R>()).data()), 1u);
  prm::set<R::critical_stall_mask>(data.data(), 1);
  EXPECT_STATUS(dev().access_register(kPfcc, true, data), CmdStatus::kBadParam);
}

TEST_F(EthPort, CounterGroups) {
  breaks({"register-value"});
  using R = prm::ppcnt_reg;
  for (unsigned group = 0; group < 0x40; ++group) {
    const bool there =
        group <= 3 || group == 5 || (group >= 0x10 && group <= 0x12) || group == 0x16 || group == 0x20;
    auto data = request<R>();
    prm::set<R::grp>(data.data(), group);
    const auto r = dev().access_register(kPpcnt, false, data);
    EXPECT_EQ(r.ok(), there) << "group " << group << ": " << r.text();
  }
  auto data = request<R>();
  prm::set<R::grp>(data.data(), 0x10);
  prm::set<R::prio_tc>(data.data(), 8);
  EXPECT_STATUS(dev().access_register(kPpcnt, false, data), CmdStatus::kBadParam);
}

// A choice takes hold when the link comes up next, and is gone with the driver.
TEST_F(EthPort, ErrorCorrection) {
  breaks({"register-value"});
  using R = prm::pplm_reg;
  enum : std::uint32_t { kOff = 1, kFirecode = 2, kRs528 = 4, kRs544 = 0x80 };
  const auto link = [&](unsigned status) {
    auto paos = request<prm::paos_reg>();
    prm::set<prm::paos_reg::admin_status>(paos.data(), status);
    prm::set<prm::paos_reg::ase>(paos.data(), 1);
    EXPECT_OK(dev().access_register(kPaos, true, paos));
  };
  const auto active = [&] { return prm::get<R::fec_mode_active>(read(kPplm, request<R>()).data()); };
  auto data = read(kPplm, request<R>());  // a ConnectX-5: no lanes of 50 Gb/s
  EXPECT_EQ(prm::get<R::fec_override_cap_10g_40g>(data.data()), kOff | kFirecode);
  EXPECT_EQ(prm::get<R::fec_override_cap_25g>(data.data()), kOff | kFirecode | kRs528);
  EXPECT_EQ(prm::get<R::fec_override_cap_100g>(data.data()), kOff | kRs528);
  EXPECT_EQ(prm::get<R::fec_override_cap_56g>(data.data()), 0u);
  EXPECT_EQ(prm::get<R::fec_override_cap_50g_1x>(data.data()), 0u);
  EXPECT_EQ(prm::get<R::fec_override_admin_100g>(data.data()), 0u);
  EXPECT_EQ(active(), kRs528);

  prm::set<R::fec_override_admin_100g>(data.data(), kOff);
  prm::set<R::fec_override_admin_25g>(data.data(), kFirecode);
  EXPECT_OK(dev().access_register(kPplm, true, data));
  EXPECT_EQ(active(), kRs528);
  link(2);
  EXPECT_EQ(active(), 0u);
  link(1);
  EXPECT_EQ(active(), kOff);
  EXPECT_EQ(prm::get<R::fec_override_admin_25g>(read(kPplm, request<R>()).data()), kFirecode);

  // Of what is not offered nothing is taken, nor of two at once; the rest of such a request is not either.
  const auto refused = [&](auto field, std::uint32_t kind) {
    auto other = request<R>();
    prm::set<decltype(field)>(other.data(), kind);
    EXPECT_STATUS(dev().access_register(kPplm, true, other), CmdStatus::kBadParam);
  };
  refused(R::fec_override_admin_100g{}, kFirecode);
  refused(R::fec_override_admin_100g{}, kOff | kRs528);
  refused(R::fec_override_admin_50g_1x{}, kRs544);
  refused(R::fec_override_admin_56g{}, kOff);
  refused(R::fec_override_admin_400g_8x{}, kRs544);
  refused(R::fec_override_admin_800g_8x{}, kRs544);
  refused(R::rs_fec_correction_bypass_admin{}, 1);
  EXPECT_EQ(prm::get<R::fec_override_admin_100g>(read(kPplm, request<R>()).data()), kOff);

  dev().teardown();
  dev().probe();
  EXPECT_EQ(active(), kRs528);
}

// Drivers before Linux 5.6 know the first 24 bytes of it: what is behind them they do not change.
TEST_F(EthPort, ErrorCorrectionOfOlderDrivers) {
  breaks({"register-length"});
  using R = prm::pplm_reg;
  constexpr std::size_t kOld = R::fec_override_cap_400g_8x::bit_off / 8;
  auto data = request<R>();
  data.resize(kOld);
  auto r = dev().access_register(kPplm, false, data);
  EXPECT_OK(r);
  const auto all = read(kPplm, request<R>());
  constexpr std::size_t at = prm::access_register_out::register_data::bit_off / 8;
  ASSERT_GE(r.out.size(), at + kOld);
  EXPECT_TRUE(std::equal(all.begin(), all.begin() + kOld, r.out.begin() + at));
  std::copy(all.begin(), all.begin() + kOld, data.begin());
  prm::set<R::fec_override_admin_25g>(data.data(), 2);
  EXPECT_OK(dev().access_register(kPplm, true, data));
  EXPECT_EQ(prm::get<R::fec_override_admin_25g>(read(kPplm, request<R>()).data()), 2u);
  data.resize(kOld - 4);
  EXPECT_STATUS(dev().access_register(kPplm, false, data), CmdStatus::kBadInpLen);
}

// PCAM names the registers 0x50xx that can be read, and no other; the features are those of the driver's that
// hold here.
TEST_F(EthPort, PortRegistersAreNamed) {
  breaks({"register-access", "register-unknown", "register-value"});
  using R = prm::pcam_reg;
  using Regs = R::port_access_reg_cap_mask::regs_5000_to_507f;
  using Features = R::feature_cap_mask::enhanced_features;
  EXPECT_EQ(prm::get<prm::cmd_hca_cap::pcam_reg>(caps(0, true).data()), 1u);
  // What a request holds outside the selectors does not come back.
  std::vector<std::uint8_t> data(R::bytes, 0xff);
  prm::set<R::feature_group>(data.data(), 0);
  prm::set<R::access_reg_group>(data.data(), 0);
  const auto pcam = read(kPcam, data);
  const std::uint8_t* mask = pcam.data() + Regs::bit_off / 8;
  for (unsigned n = 0; n < 0x80; ++n) {
    // Larger than any of them, with local_port; dword 0 of PCAM itself and of PMAOS has other selectors
    // there.
    std::vector<std::uint8_t> request(0x400);
    if (0x5000 + n != kPcam && 0x5000 + n != kPmaos) request[1] = 1;
    const bool there = dev().access_register(static_cast<std::uint16_t>(0x5000 + n), false, request).ok();
    EXPECT_EQ((mask[15 - n / 8] >> n % 8 & 1) != 0, there) << "register 0x50" << std::hex << n;
  }
  EXPECT_EQ(prm::get<Regs::ppcnt>(pcam.data()), 1u);
  EXPECT_EQ(prm::get<Regs::pplm>(pcam.data()), 1u);
  std::vector<std::uint8_t> features(Features::bytes);
  prm::set<prm::pcam_enhanced_features::rx_icrc_encapsulated_counter>(features.data(), 1);
  prm::set<prm::pcam_enhanced_features::ppcnt_statistical_group>(features.data(), 1);
  prm::set<prm::pcam_enhanced_features::per_lane_error_counters>(features.data(), 1);
  prm::set<prm::pcam_enhanced_features::ptys_connector_type>(features.data(), 1);
  const auto at = pcam.begin() + Features::bit_off / 8;
  EXPECT_EQ(std::vector<std::uint8_t>(at, at + Features::bytes), features);
  for (auto* other : {+[](std::uint8_t* p) { prm::set<R::feature_group>(p, 1); },
                      +[](std::uint8_t* p) { prm::set<R::access_reg_group>(p, 1); }}) {
    std::vector<std::uint8_t> request(R::bytes);
    other(request.data());
    EXPECT_STATUS(dev().access_register(kPcam, false, request), CmdStatus::kBadParam);
  }
  EXPECT_STATUS(dev().access_register(kPcam, true, std::vector<std::uint8_t>(R::bytes)),
                CmdStatus::kBadParam);
}

TEST_F(EthPort, ModuleEeprom) {
  breaks({"register-length", "register-value"});
  using R = prm::mcia_reg;
  EXPECT_EQ(prm::get<prm::pmlp_reg::width>(read(kPmlp, request<prm::pmlp_reg>()).data()), 4u);
  const auto bytes = [&](unsigned page, unsigned from, unsigned size, unsigned* status) {
    std::vector<std::uint8_t> data(R::bytes);
    prm::set<R::i2c_device_address>(data.data(), 0x50);
    prm::set<R::page_number>(data.data(), page);
    prm::set<R::device_address>(data.data(), from);
    prm::set<R::size>(data.data(), size);
    const auto r = read(kMcia, data);
    *status = prm::get<R::status>(r.data());
    const std::uint8_t* p = prm::ptr<R::dwords>(r.data());
    return std::vector<std::uint8_t>(p, p + size);
  };
  unsigned status = 1;
  std::vector<std::uint8_t> page;
  for (unsigned at = 0; at < 256; at += 32) {
    const auto part = bytes(0, at, 32, &status);
    ASSERT_EQ(status, 0u);
    page.insert(page.end(), part.begin(), part.end());
  }
  EXPECT_EQ(page[0], 0x11);
  EXPECT_EQ(page[128], 0x11);
  // SFF-8636 6.3.20, 6.3.30: check codes.
  const auto sum = [&](unsigned from, unsigned to) {
    unsigned s = 0;
    for (unsigned i = from; i <= to; ++i) s += page[i];
    return s & 0xff;
  };
  EXPECT_EQ(page[191], sum(128, 190));
  EXPECT_EQ(page[223], sum(192, 222));
  bytes(4, 128, 16, &status);
  EXPECT_EQ(status, 9u);  // an I2C error: nobody answers
  bytes(0, 250, 16, &status);
  EXPECT_EQ(status, 9u);
  bytes(0, 0, 0, &status);
  EXPECT_EQ(status, 0u);
  // Drivers that know of twelve dwords give no more.
  constexpr std::size_t kTwelve = R::dwords::bit_off / 8 + 48;
  std::vector<std::uint8_t> earlier(kTwelve);
  prm::set<R::i2c_device_address>(earlier.data(), 0x50);
  prm::set<R::size>(earlier.data(), 48);
  const auto answer = read(kMcia, earlier);
  EXPECT_EQ(prm::get<R::status>(answer.data()), 0u);
  EXPECT_TRUE(std::equal(page.begin(), page.begin() + 48, answer.begin() + R::dwords::bit_off / 8));
  EXPECT_STATUS(dev().access_register(kMcia, false, std::vector<std::uint8_t>(kTwelve - 4)),
                CmdStatus::kBadInpLen);
  std::vector<std::uint8_t> data(R::bytes);
  prm::set<R::size>(data.data(), 0xffff);
  prm::set<R::i2c_device_address>(data.data(), 0x50);
  EXPECT_STATUS(dev().access_register(kMcia, false, data), CmdStatus::kBadParam);
}

TEST_F(EthPort, FirmwareVersion) {
  breaks({"register-value"});
  using Mcqi = prm::mcqi_reg;
  std::vector<std::uint8_t> data(Mcqi::bytes + prm::mcqi_version::bytes);
  prm::set<Mcqi::info_type>(data.data(), 1);
  const auto r = read(kMcqi, data);
  const std::uint32_t version = prm::get<prm::mcqi_version::version>(r.data() + Mcqi::bytes);
  EXPECT_EQ(version >> 24, 16u);
  EXPECT_EQ(prm::get<Mcqi::info_size>(r.data()), prm::mcqi_version::bytes);
  // With less room than the data need.
  data.resize(Mcqi::bytes + 8);
  EXPECT_EQ(prm::get<prm::mcqi_version::version>(read(kMcqi, data).data() + Mcqi::bytes), version);
  data.resize(Mcqi::bytes);
  EXPECT_OK(dev().access_register(kMcqi, false, data));
  prm::set<Mcqi::info_type>(data.data(), 9);
  EXPECT_STATUS(dev().access_register(kMcqi, false, data), CmdStatus::kBadParam);
  EXPECT_EQ(prm::get<prm::mcqs_reg::last_index_flag>(
                read(kMcqs, std::vector<std::uint8_t>(prm::mcqs_reg::bytes)).data()),
            1u);
  using Mcam = prm::mcam_reg;
  const auto mcam = read(kMcam, std::vector<std::uint8_t>(Mcam::bytes));
  EXPECT_EQ(prm::get<Mcam::mng_access_reg_cap_mask::access_regs::mcqi>(mcam.data()), 1u);
  EXPECT_EQ(prm::get<Mcam::mng_access_reg_cap_mask::access_regs::mcda>(mcam.data()), 1u);
}

// Commands that were refused so far, as the vport's environment has them.
auto refused_commands(Device& device) {
  return device
      .exec(Mailbox(prm::op::QUERY_VNIC_ENV, prm::query_vnic_env_in::bytes), prm::query_vnic_env_out::bytes)
      .must()
      .get<prm::query_vnic_env_out::vport_env::invalid_command>();
}

TEST_F(EthPort, Environment) {
  breaks({"cap-not-offered"});
  const auto before = refused_commands(dev());
  EXPECT_OK(dev().exec(Mailbox(prm::op::QUERY_VPORT_COUNTER, prm::query_vport_counter_in::bytes),
                       prm::query_vport_counter_out::bytes));
  EXPECT_STATUS(dev().exec(Mailbox(prm::op::QUERY_HCA_VPORT_CONTEXT, prm::query_hca_vport_context_in::bytes),
                           prm::query_hca_vport_context_out::bytes),
                CmdStatus::kBadOp);
  EXPECT_EQ(refused_commands(dev()), before + 1);
}

// The port of the InfiniBand link has no PCAM.
class IbPort : public FirmwareTest {};
TEST_F(IbPort, HasAnEnvironmentToo) {
  breaks({"cmd-opcode"});
  EXPECT_EQ(dev().cap<prm::cmd_hca_cap::invalid_command_count>(), 1u);
  const auto before = refused_commands(dev());
  EXPECT_STATUS(dev().exec(Mailbox(0xfff, 16)), CmdStatus::kBadOp);
  EXPECT_EQ(refused_commands(dev()), before + 1);
}
TEST_F(IbPort, HasNoPcam) {
  breaks({"register-unknown"});
  EXPECT_EQ(prm::get<prm::cmd_hca_cap::pcam_reg>(caps(0, true).data()), 0u);
  EXPECT_EQ(prm::get<prm::cmd_hca_cap::pcam_reg>(caps(0, false).data()), 0u);
  EXPECT_STATUS(dev().access_register(kPcam, false, std::vector<std::uint8_t>(prm::pcam_reg::bytes)),
                CmdStatus::kBadParam);
}

}  // namespace
}  // namespace hcasim::bare
