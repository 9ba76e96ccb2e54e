// SPDX-License-Identifier: BSD-3-Clause
// An Ethernet card with two virtual functions, and what its manager says of them.
#ifndef HCASIM_TESTS_DEVICE_ETH_VF_RIG_H
#define HCASIM_TESTS_DEVICE_ETH_VF_RIG_H

#include "driver/bare/eth.h"
#include "prm/eqe.h"
#include "vf_rig.h"

namespace hcasim {

inline Card& the_card() {
  static auto* made = new Card(fw::Link::kEthernet);  // lives as long as the SystemC kernel
  return *made;
}

enum : std::uint32_t { kEgressAcl = 2, kIngressAcl = 3, kFdb = 4 };
constexpr std::uint64_t kMac = 0x020000000001;

class EthVf : public VfTest {
 public:
  explicit EthVf(Card& card = the_card()) : VfTest(card) {}

 protected:
  CommandResult nic_vport(bare::Device& d, std::uint32_t vport, bool other) {
    using In = prm::query_nic_vport_context_in;
    Mailbox in(prm::op::QUERY_NIC_VPORT_CONTEXT, In::bytes);
    in.set<In::other_vport>(other).set<In::vport_number>(vport);
    return d.exec(in, prm::query_nic_vport_context_out::bytes);
  }
  CommandResult set_mac(std::uint32_t vport, std::uint64_t mac) {
    using In = prm::modify_nic_vport_context_in;
    Mailbox in = about<In>(prm::op::MODIFY_NIC_VPORT_CONTEXT, vport);
    in.set<In::field_select::permanent_address>(1);
    in.set<In::nic_vport_context::permanent_address::mac_addr_47_32>(mac >> 32);
    in.set<In::nic_vport_context::permanent_address::mac_addr_31_0>(mac & 0xffffffff);
    return pf.exec(in);
  }
  static std::uint64_t mac_of(const CommandResult& r) {
    using C = prm::query_nic_vport_context_out::nic_vport_context::permanent_address;
    return std::uint64_t{r.get<C::mac_addr_47_32>()} << 32 | r.get<C::mac_addr_31_0>();
  }
  // Unicast addresses and promiscuity are watched.
  CommandResult arm(std::uint32_t vport, bool on = true) {
    using In = prm::modify_nic_vport_context_in;
    Mailbox in = about<In>(prm::op::MODIFY_NIC_VPORT_CONTEXT, vport);
    in.set<In::field_select::change_event>(1).set<In::nic_vport_context::arm_change_event>(on);
    in.set<In::nic_vport_context::event_on_uc_address_change>(1);
    in.set<In::nic_vport_context::event_on_promisc_change>(1);
    return pf.exec(in);
  }
  // The function lists one address of that kind (0 unicast, 1 multicast) as its own.
  static CommandResult list(bare::Device& d, std::uint32_t type, std::uint64_t mac) {
    using In = prm::modify_nic_vport_context_in;
    Mailbox in(prm::op::MODIFY_NIC_VPORT_CONTEXT, In::bytes + 8);
    in.set<In::field_select::addresses_list>(1).set<In::nic_vport_context::allowed_list_type>(type);
    in.set<In::nic_vport_context::allowed_list_size>(1);
    prm::store64(in.data() + In::nic_vport_context::current_uc_mac_address::bit_off / 8, mac);
    return d.exec(in);
  }
  CommandResult set_state(std::uint32_t vport, std::uint32_t state) {
    using In = prm::modify_vport_state_in;
    Mailbox in = about<In>(prm::op::MODIFY_VPORT_STATE, vport, 1);
    return pf.exec(in.set<In::admin_state>(state));
  }
  static std::uint32_t state_of(bare::Device& d) {
    Mailbox in(prm::op::QUERY_VPORT_STATE, prm::query_vport_state_in::bytes);
    return d.exec(in, prm::query_vport_state_out::bytes).must().get<prm::query_vport_state_out::state>();
  }
  CommandResult make_table(bare::Device& d, std::uint32_t type, std::uint32_t vport) {
    using In = prm::create_flow_table_in;
    Mailbox in(prm::op::CREATE_FLOW_TABLE, In::bytes);
    in.set<In::other_vport>(vport != 0).set<In::vport_number>(vport).set<In::table_type>(type);
    in.set<In::flow_table_context::log_size>(4);
    return d.exec(in, prm::create_flow_table_out::bytes);
  }
  std::size_t changes() {
    c.machine.advance(100'000);
    std::size_t n = 0;
    for (const auto& e : pf.async_events()) n += e.type == prm::EqeType::kNicVportChange;
    return n;
  }
};

}  // namespace hcasim
#endif
