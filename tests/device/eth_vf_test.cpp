// SPDX-License-Identifier: BSD-3-Clause
// Virtual functions of an Ethernet card, as the function that manages them and the E-Switch sees them: what
// is offered, what is settled of a vport, what it is told of, tables of other vports.
#include <set>

#include "eth_vf_rig.h"
#include "prm/access_registers.h"
#include "prm/management.h"

namespace hcasim {
namespace {

using g = prm::cmd_hca_cap;

TEST_F(EthVf, TheManagerIsOfferedTheSwitch) {
  auto vf = probed(1);
  EXPECT_EQ(pf.cap<g::eswitch_manager>(), 1u);
  EXPECT_EQ(pf.cap<g::vport_group_manager>(), 1u);
  EXPECT_GE(pf.cap<g::log_max_l2_table>(), 7u);
  EXPECT_EQ(vf->cap<g::eswitch_manager>(), 0u);
  EXPECT_EQ(vf->cap<g::vport_group_manager>(), 0u);
  EXPECT_EQ(pf.cap<g::vhca_id>(), 0u);
  EXPECT_EQ(vf->cap<g::vhca_id>(), 1u);
  const auto group = [](bare::Device& d, std::uint16_t type) {
    Mailbox in(prm::op::QUERY_HCA_CAP, prm::query_hca_cap_in::bytes, static_cast<std::uint16_t>(type << 1));
    return d.exec(in, prm::query_hca_cap_out::bytes);
  };
  constexpr unsigned at = prm::query_hca_cap_out::capability::bit_off;
  using Tables = prm::flow_table_eswitch_cap_at<at>;
  using Switch = prm::e_switch_cap_at<at>;
  const auto tables = group(pf, 8).must(), eswitch = group(pf, 9).must();
  EXPECT_EQ(tables.get<Tables::flow_table_properties_nic_esw_fdb::ft_support>(), 1u);
  EXPECT_EQ(tables.get<Tables::flow_table_properties_esw_acl_ingress::push_vlan>(), 1u);
  EXPECT_EQ(tables.get<Tables::flow_table_properties_esw_acl_egress::pop_vlan>(), 1u);
  EXPECT_EQ(tables.get<Tables::flow_table_properties_nic_esw_fdb::sw_owner>(), 1u);
  EXPECT_EQ(eswitch.get<Switch::vport_cvlan_strip>(), 1u);
  EXPECT_FALSE(group(*vf, 8).ok());
  EXPECT_FALSE(group(*vf, 9).ok());
}

// As Linux' devlink reads total_vfs and enable_sriov, from 6.17 on.
// Whoever reads a trace knows them by these.
TEST_F(EthVf, QueuesAndKeysOfFunctionsHaveNumbersOfTheirOwn) {
  auto one = probed(1), two = probed(2);
  std::set<std::uint32_t> qpns, cqns, keys;
  for (bare::Device* d : {&pf, one.get(), two.get()}) {
    const End end(*d);
    qpns.insert(end.qp.qpn());
    cqns.insert(end.cq.cqn());
    keys.insert(end.mr.key() >> 8);
  }
  EXPECT_EQ(qpns.size(), 3u);
  EXPECT_EQ(cqns.size(), 3u);
  EXPECT_EQ(keys.size(), 3u);
}

TEST_F(EthVf, ConfigurationSaysHowMany) {
  auto vf = probed(1);
  using r = prm::nvda;
  constexpr std::size_t kRoom = 256;
  const auto item = [](bare::Device& d, std::uint32_t type, bool write = false) {
    std::vector<std::uint8_t> data(r::bytes + kRoom);
    prm::set<r::type>(data.data(), type);
    prm::set<r::length>(data.data(), kRoom);
    return d.access_register(prm::reg::kNvda, write, data);
  };
  constexpr std::size_t at = prm::access_register_out::bytes + r::bytes;
  const auto cap = item(pf, prm::kNvGlobalPciCap).must();
  EXPECT_EQ(prm::get<prm::nv_global_pci_cap::sriov_support>(cap.out.data() + at), 1u);
  EXPECT_EQ(prm::get<prm::nv_global_pci_cap::max_vfs_per_pf_valid>(cap.out.data() + at), 1u);
  EXPECT_EQ(prm::get<prm::nv_global_pci_cap::max_vfs_per_pf>(cap.out.data() + at), kVfs);
  EXPECT_EQ(prm::get<prm::nv_global_pci_cap::per_pf_total_vf_supported>(cap.out.data() + at), 0u);
  const auto conf = item(pf, prm::kNvGlobalPciConf).must();
  EXPECT_EQ(prm::get<prm::nv_global_pci_conf::sriov_en>(conf.out.data() + at), 1u);
  EXPECT_EQ(prm::get<prm::nv_global_pci_conf::total_vfs>(conf.out.data() + at), kVfs);
  EXPECT_EQ(prm::get<prm::nv_global_pci_conf::per_pf_total_vf>(conf.out.data() + at), 0u);
  // They are made with the card.
  EXPECT_FALSE(item(pf, prm::kNvGlobalPciConf, true).ok());
  EXPECT_FALSE(item(*vf, prm::kNvGlobalPciCap).ok());
}

TEST_F(EthVf, ItsAddressIsTheManagersToGive) {
  EXPECT_EQ(mac_of(nic_vport(pf, 1, true).must()), 0u);
  auto vf = probed(1);
  EXPECT_EQ(mac_of(nic_vport(*vf, 0, false).must()), 0u);
  EXPECT_TRUE(set_mac(1, kMac).ok());
  EXPECT_EQ(mac_of(nic_vport(*vf, 0, false).must()), kMac);
  EXPECT_EQ(mac_of(nic_vport(pf, 2, true).must()), 0u);
  vf->function_reset();
  vf->probe();
  EXPECT_EQ(mac_of(nic_vport(*vf, 0, false).must()), kMac);
  vf.reset();
  pf.function_reset();  // with which all goes that it has settled
  pf.probe();
  EXPECT_EQ(mac_of(nic_vport(pf, 1, true).must()), 0u);
}

// Linux makes the GUID of the address, and writes zeros when SR-IOV ends.
TEST_F(EthVf, WithoutAGuidOfItsOwnItHasTheCards) {
  using In = prm::modify_nic_vport_context_in;
  const auto give = [&](std::uint64_t guid) {
    Mailbox in(prm::op::MODIFY_NIC_VPORT_CONTEXT, In::bytes);
    in.set<In::other_vport>(1).set<In::vport_number>(1);
    in.set<In::field_select::node_guid>(1).set<In::field_select::port_guid>(1);
    return pf.exec(
        in.set<In::nic_vport_context::node_guid>(guid).set<In::nic_vport_context::port_guid>(guid));
  };
  const auto guid = [&] {
    return nic_vport(pf, 1, true)
        .must()
        .get<prm::query_nic_vport_context_out::nic_vport_context::node_guid>();
  };
  const std::uint64_t first = guid();
  EXPECT_NE(first, 0u);
  EXPECT_TRUE(give(0x0200'00ff'fe00'0001).ok());
  EXPECT_EQ(guid(), 0x0200'00ff'fe00'0001u);
  EXPECT_TRUE(give(0).ok());
  EXPECT_EQ(guid(), first);
}

// By MCAM, drivers know whether they have a say in resets of the card.
TEST_F(EthVf, HasNoSayInResetsOfTheCard) {
  auto vf = probed(1);
  const auto may_reset = [](bare::Device& d) {
    std::vector<std::uint8_t> data(prm::mcam_reg::bytes);
    const auto r = d.access_register(prm::reg::kMcam, false, data).must();
    constexpr std::size_t at = prm::access_register_out::bytes;
    return prm::get<prm::mcam_reg::mng_access_reg_cap_mask::access_regs::mfrl>(r.out.data() + at) != 0;
  };
  EXPECT_TRUE(may_reset(pf));
  EXPECT_FALSE(may_reset(*vf));
}

TEST_F(EthVf, ItsAddressIsNotItsOwnToChange) {
  auto vf = probed(1);
  ASSERT_TRUE(set_mac(1, kMac).ok());
  using In = prm::modify_nic_vport_context_in;
  Mailbox in(prm::op::MODIFY_NIC_VPORT_CONTEXT, In::bytes);
  in.set<In::field_select::permanent_address>(1);
  in.set<In::nic_vport_context::permanent_address::mac_addr_31_0>(5);
  EXPECT_EQ(vf->exec(in).status, CmdStatus::kBadParam);
  EXPECT_EQ(mac_of(nic_vport(*vf, 0, false).must()), kMac);
  EXPECT_EQ(mac_of(nic_vport(pf, 1, true).must()), kMac);
}

// How the card's congestion control works is no virtual function's affair.
TEST_F(EthVf, ReadsCongestionControlAlone) {
  auto vf = probed(1);
  EXPECT_EQ(pf.cap<g::cc_modify_allowed>(), 1u);
  EXPECT_EQ(vf->cap<g::cc_query_allowed>(), 1u);
  EXPECT_EQ(vf->cap<g::cc_modify_allowed>(), 0u);
  using Status = prm::modify_cong_status_in;
  Mailbox status(prm::op::MODIFY_CONG_STATUS, Status::bytes);
  status.set<Status::cong_protocol>(1);
  EXPECT_EQ(vf->exec(status).status, CmdStatus::kBadOp);
  EXPECT_EQ(c.card.cc().rp_enabled, 0xff);
  using Params = prm::modify_cong_params_in;
  Mailbox params(prm::op::MODIFY_CONG_PARAMS, Params::bytes);
  params.set<Params::cong_protocol>(1);
  EXPECT_EQ(vf->exec(params).status, CmdStatus::kBadOp);
  EXPECT_TRUE(pf.exec(params).ok());

  PacketRef cnp = PacketPool::make();
  cnp->kind = PacketKind::kRoceV2;
  c.card.cc().receive_cnp(sim_now(), 0, *cnp);
  using In = prm::query_cong_statistics_in;
  using Out = prm::query_cong_statistics_out;
  Mailbox clear(prm::op::QUERY_CONG_STATISTICS, In::bytes);
  clear.set<In::clear>(1);
  const auto ignored = [&](bare::Device& d) {
    return d.exec(clear, Out::bytes).must().get<Out::rp_cnp_ignored_low>();
  };
  EXPECT_EQ(ignored(*vf), 1u);
  {
    bare::Uctx user(pf);
    const bare::Uctx::As as(pf, user);
    EXPECT_EQ(ignored(pf), 1u);
  }
  EXPECT_EQ(ignored(pf), 1u);
  EXPECT_EQ(ignored(pf), 0u);
}

// What the engines have done for all functions.
TEST_F(EthVf, DumpsOfEnginesTellItOfItsOwnAlone) {
  auto vf = probed(1);
  std::uint16_t slice = 0;
  const auto dump = [&](bare::Device& d, std::uint16_t segment) {
    using R = prm::resource_dump;
    std::vector<std::uint8_t> all, data(R::bytes);
    prm::set<R::segment_type>(data.data(), segment);
    for (bool more = true; more;) {
      prm::set<R::inline_dump>(data.data(), 1);
      const auto r = d.access_register(prm::reg::kResourceDump, false, data).must();
      data.assign(r.out.begin() + prm::access_register_out::bytes, r.out.end());
      const std::uint8_t* piece = data.data() + R::inline_data::bit_off / 8;
      all.insert(all.end(), piece, piece + prm::get<R::size>(data.data()));
      more = prm::get<R::more_dump>(data.data()) != 0;
    }
    return std::string(all.begin(), all.end());
  };
  const std::string menu = dump(*vf, 0xffff);
  const auto* record = reinterpret_cast<const std::uint8_t*>(menu.data()) + menu.find("SX_SLICE_ALL") -
                       prm::resource_dump_menu_record::segment_name::bit_off / 8;
  slice = static_cast<std::uint16_t>(prm::get<prm::resource_dump_menu_record::segment_type>(record));
  EXPECT_NE(dump(pf, slice).find("dma_read_bytes"), std::string::npos);
  const std::string own = dump(*vf, slice);
  EXPECT_EQ(own.find("dma_read_bytes"), std::string::npos);
  EXPECT_EQ(own.find("doorbells"), std::string::npos);
  EXPECT_NE(own.find("tx_packets"), std::string::npos);
}

TEST_F(EthVf, OnlyTheManagerSpeaksOfOthers) {
  auto vf = probed(1);
  EXPECT_EQ(nic_vport(*vf, 2, true).status, CmdStatus::kBadParam);
  EXPECT_EQ(nic_vport(*vf, 0, true).status, CmdStatus::kBadParam);
  EXPECT_EQ(nic_vport(pf, kVfs + 1, true).status, CmdStatus::kBadParam);
  EXPECT_EQ(nic_vport(pf, 1, false).status, CmdStatus::kBadParam);
  EXPECT_TRUE(nic_vport(pf, 0, true).ok());
  Mailbox in(prm::op::QUERY_ESW_VPORT_CONTEXT, prm::query_esw_vport_context_in::bytes);
  EXPECT_EQ(vf->exec(in, prm::query_esw_vport_context_out::bytes).status, CmdStatus::kBadOp);
  for (const std::uint32_t type : {kEgressAcl, kIngressAcl, kFdb})
    EXPECT_FALSE(make_table(*vf, type, 0).ok()) << type;
  EXPECT_FALSE(make_table(*vf, kIngressAcl, 2).ok());
}

// As "devlink port function set ... roce" has it: the maximum of the function with that one field changed.
TEST_F(EthVf, TheManagerChoosesWhoHasRoce) {
  EXPECT_EQ(pf.cap<g::vhca_resource_manager>(), 1u);
  ASSERT_TRUE(enable(1).ok());
  const auto may = [this] { return prm::get<g::roce>(general_caps_of(pf, 1).data()); };
  const auto allow = [this](bool on, bool all_else = true) {
    auto caps = general_caps_of(pf, 1);
    prm::set<g::roce>(caps.data(), on ? 1 : 0);
    if (!all_else) prm::set<g::eth_net_offloads>(caps.data(), 0);
    return pf.exec(set_caps_of(1, caps));
  };
  EXPECT_EQ(may(), 1u);
  EXPECT_TRUE(allow(false).ok());
  EXPECT_EQ(allow(true, false).status, CmdStatus::kBadParam) << "nothing else";
  EXPECT_EQ(may(), 0u);
  {
    auto vf = probed(1);
    EXPECT_EQ(vf->cap<g::roce>(), 0u);
    EXPECT_EQ(vf->cap<g::roce_rw_supported>(), 0u);
    Mailbox query(prm::op::QUERY_ROCE_ADDRESS, prm::query_roce_address_in::bytes);
    EXPECT_EQ(vf->exec(query, prm::query_roce_address_out::bytes).status, CmdStatus::kBadOp);
  }
  EXPECT_TRUE(allow(true).ok());
  EXPECT_EQ(probed(1)->cap<g::roce>(), 1u);
  EXPECT_TRUE(allow(false).ok());
  ASSERT_TRUE(enable(1, false).ok());  // with the function goes what its manager chose
  EXPECT_EQ(probed(1)->cap<g::roce>(), 1u);
}

TEST_F(EthVf, ChangesAreToldOnceUntilArmedAgain) {
  auto vf = probed(1), other = probed(2);
  pf.clear_async_events();
  ASSERT_TRUE(arm(1).ok());
  EXPECT_EQ(changes(), 0u);
  EXPECT_TRUE(list(*vf, 1, 0x333300000001).ok());  // multicast: not asked for
  EXPECT_EQ(changes(), 0u);
  EXPECT_TRUE(list(*other, 0, kMac + 1).ok());  // another vport, not armed
  EXPECT_EQ(changes(), 0u);
  EXPECT_TRUE(list(*vf, 0, kMac).ok());
  ASSERT_EQ(changes(), 1u);
  EXPECT_TRUE(list(*vf, 0, kMac + 2).ok());
  EXPECT_EQ(changes(), 1u);
  ASSERT_TRUE(arm(1).ok());  // what has been missed
  EXPECT_EQ(changes(), 2u);
  ASSERT_TRUE(arm(1).ok());
  EXPECT_EQ(changes(), 2u);
  ASSERT_TRUE(arm(1, false).ok());
  EXPECT_TRUE(list(*vf, 0, kMac).ok());
  EXPECT_EQ(changes(), 2u);
  // The manager reads the list.
  using In = prm::query_nic_vport_context_in;
  using Out = prm::query_nic_vport_context_out::nic_vport_context;
  Mailbox in = about<In>(prm::op::QUERY_NIC_VPORT_CONTEXT, 1);
  const auto r = pf.exec(in, prm::query_nic_vport_context_out::bytes + 64).must();
  EXPECT_EQ(r.get<Out::allowed_list_size>(), 1u);
  EXPECT_EQ(prm::load64(r.out.data() + Out::current_uc_mac_address::bit_off / 8), kMac);
}

// Whatever ends the function: its manager hears that the addresses are gone.
TEST_F(EthVf, AddressesThatAreGoneAreAChange) {
  auto vf = probed(1), other = probed(2);
  pf.clear_async_events();
  std::size_t told = 0;
  const auto listed = [&] {
    ASSERT_TRUE(list(*vf, 0, kMac).ok());
    ASSERT_TRUE(arm(1).ok());
    told = changes();
    ASSERT_TRUE(arm(1).ok());
    ASSERT_EQ(changes(), told);
  };
  listed();
  other->teardown();
  EXPECT_EQ(changes(), told);
  vf->teardown();
  EXPECT_EQ(changes(), told + 1);
  ASSERT_TRUE(arm(1).ok());
  vf->probe();
  EXPECT_EQ(changes(), told + 1) << "there was nothing";
  listed();
  vf->function_reset();
  EXPECT_EQ(changes(), told + 1);
  vf->probe();
  listed();
  EXPECT_TRUE(enable(1, false).ok());
  EXPECT_EQ(changes(), told + 1);
  EXPECT_TRUE(enable(1).ok());
  vf->function_reset();
  vf->probe();
  listed();
  // Promiscuity too.
  using In = prm::modify_nic_vport_context_in;
  Mailbox in(prm::op::MODIFY_NIC_VPORT_CONTEXT, In::bytes);
  in.set<In::field_select::promisc>(1).set<In::nic_vport_context::promisc_all>(1);
  vf->function_reset();
  EXPECT_EQ(changes(), told + 1);
  vf->probe();
  EXPECT_TRUE(vf->exec(in).ok());
  ASSERT_TRUE(arm(1).ok());
  told = changes();
  ASSERT_TRUE(arm(1).ok());
  vf->function_reset();
  EXPECT_EQ(changes(), told + 1);
}

TEST_F(EthVf, TheStateOfItsLinkIsTheManagersToForce) {
  auto vf = probed(1), other = probed(2);
  c.machine.advance(1'000'000);
  vf->clear_async_events();
  other->clear_async_events();
  const std::uint32_t port = state_of(pf);
  EXPECT_EQ(state_of(*vf), port);
  ASSERT_TRUE(set_state(1, kDown).ok());
  c.machine.advance(100'000);
  EXPECT_EQ(state_of(*vf), 0u);
  EXPECT_EQ(state_of(*other), port);
  EXPECT_TRUE(other->async_events().empty());
  ASSERT_TRUE(set_state(1, kUp).ok());
  c.machine.advance(100'000);
  EXPECT_EQ(state_of(*vf), 1u);
  ASSERT_FALSE(vf->async_events().empty());
  EXPECT_EQ(vf->async_events().back().sub_type, prm::kPortActive);
  EXPECT_TRUE(set_state(1, kFollow).ok());
  EXPECT_EQ(state_of(*vf), port);
  EXPECT_EQ(set_state(1, 3).status, CmdStatus::kBadParam);
  EXPECT_EQ(set_state(kVfs + 1, kUp).status, CmdStatus::kBadParam);
  EXPECT_EQ(set_state(0, kDown).status, CmdStatus::kBadParam);
}

// Of the port's changes a function hears what its own link has of them.
TEST_F(EthVf, ALinkThatIsForcedDoesNotHearOfThePorts) {
  auto vf = probed(1), other = probed(2);
  ASSERT_TRUE(set_state(1, kUp).ok());
  c.machine.advance(100'000);
  vf->clear_async_events();
  other->clear_async_events();
  c.firmware.port().cable(false);
  c.machine.advance(100'000);
  ASSERT_EQ(other->async_events().size(), 1u);
  EXPECT_EQ(other->async_events()[0].sub_type, prm::kPortDown);
  c.firmware.port().cable(true);
  c.machine.advance(100'000);
  ASSERT_EQ(other->async_events().size(), 2u);
  EXPECT_EQ(other->async_events()[1].sub_type, prm::kPortActive);
  EXPECT_TRUE(vf->async_events().empty());
  ASSERT_TRUE(set_state(1, kFollow).ok());
}

TEST_F(EthVf, TablesOfAVportAreNamedWithIt) {
  const auto made = make_table(pf, kIngressAcl, 1).must();
  const std::uint32_t id = made.get<prm::create_flow_table_out::table_id>();
  const auto root = [&](std::uint32_t vport, std::uint32_t type) {
    using In = prm::set_flow_table_root_in;
    Mailbox in(prm::op::SET_FLOW_TABLE_ROOT, In::bytes);
    in.set<In::other_vport>(vport != 0)
        .set<In::vport_number>(vport)
        .set<In::table_type>(type)
        .set<In::table_id>(id);
    return pf.exec(in);
  };
  EXPECT_FALSE(root(2, kIngressAcl).ok());
  EXPECT_FALSE(root(1, kEgressAcl).ok());
  EXPECT_TRUE(root(1, kIngressAcl).ok());
  EXPECT_EQ(c.card.function(0).flows().root(FlowTableType::kEswIngressAcl, 1), id);
  EXPECT_EQ(c.card.function(0).flows().root(FlowTableType::kEswIngressAcl, 2), 0u);
  EXPECT_FALSE(make_table(pf, kIngressAcl, kVfs + 1).ok());
  EXPECT_FALSE(make_table(pf, 0, 1).ok()) << "the NIC's tables are each function's own";
  const auto destroy = [&](std::uint32_t vport) {
    using In = prm::destroy_flow_table_in;
    Mailbox in(prm::op::DESTROY_FLOW_TABLE, In::bytes);
    in.set<In::other_vport>(vport != 0)
        .set<In::vport_number>(vport)
        .set<In::table_type>(kIngressAcl)
        .set<In::table_id>(id);
    return pf.exec(in);
  };
  EXPECT_FALSE(destroy(2).ok());
  EXPECT_TRUE(destroy(1).ok());
  EXPECT_EQ(c.card.function(0).flows().root(FlowTableType::kEswIngressAcl, 1), 0u);
}

TEST_F(EthVf, ACardOfOnePortHasNoOtherSwitch) {
  const std::uint32_t id = make_table(pf, kFdb, 0).must().get<prm::create_flow_table_out::table_id>();
  const auto root = [&](std::uint32_t owner) {
    using In = prm::set_flow_table_root_in;
    Mailbox in(prm::op::SET_FLOW_TABLE_ROOT, In::bytes);
    in.set<In::table_eswitch_owner_vhca_id_valid>(1).set<In::table_eswitch_owner_vhca_id>(owner);
    return pf.exec(in.set<In::table_type>(kFdb).set<In::table_id>(id));
  };
  EXPECT_EQ(root(1).status, CmdStatus::kBadParam);
  EXPECT_EQ(root(3).status, CmdStatus::kBadParam);
  EXPECT_TRUE(root(0).ok()) << "its own";
  Mailbox in(prm::op::QUERY_HCA_CAP, prm::query_hca_cap_in::bytes, 9 << 1);
  constexpr unsigned at = prm::query_hca_cap_out::capability::bit_off;
  EXPECT_EQ(
      pf.exec(in, prm::query_hca_cap_out::bytes).must().get<prm::e_switch_cap_at<at>::root_ft_on_other_esw>(),
      0u);
  EXPECT_EQ(pf.cap<g::lag_native_fdb_selection>(), 0u);
  pf.function_reset();
  pf.probe();
}

TEST_F(EthVf, AnEgressAclMayLeadToAnotherVport) {
  const std::uint32_t id = make_table(pf, kEgressAcl, 1).must().get<prm::create_flow_table_out::table_id>();
  using Group = prm::create_flow_group_in;
  Mailbox make(prm::op::CREATE_FLOW_GROUP, Group::bytes);
  make.set<Group::other_vport>(1).set<Group::vport_number>(1).set<Group::table_type>(kEgressAcl);
  const CommandResult made = pf.exec(make.set<Group::table_id>(id), prm::create_flow_group_out::bytes).must();
  const auto lead_to = [&](unsigned type, std::uint32_t vport) {
    using In = prm::set_fte_in;
    using C = In::flow_context;
    constexpr std::size_t kList = C::destination::bit_off / 8;
    Mailbox in(prm::op::SET_FLOW_TABLE_ENTRY, kList + prm::dest_format_struct::bytes);
    in.set<In::other_vport>(1).set<In::vport_number>(1).set<In::table_type>(kEgressAcl).set<In::table_id>(id);
    in.set<C::group_id>(made.get<prm::create_flow_group_out::group_id>()).set<C::action>(kFlowForward);
    in.set<C::destination_list_size>(1);
    prm::set<prm::dest_format_struct::destination_type>(in.data() + kList, type);
    prm::set<prm::dest_format_struct::destination_id>(in.data() + kList, vport);
    return pf.exec(in);
  };
  EXPECT_FALSE(lead_to(FlowDestination::kVport, kVfs + 1).ok());
  EXPECT_FALSE(lead_to(FlowDestination::kUplink, 0).ok());
  EXPECT_TRUE(lead_to(FlowDestination::kVport, 2).ok());
  pf.function_reset();
  pf.probe();
}

TEST_F(EthVf, TheFdbLeadsToVportsThatThereAre) {
  const std::uint32_t id = make_table(pf, kFdb, 0).must().get<prm::create_flow_table_out::table_id>();
  const auto group = bare::make_flow_group(pf, id, 0, 7, 0, {}, kFdb);
  const auto lead_to = [&](std::uint32_t index, std::uint32_t vport) {
    bare::FlowRule rule;
    rule.table = id;
    rule.group = group.number();
    rule.index = index;
    rule.type = kFdb;
    rule.to = {{static_cast<bare::FlowDest::Type>(FlowDestination::kVport), vport}};
    return bare::try_flow(pf, rule);
  };
  EXPECT_TRUE(lead_to(0, 0).ok());
  EXPECT_TRUE(lead_to(1, kVfs).ok());
  EXPECT_TRUE(lead_to(2, 0xffff).ok());
  EXPECT_FALSE(lead_to(3, kVfs + 1).ok());
  pf.function_reset();
  pf.probe();
}

TEST_F(EthVf, ContextsOfVportsAndTheTableOfAddresses) {
  using In = prm::modify_esw_vport_context_in;
  using C = In::esw_vport_context;
  Mailbox in = about<In>(prm::op::MODIFY_ESW_VPORT_CONTEXT, 1);
  in.set<In::field_select::vport_cvlan_insert>(1).set<In::field_select::vport_cvlan_strip>(1);
  in.set<C::vport_cvlan_insert>(1).set<C::vport_cvlan_strip>(1).set<C::cvlan_id>(5).set<C::cvlan_pcp>(3);
  EXPECT_TRUE(pf.exec(in).ok());
  EXPECT_EQ(c.card.function(1).vport().vlans.cvlan, 3u << 13 | 5u);
  EXPECT_TRUE(c.card.function(1).vport().vlans.strip_cvlan);
  Mailbox query = about<prm::query_esw_vport_context_in>(prm::op::QUERY_ESW_VPORT_CONTEXT, 1);
  const auto r = pf.exec(query, prm::query_esw_vport_context_out::bytes).must();
  EXPECT_EQ(r.get<prm::query_esw_vport_context_out::esw_vport_context::cvlan_id>(), 5u);
  in.set<C::vport_cvlan_insert>(2);  // a way that there is not
  EXPECT_EQ(pf.exec(in).status, CmdStatus::kBadParam);
  in.set<In::field_select::fdb_to_vport_reg_c_id>(1).set<C::vport_cvlan_insert>(1);
  EXPECT_TRUE(pf.exec(in.set<C::fdb_to_vport_reg_c_id>(1)).ok());
  EXPECT_EQ(c.card.function(1).vport().reg_c_ids, 1u);
  EXPECT_EQ(pf.exec(in.set<C::fdb_to_vport_reg_c_id>(4)).status, CmdStatus::kBadParam) << "not offered";

  const auto entry = [&](std::uint16_t opcode, std::uint32_t index, std::uint64_t mac = 0) {
    using Set = prm::set_l2_table_entry_in;
    Mailbox m(opcode, Set::bytes);
    m.set<Set::table_index>(index).set<Set::mac_address::mac_addr_47_32>(mac >> 32);
    m.set<Set::mac_address::mac_addr_31_0>(mac & 0xffffffff);
    return pf.exec(m, prm::query_l2_table_entry_out::bytes);
  };
  EXPECT_TRUE(entry(prm::op::SET_L2_TABLE_ENTRY, 7, kMac).ok());
  EXPECT_EQ(entry(prm::op::QUERY_L2_TABLE_ENTRY, 7)
                .must()
                .get<prm::query_l2_table_entry_out::mac_address::mac_addr_31_0>(),
            kMac & 0xffffffff);
  EXPECT_FALSE(entry(prm::op::QUERY_L2_TABLE_ENTRY, 8).ok());
  EXPECT_FALSE(entry(prm::op::SET_L2_TABLE_ENTRY, 1u << pf.cap<g::log_max_l2_table>(), kMac).ok());
  EXPECT_TRUE(entry(prm::op::DELETE_L2_TABLE_ENTRY, 7).ok());
  EXPECT_FALSE(entry(prm::op::DELETE_L2_TABLE_ENTRY, 7).ok());
  pf.function_reset();
  pf.probe();
  EXPECT_FALSE(c.card.function(1).vport().vlans.strip_cvlan);
  EXPECT_EQ(c.card.function(1).vport().reg_c_ids, 0u);
}

TEST_F(EthVf, TheUplinkHasAclsToo) {
  EXPECT_TRUE(make_table(pf, kIngressAcl, kUplinkPort).ok());
  EXPECT_FALSE(make_table(pf, kFdb, kUplinkPort).ok());
  auto vf = probed(1);
  EXPECT_FALSE(make_table(*vf, kIngressAcl, kUplinkPort).ok());
  pf.function_reset();
  pf.probe();
}

// What a manager forgets, and what a function takes for its own.
TEST_F(EthVf, RulesOfFunctions) {
  const auto broken = [this](traces::Rule rule) { return c.tracer.rules().count(rule); };
  using R = traces::Rule;
  const std::uint64_t foreign = broken(R::kForeignObject), unknown = broken(R::kNoObject),
                      left = broken(R::kFunctionsLeft), unheard = broken(R::kEventUnheard);
  auto vf = probed(1);
  // Numbers begin with the same one in each function: one that the other has not got.
  std::vector<std::unique_ptr<bare::Cq>> cqs;
  for (int i = 0; i < 40; ++i) cqs.push_back(std::make_unique<bare::Cq>(*vf));
  const auto query = [this](std::uint32_t cqn) {
    Mailbox in(prm::op::QUERY_CQ, prm::query_cq_in::bytes);
    return pf.exec(in.set<prm::query_cq_in::cqn>(cqn), prm::query_cq_out::bytes);
  };
  EXPECT_FALSE(query(cqs.back()->cqn()).ok());
  EXPECT_EQ(broken(R::kForeignObject), foreign + 1);
  EXPECT_EQ(broken(R::kNoObject), unknown);
  EXPECT_FALSE(query(0x5555).ok());
  EXPECT_EQ(broken(R::kForeignObject), foreign + 1);
  EXPECT_EQ(broken(R::kNoObject), unknown + 1) << "nobody's";
  cqs.clear();

  ASSERT_TRUE(arm(1).ok());
  EXPECT_EQ(broken(R::kEventUnheard), unheard);
  pf.teardown_hca();
  EXPECT_EQ(broken(R::kFunctionsLeft), left + 1);
  pf.function_reset();
  pf.probe();
  vf = probed(1);
  EXPECT_TRUE(enable(1, false).ok());
  pf.teardown_hca();
  EXPECT_EQ(broken(R::kFunctionsLeft), left + 1) << "ended before";

  // A manager whose event queue does not take the event.
  pf.function_reset();
  bare::DeviceOptions deaf;
  deaf.vport_events = false;
  {
    bare::Device manager(c.machine.function(0), deaf);
    manager.probe();
    using In = prm::modify_nic_vport_context_in;
    Mailbox in = about<In>(prm::op::MODIFY_NIC_VPORT_CONTEXT, 1);
    in.set<In::field_select::change_event>(1).set<In::nic_vport_context::arm_change_event>(1);
    manager.exec(in.set<In::nic_vport_context::event_on_uc_address_change>(1)).must();
    EXPECT_EQ(broken(R::kEventUnheard), unheard + 1);
    manager.function_reset();
  }
  pf.probe();
}

}  // namespace
}  // namespace hcasim
