// SPDX-License-Identifier: BSD-3-Clause
// The port: vport commands and access registers.
#include <algorithm>
#include <iterator>

#include "fixture.h"
#include "prm/access_registers.h"

namespace hcasim::bare {
namespace {

using Ctx = prm::query_hca_vport_context_out::hca_vport_context;
using namespace prm::reg;

class PortTest : public FirmwareTest {
 protected:
  template <class Reg>
  std::vector<std::uint8_t> request() {
    std::vector<std::uint8_t> data(Reg::bytes);
    data[1] = 1;  // local_port
    return data;
  }
  // The register's data of a read.
  std::vector<std::uint8_t> read(std::uint16_t id, const std::vector<std::uint8_t>& request) {
    const auto r = dev().access_register(id, false, request).must();
    return {r.out.begin() + prm::access_register_out::bytes, r.out.end()};
  }
};

TEST_F(PortTest, ActiveWithGuidsAndPhysicalLink) {
  const auto r = dev().query_vport().must();
  EXPECT_EQ(r.get<Ctx::vport_state>(), 4u);
  EXPECT_EQ(r.get<Ctx::port_state>(), 4u);
  EXPECT_EQ(r.get<Ctx::port_physical_state>(), 5u);
  EXPECT_NE(r.get<Ctx::lid>(), 0u);
  EXPECT_NE(r.get<Ctx::sm_lid>(), 0u);
  EXPECT_NE(r.get<Ctx::node_guid>(), 0u);
  EXPECT_EQ(r.get<Ctx::has_smi>(), 1u);
  const auto gid = dev().gid(0);
  ASSERT_EQ(gid.size(), 16u);
  EXPECT_EQ(gid[0], 0xfe);
  EXPECT_EQ(prm::load64(gid.data() + 8), r.get<Ctx::port_guid>());
  // Not assigned, but of the subnet: Linux takes the prefix from the last one.
  const auto last = dev().gid(7);
  EXPECT_EQ(prm::load64(last.data()), prm::load64(gid.data()));
  EXPECT_EQ(prm::load64(last.data() + 8), 0u);
}

TEST_F(PortTest, CapabilityMaskOfTheConnectionManager) {
  breaks({"vport-field"});
  using In = prm::modify_hca_vport_context_in;
  constexpr std::uint32_t kCm = 1u << 16;
  const auto before = dev().query_vport().must();
  EXPECT_NE(before.get<Ctx::cap_mask1_field_select>() & kCm, 0u);
  Mailbox in(prm::op::MODIFY_HCA_VPORT_CONTEXT, In::bytes);
  in.set<In::hca_vport_context::cap_mask1>(kCm).set<In::hca_vport_context::cap_mask1_field_select>(kCm);
  EXPECT_OK(dev().exec(in));
  const auto after = dev().query_vport().must();
  EXPECT_EQ(after.get<Ctx::cap_mask1>(), before.get<Ctx::cap_mask1>() | kCm);
  in.set<In::hca_vport_context::cap_mask1>(0);
  EXPECT_OK(dev().exec(in));
  EXPECT_EQ(dev().query_vport().must().get<Ctx::cap_mask1>(), before.get<Ctx::cap_mask1>());
  // What the host does not provide is not its to promise, and GUIDs are not its to choose.
  in.set<In::hca_vport_context::cap_mask1_field_select>(1u << 14);
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadParam);
  in.set<In::hca_vport_context::cap_mask1_field_select>(0).set<In::hca_vport_context::field_select>(1);
  EXPECT_STATUS(dev().exec(in), CmdStatus::kBadParam);
}

TEST_F(PortTest, TablesHaveEnds) {
  breaks({"cmd-function", "cmd-output-short", "table-index"});
  using Gid = prm::query_hca_vport_gid_in;
  using Pkey = prm::query_hca_vport_pkey_in;
  const auto gid = [&](std::uint32_t i, std::size_t n) {
    Mailbox in(prm::op::QUERY_HCA_VPORT_GID, Gid::bytes);
    return dev().exec(in.set<Gid::gid_index>(i), prm::query_hca_vport_gid_out::bytes + 16 * n);
  };
  const auto pkey = [&](std::uint32_t i, std::size_t n) {
    Mailbox in(prm::op::QUERY_HCA_VPORT_PKEY, Pkey::bytes);
    return dev().exec(in.set<Pkey::pkey_index>(i), prm::query_hca_vport_pkey_out::bytes + 4 * n);
  };
  EXPECT_OK(gid(7, 1));
  EXPECT_STATUS(gid(8, 1), CmdStatus::kIx);
  EXPECT_EQ(gid(0xffff, 8).must().get<prm::query_hca_vport_gid_out::gids_num>(), 8u);
  EXPECT_STATUS(gid(0xffff, 7), CmdStatus::kBadOutpLen);
  EXPECT_OK(pkey(127, 1));
  EXPECT_STATUS(pkey(128, 1), CmdStatus::kIx);
  EXPECT_STATUS(pkey(0xffff, 127), CmdStatus::kBadOutpLen);
  const auto all = pkey(0xffff, 128).must();
  using Out = prm::query_hca_vport_pkey_out;
  EXPECT_EQ(prm::get<prm::pkey::pkey>(prm::at<Out::pkey>(all.out.data(), 0)), 0xffffu);
  EXPECT_EQ(prm::get<prm::pkey::pkey>(prm::at<Out::pkey>(all.out.data(), 1)), 0u);
  Mailbox other(prm::op::QUERY_HCA_VPORT_CONTEXT, prm::query_hca_vport_context_in::bytes);
  other.set<prm::query_hca_vport_context_in::other_vport>(1);
  EXPECT_STATUS(dev().exec(other, prm::query_hca_vport_context_out::bytes), CmdStatus::kBadParam);
}

TEST_F(PortTest, CounterOfTheVport) {
  using In = prm::query_vport_counter_in;
  Mailbox in(prm::op::QUERY_VPORT_COUNTER, In::bytes);
  EXPECT_OK(dev().exec(in, prm::query_vport_counter_out::bytes));
}

TEST_F(PortTest, MtuRegister) {
  breaks({"register-value"});
  using R = prm::pmtu_reg;
  auto data = request<R>();
  const auto was = read(kPmtu, data);
  EXPECT_EQ(prm::get<R::max_mtu>(was.data()), 4096u);
  prm::set<R::admin_mtu>(data.data(), 2048);
  EXPECT_OK(dev().access_register(kPmtu, true, data));
  EXPECT_EQ(prm::get<R::oper_mtu>(read(kPmtu, data).data()), 2048u);
  for (const unsigned mtu : {0u, 128u, 3000u, 8192u}) {
    SCOPED_TRACE(mtu);
    prm::set<R::admin_mtu>(data.data(), mtu);
    EXPECT_STATUS(dev().access_register(kPmtu, true, data), CmdStatus::kBadParam);
  }
  prm::set<R::admin_mtu>(data.data(), 4096);
  EXPECT_OK(dev().access_register(kPmtu, true, data));
}

TEST_F(PortTest, LinkTypeAndLanes) {
  using R = prm::ptys_reg;
  auto data = request<R>();
  prm::set<R::proto_mask>(data.data(), 1);
  const auto ptys = read(kPtys, data);
  EXPECT_NE(prm::get<R::ib_link_width_oper>(ptys.data()), 0u);
  EXPECT_NE(prm::get<R::ib_proto_oper>(ptys.data()), 0u);
  EXPECT_EQ(prm::get<R::eth_proto_oper>(ptys.data()), 0u);
  // Of a ConnectX-5 with EDR: 1X and 4X, SDR to EDR.
  EXPECT_EQ(prm::get<R::ib_link_width_capability>(ptys.data()), 0x5u);
  EXPECT_EQ(prm::get<R::ib_proto_capability>(ptys.data()), 0x3fu);
  EXPECT_EQ(prm::get<R::ib_link_width_oper>(ptys.data()), 0x4u);
  EXPECT_EQ(prm::get<R::ib_proto_oper>(ptys.data()), 0x20u);
  using V = prm::pvlc_reg;
  const auto vl = prm::get<V::vl_hw_cap>(read(kPvlc, request<V>()).data());
  EXPECT_TRUE(vl == 1 || vl == 2 || vl == 4 || vl == 8 || vl == 15) << vl;
}

TEST_F(PortTest, RegistersThatAreNotThere) {
  breaks({"register-unknown"});
  for (unsigned id = 0; id < 0x10000; id += id < 0x5100 && id >= 0x4ff0 ? 1 : 0x41) {
    constexpr unsigned kKnown[] = {0x5002, 0x5003, 0x5004, 0x5006, 0x5008, 0x500f,
                                   0x5012, 0x5027, 0x5031, 0x5040, 0x6001, 0x7004};
    if (std::find(std::begin(kKnown), std::end(kKnown), id) != std::end(kKnown)) continue;
    SCOPED_TRACE(id);
    EXPECT_STATUS(dev().access_register(static_cast<std::uint16_t>(id), false, std::vector<std::uint8_t>(64)),
                  CmdStatus::kBadParam);
  }
}

TEST_F(PortTest, RegistersCheckPortLengthAndDirection) {
  breaks({"cmd-function", "register-access", "register-length", "register-value"});
  auto data = request<prm::pmtu_reg>();
  data[1] = 2;
  EXPECT_STATUS(dev().access_register(kPmtu, false, data), CmdStatus::kBadParam);
  data[1] = 1;
  data.resize(8);
  EXPECT_STATUS(dev().access_register(kPmtu, false, data), CmdStatus::kBadInpLen);
  EXPECT_STATUS(dev().access_register(kPtys, true, request<prm::ptys_reg>()), CmdStatus::kBadParam);
  // What the host enables is kept (iPXE enables SDR alone, mlxlink what its user says).
  auto ptys = request<prm::ptys_reg>();
  prm::set<prm::ptys_reg::proto_mask>(ptys.data(), 1);
  prm::set<prm::ptys_reg::ib_proto_admin>(ptys.data(), 1);
  EXPECT_OK(dev().access_register(kPtys, true, ptys));
  EXPECT_EQ(prm::get<prm::ptys_reg::ib_proto_admin>(read(kPtys, ptys).data()), 1u);
  prm::set<prm::ptys_reg::ib_proto_admin>(ptys.data(), 0x40);
  EXPECT_STATUS(dev().access_register(kPtys, true, ptys), CmdStatus::kBadParam);  // HDR, of a ConnectX-5
  prm::set<prm::ptys_reg::ib_proto_admin>(ptys.data(), 0);
  EXPECT_OK(dev().access_register(kPtys, true, ptys));
  auto ppcnt = request<prm::ppcnt_reg>();
  prm::set<prm::ppcnt_reg::grp>(ppcnt.data(), 0x3f);
  EXPECT_STATUS(dev().access_register(kPpcnt, false, ppcnt), CmdStatus::kBadParam);
  EXPECT_STATUS(dev().access_register(kHostEndianness, true, std::vector<std::uint8_t>(16, 0x80)),
                CmdStatus::kBadParam);
}

// What mstlink asks of either link: physical counters, and by a write that all are cleared.
TEST_F(PortTest, PhysicalCountersAreReadAndAllAreCleared) {
  breaks({"register-value"});
  using R = prm::ppcnt_reg;
  enum : unsigned { kPhysical = 0x12, kStatistical = 0x16, kAll = 63 };
  const auto of_group = [this](unsigned group) {
    auto data = request<R>();
    prm::set<R::grp>(data.data(), group);
    return data;
  };
  for (const unsigned group : {kPhysical, kStatistical})
    EXPECT_OK(dev().access_register(kPpcnt, false, of_group(group)));
  EXPECT_STATUS(dev().access_register(kPpcnt, true, of_group(kAll)), CmdStatus::kBadParam);
  auto clear = of_group(kAll);
  prm::set<R::clr>(clear.data(), 1);
  EXPECT_OK(dev().access_register(kPpcnt, true, clear));
  EXPECT_STATUS(dev().access_register(kPpcnt, false, of_group(0)), CmdStatus::kBadParam);  // Ethernet's
}

TEST_F(PortTest, NodeDescriptionIsKept) {
  std::vector<std::uint8_t> text(64);
  const std::string name = "a node of that name";
  std::copy(name.begin(), name.end(), text.begin());
  const auto was = read(0x6001, std::vector<std::uint8_t>(64));
  EXPECT_OK(dev().access_register(kNodeDesc, true, text));
  EXPECT_EQ(read(0x6001, std::vector<std::uint8_t>(64)), text);
  EXPECT_OK(dev().access_register(kNodeDesc, true, was));
}

TEST_F(PortTest, AdminDownTakesTheLinkDown) {
  breaks({"register-value"});
  using R = prm::paos_reg;
  auto data = request<R>();
  dev().clear_async_events();
  prm::set<R::admin_status>(data.data(), 2);
  prm::set<R::ase>(data.data(), 1);
  EXPECT_OK(dev().access_register(kPaos, true, data));
  EXPECT_EQ(dev().port_state(), 1);
  machine().advance(1'000'000);
  EXPECT_EQ(dev().count_async(prm::EqeType::kPortChange), 1u);
  prm::set<R::admin_status>(data.data(), 1);
  EXPECT_OK(dev().access_register(kPaos, true, data));
  EXPECT_EQ(dev().port_state(), 4);
  machine().advance(1'000'000);
  EXPECT_EQ(dev().count_async(prm::EqeType::kPortChange), 2u);
  prm::set<R::admin_status>(data.data(), 9);
  EXPECT_STATUS(dev().access_register(kPaos, true, data), CmdStatus::kBadParam);
}

TEST_F(PortTest, CablePulledAndPutBack) {
  dev().clear_async_events();
  ASSERT_EQ(fn().inject("link=down"), "");
  machine().advance(1'000'000);
  EXPECT_EQ(dev().port_state(), 1);
  ASSERT_EQ(fn().inject("link=up"), "");
  machine().advance(1'000'000);
  EXPECT_EQ(dev().port_state(), 4);
  ASSERT_EQ(dev().async_events().size(), 2u);
  EXPECT_EQ(dev().async_events()[0].sub_type, prm::kPortDown);
  EXPECT_EQ(dev().async_events()[1].sub_type, prm::kPortActive);
}

}  // namespace
}  // namespace hcasim::bare
