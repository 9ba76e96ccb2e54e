// SPDX-License-Identifier: BSD-3-Clause
// Ethernet link: NIC vport context, port state, RoCE address table.
#include <algorithm>

#include "driver/bare/device.h"

namespace hcasim::bare {

namespace {

void set_mac_of_vport(std::uint64_t high, std::uint64_t low, Mac& mac) {
  for (unsigned i = 0; i < 2; ++i) mac[i] = static_cast<std::uint8_t>(high >> (8 - 8 * i));
  for (unsigned i = 0; i < 4; ++i) mac[2 + i] = static_cast<std::uint8_t>(low >> (24 - 8 * i));
}

Gid mapped(const Mac& mac, std::uint8_t net) {
  Gid g{};
  g[10] = g[11] = 0xff;
  g[12] = net;
  std::copy(mac.begin() + 3, mac.end(), g.begin() + 13);
  return g;
}

Gid link_local(const Mac& mac) {
  Gid g{0xfe, 0x80};
  std::copy(mac.begin(), mac.begin() + 3, g.begin() + 8);
  g[8] ^= 2;
  g[11] = 0xff;
  g[12] = 0xfe;
  std::copy(mac.begin() + 3, mac.end(), g.begin() + 13);
  return g;
}

}  // namespace

CommandResult Device::set_roce_address(unsigned index, const RoceEntry& e) {
  using In = prm::set_roce_address_in;
  using A = In::roce_address;
  Mailbox in(prm::op::SET_ROCE_ADDRESS, In::bytes);
  in.set<In::roce_address_index>(index);
  std::copy(e.gid.begin(), e.gid.end(), in.begin() + A::source_l3_address::bit_off / 8);
  const auto mac32 = [&](unsigned from, unsigned n) {
    std::uint32_t v = 0;
    for (unsigned i = 0; i < n; ++i) v = v << 8 | e.mac[from + i];
    return v;
  };
  in.set<A::source_mac_47_32>(mac32(0, 2));
  in.set<A::source_mac_31_0>(mac32(2, 4));
  in.set<A::vlan_valid>(e.vlan_valid ? 1 : 0);
  in.set<A::vlan_id>(e.vlan_id);
  in.set<A::roce_l3_type>(e.ipv4 ? 0 : 1);
  in.set<A::roce_version>(e.version);
  auto r = exec(in, prm::set_roce_address_out::bytes);
  if (r.ok()) {
    if (index >= roce_.size()) roce_.resize(index + 1);
    roce_[index] = e;
  }
  return r;
}

CommandResult Device::enable_roce(bool on) {
  using In = prm::modify_nic_vport_context_in;
  Mailbox in(prm::op::MODIFY_NIC_VPORT_CONTEXT, In::bytes);
  in.set<In::field_select::roce_en>(1);
  in.set<In::nic_vport_context::roce_en>(on ? 1 : 0);
  return exec(in, prm::modify_nic_vport_context_out::bytes);
}

void Device::start_roce() {
  using C = prm::query_nic_vport_context_out::nic_vport_context;
  const auto r = exec(Mailbox(prm::op::QUERY_NIC_VPORT_CONTEXT, prm::query_nic_vport_context_in::bytes),
                      prm::query_nic_vport_context_out::bytes);
  r.must();
  set_mac_of_vport(r.get<C::permanent_address::mac_addr_47_32>(),
                   r.get<C::permanent_address::mac_addr_31_0>(), mac_);
  if (cap<prm::cmd_hca_cap::roce>() == 0) return;  // a function whose manager wants none
  enable_roce(true).must();
  const RoceEntry entries[kRoceEntries] = {{mapped(mac_, 10), mac_, true, 2, false, 0},
                                           {link_local(mac_), mac_, false, 2, false, 0},
                                           {link_local(mac_), mac_, false, 0, false, 0},
                                           {mapped(mac_, 11), mac_, true, 2, true, kTestVlan}};
  for (unsigned i = 0; i < kRoceEntries; ++i) set_roce_address(i, entries[i]).must();
}

}  // namespace hcasim::bare
