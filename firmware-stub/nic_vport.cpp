// SPDX-License-Identifier: BSD-3-Clause
// The function's virtual port on the Ethernet link: NIC vport context, state, RoCE address table, counters of
// its environment.
#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/vport_target.h"

namespace hcasim::fw {

namespace {

enum : std::uint32_t { kListUc = 0, kListMc = 1, kListVlan = 2 };  // nic_vport_context.allowed_list_type
enum : std::uint32_t { kStateDown = 0, kStateUp = 1, kStateFollow = 2 };  // query_vport_state_out
enum : std::uint16_t { kVnicVport = 0, kEswVport = 1, kUplink = 2 };      // op_mod of the vport state
constexpr std::size_t kListEntry = 8;  // bytes, MAC addresses and VLANs alike

Mac mac_of(std::uint64_t number) {
  Mac mac;
  for (unsigned i = 0; i < mac.size(); ++i) mac[i] = static_cast<std::uint8_t>(number >> (40 - 8 * i));
  return mac;
}

std::uint32_t list_limit(const Caps& caps, std::uint32_t type) {
  using g = prm::cmd_hca_cap;
  switch (type) {
    case kListUc:
      return 1u << caps.get<g::log_max_current_uc_list>();
    case kListMc:
      return 1u << caps.get<g::log_max_current_mc_list>();
    case kListVlan:
      return 1u << caps.get<g::log_max_vlan_list>();
    default:
      return 0;
  }
}

}  // namespace

std::uint32_t NicVport::differences(const NicVport& from) const {
  constexpr Change kOfList[] = {kUc, kMc, kVlan};
  std::uint32_t changed = mtu != from.mtu ? kMtu : 0u;
  if (promisc_uc != from.promisc_uc || promisc_mc != from.promisc_mc || promisc_all != from.promisc_all)
    changed |= kPromisc;
  for (std::size_t i = 0; i < lists.size(); ++i)
    if (lists[i] != from.lists[i]) changed |= kOfList[i];
  return changed;
}

Syndrome query_nic_vport_context(Firmware& fw, Command& cmd) {
  using in = prm::query_nic_vport_context_in;
  using c = prm::query_nic_vport_context_out::nic_vport_context;
  Firmware* of = vport_of<in>(fw, cmd);
  if (of == nullptr) return Syndrome::kFunction;
  const std::uint32_t type = cmd.get<in::allowed_list_type>();
  if (type > kListVlan) return Syndrome::kVportList;
  const NicVport& v = of->nic_vport();
  const auto& list = v.lists[type];
  const PortAgent& agent = fw.port();
  const bool vf = of->options().vf;
  cmd.put<c::min_wqe_inline_mode>(v.min_inline);
  cmd.put<c::roce_en>(of->function().vport().roce_enabled ? 1 : 0);
  cmd.put<c::mtu>(v.mtu);
  cmd.put<c::system_image_guid>(agent.system_image_guid());
  cmd.put<c::port_guid>(vf ? of->hca_vport().port_guid : agent.port_guid());
  cmd.put<c::node_guid>(vf ? of->hca_vport().node_guid : agent.node_guid());
  cmd.put<c::promisc_uc>(v.promisc_uc);
  cmd.put<c::promisc_mc>(v.promisc_mc);
  cmd.put<c::promisc_all>(v.promisc_all);
  cmd.put<c::arm_change_event>(of->hca_vport().watch.armed ? 1 : 0);
  cmd.put<c::allowed_list_type>(type);
  const Mac mac = vf ? mac_of(of->hca_vport().mac) : of->function().vport().mac;
  cmd.put<c::permanent_address::mac_addr_47_32>(static_cast<std::uint32_t>(mac[0]) << 8 | mac[1]);
  cmd.put<c::permanent_address::mac_addr_31_0>(prm::load32(mac.data() + 2));
  // The list as far as there is room for it.
  constexpr std::size_t kList = c::current_uc_mac_address::bit_off / 8;
  const std::size_t room = cmd.out_len > kList ? (cmd.out_len - kList) / kListEntry : 0;
  const std::size_t n = list.size() < room ? list.size() : room;
  cmd.put<c::allowed_list_size>(static_cast<std::uint32_t>(n));
  for (std::size_t i = 0; i < n; ++i) prm::store64(cmd.out.data() + kList + i * kListEntry, list[i]);
  return Syndrome::kOk;
}

namespace {

// What a manager wants to hear of a vport, its own or another one.
void watch(Firmware& of, const Command& cmd) {
  using f = prm::modify_nic_vport_context_in::field_select;
  using c = prm::modify_nic_vport_context_in::nic_vport_context;
  if (cmd.get<f::change_event>() == 0) return;
  const auto bit = [&cmd](auto field, std::uint32_t change) {
    return cmd.get<decltype(field)>() != 0 ? change : 0u;
  };
  of.watch_nic_vport(bit(c::event_on_uc_address_change{}, NicVport::kUc) |
                         bit(c::event_on_mc_address_change{}, NicVport::kMc) |
                         bit(c::event_on_vlan_change{}, NicVport::kVlan) |
                         bit(c::event_on_promisc_change{}, NicVport::kPromisc) |
                         bit(c::event_on_mtu{}, NicVport::kMtu),
                     cmd.get<c::arm_change_event>() != 0);
}

// Who a function is: its manager settles it.
void settle(Firmware& of, const Command& cmd) {
  using in = prm::modify_nic_vport_context_in;
  using f = in::field_select;
  using c = in::nic_vport_context;
  HcaVport& vport = of.hca_vport();
  if (cmd.get<f::permanent_address>() != 0)
    vport.mac = std::uint64_t{cmd.get<c::permanent_address::mac_addr_47_32>()} << 32 |
                cmd.get<c::permanent_address::mac_addr_31_0>();
  // Zero: none of its own, and the card's holds.
  const auto or_first = [&vport](std::uint64_t guid) { return guid != 0 ? guid : vport.first_guid(); };
  if (cmd.get<f::node_guid>() != 0) vport.node_guid = or_first(cmd.get<c::node_guid>());
  if (cmd.get<f::port_guid>() != 0) vport.port_guid = or_first(cmd.get<c::port_guid>());
}

// Whether the function's driver has an event queue for them.
bool hears_of_vports(Firmware& fw) {
  bool heard = false;
  fw.function().eqs().for_each([&](const Eq& eq) {
    heard = heard || (eq.mask[0] >> static_cast<unsigned>(prm::EqeType::kNicVportChange) & 1) != 0;
  });
  return heard;
}

// Which of a vport's lists that is.
NicVport::Change list_change(std::uint32_t type) {
  return type == kListUc ? NicVport::kUc : type == kListMc ? NicVport::kMc : NicVport::kVlan;
}

}  // namespace

Syndrome modify_nic_vport_context(Firmware& fw, Command& cmd) {
  using in = prm::modify_nic_vport_context_in;
  using f = in::field_select;
  using c = in::nic_vport_context;
  Firmware* of = vport_of<in>(fw, cmd);
  if (of == nullptr) return Syndrome::kFunction;
  // Local loopback cannot be switched off (disable_local_lb_* are not offered), nor is there another port to
  // be affiliated to.
  if (cmd.get<f::affiliation>() != 0 || cmd.get<f::disable_uc_local_lb>() != 0 ||
      cmd.get<f::disable_mc_local_lb>() != 0)
    return Syndrome::kVportField;
  const bool guids = cmd.get<f::node_guid>() != 0 || cmd.get<f::port_guid>() != 0;
  if (guids && of == &fw) return Syndrome::kVportField;  // the card's
  if (cmd.get<f::permanent_address>() != 0 && of == &fw && fw.options().vf) return Syndrome::kVportField;
  if (cmd.get<f::change_event>() != 0 && !fw.manages()) return Syndrome::kVportField;
  if (cmd.get<f::change_event>() != 0 && cmd.get<c::arm_change_event>() != 0 && !hears_of_vports(fw))
    fw.tracer().broke_value(traces::Rule::kEventUnheard, cmd.now, traces::RuleObject::kCommand, cmd.seq,
                            cmd.get<in::vport_number>());
  if (of != &fw) {  // its lists, and whether it has RoCE, are the function's own affair
    if (cmd.get<f::addresses_list>() != 0 || cmd.get<f::promisc>() != 0 || cmd.get<f::mtu>() != 0 ||
        cmd.get<f::roce_en>() != 0)
      return Syndrome::kVportField;
    if (cmd.get<f::min_inline>() != 0) of->nic_vport().min_inline = cmd.get<c::min_wqe_inline_mode>();
    settle(*of, cmd);
    watch(*of, cmd);
    return Syndrome::kOk;
  }
  NicVport& v = fw.nic_vport();
  std::uint32_t changed = 0;
  NicVport next = v;
  if (cmd.get<f::min_inline>() != 0) {
    next.min_inline = cmd.get<c::min_wqe_inline_mode>();
  }
  // 0 leaves it as it is: OpenBSD's mcx asks so before it knows what it wants.
  if (const std::uint32_t mtu = cmd.get<c::mtu>(); cmd.get<f::mtu>() != 0 && mtu != 0) {
    next.mtu = mtu;
    if (next.mtu > kMaxEthMtu) return Syndrome::kVportField;
    changed |= NicVport::kMtu;
  }
  if (cmd.get<f::promisc>() != 0) {
    next.promisc_uc = cmd.get<c::promisc_uc>();
    next.promisc_mc = cmd.get<c::promisc_mc>();
    next.promisc_all = cmd.get<c::promisc_all>();
    changed |= NicVport::kPromisc;
  }
  if (cmd.get<f::addresses_list>() != 0) {
    const std::uint32_t type = cmd.get<c::allowed_list_type>(), n = cmd.get<c::allowed_list_size>();
    if (type > kListVlan || n > list_limit(fw.caps(), type)) return Syndrome::kVportList;
    constexpr std::size_t kList = c::current_uc_mac_address::bit_off / 8;
    if (cmd.in_len < kList + n * kListEntry) return Syndrome::kInputShort;
    changed |= list_change(type);
    next.lists[type].clear();
    for (std::uint32_t i = 0; i < n; ++i)
      next.lists[type].push_back(prm::load64(cmd.in.data() + kList + i * kListEntry));
  }
  v = std::move(next);
  Vport& vport = fw.function().vport();
  if (cmd.get<f::permanent_address>() != 0) {
    vport.mac[0] = static_cast<std::uint8_t>(cmd.get<c::permanent_address::mac_addr_47_32>() >> 8);
    vport.mac[1] = static_cast<std::uint8_t>(cmd.get<c::permanent_address::mac_addr_47_32>());
    prm::store32(vport.mac.data() + 2, cmd.get<c::permanent_address::mac_addr_31_0>());
  }
  if (cmd.get<f::roce_en>() != 0) vport.roce_enabled = cmd.get<c::roce_en>() != 0;
  watch(fw, cmd);
  if (changed != 0) fw.nic_vport_changed(changed);
  return Syndrome::kOk;
}

Syndrome query_vport_state(Firmware& fw, Command& cmd) {
  using in = prm::query_vport_state_in;
  using out = prm::query_vport_state_out;
  Firmware* of = vport_of<in>(fw, cmd);
  if (of == nullptr) return Syndrome::kFunction;
  if (cmd.op_mod > kUplink) return Syndrome::kOpMod;
  const HcaVport& vport = of->hca_vport();
  const PortState port = fw.device().port().state();
  const PortState seen = cmd.op_mod == kUplink ? port : vport.state(port);
  cmd.put<out::admin_state>(cmd.op_mod == kUplink ? (fw.port().admin_up() ? kStateUp : kStateDown)
                            : of->options().vf    ? static_cast<std::uint32_t>(vport.policy)
                                                  : kStateFollow);
  cmd.put<out::state>(seen == PortState::kActive ? kStateUp : kStateDown);
  return Syndrome::kOk;
}

Syndrome modify_vport_state(Firmware& fw, Command& cmd) {
  using in = prm::modify_vport_state_in;
  Firmware* of = vport_of<in>(fw, cmd);
  if (of == nullptr) return Syndrome::kFunction;
  const std::uint32_t wanted = cmd.get<in::admin_state>();
  if (cmd.op_mod == kUplink) {
    if (of->options().vf || fw.options().vf) return Syndrome::kFunction;
    if (wanted > kStateFollow) return Syndrome::kVportField;
    fw.port().set_admin(wanted !=
                        kStateDown);  // follow: as the port goes, which is up unless its cable is not
    return Syndrome::kOk;
  }
  if (cmd.op_mod > kUplink) return Syndrome::kOpMod;
  if (wanted > kStateFollow) return Syndrome::kVportField;
  // The vport of the function itself follows the port; only others can be forced.
  if (of == &fw) return wanted == kStateFollow ? Syndrome::kOk : Syndrome::kVportField;
  const PortState before = of->hca_vport().state(fw.device().port().state());
  of->hca_vport().policy = static_cast<VportPolicy>(wanted);
  of->vport_state_changed(before);
  return Syndrome::kOk;
}

Syndrome set_roce_address(Firmware& fw, Command& cmd) {
  using in = prm::set_roce_address_in;
  using a = in::roce_address;
  enum : std::uint32_t { kIpv4 = 0, kIpv6 = 1 };          // roce_l3_type
  enum : std::uint32_t { kVersion1 = 0, kVersion2 = 2 };  // roce_version
  const std::uint32_t index = cmd.get<in::roce_address_index>();
  if (index >= Vport::kRoceAddresses) return Syndrome::kRoceIndex;
  if (cmd.get<in::vhca_port_num>() > 1) return Syndrome::kPortNumber;
  RoceAddress next;
  std::memcpy(next.gid.data(), prm::ptr<a::source_l3_address>(cmd.in.data()), next.gid.size());
  const std::uint32_t version = cmd.get<a::roce_version>(), l3 = cmd.get<a::roce_l3_type>();
  // All zero: the entry goes.
  next.valid = next.gid != Gid{};
  if (next.valid) {
    if (version != kVersion1 && version != kVersion2) return Syndrome::kRoceAddress;
    if (l3 != kIpv4 && l3 != kIpv6) return Syndrome::kRoceAddress;
    next.version = static_cast<std::uint8_t>(version);
    next.ipv4 = version == kVersion2 && l3 == kIpv4;
    const std::uint32_t high = cmd.get<a::source_mac_47_32>();
    next.mac[0] = static_cast<std::uint8_t>(high >> 8);
    next.mac[1] = static_cast<std::uint8_t>(high);
    prm::store32(next.mac.data() + 2, cmd.get<a::source_mac_31_0>());
    next.vlan_valid = cmd.get<a::vlan_valid>() != 0;
    next.vlan_id = static_cast<std::uint16_t>(cmd.get<a::vlan_id>());
  }
  fw.function().vport().set_roce_address(index, next);
  return Syndrome::kOk;
}

Syndrome query_roce_address(Firmware& fw, Command& cmd) {
  using a = prm::query_roce_address_out::roce_address;
  const std::uint32_t index = cmd.get<prm::query_roce_address_in::roce_address_index>();
  if (index >= Vport::kRoceAddresses) return Syndrome::kRoceIndex;
  const RoceAddress& e = fw.function().vport().roce_address(index);
  std::memcpy(prm::ptr<a::source_l3_address>(cmd.out.data()), e.gid.data(), e.gid.size());
  cmd.put<a::vlan_valid>(e.vlan_valid ? 1 : 0);
  cmd.put<a::vlan_id>(e.vlan_id);
  cmd.put<a::source_mac_47_32>(static_cast<std::uint32_t>(e.mac[0]) << 8 | e.mac[1]);
  cmd.put<a::source_mac_31_0>(prm::load32(e.mac.data() + 2));
  cmd.put<a::roce_l3_type>(e.valid && !e.ipv4 ? 1 : 0);
  cmd.put<a::roce_version>(e.version);
  return Syndrome::kOk;
}

Syndrome query_vnic_env(Firmware& fw, Command& cmd) {
  using env = prm::query_vnic_env_out::vport_env;
  Firmware* of = vport_of<prm::query_vnic_env_in>(fw, cmd);
  if (of == nullptr) return Syndrome::kFunction;
  const FrameCounters& c = of->function().eth().counters;
  const Firmware::Errors errors = of->own_errors();
  cmd.put<env::total_error_queues>(static_cast<std::uint32_t>(errors.queues));
  cmd.put<env::invalid_command>(static_cast<std::uint32_t>(errors.commands));
  cmd.put<env::quota_exceeded_command>(static_cast<std::uint32_t>(errors.over_limit));
  cmd.put<env::nic_receive_steering_discard>(c.no_rule);  // a rule that drops is a match
  cmd.put<env::receive_discard_vport_down>(of->function().vport().rx_down);
  cmd.put<env::transmit_discard_vport_down>(of->function().vport().tx_down);
  return Syndrome::kOk;
}

// UDP ports of VXLAN: the card's parser has them, physical functions give them.
Syndrome add_vxlan_udp_dport(Firmware& fw, Command& cmd) {
  if (fw.options().vf) return Syndrome::kFunction;
  const auto port = static_cast<std::uint16_t>(cmd.get<prm::add_vxlan_udp_dport_in::vxlan_udp_port>());
  if (port == 0) return Syndrome::kVxlanPort;
  return fw.device().vxlan_ports().add(fw.function().id(), port) ? Syndrome::kOk : Syndrome::kVxlanLimit;
}

Syndrome delete_vxlan_udp_dport(Firmware& fw, Command& cmd) {
  const auto port = static_cast<std::uint16_t>(cmd.get<prm::delete_vxlan_udp_dport_in::vxlan_udp_port>());
  return fw.device().vxlan_ports().remove(fw.function().id(), port) ? Syndrome::kOk : Syndrome::kVxlanPort;
}

}  // namespace hcasim::fw
