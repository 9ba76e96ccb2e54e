// SPDX-License-Identifier: BSD-3-Clause
// The function's virtual port: HCA vport context, GID and P_Key tables, counters.
#include <algorithm>
#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"

namespace hcasim::fw {

namespace {

constexpr std::uint32_t kWholeTable = 0xffff;
constexpr std::uint32_t kPhysLinkUp = 5, kPhysPolling = 2;  // IBTA table 146, PortPhysicalState
// What a driver may change of PortInfo:CapabilityMask: what software on the host provides.
constexpr std::uint32_t kSettableCaps = kCapSm | kCapSnmp | kCapVendorClass | kCapDeviceManagement | kCapCm;

// Only the function itself and its one port.
template <class In>
Syndrome check_port(const Command& cmd) {
  if (cmd.get<typename In::other_vport>() != 0 || cmd.get<typename In::vport_number>() != 0)
    return Syndrome::kFunction;
  return cmd.get<typename In::port_num>() <= 1 ? Syndrome::kOk : Syndrome::kPortNumber;
}

template <class F>
void put_count(Command& cmd, const VportTraffic::Count& c) {
  cmd.put<typename F::packets>(c.packets);
  cmd.put<typename F::octets>(c.octets);
}

// "ib" are RoCE packets, "eth" all other frames.
void put_vport_traffic(Command& cmd, const VportTraffic& v) {
  using out = prm::query_vport_counter_out;
  using t = VportTraffic;
  put_count<out::received_ib_unicast>(cmd, v.rx_rdma[t::kUnicast]);
  put_count<out::transmitted_ib_unicast>(cmd, v.tx_rdma[t::kUnicast]);
  put_count<out::received_ib_multicast>(cmd, v.rx_rdma[t::kMulticast]);
  put_count<out::transmitted_ib_multicast>(cmd, v.tx_rdma[t::kMulticast]);
  put_count<out::received_eth_broadcast>(cmd, v.rx_eth[t::kBroadcast]);
  put_count<out::transmitted_eth_broadcast>(cmd, v.tx_eth[t::kBroadcast]);
  put_count<out::received_eth_unicast>(cmd, v.rx_eth[t::kUnicast]);
  put_count<out::transmitted_eth_unicast>(cmd, v.tx_eth[t::kUnicast]);
  put_count<out::received_eth_multicast>(cmd, v.rx_eth[t::kMulticast]);
  put_count<out::transmitted_eth_multicast>(cmd, v.tx_eth[t::kMulticast]);
}

}  // namespace

Syndrome query_hca_vport_context(Firmware& fw, Command& cmd) {
  using c = prm::query_hca_vport_context_out::hca_vport_context;
  const Syndrome s = check_port<prm::query_hca_vport_context_in>(cmd);
  if (s != Syndrome::kOk) return s;
  const Port& port = fw.device().port();
  const PortAgent& agent = fw.port();
  const auto state = static_cast<std::uint32_t>(port.state());
  cmd.put<c::has_smi>(1);
  cmd.put<c::port_physical_state>(port.state() == PortState::kDown ? kPhysPolling : kPhysLinkUp);
  cmd.put<c::port_state>(state);
  cmd.put<c::vport_state>(state);
  cmd.put<c::system_image_guid>(agent.system_image_guid());
  cmd.put<c::port_guid>(agent.port_guid());
  cmd.put<c::node_guid>(agent.node_guid());
  cmd.put<c::cap_mask1>(agent.cap_mask());
  cmd.put<c::cap_mask1_field_select>(kSettableCaps);
  cmd.put<c::lid>(port.lid());
  cmd.put<c::lmc>(port.lmc);
  cmd.put<c::subnet_timeout>(agent.subnet_timeout());
  cmd.put<c::sm_lid>(port.sm_lid);
  cmd.put<c::sm_sl>(port.sm_sl);
  return Syndrome::kOk;
}

Syndrome modify_hca_vport_context(Firmware& fw, Command& cmd) {
  using in = prm::modify_hca_vport_context_in;
  using c = in::hca_vport_context;
  const Syndrome s = check_port<in>(cmd);
  if (s != Syndrome::kOk) return s;
  // GUIDs and state policy are a manager's to set, for other vports.
  if (cmd.get<c::field_select>() != 0) return Syndrome::kVportField;
  const std::uint32_t mask = cmd.get<c::cap_mask1_field_select>();
  if ((mask & ~kSettableCaps) != 0 || cmd.get<c::cap_mask2_field_select>() != 0) return Syndrome::kVportField;
  PortAgent& agent = fw.port();
  const std::uint32_t before = agent.cap_mask();
  agent.set_caps(mask, cmd.get<c::cap_mask1>());
  if (agent.cap_mask() != before) fw.traps().capabilities_changed();
  return Syndrome::kOk;
}

Syndrome query_hca_vport_gid(Firmware& fw, Command& cmd) {
  using in = prm::query_hca_vport_gid_in;
  using out = prm::query_hca_vport_gid_out;
  const Syndrome s = check_port<in>(cmd);
  if (s != Syndrome::kOk) return s;
  const auto& gids = fw.function().vport().gids;
  const std::uint32_t index = cmd.get<in::gid_index>();
  const bool all = index == kWholeTable;
  if (!all && index >= gids.size()) return Syndrome::kGidIndex;
  const std::size_t n = all ? gids.size() : 1;
  if (!prm::fits<out::gid>(cmd.out_len, n - 1)) return Syndrome::kOutputShort;
  for (std::size_t i = 0; i < n; ++i)
    std::memcpy(prm::at<out::gid>(cmd.out.data(), i), gids[all ? i : index].data(), sizeof(Gid));
  cmd.put<out::gids_num>(static_cast<std::uint32_t>(n));
  return Syndrome::kOk;
}

Syndrome query_hca_vport_pkey(Firmware& fw, Command& cmd) {
  using in = prm::query_hca_vport_pkey_in;
  using out = prm::query_hca_vport_pkey_out;
  const Syndrome s = check_port<in>(cmd);
  if (s != Syndrome::kOk) return s;
  const auto& pkeys = fw.function().vport().pkeys;
  const std::uint32_t index = cmd.get<in::pkey_index>();
  const bool all = index == kWholeTable;
  if (!all && index >= pkeys.size()) return Syndrome::kPkeyIndex;
  const std::size_t n = all ? pkeys.size() : 1;
  if (!prm::fits<out::pkey>(cmd.out_len, n - 1)) return Syndrome::kOutputShort;
  for (std::size_t i = 0; i < n; ++i)
    prm::set<prm::pkey::pkey>(prm::at<out::pkey>(cmd.out.data(), i), pkeys[all ? i : index]);
  return Syndrome::kOk;
}

// Ports are not bonded here (no capability lag_master): the context of a LAG that is off, lag_state 0, says
// so.
Syndrome query_lag(Firmware&, Command&) { return Syndrome::kOk; }

Syndrome query_vport_counter(Firmware& fw, Command& cmd) {
  using in = prm::query_vport_counter_in;
  using out = prm::query_vport_counter_out;
  const Syndrome s = check_port<in>(cmd);
  if (s != Syndrome::kOk) return s;
  const PortCounters& c = fw.device().port().counters();
  cmd.put<out::received_errors::packets>(c.rx_errors);
  cmd.put<out::transmit_errors::packets>(c.tx_discards);
  if (fw.options().link == Link::kEthernet) {
    put_vport_traffic(cmd, c.vport);
  } else {
    cmd.put<out::received_ib_unicast::packets>(c.rx_packets - c.rx_multicast);
    cmd.put<out::received_ib_unicast::octets>(c.rx_bytes);
    cmd.put<out::transmitted_ib_unicast::packets>(c.tx_packets - c.tx_multicast);
    cmd.put<out::transmitted_ib_unicast::octets>(c.tx_bytes);
    cmd.put<out::received_ib_multicast::packets>(c.rx_multicast);
    cmd.put<out::transmitted_ib_multicast::packets>(c.tx_multicast);
  }
  if (cmd.get<in::clear>() != 0) fw.device().port().clear_counters();
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
