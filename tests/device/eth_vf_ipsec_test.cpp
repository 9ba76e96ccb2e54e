// SPDX-License-Identifier: BSD-3-Clause
// IPsec of virtual functions: they have none until their manager says so, one kind of it or both (devlink's
// ipsec_crypto and ipsec_packet, from Linux 6.7 on).
#include "eth_vf_later_rig.h"

namespace hcasim {
namespace {

using General = prm::cmd_hca_cap;
using Ethernet = prm::per_protocol_networking_offload_caps;
using Ipsec = prm::ipsec_cap;
enum : std::uint16_t { kGeneral = 0, kEthernet = 1, kIpsec = 0x15 };
using Block = std::vector<std::uint8_t>;

class EthVfIpsec : public EthVfLater {
 protected:
  // The maximum, as the manager's driver asks for it.
  Block caps_of(std::uint32_t vport, std::uint16_t group) {
    using In = prm::query_hca_cap_in;
    Mailbox in(prm::op::QUERY_HCA_CAP, In::bytes, static_cast<std::uint16_t>(group << 1));
    in.set<In::other_function>(vport != 0).set<In::function_id>(vport);
    const auto r = pf.exec(in, prm::query_hca_cap_out::bytes).must();
    return {r.out.begin() + prm::query_hca_cap_out::capability::bit_off / 8, r.out.end()};
  }
  CommandResult set_caps_of(std::uint32_t vport, std::uint16_t group, const Block& block) {
    using In = prm::set_hca_cap_in;
    Mailbox in(prm::op::SET_HCA_CAP, In::bytes, static_cast<std::uint16_t>(group << 1));
    in.set<In::other_function>(1).set<In::function_id>(vport);
    constexpr std::size_t kAt = In::capability::bit_off / 8;
    std::copy(block.begin(), block.begin() + static_cast<std::ptrdiff_t>(In::bytes - kAt), in.begin() + kAt);
    return pf.exec(in);
  }
  template <class F>
  CommandResult change(std::uint16_t group, std::uint32_t value) {
    Block block = caps_of(1, group);
    prm::set<F>(block.data(), value);
    return set_caps_of(1, group, block);
  }
  std::array<unsigned, 4> offered(std::uint32_t vport) {
    const Block general = caps_of(vport, kGeneral), ethernet = caps_of(vport, kEthernet),
                ipsec = caps_of(vport, kIpsec);
    return {prm::get<General::ipsec_offload>(general.data()),
            prm::get<Ethernet::insert_trailer>(ethernet.data()),
            prm::get<Ipsec::ipsec_crypto_offload>(ipsec.data()),
            prm::get<Ipsec::ipsec_full_offload>(ipsec.data())};
  }
  static CommandResult create_ipsec(bare::Device& d) {
    using In = prm::general_obj_in_cmd_hdr;
    Mailbox in(prm::op::CREATE_GENERAL_OBJECT, 256);
    in.set<In::obj_type>(prm::k::GENERAL_OBJECT_TYPES_IPSEC);
    return d.exec(in, prm::general_obj_out_cmd_hdr::bytes);
  }
};

constexpr std::array<unsigned, 4> kNone{}, kAll{1, 1, 1, 1};

TEST_F(EthVfIpsec, TheManagerHasItAndFunctionsDoNot) {
  auto vf = probed(1);
  EXPECT_EQ(offered(0), kAll);
  EXPECT_EQ(offered(1), kNone);
  EXPECT_EQ(offered(2), kNone);
  EXPECT_EQ(vf->cap<General::ipsec_offload>(), 0u);
  EXPECT_GT(vf->cap<General::log_max_dek>(), 0u) << "of TLS";
  const CommandResult refused = create_ipsec(*vf), wrong = create_ipsec(pf);
  EXPECT_EQ(refused.status, CmdStatus::kBadParam);
  EXPECT_NE(refused.syndrome, wrong.syndrome) << "of the manager's the object is what is wrong";
}

TEST_F(EthVfIpsec, TheManagerLetsAFunctionHaveIt) {
  ASSERT_TRUE(enable(1).ok());
  // In the order of Linux.
  ASSERT_TRUE(change<Ethernet::insert_trailer>(kEthernet, 1).ok());
  ASSERT_TRUE(change<General::ipsec_offload>(kGeneral, 1).ok());
  ASSERT_TRUE(change<Ipsec::ipsec_crypto_offload>(kIpsec, 1).ok());
  EXPECT_EQ(offered(1), (std::array<unsigned, 4>{1, 1, 1, 0}));
  EXPECT_EQ(offered(2), kNone);
  {
    auto vf = probed(1);
    EXPECT_EQ(vf->cap<General::ipsec_offload>(), 1u);
    EXPECT_EQ(create_ipsec(*vf).syndrome, create_ipsec(pf).syndrome);
    vf->teardown();
  }
  ASSERT_TRUE(change<Ipsec::ipsec_full_offload>(kIpsec, 1).ok());
  EXPECT_EQ(offered(1), kAll);
  ASSERT_TRUE(change<Ethernet::insert_trailer>(kEthernet, 0).ok());
  ASSERT_TRUE(change<Ipsec::ipsec_crypto_offload>(kIpsec, 0).ok());
  ASSERT_TRUE(change<Ipsec::ipsec_full_offload>(kIpsec, 0).ok());
  ASSERT_TRUE(change<General::ipsec_offload>(kGeneral, 0).ok());
  EXPECT_EQ(offered(1), kNone);
  // Once it is taken away, it begins as at first.
  ASSERT_TRUE(change<General::ipsec_offload>(kGeneral, 1).ok());
  ASSERT_TRUE(change<Ipsec::ipsec_full_offload>(kIpsec, 1).ok());
  ASSERT_TRUE(enable(1, false).ok());
  ASSERT_TRUE(enable(1).ok());
  EXPECT_EQ(offered(1), kNone);
}

TEST_F(EthVfIpsec, NothingElseOfTheseGroupsIsTheManagersToChoose) {
  ASSERT_TRUE(enable(1).ok());
  EXPECT_EQ(change<Ethernet::swp>(kEthernet, 0).status, CmdStatus::kBadParam);
  EXPECT_EQ(change<Ipsec::ipsec_esn>(kIpsec, 0).status, CmdStatus::kBadParam);
  EXPECT_EQ(change<General::log_max_dek>(kGeneral, 0).status, CmdStatus::kBadParam);
  EXPECT_EQ(set_caps_of(7, kIpsec, caps_of(1, kIpsec)).status, CmdStatus::kBadParam) << "nobody";
  EXPECT_EQ(offered(1), kNone);
}

}  // namespace
}  // namespace hcasim
