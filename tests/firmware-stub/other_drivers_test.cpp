// SPDX-License-Identifier: BSD-3-Clause
// What drivers other than today's Linux send, and cards take: shorter structures, keys without a domain, a
// signature that is no signature, mailboxes that are not there.
#include <cstring>

#include "driver/bare/devx.h"
#include "fixture.h"

namespace hcasim::bare {
namespace {

class OtherDrivers : public FirmwareTest {};
class OtherEthernetDrivers : public FirmwareTest {
 protected:
  std::size_t hca() const override { return 2; }
};

// FreeBSD, OpenBSD, illumos: the structure ended with the reserved lkey.
TEST_F(OtherDrivers, SpecialContextsWithTheReservedKeyAlone) {
  breaks({"cmd-output-short"});
  using Out = prm::query_special_contexts_out;
  const Mailbox in(prm::op::QUERY_SPECIAL_CONTEXTS, prm::query_special_contexts_in::bytes);
  const auto r = dev().exec(in, 16).must();
  EXPECT_EQ(r.out.size(), 16u);
  EXPECT_EQ(r.get<Out::resd_lkey>(), dev().exec(in, Out::bytes).must().get<Out::resd_lkey>());
  EXPECT_NE(r.get<Out::resd_lkey>(), 0u);
  EXPECT_STATUS(dev().exec(in, 12), CmdStatus::kBadOutpLen);
}

// iPXE: capabilities were 256 bytes, of which it clears some.
TEST_F(OtherDrivers, CapabilitiesInAShortBlock) {
  using In = prm::set_hca_cap_in;
  using C = prm::cmd_hca_cap;
  constexpr std::size_t kAt = In::capability::bit_off / 8, kShort = 256;
  dev().teardown();
  dev().cmd().start();
  dev().enable_hca().must();
  const std::vector<std::uint8_t> now = caps(0, true);
  Mailbox in(prm::op::SET_HCA_CAP, kAt + kShort);
  std::memcpy(in.data() + kAt, now.data(), kShort);
  prm::set<C::log_max_qp>(in.data() + kAt, 0);
  prm::set<C::dct>(in.data() + kAt, 0);
  EXPECT_OK(dev().exec(in));
  EXPECT_EQ(prm::get<C::log_max_qp>(caps(0, true).data()), prm::get<C::log_max_qp>(now.data()));
  EXPECT_EQ(prm::get<C::dct>(caps(0, true).data()), prm::get<C::dct>(now.data()))
      << "it is not for it to say";
  dev().disable_hca().must();
  dev().probe();
}

// Linux before 5.11: keys of its cache are given a PD when they are filled.
TEST_F(OtherDrivers, AFreeKeyWithoutADomain) {
  breaks({"object-reference"});
  using In = prm::create_mkey_in;
  using C = In::memory_key_mkey_entry;
  const auto tried = [this](bool free) {
    Mailbox in(prm::op::CREATE_MKEY, In::bytes);
    in.set<C::free>(free).set<C::umr_en>(1).set<C::access_mode_1_0>(1).set<C::qpn>(0xffffff);
    return dev().exec(in.set<C::translations_octword_size>(32).set<C::log_page_size>(12), 16);
  };
  const auto made = tried(true).must();
  EXPECT_STATUS(tried(false), CmdStatus::kBadRes);
  EXPECT_OK(name<prm::destroy_mkey_in::mkey_index>(prm::op::DESTROY_MKEY, prm::destroy_mkey_in::bytes,
                                                   made.get<prm::create_mkey_out::mkey_index>()));
}

// illumos, FreeBSD
TEST_F(OtherDrivers, LeastTimesBetweenInterrupts) {
  breaks({"msix-vector"});
  using In = prm::config_int_moderation_in;
  using Out = prm::config_int_moderation_out;
  enum : std::uint16_t { kWrite, kRead };
  const auto ask = [this](std::uint16_t op_mod, unsigned vector, unsigned us) {
    Mailbox in(prm::op::CONFIG_INT_MODERATION, In::bytes, op_mod);
    return dev().exec(in.set<In::int_vector>(vector).set<In::min_delay>(us), Out::bytes);
  };
  EXPECT_EQ(ask(kRead, 1, 0).must().get<Out::min_delay>(), 0u);
  EXPECT_OK(ask(kWrite, 1, 10));
  EXPECT_EQ(ask(kRead, 1, 0).must().get<Out::min_delay>(), 10u);
  EXPECT_EQ(ask(kRead, 2, 0).must().get<Out::min_delay>(), 0u);
  EXPECT_OK(ask(kWrite, 1, 0));
  EXPECT_EQ(ask(kRead, 1, 0).must().get<Out::min_delay>(), 0u);
  EXPECT_STATUS(ask(kWrite, 0xffff, 10), CmdStatus::kIx);
}

// iPXE: what it has is a QP number, though it says that there is more.
TEST_F(OtherDrivers, LessThanWasSaid) {
  breaks({"cmdq-input-pointer"});
  const Pd pd(dev());
  Cq cq(dev());
  Qp qp(dev(), pd, cq, cq);
  Mailbox in(prm::op::_2RST_QP, 256);
  in.set<prm::qp_2rst_in::qpn>(qp.qpn());
  const auto r = dev().cmd().exec(in, 16, 1'000'000'000, [](auto& raw) {
    raw.entry->in_ptr = 0;
    raw.sign();
  });
  EXPECT_OK(r);
}

// illumos, OpenBSD: tables as they were.
TEST_F(OtherEthernetDrivers, FlowTablesInShortStructures) {
  using Create = prm::create_flow_table_in;
  using Root = prm::set_flow_table_root_in;
  Mailbox in(prm::op::CREATE_FLOW_TABLE, 60);
  in.set<Create::flow_table_context::level>(1).set<Create::flow_table_context::log_size>(3);
  const auto id = dev().exec(in).must().get<prm::create_flow_table_out::table_id>();
  Mailbox root(prm::op::SET_FLOW_TABLE_ROOT, 28);
  EXPECT_OK(dev().exec(root.set<Root::table_id>(id)));
  Mailbox off(prm::op::SET_FLOW_TABLE_ROOT, 28, 1);
  EXPECT_OK(dev().exec(off.set<Root::table_id>(id)));
  Mailbox gone(prm::op::DESTROY_FLOW_TABLE, 28);
  EXPECT_OK(dev().exec(gone.set<prm::destroy_flow_table_in::table_id>(id)));
}

// OpenBSD, before its interface is up.
TEST_F(OtherEthernetDrivers, AnMtuOfNothingChangesNone) {
  using In = prm::modify_nic_vport_context_in;
  using Out = prm::query_nic_vport_context_out;
  const auto mtu = [this] {
    return dev()
        .exec(Mailbox(prm::op::QUERY_NIC_VPORT_CONTEXT, prm::query_nic_vport_context_in::bytes), Out::bytes)
        .must()
        .get<Out::nic_vport_context::mtu>();
  };
  const auto before = mtu();
  Mailbox in(prm::op::MODIFY_NIC_VPORT_CONTEXT, In::bytes);
  EXPECT_OK(dev().exec(in.set<In::field_select::mtu>(1).set<In::field_select::promisc>(1)));
  EXPECT_EQ(mtu(), before);
}

// FreeBSD asks whoever manages vports for the switch's capabilities.
TEST_F(OtherEthernetDrivers, TheSwitchsCapabilitiesWhereThereIsNone) {
  EXPECT_EQ(prm::get<prm::cmd_hca_cap::vport_group_manager>(caps(0, true).data()), 1u);
  for (const unsigned group : {8u, 9u}) {
    const std::vector<std::uint8_t> none = caps(group, true);
    EXPECT_EQ(none, std::vector<std::uint8_t>(none.size())) << group;
  }
}

}  // namespace
}  // namespace hcasim::bare
